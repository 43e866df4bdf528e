"""`knapserve chat`: talk to a running server in the terminal. Answers go to stdout, all other text to stderr."""

import argparse
import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx

from engine.config.engine import EngineConfig
from engine.errors import EngineUnavailableError, KnapServeError, RequestError

_HELP = "/plain: plain decoding or drafting; /new: forget the conversation; /quit. Ctrl-C ends an answer."
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # control characters, which could steer the terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `chat`."""
    url = "http://127.0.0.1:8000"
    parser.add_argument("--url", default=url, help="base URL of the server, or unix:PATH (default: %(default)s)")
    parser.add_argument("--api-key", dest="key", help="API key (default: OPENAI_API_KEY or KNAPSERVE_API_KEY)")
    parser.add_argument("--draft-policy", dest="policy", help="none: plain decoding (default: the server's policy)")
    parser.add_argument("--temperature", type=float, help="sampling temperature (default: the server's)")
    parser.add_argument("--max-tokens", type=int, help="maximum tokens per answer (default: the server's)")


def run(args: argparse.Namespace, _: EngineConfig) -> int:
    """Answer the text of a pipe, or questions until the user leaves. Raises KnapServeError for a pipe only."""
    if not sys.stdin.isatty():
        _ask(args, [], sys.stdin.buffer.read().decode(errors="replace").strip())
        return 0
    with suppress(ImportError):
        import readline  # noqa: F401  # gives `input` a history
    messages: list[dict[str, str]] = []
    line = "/help"
    while line != "/quit":
        try:
            if line == "/plain":
                args.policy = None if args.policy == "none" else "none"
                print(f"draft policy: {args.policy or 'the default'}", file=sys.stderr)
            elif line == "/new":
                messages.clear()
            elif line.startswith("/"):
                print(_HELP, file=sys.stderr)
            elif line:
                _ask(args, messages, line)
            line = input("> ").strip()
        except EOFError:
            line = "/quit"
        except (KeyboardInterrupt, KnapServeError) as error:
            print(f"error: {error}" if str(error) else "", file=sys.stderr)
            line = ""
    return 0


def _ask(args: argparse.Namespace, messages: list[dict[str, str]], question: str) -> None:
    """Print an answer as it comes, then its speed; add both texts to `messages`. Raises KnapServeError."""
    asked, answer = [*messages, {"role": "user", "content": question}], ""
    chunk: dict[str, Any] = {}
    try:
        for chunk in _chunks(args, asked):
            for delta in [choice["delta"] for choice in chunk["choices"]]:
                print(_CONTROL.sub("", delta.get("reasoning_content") or ""), end="", flush=True, file=sys.stderr)
                print(_CONTROL.sub("", text := delta.get("content") or ""), end="", flush=True)
                answer += text
    finally:
        if answer:
            print(flush=True)
            messages[:] = [*asked, {"role": "assistant", "content": answer}]
    if figures := (chunk.get("metrics") or {}).get("speculative_decoding"):
        speed = f"{chunk['usage']['completion_tokens']} tokens, {figures['tokens_per_second']:.1f} tokens/s"
        length = f"{figures['mean_acceptance_length']:.2f} tokens a round"
        print(f"[{speed}, policy {figures['policy']}: {length}]", file=sys.stderr)


def _chunks(args: argparse.Namespace, messages: list[dict[str, str]]) -> Iterator[dict[str, Any]]:
    """Stream an answer. Raises RequestError for the server's errors, EngineUnavailableError without a server."""
    base, _, socket = args.url.partition("unix:")
    url = f"{'http://socket' if socket else base.rstrip('/').removesuffix('/v1')}/v1/chat/completions"
    key = args.key or os.environ.get("OPENAI_API_KEY") or os.environ.get("KNAPSERVE_API_KEY", "").partition(",")[0]
    body = {"messages": messages, "stream": True, "stream_options": {"include_usage": True}}
    body |= {"draft_policy": args.policy, "temperature": args.temperature, "max_tokens": args.max_tokens}
    try:
        client = httpx.Client(
            transport=httpx.HTTPTransport(uds=socket) if socket else None,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=httpx.Timeout(10.0, read=None),  # a long prompt takes long to read
            verify=base.startswith("https:"),  # loading the known authorities takes long too
        )
        with client, client.stream("POST", url, json=body) as reply:
            for line in reply.iter_lines():
                if line.startswith("data: {") or reply.status_code != 200:
                    chunk = json.loads(line.removeprefix("data: "))
                    if "error" in chunk:
                        raise RequestError(chunk["error"]["message"])
                    yield chunk
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError) as error:
        raise EngineUnavailableError(f"no answer from {args.url}: {error or type(error).__name__}") from None
