"""Stored responses: a request that refers to them is the request with all their items."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from engine.errors import RequestFailedError
from server.apis.responses.store import ResponseStore, StoredResponse
from tests.support.harness import Live, ask, bearer
from tests.support.responding import RESPONSES, WEATHER
from tests.support.speaking import CALL, RecordingEngine, TalkingEngine, pieces
from tests.support.waiting import until

PATH = RESPONSES.path
events_of = RESPONSES.events_of
ANSWER = f"<think>Hm.</think>\n\nSure.\n{CALL}"
Serve = Callable[..., Live]


class Client:
    """A client of a server that stores responses, with the given API key."""

    def __init__(self, live: Serve, **settings: Any) -> None:
        self.engine = RecordingEngine(pieces(ANSWER, 3))
        self.live = live(self.engine, **{"response_store": 1 << 20} | settings)

    def post(self, body: dict[str, Any], status: int = 200, key: str = "") -> dict[str, Any]:
        reply = self.live.client.post(PATH, json={"tools": [WEATHER]} | body, headers=bearer(key))
        assert reply.status_code == status, reply.text
        found: dict[str, Any] = reply.json()
        return found

    def get(self, id: str, status: int = 200, key: str = "") -> dict[str, Any]:
        reply = self.live.client.get(f"{PATH}/{id}", headers=bearer(key))
        assert reply.status_code == status
        found: dict[str, Any] = reply.json()
        return found

    def prompt(self) -> dict[str, Any]:
        """What the template rendered for the last request."""
        found: dict[str, Any] = self.engine.tokenizer.rendered[-1]
        return found


@pytest.fixture
def client(live: Serve) -> Client:
    return Client(live)


def result_of(reply: dict[str, Any]) -> dict[str, Any]:
    """The output of a reply's call."""
    return {"type": "function_call_output", "call_id": reply["output"][-1]["call_id"], "output": "dry"}


@pytest.mark.parametrize("stream", [False, True])
def test_a_continued_response_is_the_conversation_with_all_items(client: Client, stream: bool) -> None:
    question: dict[str, Any] = {"role": "user", "content": "Hi"}
    first = client.post({"input": "Hi", "instructions": "Be short."})
    assert [item["type"] for item in first["output"]] == ["reasoning", "message", "function_call"]
    body = {"input": [result_of(first)], "previous_response_id": first["id"], "stream": stream, "tools": [WEATHER]}
    reply = client.live.client.post(PATH, json=body)
    second = events_of(reply.content)[-1]["response"] if stream else reply.json()
    assert (second["previous_response_id"], second["store"]) == (first["id"], True)
    third = client.post({"input": "And now?", "previous_response_id": second["id"]})
    continued = client.prompt()
    items = [question, *first["output"], result_of(first), *second["output"], {"role": "user", "content": "And now?"}]
    whole = client.post({"input": items})
    assert client.prompt() == continued, "and earlier instructions are not those of later responses"
    assert (whole["previous_response_id"], third["previous_response_id"]) == (None, second["id"])


def test_a_response_may_be_continued_without_input(client: Client) -> None:
    first = client.post({"input": "Hi", "max_output_tokens": 20})
    second = client.post({"input": [], "previous_response_id": first["id"]})
    third = client.post({"previous_response_id": second["id"]})
    assert [message["role"] for message in client.prompt()["messages"]] == ["user", "assistant", "assistant"]
    assert third["previous_response_id"] == second["id"]


def test_references_to_items_are_the_items(client: Client) -> None:
    """The AI SDK sends its own items, and references to those of the server."""
    first = client.post({"input": "Hi"})
    question = {"role": "user", "content": "Hi"}
    client.post({"input": [question, *first["output"], result_of(first)]})
    told = client.prompt()
    references = [{"type": "item_reference", "id": item["id"]} for item in first["output"]]
    client.post({"input": [question, *references, result_of(first)]})
    assert client.prompt() == told


def test_a_response_can_be_read_until_it_is_deleted(client: Client) -> None:
    reply = client.post({"input": "Hi", "include": ["message.output_text.logprobs"], "top_logprobs": 1})
    assert client.get(reply["id"]) == reply
    assert client.get(f"{reply['id']}?stream=true", 400)["error"]["param"] == "stream"
    deleted = client.live.client.delete(f"{PATH}/{reply['id']}")
    assert deleted.json() == {"id": reply["id"], "object": "response.deleted", "deleted": True}
    assert client.get(reply["id"], 404)["error"]["message"].startswith("Response with id")
    assert client.live.client.delete(f"{PATH}/{reply['id']}").status_code == 404
    error = client.post({"input": "Hi", "previous_response_id": reply["id"]}, 400)["error"]
    assert (error["param"], error["code"]) == ("previous_response_id", "previous_response_not_found")
    lost = {"type": "item_reference", "id": reply["output"][0]["id"]}
    assert client.post({"input": [lost]}, 404)["error"]["param"] == "input"


def test_what_is_not_to_be_stored_is_not_stored(client: Client) -> None:
    reply = client.post({"input": "Hi", "store": False})
    assert reply["store"] is False
    client.get(reply["id"], 404)
    first = client.post({"input": "Hi"})
    second = client.post({"input": [result_of(first)], "previous_response_id": first["id"], "store": False})
    client.get(second["id"], 404)


def test_only_the_key_that_stored_a_response_finds_it(live: Serve) -> None:
    client = Client(live, api_key=("one", "two"))
    reply = client.post({"input": "Hi"}, key="one")
    client.get(reply["id"], 404, key="two")
    assert client.live.client.delete(f"{PATH}/{reply['id']}", headers=bearer("two")).status_code == 404
    client.post({"input": "Hi", "previous_response_id": reply["id"]}, 400, key="two")
    client.post({"input": [{"type": "item_reference", "id": reply["output"][0]["id"]}]}, 404, key="two")
    assert client.get(reply["id"], key="one") == reply
    assert client.live.client.get(f"{PATH}/{reply['id']}").status_code == 401


