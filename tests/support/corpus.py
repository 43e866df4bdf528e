"""Play recorded requests (`tests/corpus`), and compare the replies of two commits.

    python -m tests.support.corpus --out after.jsonl
    python -m tests.support.corpus --compare before.jsonl after.jsonl

Play in a checkout of each commit; copy this file and `tests/corpus` to the older one, which may lack them. Two plays of
one commit are equal: ids, times and speeds have fixed values in the output.

A line of `requests.jsonl` has `name`, `path`, and perhaps `method`, `headers`, `body` or `raw` (its text), `server`
(one of `servers.json`, or "real": the prepared fixture), `answer` (of a scripted engine), `fault` (a class of
`engine.errors`, its arguments), `fault_at` (the token that it replaces; else the engine refuses the request), and
`save`: with "a", `{a[output][0][id]}` is a part of the reply in later requests. In the output, `engine` is what a
scripted engine was asked for; prompts of chats are all that the template was given.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import re
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import httpx

from engine import errors
from engine.types import FinishReason, SamplingParams
from server.app import create_app
from server.config import ServerConfig
from tests.support import REPOSITORY
from tests.support.fake import INFO, ByteTokenizer
from tests.support.serving import Process
from tests.support.speaking import SpeakingEngine, pieces

CORPUS = REPOSITORY / "tests" / "corpus"
_IDS = re.compile(r'(?<=[-_])[0-9a-f]{24,32}\b|\b[0-9a-f]{32}\b|(?<=\\"id\\":\\")[0-9a-f]{9}(?=\\")')
_FIGURES = re.compile(r'(\\"(?:created(?:_at)?|completed_at|tokens_per_second|predicted_tpt)\\":(?=\d)|fp_)[\w.+-]+')
_SAVED = re.compile(r"\{\w+\[[\w\[\]]+\}")
_DEFAULTS = asdict(SamplingParams())


class CorpusTokenizer(ByteTokenizer):
    def __init__(self, *, thinks: bool, system_first: bool) -> None:
        super().__init__()
        self._system_first = system_first  # the template refuses system messages elsewhere
        self._added = {"<think>": 1, "</think>": 2} if thinks else {}
        self.special = frozenset({"<tool_call>"} if thinks else ())

    def added_token_id(self, text: str) -> int | None:
        return self._added.get(text)

    def render_chat(self, messages: Any, tools: Any = (), options: Any = None, **flags: bool) -> str:
        if self._system_first and any(message["role"] in ("system", "developer") for message in messages[1:]):
            raise errors.RequestError("The system message must come first.", param="messages")
        given = {"messages": messages, "tools": tools, "options": options, **flags}
        return json.dumps(given, ensure_ascii=False) + str((options or {}).get("open", ""))


class CorpusEngine(SpeakingEngine):
    """Says an answer, four characters a token, up to a stop string."""

    def __init__(self, **info: Any) -> None:
        super().__init__()
        self.info = replace(INFO, max_model_len=4096, **info)
        self.tokenizer = CorpusTokenizer(thinks=self.info.thinks, system_first=not self.info.tool_format)

    def prepare(self, request: dict[str, Any]) -> None:
        name, *arguments = request.get("fault", [None])
        fault, place = name and getattr(errors, name)(*arguments), request.get("fault_at")
        self.submitted, self.answer = [], request.get("answer", "Hello, you.")
        self.refuse, self.fail_at = (fault, None) if place is None else (None, (place, fault))

    async def _events(self, request: Any) -> Any:
        found = [stop for stop in request.sampling.stop if stop in self.answer]
        stop = min(found, key=self.answer.find, default=None)
        self.script = pieces(self.answer.partition(stop)[0] if stop else self.answer, 4) or ("",)
        async for event in super()._events(request):
            event.stop_string = stop if event.finish_reason is FinishReason.STOP else None
            yield event

    def asked(self, seed: dict[str, str]) -> Any:
        """Yield the choices of the last request, with the sampling parameters that are not the defaults, and `seed`."""
        for choice in self.submitted:
            sampling = {name: value for name, value in asdict(choice.sampling).items() if value != _DEFAULTS[name]}
            prompt = self.tokenizer.decode(choice.prompt)
            yield asdict(choice) | {"prompt": prompt, "sampling": sampling | seed, "owner": None}


async def play(real: str, out: Path) -> None:
    """Send all requests in turn, and write their replies. `real`: address of the server with the real model."""
    engines, saved = dict[str, CorpusEngine](), dict[str, Any]()
    clients = {"real": httpx.AsyncClient(base_url=real, timeout=60)}
    for name, kind in json.loads((CORPUS / "servers.json").read_text("utf-8")).items():
        settings: Any = {key: tuple(v) if isinstance(v, list) else v for key, v in kind["settings"].items()}
        engines[name] = CorpusEngine(**kind["engine"])
        transport = httpx.ASGITransport(create_app(engines[name], ServerConfig(**settings)))
        clients[name] = httpx.AsyncClient(transport=transport, base_url="http://test")
    with out.open("w", encoding="utf-8") as replies:
        for line in (CORPUS / "requests.jsonl").read_text("utf-8").splitlines():
            request = json.loads(_SAVED.sub(lambda found: found[0].format(**saved), line))
            server, body = request.get("server", "hermes"), request.get("body")
            if server in engines:
                engines[server].prepare(request)
            content = {"json": body, "content": request.get("raw"), "headers": request.get("headers")}
            reply = await clients[server].request(request.get("method", "POST"), request["path"], **content)
            if "save" in request:
                saved[request["save"]] = reply.json()
            kept = {name: value for name, value in reply.headers.items() if name not in ("date", "content-length")}
            told = {"name": request["name"], "status": reply.status_code, "headers": kept, "body": reply.text}
            if server in engines:
                told["engine"] = [*engines[server].asked({} if "seed" in (body or {}) else {"seed": "random"})]
            replies.write(_fixed(json.dumps(told)) + "\n")


def _fixed(line: str) -> str:
    """Replace what differs from run to run. Equal ids get equal numbers."""
    numbers: dict[str, str] = {}
    return _IDS.sub(lambda id: numbers.setdefault(id[0], f"ID{len(numbers)}"), _FIGURES.sub(r"\g<1>0", line))


def compare(before: Path, after: Path) -> bool:
    """Print the fields of replies that differ, and return whether there are any."""
    old, new = ([json.loads(line) for line in path.read_text("utf-8").splitlines()] for path in (before, after))
    print(f"{len(old)} replies before, {len(new)} after")
    for number, (first, second) in enumerate(zip(old, new, strict=False), 1):
        for field in first:
            if first[field] != second.get(field):
                print(f"{number} {first['name']}: {field}\n- {first[field]}\n+ {second.get(field)}")
    return old != new


def main() -> bool:
    parser = argparse.ArgumentParser(description="Play the corpus of requests, or compare the replies of two plays.")
    parser.add_argument("--out", type=Path, help="file for the replies, with a log beside it")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("BEFORE", "AFTER"), help="files of two plays")
    arguments = parser.parse_args()
    if arguments.compare:
        return compare(*arguments.compare)
    logging.disable()
    with closing(Process(arguments.out.with_suffix(".log"))) as process:
        asyncio.run(play(process.url, arguments.out))
    return False


if __name__ == "__main__":
    raise SystemExit(main())
