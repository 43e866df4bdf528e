"""Everything around generation: keys, paths, ids, limits, health, models, the OpenAPI document."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given, strategies

from server.config import ServerConfig
from server.edge.bodies import ValueCounter
from server.services import Services
from tests.support.fake import FakeEngine
from tests.support.harness import CHAT, CHAT_PATH, TEXT, TEXT_PATH, ask, asks, bearer, sse

KEYED = ServerConfig(api_key=("one", "two"))


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (None, 401),
        ("Bearer three", 401),
        ("Bearer ", 401),
        ("Basic one", 401),
        ("one", 401),
        ("Bearer one two", 401),
        ("Bearer schlüssel".encode(), 401),
        ("Bearer one", 200),
        ("bearer two", 200),
    ],
)
def test_chats_need_one_of_the_api_keys(header: str | bytes | None, status: int) -> None:
    headers = {} if header is None else {"authorization": header}
    reply = ask(FakeEngine(), "POST", CHAT_PATH, json=CHAT, headers=headers, config=KEYED)
    assert reply.status_code == status
    if status == 401:
        assert reply.json()["error"]["code"] == "invalid_api_key"
        assert reply.headers["www-authenticate"] == "Bearer"
        assert "three" not in reply.text


@pytest.mark.parametrize(
    ("path", "status"),
    [
        *dict.fromkeys(("/v1/models", "/v1/nothing", "/tokenize", "/detokenize", "/reset_calibration"), 401).items(),
        *dict.fromkeys(("/health", "/live", "/version", "/metrics", "/", "/openapi.json"), 200).items(),
    ],
)
def test_api_keys_guard_only_v1_paths_and_their_like(path: str, status: int) -> None:
    assert ask(FakeEngine(), "GET", path, config=KEYED).status_code == status


def test_metrics_need_a_key_only_with_metrics_auth() -> None:
    config = ServerConfig(api_key=("one",), metrics_auth=True)
    assert ask(FakeEngine(), "GET", "/metrics", config=config).status_code == 401
    headers = {"authorization": "Bearer one"}
    assert ask(FakeEngine(), "GET", "/metrics", config=config, headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/docs", 404),
        ("GET", "/redoc", 404),
        ("POST", "/v1/nothing", 404),
        ("GET", CHAT_PATH, 405),
        ("DELETE", "/v1/models", 405),
        ("POST", "/health", 405),
        ("GET", "/" + "x" * 5000, 404),
    ],
)
def test_wrong_paths_and_methods(method: str, path: str, status: int) -> None:
    reply = ask(FakeEngine(), method, path)
    assert reply.status_code == status
    assert reply.json()["error"].keys() == {"message", "type", "param", "code"}
    assert len(reply.content) < 2048
    assert ("allow" in reply.headers) == (status == 405)


def test_a_path_says_which_methods_it_has() -> None:
    for path, methods in (("/v1/responses/x", "DELETE, GET, HEAD"), (CHAT_PATH, "POST"), ("/health", "GET, HEAD")):
        assert ask(FakeEngine(), "PUT", path).headers["allow"] == methods


@pytest.mark.parametrize("sane", ["abc-1", "a" * 128, "7f:0/x=y+z@h"])
def test_valid_request_ids_are_returned(sane: str) -> None:
    for path in ("/live", "/nothing", "/v1/models"):
        reply = ask(FakeEngine(), "GET", path, headers={"x-request-id": sane}, config=KEYED)
        assert reply.headers["x-request-id"] == sane


@pytest.mark.parametrize("odd", ["", "a" * 129, "a b", 'a"b', "<x>"])
def test_an_invalid_request_id_is_replaced(odd: str) -> None:
    first, second = (ask(FakeEngine(), "GET", "/live", headers={"x-request-id": odd}) for _ in range(2))
    ids = {first.headers["x-request-id"], second.headers["x-request-id"]}
    assert len(ids) == 2
    assert odd not in ids


def test_streams_carry_the_request_id() -> None:
    reply = ask(FakeEngine(), "POST", CHAT_PATH, json=CHAT | {"stream": True}, headers={"x-request-id": "mine"})
    assert reply.headers.get_list("x-request-id") == ["mine"]


def test_a_body_declared_larger_than_the_limit_is_refused_unread() -> None:
    reply = ask(FakeEngine(), "POST", CHAT_PATH, content=b"x" * 101, config=ServerConfig(max_body_size=100))
    assert reply.status_code == 413
    assert reply.json()["error"].keys() == {"message", "type", "param", "code"}


def test_a_body_of_unknown_length_is_refused_once_it_exceeds_the_limit() -> None:
    sent = []

    async def long() -> AsyncIterator[bytes]:
        for _ in range(50):
            sent.append(40)
            yield b"x" * 40

    reply = ask(FakeEngine(), "POST", CHAT_PATH, content=long(), config=ServerConfig(max_body_size=100))
    assert reply.status_code == 413
    assert len(sent) == 3


@pytest.mark.parametrize(("values", "status"), [(51, 400), (52, 413)])
def test_a_body_with_too_many_values_is_refused(values: int, status: int) -> None:
    config = ServerConfig(max_body_values=50)
    body = {"prompt": "[,{" * 60, "stop": ["x"] * (values - 3)}
    assert ask(FakeEngine(), "POST", TEXT_PATH, json=body, config=config).status_code == status


json_values = strategies.recursive(
    strategies.none() | strategies.text() | strategies.integers(),
    lambda inner: strategies.lists(inner) | strategies.dictionaries(strategies.text(), inner),
)


def count_of(value: object) -> int:
    """Commas and opening brackets."""
    items = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if items is None else 1 + max(len(items) - 1, 0) + sum(map(count_of, items))


@given(json_values, strategies.integers(1, 7), strategies.booleans())
def test_values_are_counted_however_a_body_is_cut(value: object, size: int, ascii: bool) -> None:
    counter, data = ValueCounter(), json.dumps(value, ensure_ascii=ascii).encode(errors="replace")
    for start in range(0, len(data), size):
        counter.feed(data[start : start + size])
    assert counter.count == count_of(value)


def test_a_body_of_exactly_the_limit_is_accepted() -> None:
    body = b'{"prompt":"Hi"}'
    config = ServerConfig(max_body_size=len(body))
    headers = {"content-type": "application/json"}
    assert ask(FakeEngine(), "POST", TEXT_PATH, content=body, headers=headers, config=config).status_code == 200


@pytest.mark.parametrize(
    ("state", "code"),
    [
        ({}, None),
        ({"ready": False}, "loading"),
        ({"draining": True}, "draining"),
        ({"failure": "boom"}, "engine_dead"),
        ({"heartbeat_age": 31.0}, "engine_stalled"),
        ({"heartbeat_age": 29.0}, None),
    ],
)
def test_health_reports_the_state_of_the_engine(state: dict[str, Any], code: str | None) -> None:
    engine = FakeEngine()
    vars(engine).update(state)
    reply = ask(engine, "GET", "/health")
    assert reply.status_code == (503 if code else 200)
    assert code is None or reply.json()["error"]["code"] == code
    assert ask(engine, "GET", "/live").status_code == 200


def test_an_engine_that_stays_silent_is_given_up() -> None:
    engine = FakeEngine()
    services = Services(engine, ServerConfig())
    for age in (*[31.0] * 10, 0.0, *[31.0] * 10):  # heartbeats that this process could not read for a while
        engine.heartbeat_age = age
        services.watch()
    assert engine.failure is None
    services.watch()
    assert engine.failure == "it has not responded for 31 s"


@pytest.mark.parametrize("path", ["/", "/health", "/live", "/version", "/v1/models", "/metrics"])
def test_head_is_get_without_a_body(path: str) -> None:
    head, get = asks(FakeEngine(), ("HEAD", path, {}), ("GET", path, {}))
    assert (head.status_code, head.content) == (get.status_code, b"") == (200, b"")
    assert head.headers["content-type"] == get.headers["content-type"]
    assert ask(FakeEngine(), "HEAD", "/v1/chat/completions").status_code == 405


def test_models_are_listed_under_their_served_names() -> None:
    config = ServerConfig(served_model_name=("a/b", "c"))
    listed = ask(FakeEngine(), "GET", "/v1/models", config=config).json()
    assert listed["object"] == "list"
    assert [card["id"] for card in listed["data"]] == ["a/b", "c"]
    one = ask(FakeEngine(), "GET", "/v1/models/a/b", config=config).json()
    assert one | {"created": 0} == listed["data"][0] | {"created": 0}
    missing = ask(FakeEngine(), "GET", "/v1/models/fake/model", config=config)
    assert missing.status_code == 404
    assert missing.json()["error"]["code"] == "model_not_found"
    assert ask(FakeEngine(), "POST", TEXT_PATH, json=TEXT | {"model": "c"}, config=config).json()["model"] == "c"
    assert ask(FakeEngine(), "POST", TEXT_PATH, json=TEXT, config=config).status_code == 404


def test_cross_origin_requests_are_allowed_only_by_setting() -> None:
    headers = {"origin": "https://a.example", "access-control-request-method": "POST"}
    headers["access-control-request-headers"] = "authorization"
    closed = ask(FakeEngine(), "OPTIONS", CHAT_PATH, headers=headers)
    assert closed.status_code == 405
    assert "access-control-allow-origin" not in closed.headers
    config = ServerConfig(cors_origins=("https://a.example",), api_key=("one",))
    opened = ask(FakeEngine(), "OPTIONS", CHAT_PATH, headers=headers, config=config)
    assert opened.status_code == 200
    assert opened.headers["access-control-allow-origin"] == "https://a.example"
    assert "authorization" in opened.headers["access-control-allow-headers"].lower()
    keyless = ask(FakeEngine(), "POST", CHAT_PATH, json=CHAT, headers={"origin": "https://a.example"}, config=config)
    assert keyless.status_code == 401
    assert keyless.headers["access-control-allow-origin"] == "https://a.example", "a page may read the reason"
    assert "x-request-id" in keyless.headers["access-control-expose-headers"].lower()
    strange = {"origin": "https://b.example"}
    other = ask(FakeEngine(), "GET", "/live", headers=strange, config=config)
    assert "access-control-allow-origin" not in other.headers
    refused = ask(FakeEngine(), "OPTIONS", CHAT_PATH, headers=headers | strange, config=config)
    assert (refused.status_code, "access-control-allow-origin" in refused.headers) == (400, False)
    assert refused.json()["error"]["message"] == "Disallowed CORS origin."
    assert "Origin" in refused.headers["vary"]


@pytest.mark.parametrize("network", ["private-network", "local-network"])
def test_only_allowed_origins_may_reach_a_private_network(network: str) -> None:
    config = ServerConfig(cors_origins=("https://a.example",), api_key=("one",))
    for origin, status, allowance in (("https://a.example", 200, "true"), ("https://b.example", 400, None)):
        headers = {"origin": origin, "access-control-request-method": "POST"}
        headers[f"access-control-request-{network}"] = "true"
        reply = ask(FakeEngine(), "OPTIONS", CHAT_PATH, headers=headers, config=config)
        assert reply.status_code == status
        assert reply.headers.get(f"access-control-allow-{network}") == allowance


def test_an_internal_error_carries_cors_headers() -> None:
    engine = FakeEngine()
    engine.refuse = ZeroDivisionError("secret")
    config = ServerConfig(cors_origins=("https://a.example",))
    reply = ask(engine, "POST", CHAT_PATH, json=CHAT, headers={"origin": "https://a.example"}, config=config)
    assert (reply.status_code, reply.headers["access-control-allow-origin"]) == (500, "https://a.example")
    assert reply.json()["error"]["code"] == "internal"


@pytest.mark.parametrize(
    ("path", "meant"),
    [("/chat/completions", CHAT_PATH), ("/v1/v1/models", "/v1/models"), ("/xyz", None)],
)
def test_the_error_of_an_unknown_path_suggests_a_known_one(path: str, meant: str | None) -> None:
    message = ask(FakeEngine(), "POST", path).json()["error"]["message"]
    assert message == f"Unknown path: POST {path}." + (f" Did you mean {meant}?" if meant else "")


@pytest.mark.parametrize(
    "path",
    [
        *(f"{CHAT_PATH}/", "/v1//chat/completions//"),
        *("/openai/deployments/gpt/chat/completions?api-version=2024-10-21", "/openai/v1/chat/completions/"),
        "/openai/deployments/org%2Fgpt/chat/completions",
    ],
)
def test_other_spellings_of_a_path_are_the_same_path(path: str) -> None:
    engine, config = FakeEngine(), ServerConfig(api_key=("secret",))
    assert ask(engine, "POST", path, json=CHAT).status_code == 200
    assert ask(engine, "POST", path, json=CHAT, config=config).status_code == 401, "keys are checked too"
    assert ask(engine, "POST", path, json=CHAT, config=config, headers={"api-key": "secret"}).status_code == 200


def test_azures_clients_list_models_and_ask_for_responses() -> None:
    assert ask(FakeEngine(), "GET", "/openai/models?api-version=2024-10-21").status_code == 200
    assert ask(FakeEngine(), "POST", "/openai/responses", json={"input": "Hi"}).status_code == 200


def test_a_byte_order_mark_is_skipped() -> None:
    body = b"\xef\xbb\xbf" + json.dumps(CHAT).encode()
    headers = {"content-type": "application/json"}
    assert ask(FakeEngine(), "POST", CHAT_PATH, content=body, headers=headers).status_code == 200


def test_defaults_that_clients_dump_are_no_errors() -> None:
    dumped = {
        "stream_options": {"include_usage": False},
        "response_format": {"type": "text", "json_schema": None, "schema": None},
        "structured_outputs": {
            "regex": "[ab]",
            "json": None,
            "disable_any_whitespace": True,
            "disable_fallback": False,
            "disable_additional_properties": False,
            "whitespace_pattern": None,
        },
    }
    assert ask(FakeEngine(), "POST", CHAT_PATH, json=CHAT | dumped).status_code == 200
    for name, value in (("whitespace_pattern", " "), ("disable_additional_properties", True)):
        forms = dumped["structured_outputs"] | {name: value}
        reply = ask(FakeEngine(), "POST", CHAT_PATH, json=CHAT | {"structured_outputs": forms})
        assert (reply.status_code, name in reply.json()["error"]["message"]) == (400, True)


def test_prompts_can_be_rendered_without_an_answer() -> None:
    engine = FakeEngine()
    chat = ask(engine, "POST", f"{CHAT_PATH}/render", json=CHAT).json()
    assert (chat["prompt"], bytes(chat["token_ids"])) == ("u:Hi\n", b"u:Hi\n")
    texts = ask(engine, "POST", f"{TEXT_PATH}/render", json=TEXT | {"prompt": ["a", [98, 99]]}).json()
    assert [text["prompt"] for text in texts] == ["a", "bc"]
    assert not engine.submitted
    assert ask(engine, "POST", f"{CHAT_PATH}/render", json=CHAT | {"messages": []}).status_code == 400


def test_encoded_bodies_are_refused() -> None:
    body = gzip.compress(json.dumps(CHAT).encode())
    headers = {"content-encoding": "gzip", "content-type": "application/json"}
    reply = ask(FakeEngine(), "POST", CHAT_PATH, content=body, headers=headers)
    assert reply.status_code == 415
    assert "gzip" in reply.json()["error"]["message"]
    for plain in ("identity", ""):
        assert ask(FakeEngine(), "POST", CHAT_PATH, json=CHAT, headers={"content-encoding": plain}).status_code == 200


def test_whole_numbers_may_have_a_point() -> None:
    engine = FakeEngine()
    assert ask(engine, "POST", CHAT_PATH, json=CHAT | {"max_tokens": 3.0, "n": 1.0, "seed": 5.0}).status_code == 200
    assert (engine.submitted[0].sampling.max_tokens, engine.submitted[0].sampling.seed) == (3, 5)


def test_usage_so_far_accompanies_every_chunk_where_asked_for() -> None:
    """Load generators such as guidellm ask for it with every request."""
    options = {"include_usage": True, "continuous_usage_stats": True}
    for path, body in ((CHAT_PATH, CHAT), (TEXT_PATH, TEXT)):
        reply = ask(FakeEngine(), "POST", path, json=body | {"stream": True, "stream_options": options})
        *chunks, done = sse(reply.content)
        counts = [chunk["usage"]["completion_tokens"] for chunk in chunks]
        assert counts == sorted(counts)
        assert (counts[-1], chunks[-1]["choices"], done) == (2, [], "[DONE]")
        only = {"stream": True, "stream_options": {"continuous_usage_stats": True}}
        alone = ask(FakeEngine(), "POST", path, json=body | only)
        assert all("usage" not in chunk for chunk in sse(alone.content)[:-1])


def test_calibration_can_be_reset_only_while_the_engine_serves() -> None:
    engine = FakeEngine()
    assert ask(engine, "POST", "/reset_calibration").json() == {"status": "ok"}
    assert engine.resets == 1
    assert ask(engine, "GET", "/reset_calibration").status_code == 405
    engine.draining = True
    assert ask(engine, "POST", "/reset_calibration").status_code == 503
    assert engine.resets == 1


@pytest.mark.parametrize(
    ("origin", "origins", "status"),
    [
        ("http://test", (), 200),  # the server's own page
        ("https://a.example", (), 403),
        ("null", (), 403),
        ("http://test.a.example", (), 403),
        ("https://a.example", ("https://a.example",), 200),
        ("https://a.example", ("*",), 200),
        ("https://b.example", ("https://a.example",), 403),
    ],
)
def test_pages_of_other_origins_cannot_reset_calibration(origin: str, origins: tuple[str, ...], status: int) -> None:
    engine = FakeEngine()
    config = ServerConfig(cors_origins=origins)
    reply = ask(engine, "POST", "/reset_calibration", headers={"origin": origin}, config=config)
    assert (reply.status_code, engine.resets) == (status, int(status == 200))
    assert status == 200 or "origin" in reply.json()["error"]["message"]


def test_openapi_documents_every_path_and_status() -> None:
    document = ask(FakeEngine(), "GET", "/openapi.json").json()
    paths = document["paths"]
    assert set(paths) == {CHAT_PATH, TEXT_PATH, "/v1/models", "/v1/models/{model_id}", "/health", "/live", "/version",
                          "/metrics", "/tokenize", "/detokenize", "/reset_calibration", "/", "/v1/responses",
                          "/v1/responses/{response_id}", "/v1/responses/input_tokens", "/v1/messages",
                          "/v1/messages/count_tokens", "/ping", f"{CHAT_PATH}/render",
                          f"{TEXT_PATH}/render"}  # fmt: skip
    for path in (CHAT_PATH, TEXT_PATH, "/v1/responses", "/v1/messages"):
        assert set(paths[path]["post"]["responses"]) == {"200", "400", "404", "408", "413", "415", "429", "500", "503"}
    assert set(paths["/v1/models/{model_id}"]["get"]["responses"]) == {"200", "404", "503"}
    schemas = document["components"]["schemas"]
    reference = paths[CHAT_PATH]["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    assert "messages" in schemas[reference.rsplit("/", 1)[1]]["required"]
    assert {"type": "null"} in schemas["ChatCompletionRequest"]["properties"]["temperature"]["anyOf"]
    biases = schemas["ChatCompletionRequest"]["properties"]["logit_bias"]
    assert biases["anyOf"][0]["maxProperties"] == 1024
    assert set(schemas["ErrorObject"]["required"]) == {"message", "type", "param", "code"}
    assert "HTTPValidationError" not in schemas

    keyed = ask(FakeEngine(), "GET", "/openapi.json", config=KEYED).json()["paths"]
    assert "401" in keyed[CHAT_PATH]["post"]["responses"]
    assert "401" in keyed["/v1/models"]["get"]["responses"]
    assert "401" not in keyed["/metrics"]["get"]["responses"]
    assert "401" in keyed["/tokenize"]["post"]["responses"]


def test_every_reference_in_the_openapi_document_resolves() -> None:
    document = ask(FakeEngine(), "GET", "/openapi.json").json()

    def references(node: Any) -> list[str]:
        if isinstance(node, dict):
            own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
            return own + [found for value in node.values() for found in references(value)]
        return [found for value in node for found in references(value)] if isinstance(node, list) else []

    assert {name.rsplit("/", 1)[1] for name in references(document)} <= set(document["components"]["schemas"])


def test_requests_belong_to_their_key_and_their_http_request() -> None:
    engine, config = FakeEngine(), ServerConfig(api_key=("one", "two"))
    asked = [("POST", TEXT_PATH, {"json": TEXT | {"n": 2}, "headers": bearer(key)}) for key in ("one", "one", "two")]
    assert {reply.status_code for reply in asks(engine, *asked, config=config)} == {200}
    owners = [request.owner for request in engine.submitted]
    assert owners[0] == owners[1] != owners[2] == owners[3]
    assert owners[0].key == owners[2].key != owners[4].key
    assert "one" not in owners[0].key
    assert {request.cache_salt for request in engine.submitted} == {""}


def test_a_single_key_has_the_engine_for_itself() -> None:
    engine = FakeEngine()
    asks(engine, ("POST", TEXT_PATH, {"json": TEXT, "headers": bearer("one")}), config=ServerConfig(api_key=("one",)))
    assert engine.submitted[0].owner.key == ""


def test_prefixes_are_shared_within_a_salt_and_a_key() -> None:
    engine, config = FakeEngine(), ServerConfig(api_key=("one", "two"), isolate_api_keys=True)
    asked = [
        ("POST", CHAT_PATH, {"json": CHAT | salt, "headers": bearer(key)})
        for key in ("one", "two")
        for salt in ({}, {"cache_salt": "a"}, {"cache_salt": "b"}, {"cache_salt": None})
    ]
    asks(engine, *asked, config=config)
    salts = [request.cache_salt for request in engine.submitted]
    assert salts[0] == salts[3]
    assert len(set(salts)) == 6


@pytest.mark.parametrize(("policy", "priority", "status"), [("fcfs", 0, 200), ("fcfs", 1, 400), ("priority", -3, 200)])
def test_priorities_need_the_setting(policy: str, priority: int, status: int) -> None:
    engine, body = FakeEngine(), TEXT | {"priority": priority}
    reply = ask(engine, "POST", TEXT_PATH, json=body, config=ServerConfig(scheduling_policy=policy))
    assert reply.status_code == status
    if status == 200:
        assert engine.submitted[0].priority == priority
    else:
        assert reply.json()["error"]["param"] == "priority"


@pytest.mark.parametrize("spelled", ["text", "tokens"])
def test_markers_that_a_chat_spells_are_text_by_default(spelled: str) -> None:
    engine = FakeEngine()
    ask(engine, "POST", CHAT_PATH, json=CHAT, config=ServerConfig(spelled_markers=spelled))
    assert engine.tokenizer.literal == [spelled == "text"] * 2  # rendered, and encoded
