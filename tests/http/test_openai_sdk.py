"""The official client parses the replies of a real server."""

from __future__ import annotations

from collections.abc import Callable

import openai
import pytest

from tests.support.fake import FakeEngine
from tests.support.harness import Live


def connect(server: Live, key: str = "k") -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key=key, max_retries=0)


def test_the_client_reads_whole_replies(live: Callable[..., Live]) -> None:
    with connect(live(FakeEngine(), api_key=("k",))) as client:
        assert [model.id for model in client.models.list()] == ["fake/model"]
        assert client.models.retrieve("fake/model").id == "fake/model"
        chat = client.chat.completions.create(model="fake/model", messages=[{"role": "user", "content": "Hi"}], n=2)
        assert [choice.message.content for choice in chat.choices] == ["Hello", "Hello"]
        assert chat.usage is not None
        assert chat.usage.completion_tokens == 4
        text = client.completions.create(model="fake/model", prompt=["a", "b"], max_tokens=1)
        assert [(choice.index, choice.text, choice.finish_reason) for choice in text.choices] == [
            (0, "Hel", "length"),
            (1, "Hel", "length"),
        ]


def test_the_client_reads_streams(live: Callable[..., Live]) -> None:
    with connect(live(FakeEngine())) as client:
        chunks = list(
            client.chat.completions.create(
                model="fake/model",
                messages=[{"role": "user", "content": "Hi"}],
                stream=True,
                stream_options={"include_usage": True},
            )
        )
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1]) == "Hello"
        assert chunks[-2].choices[0].finish_reason == "stop"
        assert chunks[-1].usage is not None
        assert chunks[-1].usage.prompt_tokens_details is not None
        with client.chat.completions.stream(model="fake/model", messages=[{"role": "user", "content": "Hi"}]) as events:
            assert events.get_final_completion().choices[0].message.content == "Hello"


def test_errors_become_the_clients_exceptions(live: Callable[..., Live]) -> None:
    engine = FakeEngine(capacity=1)
    server = live(engine, api_key=("k",))
    with connect(server, "wrong") as client, pytest.raises(openai.AuthenticationError):
        client.models.list()
    with connect(server) as client:
        with pytest.raises(openai.NotFoundError) as missing:
            client.completions.create(model="other", prompt="x")
        assert missing.value.code == "model_not_found"
        assert missing.value.param == "model"
        with pytest.raises(openai.BadRequestError) as bad:
            client.completions.create(model="fake/model", prompt="x", temperature=3)
        assert bad.value.param == "temperature"
        with pytest.raises(openai.RateLimitError):
            client.completions.create(model="fake/model", prompt="x", n=2)


def test_an_error_chunk_raises_in_the_client(live: Callable[..., Live]) -> None:
    engine = FakeEngine()
    engine.fail_at = (1, RuntimeError("boom"))
    with connect(live(engine)) as client:
        chunks = client.completions.create(model="fake/model", prompt="x", stream=True)
        assert next(chunks).choices[0].text == "Hel"
        with pytest.raises(openai.APIError):
            list(chunks)
