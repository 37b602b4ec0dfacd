# Each target makes the environment it needs, in .venv, with pip as the machine configures it.
# PYTHON picks the interpreter (3.11 or later), ARGS is passed on to pytest, JOBS is how many
# processes share the tests (a file of tests stays in one; 0 runs them in pytest's own).

PYTHON ?= python3
JOBS   ?= auto
VENV   := .venv
BIN    := $(VENV)/bin
RUN    := $(BIN)/python
# Left behind by a finished installation, so that it is repeated only when pyproject.toml changes.
READY  := $(VENV)/.installed
TOOLS  := $(VENV)/.installed-tools
# Ray decides on the versions of much that atem uses too, so it gets an environment of its own.
SCALE  := .venv-scale
# Programs of others that are driven against the server, each folder with its own list.
NODE   := .clients/node/.installed
PYLIBS := .clients/python/.installed
# Installed first, so that nothing that merely wants "torch" chooses another build.
TORCH  ?= torch==2.13.0

.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help demo test lint types figures bench peers clients scale clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(READY) ## A small model works on the files in examples/demo; then turns that are hard to read
	@$(RUN) examples/demo.py
	@echo
	@$(RUN) examples/parse_turns.py

test: $(READY) ## Run the tests (ARGS="-k name" for some of them)
	$(RUN) -m pytest -n $(JOBS) --dist loadfile $(ARGS)

lint: $(TOOLS) ## Check style, format and the direction of imports
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports

types: $(TOOLS) ## Check the types of the package, and as a user of it sees them
	$(BIN)/mypy
	$(BIN)/mypy --strict tests/typing
	$(BIN)/pyright

figures: ## Print the house figures; fails past a hard limit
	$(PYTHON) tests/figures.py

bench: $(READY) ## Measure parser, torch engine and server beside floors and peers (FULL=1 for all)
	$(RUN) tests/bench $(if $(FULL),--full)
	$(RUN) tests/bench/runtime $(if $(FULL),,--quick)
	$(RUN) tests/bench/serve $(if $(FULL),,--quick)

peers: $(READY) ## Install the released peers that the benchmark compares with (0.5 GB)
	$(RUN) tests/bench/peers.py

clients: $(READY) $(NODE) $(PYLIBS) ## Drive the clients of others against atem-serve (downloads 0.7 GB, keeps 1.7)
	$(RUN) -m pytest tests/clients -m clients --timeout 180 $(ARGS)

scale: $(SCALE)/.installed ## Replicas behind nginx, and in Ray Serve (downloads 0.2 GB, keeps 0.6)
	$(SCALE)/bin/python -m pytest tests/server/test_nginx.py tests/scale -m "" --timeout 180 $(ARGS)

clean: ## Remove the environment and every cache
	rm -rf $(VENV) $(SCALE) .clients .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# The check finds a missing, half-made or moved environment; dependency groups need pip 25.1.
$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "atem needs Python 3.11 or later, found " + sys.version.split()[0] + ": make PYTHON=python3.12 ...")'
	@$(RUN) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --upgrade 'pip>=25.1'
	$(RUN) -m pip install --quiet $(TORCH)
	$(RUN) -m pip install --quiet --editable '.[agent,engine,cuda,gguf,grammar,remote,server,postgres,redis]' --group test
	@touch $@

$(TOOLS): pyproject.toml $(READY)
	$(RUN) -m pip install --quiet --group dev
	@touch $@

$(SCALE)/.installed: pyproject.toml
	$(PYTHON) -m venv $(SCALE)
	$(SCALE)/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(SCALE)/bin/python -m pip install --quiet --editable '.[engine,remote,server,postgres,redis]' --group scale
	@touch $@

$(NODE): tests/clients/node/package.json
	@mkdir -p $(@D)
	cp $< $(@D)
	npm install --prefix $(@D) --no-audit --no-fund --no-update-notifier
	@touch $@

$(PYLIBS): tests/clients/python/requirements.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --requirement $<
	@touch $@