def test_an_error_names_the_item_in_the_clients_list(client: Client) -> None:
    first = client.post({"input": "Hi"})
    image = {"role": "user", "content": [{"type": "input_image"}]}
    for body in ({}, {"previous_response_id": first["id"]}):
        error = client.post({"input": ["Hi", image], **body}, 400)["error"]
        assert error["param"] == "input"
        error = client.post({"input": [result_of(first), image], **body}, 400)["error"]
        assert error["param"] == "input[1].content[0]"
        assert "'input[1].content[0]'" in error["message"]
    bad = {"type": "additional_tools", "tools": [WEATHER | {"name": "a b"}]}
    error = client.post({"input": [bad], "previous_response_id": first["id"]}, 400)["error"]
    assert error["param"] == "input[0].tools[0].name"


def test_a_reference_without_an_id_is_refused_by_name(client: Client) -> None:
    error = client.post({"input": [{"role": "user", "content": "Hi"}, {"type": "item_reference"}]}, 400)["error"]
    assert error["param"] == "input[1].id"


@pytest.mark.parametrize(
    "change", [{"store": "yes"}, {"previous_response_id": 5}, {"previous_response_id": {}}, {"input": []}]
)
def test_wrong_types_are_refused_by_name(client: Client, change: dict[str, Any]) -> None:
    error = client.post({"input": "Hi"} | change, 400)["error"]
    assert error["param"] == next(iter(change))


def test_without_a_store_nothing_is_found() -> None:
    engine = TalkingEngine()
    for method in ("GET", "DELETE"):
        assert ask(engine, method, f"{PATH}/resp_1").status_code == 404
    reply = ask(engine, "POST", PATH, json={"input": "Hi", "previous_response_id": "resp_1"})
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "previous_response_id")
    assert ask(engine, "POST", PATH, json={"input": "Hi", "store": True}).json()["store"] is False


def test_the_response_to_a_client_that_has_left_is_not_stored(live: Serve) -> None:
    client = Client(live)
    client.engine.gate = asyncio.Queue()
    client.engine.release(2)  # the reply begins with the first of them
    with client.live.client.stream("POST", PATH, json={"input": "Hi", "stream": True}) as reply:
        line = next(line for line in reply.iter_lines() if line.startswith("data: "))
        id = json.loads(line.removeprefix("data: "))["response"]["id"]
    until(lambda: not client.engine.running, "the end of the request")
    client.engine.release(len(ANSWER))
    client.get(id, 404)


def stored(id: str, previous: str | None = None, size: int = 40, key: str = "") -> StoredResponse:
    items, output = f'"{id} asked"'.encode(), {f"{id} said": f'"{id} said"'.encode()}
    return StoredResponse(id, key, previous, items, output, b" " * (size - len(items) - len(output[f"{id} said"])))


def test_the_least_recently_used_is_forgotten() -> None:
    store = ResponseStore(300)
    for id in ("a", "b", "c"):
        store.add(stored(id, size=100))
    assert store.get("a", "") is not None
    store.add(stored("d", size=100))
    assert store.item("c said", "") == b'"c said"'
    store.add(stored("e", size=301))
    assert [id for id in "abcde" if store.get(id, "")] == ["a", "c", "d"], "what is larger than the store is not kept"
    assert store.item("b said", "") is None
    assert store.size == 300


@pytest.mark.parametrize("use", ["get", "item", "conversation", "none"])
def test_the_end_of_a_conversation_is_forgotten_before_its_beginning(use: str) -> None:
    store = ResponseStore(400)
    for id, previous in (("a", None), ("b", "a"), ("c", "b")):
        store.add(stored(id, previous, size=100))
    for _ in range(use != "none"):
        assert getattr(store, use)("b said" if use == "item" else "b", "")
    store.add(stored("other", size=200))
    assert store.conversation("a", "") == b'"a asked","a said"'
    assert store.conversation("b", "") == b'"a asked","a said","b asked","b said"'
    assert store.conversation("c", "") is None
    store.remove("a", "")
    assert store.conversation("b", "") is None, "a conversation is never continued without its beginning"


def test_a_response_without_room_says_that_it_is_not_stored(live: Serve) -> None:
    client = Client(live, response_store=3000)
    first = client.post({"input": "Hi"})
    reply = client.post({"input": "x" * 3000})
    assert (first["store"], reply["store"]) == (True, False)
    client.get(reply["id"], 404)
    assert client.get(first["id"]) == first


def test_a_failed_response_is_not_stored(client: Client) -> None:
    client.engine.fail_at = (2, RequestFailedError("broken"))
    reply = client.live.client.post(PATH, json={"input": "Hi", "stream": True})
    failed = events_of(reply.content)[-1]["response"]
    assert (failed["status"], failed["store"]) == ("failed", False)
    client.get(failed["id"], 404)


def test_references_cannot_make_a_request_larger_than_a_body_may_be(live: Serve) -> None:
    client = Client(live, max_body_size=3000)
    reply = client.post({"input": "x" * 2000})
    error = client.post({"input": "y" * 1000, "previous_response_id": reply["id"]}, 400)["error"]
    assert "3000 bytes" in error["message"]
    reference = {"type": "item_reference", "id": reply["output"][0]["id"]}
    assert client.post({"input": [reference, reference]}, 400)["error"]["param"] == "input[1].id"
    client.post({"input": [{"id": reference["id"]}, {"role": "user", "content": "Hi"}]})
