"""`knapserve chat`: a pipe gets one answer, a terminal a conversation; errors are one line."""

from __future__ import annotations

import gc
import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.errors import EngineDeadError
from server.cli import main
from tests.support.fake import FakeEngine
from tests.support.harness import Live

Serving = Callable[..., str]
Chat = Callable[..., int]


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("KNAPSERVE_") or name == "OPENAI_API_KEY":
            monkeypatch.delenv(name)


@pytest.fixture
def serving(live: Callable[..., Live], capsys: pytest.CaptureFixture[str]) -> Serving:
    """Start a server. Returns its address, after it has printed its start line."""

    def start(engine: FakeEngine, **settings: Any) -> str:
        server = live(engine, **settings)
        assert server.client.get("/live").status_code == 200
        capsys.readouterr()
        return server.url

    return start


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Chat:
    """Run the client on the text of a pipe. Returns the exit code."""

    def run(text: bytes, *flags: str) -> int:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text), encoding="utf-8"))
        return main(["chat", *flags])

    return run


@pytest.fixture
def converse(monkeypatch: pytest.MonkeyPatch) -> Chat:
    """Run the client in a terminal on these lines; an exception is a key, as Ctrl-C and Ctrl-D are."""

    def run(lines: list[str | BaseException], *flags: str) -> int:
        class Terminal(io.StringIO):
            def isatty(self) -> bool:
                return True

        left = iter(lines)

        def read(_: str) -> str:
            line = next(left, EOFError())
            if isinstance(line, BaseException):
                raise line
            return line

        monkeypatch.setattr("sys.stdin", Terminal())
        monkeypatch.setattr("builtins.input", read)
        return main(["chat", *flags])

    return run


def asked(engine: FakeEngine) -> list[str]:
    """The conversation of the last request."""
    return [message["content"] for message in engine.tokenizer.rendered[-1]["messages"]]


def test_a_pipe_gets_one_answer_and_the_speed_elsewhere(
    serving: Serving, pipe: Chat, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = FakeEngine()
    assert pipe(b" Hi \xff\n", "--url", serving(engine) + "/v1/") == 0
    shown = capsys.readouterr()
    assert shown.out == "Hello\n"
    assert shown.err == "[2 tokens, 50.0 tokens/s, policy knapspec: 2.50 tokens a round]\n"
    assert asked(engine) == ["Hi \ufffd"]


def test_a_conversation_has_a_history_that_can_be_forgotten(serving: Serving, converse: Chat) -> None:
    engine = FakeEngine()
    url = serving(engine)
    assert converse(["one", "", "two"], "--url", url) == 0
    assert asked(engine) == ["one", "Hello", "two"]
    assert converse(["one", "/new", "two", "/quit", "three"], "--url", url) == 0
    assert asked(engine) == ["two"]


def test_plain_decoding_can_be_switched_on_and_off(serving: Serving, converse: Chat) -> None:
    engine = FakeEngine()
    url = serving(engine)
    converse(["one", "/plain", "two", "/plain", "three", "/what"], "--url", url)
    converse(["one", "/plain", "two"], "--url", url, "--draft-policy", "none")
    policies = [request.draft_policy for request in engine.submitted]
    assert policies == [None, "none", None, "none", None]


def test_sampling_flags_reach_the_server(serving: Serving, pipe: Chat) -> None:
    engine = FakeEngine()
    pipe(b"Hi", "--url", serving(engine), "--temperature", "0.25", "--max-tokens", "1")
    sampling = engine.submitted[0].sampling
    assert (sampling.temperature, sampling.max_tokens) == (0.25, 1)


class Interrupted(io.StringIO):
    """A terminal whose user presses Ctrl-C when a text appears."""

    def __init__(self, at: str) -> None:
        super().__init__()
        self._at = at

    def write(self, text: str) -> int:
        count = super().write(text)
        if text == self._at:
            raise KeyboardInterrupt
        return count


def test_an_interrupt_ends_the_answer_and_keeps_what_was_shown(
    serving: Serving, converse: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = FakeEngine(("Hel", "lo", "!"), gated=True)
    url = serving(engine)
    engine.release(2)
    screen = Interrupted("lo")
    monkeypatch.setattr("sys.stdout", screen)

    def lines() -> Iterator[str | BaseException]:
        yield KeyboardInterrupt()
        yield "one"
        assert engine.left.wait(10), "the request is cancelled"
        engine.release(3)
        yield "two"

    assert converse(lines(), "--url", url) == 0  # type: ignore[arg-type]
    assert asked(engine) == ["one", "Hel", "two"]


def test_a_model_cannot_steer_the_terminal(serving: Serving, pipe: Chat, capsys: pytest.CaptureFixture[str]) -> None:
    script = ("\x1b[2J", "a\tb\n", "\x07\x9b\x00", "é 😀")
    pipe(b"Hi", "--url", serving(FakeEngine(script)))
    assert capsys.readouterr().out == "[2Ja\tb\né 😀\n"


def test_keys_come_from_flag_or_environment(serving: Serving, pipe: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    url = serving(FakeEngine(), api_key=("one", "two"))
    assert pipe(b"Hi", "--url", url) == 2
    assert pipe(b"Hi", "--url", url, "--api-key", "two") == 0
    monkeypatch.setenv("KNAPSERVE_API_KEY", "one,other")
    assert pipe(b"Hi", "--url", url) == 0
    monkeypatch.setenv("OPENAI_API_KEY", "wrong")
    assert pipe(b"Hi", "--url", url) == 2
    assert pipe(b"Hi", "--url", url, "--api-key", "ключ") == 1


def test_a_unix_socket_is_an_address(
    serving: Serving, pipe: Chat, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pipe(b"Hi", "--url", serving(FakeEngine(), uds=tmp_path / "http.sock")) == 0
    assert capsys.readouterr().out == "Hello\n"


@pytest.mark.parametrize(
    ("text", "flags", "code", "said"),
    [
        (b"Hi", ["--draft-policy", "guess"], 2, "Unknown draft policy 'guess'"),
        (b"Hi", ["--url", "http://127.0.0.1:1"], 1, "no answer from http://127.0.0.1:1: "),
        pytest.param(
            b"Hi",
            ["--url", "unix:/nowhere"],
            1,
            "no answer from unix:/nowhere: ",
            marks=pytest.mark.filterwarnings("ignore"),  # httpcore leaves the socket to the garbage collector
        ),
        (b"Hi", ["--url", "http://a:b"], 1, "no answer from http://a:b: "),
        (b"Hi", ["--url", "127.0.0.1"], 1, "no answer from 127.0.0.1: "),
    ],
)
def test_errors_are_one_line(
    serving: Serving, pipe: Chat, converse: Chat, capsys: pytest.CaptureFixture[str],
    text: bytes, flags: list[str], code: int, said: str,
) -> None:  # fmt: skip
    url = serving(FakeEngine())
    assert pipe(text, "--url", url, *flags) == code
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert shown.err.startswith(f"knapserve: error: {said}")
    assert converse(["Hi"], "--url", url, *flags) == 0, "a conversation goes on"
    assert f"error: {said}" in capsys.readouterr().err
    gc.collect()  # warns of httpcore's sockets now, not in the next test


def test_an_error_within_an_answer_is_one_line_after_it(
    serving: Serving, pipe: Chat, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = FakeEngine()
    engine.fail_at = (1, EngineDeadError("boom"))
    assert pipe(b"Hi", "--url", serving(engine)) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("Hel\n", "knapserve: error: The engine is not available.\n")
