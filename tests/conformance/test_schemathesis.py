"""schemathesis with OpenAI's published document against the command, and the same requests as streams.

Rules: where the server and the document differ, a function here says in what and
why. The model answers anything with one short turn; names of models are any.
Source: responses.md 1.2, 2 (T5).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import httpx2
import pytest

from tests.responses.output.contract import OPENAPI, check, comply
from tests.server.process import Process
from tests.server.running import read_events

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]

SCRIPT = f"scripted:{Path(__file__).parent / 'anything.toml'}"
CHECKS = "not_a_server_error,content_type_conformance,response_schema_conformance"
EXAMPLES = 200
FIXED = (
    f"--phases fuzzing --checks {CHECKS} --max-examples {EXAMPLES} --seed 1"
    " --generation-database none --warnings off --no-color --report har"
)


def differing(document):
    """``document`` as the service is: it differs from its own document in two places."""
    schemas = document["components"]["schemas"]
    # Null until the end, which clients see of a response in the background.
    rest = schemas["Response"]["allOf"][2]["properties"]
    rest["usage"] = {"anyOf": [rest["usage"], {"type": "null"}]}
    # An error stands under "error" everywhere; for a DELETE the document leaves that out.
    found = document["paths"]["/responses/{response_id}"]["delete"]["responses"]["404"]
    found["content"]["application/json"]["schema"] = {"$ref": "#/components/schemas/ErrorResponse"}
    return document


def answerable(document):
    """``document`` of requests that can be answered here, so that most of them are."""
    schemas = document["components"]["schemas"]
    create = schemas["CreateResponse"]["allOf"][2]
    create["required"] = ["model", "input"]  # no model is a default here
    named = {"type": "string", "minLength": 1}
    schemas["ResponseProperties"]["properties"]["model"] = named
    # What they name has to be there first, and nothing is.
    for name in ("prompt", "previous_response_id"):
        del schemas["ResponseProperties"]["properties"][name]
    del create["properties"]["conversation"]
    return document


class Ran:
    """One run of schemathesis: what it asked and what was answered."""

    def __init__(self, url, document, folder, *options):
        described, report = folder / "document.json", folder / "report.har"
        described.write_text(json.dumps(document))
        command = [sys.executable, "-m", "schemathesis.cli", "run", str(described), "--url", url]
        done = subprocess.run(
            [*command, *FIXED.split(), "--report-har-path", str(report), *options],
            check=False,
            cwd=folder,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        self.entries = json.loads(report.read_text())["log"]["entries"]

    def statuses(self, method="POST"):
        asked = [entry for entry in self.entries if entry["request"]["method"] == method]
        return Counter(entry["response"]["status"] for entry in asked)

    def answered(self):
        """The bodies that were answered, each with its answer."""
        for entry in self.entries:
            if entry["response"]["status"] == 200:
                asked = json.loads(entry["request"]["postData"]["text"])
                yield asked, json.loads(entry["response"]["content"]["text"])


@pytest.fixture(scope="module")
def served():
    with Process("--engine", SCRIPT, "--store", "memory", "--model-name", "*") as process:
        yield process.url


@pytest.fixture
def document():
    return differing(json.loads(OPENAPI.read_text()))


def test_no_request_of_any_kind_is_an_error_of_the_server(served, document, tmp_path):
    ran = Ran(served, document, tmp_path)
    assert sum(ran.statuses().values()) >= EXAMPLES
    assert set(ran.statuses()) <= {200, 400, 404}
    assert ran.statuses("GET")
    assert ran.statuses("DELETE")


def test_valid_requests_are_answered_as_the_document_says(served, document, tmp_path):
    valid = ("--mode", "positive", "--include-path", "/responses")
    ran = Ran(served, answerable(document), tmp_path, *valid)
    assert sum(ran.statuses().values()) >= EXAMPLES
    assert ran.statuses()[200] > EXAMPLES / 2
    with httpx2.Client(base_url=served, timeout=20, trust_env=False) as http:
        for asked, answer in ran.answered():
            reads_again(http, answer)
            streams(http, asked)


def reads_again(http, answer):
    """What was stored is what was answered."""
    if answer["store"] and not answer["background"]:
        assert http.get(f"/responses/{answer['id']}").json() == answer


def streams(http, asked):
    """The same request as a stream is a whole one, of events that the document has."""
    answer = http.post("/responses", json=asked | {"stream": True})
    assert answer.status_code == 200
    events = read_events(answer.content)
    check(events)
    comply(events)
