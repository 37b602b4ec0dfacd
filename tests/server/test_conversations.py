"""Conversations: kept under an id, gone on from, added to by what came to a good end."""

from __future__ import annotations

import openai
import pytest

from tests.server.running import HELLO, MODEL, Broken, running


@pytest.fixture(scope="module")
def served():
    with running(lambda request: HELLO) as server:
        yield server


@pytest.fixture(scope="module")
def client(served):
    with openai.OpenAI(base_url=served.url, api_key="none", max_retries=0) as made:
        yield made


def said(text):
    return {"type": "message", "role": "user", "content": text}


def test_the_openai_sdk_makes_reads_changes_and_deletes_one(client):
    made = client.conversations.create(items=[said("one")], metadata={"a": "b"})
    assert made.id.startswith("conv_")
    assert client.conversations.retrieve(made.id) == made
    assert client.conversations.update(made.id, metadata={"c": "d"}).metadata == {"c": "d"}
    assert client.conversations.items.list(made.id).data[0].content[0].text == "one"
    assert client.conversations.delete(made.id).deleted is True
    with pytest.raises(openai.NotFoundError):
        client.conversations.retrieve(made.id)


def test_items_are_added_listed_read_and_removed(client):
    made = client.conversations.create()
    added = client.conversations.items.create(made.id, items=[said("one"), said("two")])
    assert [item.content[0].text for item in added.data] == ["one", "two"]
    first, second = (item.id for item in added.data)
    assert client.conversations.items.retrieve(first, conversation_id=made.id).id == first
    assert [item.id for item in client.conversations.items.list(made.id, limit=1)] == [
        second,
        first,
    ]
    assert client.conversations.items.delete(first, conversation_id=made.id).id == made.id
    assert [item.id for item in client.conversations.items.list(made.id)] == [second]


def test_the_items_of_one_come_in_pages(served):
    body = {"items": [said(str(number)) for number in range(5)]}
    made = served.http.post("/v1/conversations", json=body).json()["id"]
    path, after, pages = f"/v1/conversations/{made}/items", None, []
    while not pages or pages[-1]["has_more"]:
        query = {"limit": 2, "order": "asc"} | ({} if after is None else {"after": after})
        pages.append(served.http.get(path, params=query).json())
        after = pages[-1]["last_id"]
    for page in pages:
        assert page["object"] == "list"
        assert (page["first_id"], page["last_id"]) == (
            page["data"][0]["id"],
            page["data"][-1]["id"],
        )
    texts = [[item["content"][0]["text"] for item in page["data"]] for page in pages]
    assert texts == [["0", "1"], ["2", "3"], ["4"]]
    assert served.http.get(path, params={"after": after, "order": "asc"}).json() == {
        "object": "list",
        "data": [],
        "first_id": None,
        "last_id": None,
        "has_more": False,
    }
    newest = served.http.get(path, params={"limit": 1}).json()
    assert (newest["first_id"], newest["has_more"]) == (after, True)
    for wrong in ({"after": "msg_none"}, {"limit": 0}, {"limit": 101}, {"order": "up"}):
        answered = served.http.get(path, params=wrong)
        assert (answered.status_code, answered.json()["error"]["param"]) == (400, *wrong)


def test_a_response_goes_on_from_it_and_adds_what_was_said(served, client):
    made = client.conversations.create(items=[said("The word is sesame.")])
    first = client.responses.create(model=MODEL, input="One?", conversation=made.id)
    assert first.conversation.id == made.id
    client.responses.create(model=MODEL, input="Two?", conversation={"id": made.id}, store=False)
    prompt = served.engine.requests[-1].prompt.text()
    assert prompt.index("sesame") < prompt.index("One?") < prompt.index("Two?")
    kinds = [item.role for item in client.conversations.items.list(made.id, order="asc")]
    assert kinds == ["user", "user", "assistant", "user", "assistant"]


def test_one_that_failed_adds_nothing():
    with running(Broken(RuntimeError("gone"))) as server:
        made = server.http.post("/v1/conversations", json={}).json()["id"]
        assert server.create("One?", conversation=made).status_code == 500
        listed = server.http.get(f"/v1/conversations/{made}/items").json()
    assert listed == {
        "object": "list",
        "data": [],
        "first_id": None,
        "last_id": None,
        "has_more": False,
    }


def test_an_item_of_a_conversation_can_be_named(served, client):
    made = client.conversations.create(items=[said("The word is sesame.")])
    item = client.conversations.items.list(made.id).data[0].id
    named = [{"type": "item_reference", "id": item}, said("?")]
    client.responses.create(model=MODEL, input=named)
    assert "sesame" in served.engine.requests[-1].prompt.text()


@pytest.mark.parametrize(
    ("asked", "body", "told"),
    [
        ("POST ", {"items": 5}, (400, "items")),
        ("POST ", {"items": [5]}, (400, "items[0]")),
        ("POST ", {"metadata": {"a": 5}}, (400, "metadata.a")),
        ("GET /conv_none", None, (404, None)),
        ("POST /conv_none", {"metadata": {}}, (404, None)),
        ("POST /conv_none/items", {"items": []}, (404, None)),
        ("DELETE /conv_none/items/x", None, (404, None)),
    ],
)
def test_what_is_wrong_is_told(served, asked, body, told):
    method, path = asked.split(" ")
    answered = served.http.request(method, f"/v1/conversations{path}", json=body)
    assert (answered.status_code, answered.json()["error"]["param"]) == told


def test_a_response_of_an_unknown_conversation_or_of_two_pasts_is_refused(served):
    assert served.create(conversation="conv_none").status_code == 404
    made = served.http.post("/v1/conversations", json={}).json()["id"]
    past = served.create().json()["id"]
    both = served.create(conversation=made, previous_response_id=past)
    assert both.status_code == 400
    assert served.http.get(f"/v1/responses/{made}").status_code == 404
    assert served.create(previous_response_id=made).status_code == 400


def test_a_store_that_keeps_nothing_has_no_conversations():
    with running(lambda request: HELLO, store="off") as server:
        assert server.http.post("/v1/conversations", json={}).status_code == 400


def test_a_long_conversation_is_compacted_and_goes_on_from_its_summary():
    def answer(request):
        asked = request.prompt.text().rpartition("<|start|>user")[2]
        text = "They spoke of sesame." if "summary of this conversation" in asked else "Yes."
        return f" to=user<|message|>{text}<|eot|>"

    with running(answer) as server:
        client = openai.OpenAI(base_url=server.url, api_key="none", max_retries=0)
        with client:
            first = client.responses.create(model=MODEL, input="What of sesame?")
            compact = client.responses.compact(
                model=MODEL, previous_response_id=first.id, input="And oil?"
            )
            kinds = [item.type for item in compact.output]
            assert kinds == ["message", "message", "compaction"]
            assert compact.usage.output_tokens > 0
            again = [item.model_dump(exclude_none=True, warnings=False) for item in compact.output]
            client.responses.create(model=MODEL, input=[*again, said("Go on.")])
        prompt = server.engine.requests[-1].prompt.text()
        refused = server.http.post("/v1/responses/compact", json={"model": MODEL})
    assert "They spoke of sesame." in prompt
    assert refused.status_code == 400
