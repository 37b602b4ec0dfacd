"""Each kind of refusal: its status, type and code (responses.md 1.13), and its body."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from openai.types.shared.error_object import ErrorObject

from atem.responses import faults

if TYPE_CHECKING:
    from atem.responses.faults import ApiError

KINDS = [
    (faults.bad_value("x", "m"), 400, "invalid_request_error", "invalid_value", "x"),
    (faults.missing("x"), 400, "invalid_request_error", "missing_required_parameter", "x"),
    (faults.unsupported("x", "m"), 400, "invalid_request_error", "unsupported_parameter", "x"),
    (faults.bad_schema("x", "m"), 400, "invalid_request_error", "invalid_json_schema", "x"),
    (faults.bad_blob("x"), 400, "invalid_request_error", "invalid_encrypted_content", "x"),
    (faults.too_long(9, 8), 400, "invalid_request_error", "context_length_exceeded", "input"),
    (faults.previous_not_found("r"), 400, "invalid_request_error", "previous_response_not_found", "previous_response_id"),
    (faults.not_found("m"), 404, "invalid_request_error", None, None),
    (faults.model_not_found("x"), 404, "invalid_request_error", "model_not_found", "model"),
    (faults.unauthorized(), 401, "invalid_request_error", "invalid_api_key", None),
    (faults.rate_limited("m"), 429, "rate_limit_error", "rate_limit_exceeded", None),
    (faults.overloaded("m"), 503, "server_error", "server_is_overloaded", None),
    (faults.server_error("m"), 500, "server_error", None, None),
    (faults.server_error("m", status=504), 504, "server_error", None, None),
]  # fmt: skip


@pytest.mark.parametrize(("error", "status", "kind", "code", "param"), KINDS)
def test_each_kind_has_its_status_type_code_and_place(
    error: ApiError, status: int, kind: str, code: str | None, param: str | None
) -> None:
    assert (error.status, error.type, error.code, error.param) == (status, kind, code, param)


@pytest.mark.parametrize("error", [kind[0] for kind in KINDS])
def test_a_body_is_an_error_of_the_sdk(error: ApiError) -> None:
    body = json.loads(json.dumps(error.body()))
    assert set(body) == {"error"}
    ErrorObject.model_validate(body["error"], strict=True)
    assert body["error"]["message"] == str(error)
