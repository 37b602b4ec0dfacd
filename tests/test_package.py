"""The package as it is installed: version, wheel, import time, public names."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

import atem

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

# What a bare `import atem` must not pay for: engines, clients, servers and screens, and the
# dependencies that only some calls need.
HEAVY = {
    "click",
    "httpx2",
    "jinja2",
    "jsonschema",
    "mlx",
    "numpy",
    "openai",
    "pydantic",
    "regex",
    "rich",
    "starlette",
    "tokenizers",
    "torch",
    "transformers",
}
MAX_IMPORT = 0.15  # seconds of processor time beyond what an empty interpreter needs to start


def fresh(code: str) -> str:
    """Run code in a new interpreter, outside the tree, and return what it printed."""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        check=True,
        cwd=Path(sys.executable).parent,
        text=True,
    )
    return run.stdout


# ----------------------------------------------------------------- version


def test_the_version_is_written_once_and_the_metadata_agrees() -> None:
    assert "version" not in PROJECT
    assert "version" in PROJECT["dynamic"]
    assert metadata.version("muse-atem") == atem.__version__
    assignment = re.compile(r"^__version__\b.*=", re.MULTILINE)
    sources = [
        path for path in (ROOT / "atem").rglob("*.py") if assignment.search(path.read_text())
    ]
    assert sources == [ROOT / "atem/__init__.py"]


def test_a_bare_install_needs_three_packages_only() -> None:
    bare = [line for line in metadata.requires("muse-atem") or () if "extra ==" not in line]
    names = {re.match(r"[\w-]+", line)[0] for line in bare}
    assert names == {"pydantic", "regex", "jsonschema"}


# ------------------------------------------------------------------- wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """A wheel of the tree, built without the network."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    assert path.name == f"muse_atem-{atem.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(path) as archive:
        yield archive


def test_the_wheel_holds_the_package_and_its_metadata_only(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/", 1)[0] for name in wheel.namelist()}
    assert tops == {"atem", f"muse_atem-{atem.__version__}.dist-info"}


def test_the_wheel_holds_every_module_and_no_leftover(wheel: zipfile.ZipFile) -> None:
    built = {name for name in wheel.namelist() if name.startswith("atem/")}
    source = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "atem").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert built == source
    assert "atem/py.typed" in built


def test_the_wheel_carries_the_licence(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith("/licenses/LICENSE"))
    assert wheel.read(name) == (ROOT / "LICENSE").read_bytes()


# ------------------------------------------------------------------ import


def test_importing_atem_pulls_in_nothing_heavy() -> None:
    loaded = json.loads(
        fresh("import atem, json, sys; print(json.dumps([m.split('.')[0] for m in sys.modules]))")
    )
    assert "atem" in loaded
    assert HEAVY.isdisjoint(loaded)


def test_importing_atem_is_quick() -> None:
    # The process's own time, and the best of several: others may keep the machine busy.
    code = "import time; t = time.process_time(); import atem; print(time.process_time() - t)"
    assert any(float(fresh(code)) < MAX_IMPORT for _ in range(10))


PARSING = """
import atem, json, sys

schema = {"type": "object", "properties": {"path": {"type": "string"}}}
call = ' to=read<|message|><atem:invoke name="read"></atem:invoke><|eot|>'
assert atem.parse(call, tools=[atem.Tool("read", parameters=schema)], validate="off").calls
print(json.dumps([name.split(".")[0] for name in sys.modules]))
"""


def test_parsing_pulls_in_nothing_heavy_until_arguments_are_validated() -> None:
    assert HEAVY.isdisjoint(json.loads(fresh(PARSING)))
    checked = fresh(PARSING.replace(', validate="off"', ""))
    assert "jsonschema" in json.loads(checked)
    assert HEAVY & set(json.loads(checked)) <= {"jsonschema", "regex"}


def test_importing_atem_prints_nothing() -> None:
    assert fresh("import atem") == ""


# ------------------------------------------------------------ public names


def test_all_is_sorted_and_names_exactly_the_public_members() -> None:
    assert list(atem.__all__) == sorted(set(atem.__all__))
    code = (
        "import atem, json, types\n"
        "names = {n: isinstance(getattr(atem, n), types.ModuleType) for n in dir(atem)}\n"
        "print(json.dumps([n for n, module in names.items() if n[0] != '_' and not module]))"
    )
    public = {name for name in json.loads(fresh(code)) if name != "annotations"}
    assert public == {name for name in atem.__all__ if not name.startswith("_")}


@pytest.mark.parametrize("name", atem.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    value = getattr(atem, name)
    if inspect.isclass(value) or inspect.isfunction(value):  # and no alias of a type
        assert value.__doc__


def test_an_unknown_name_is_an_attribute_error_that_names_it() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        atem.no_such_name  # noqa: B018


def test_a_star_import_gives_the_public_names() -> None:
    code = "from atem import *\nimport json\nprint(json.dumps([n for n in dir() if n[0] != '_']))"
    names = set(json.loads(fresh(code))) - {"json"}
    assert names == {name for name in atem.__all__ if not name.startswith("_")}


def test_the_commands_are_declared_and_exist() -> None:
    scripts = metadata.distribution("muse-atem").entry_points.select(group="console_scripts")
    assert {script.name: script.value for script in scripts} == PROJECT["scripts"]
    for script in scripts:
        assert callable(script.load())
        assert (Path(sys.executable).parent / script.name).exists() or os.name == "nt"
