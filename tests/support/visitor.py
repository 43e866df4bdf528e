"""A visitor of the page, and the contents of the page."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from playwright.sync_api import Browser, Locator, expect

from tests.support.waiting import PATIENCE

STORY = "Tell me a story about a small bear and a hill."
LONG = {"limit": "3500", "others": '{"ignore_eos": true}'}  # seconds of work: far more than what a test waits for
PLAIN_ROUNDS = 8  # plain rounds between drafts, which the page shows as part of the plan before
COPIES = ("lookup", "prediction")  # sources of drafts without a plan
_ROUND = {"plan": None, "source": None, "drafted": 0, "accepted": 0, "context": 10}
_WATCH = (
    "window.violations = []; addEventListener('securitypolicyviolation', (e) => violations.push(e.violatedDirective))"
)


@dataclass(frozen=True)
class Stream:
    """The events that the server sent for one answer."""

    request: dict[str, Any]
    chunks: list[dict[str, Any]]

    @cached_property
    def text(self) -> str:
        return "".join(choice["delta"].get("content", "") for choice in self._choices)

    @cached_property
    def rounds(self) -> list[dict[str, Any]]:
        return [choice["round"] for choice in self._choices if "round" in choice]

    @cached_property
    def figures(self) -> dict[str, Any]:
        figures: dict[str, Any] = self.chunks[-1]["metrics"]["speculative_decoding"]
        return figures

    @property
    def _choices(self) -> list[dict[str, Any]]:
        return [choice for chunk in self.chunks for choice in chunk["choices"]]

    @property
    def plans(self) -> list[str]:
        """The plans in order of use, each listed until another plan or a copy drafts.

        Plain rounds between two drafts do not end a plan unless there are more than timing needs.
        """
        found: list[str | None] = []
        alone = 0
        for round in self.rounds[1:]:  # the first waited for the prompt
            drafts = round["plan"] or (round["source"] if round["source"] in COPIES else None)
            alone = 0 if drafts else alone + 1
            timed = alone <= PLAIN_ROUNDS and found
            now = drafts or (found[-1] if timed else None)
            if not found or found[-1] != now:
                found.append(now)
        return [plan for plan in found if plan and plan not in COPIES]


def bare(rendered: Locator) -> str:
    """The text of an element without white space, which rendering Markdown changes."""
    return "".join((rendered.text_content() or "").split())


# Figures are painted with the next frame.
_PAINTED = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


class Visitor:
    def __init__(self, browser: Browser, url: str, options: dict[str, Any]) -> None:
        self.context = browser.new_context(**options)
        self.context.set_default_timeout(1000 * PATIENCE)
        self.context.add_init_script(_WATCH)
        self.page = page = self.context.new_page()
        self.complaints: list[str] = []
        self.elsewhere: list[str] = []
        self.excused: tuple[str, ...] = ()  # parts of complaints that the test provokes
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self._note(request.url, url))
        page.goto(url)

    def _note(self, requested: str, own: str) -> None:
        if not requested.startswith(own):
            self.elsewhere.append(requested)

    def leave(self) -> None:
        complaints = [text for text in self.complaints if not any(part in text for part in self.excused)]
        violations = self.page.evaluate("window.violations")
        self.context.close()
        assert complaints == []
        assert violations == []
        assert self.elsewhere == []

    def __getitem__(self, selector: str) -> Locator:
        return self.page.locator(selector)

    @property
    def answer(self) -> Locator:
        """The newest answer."""
        return self[".message.assistant"].last

    @property
    def last_text(self) -> Locator:
        return self.answer.locator(".text")

    def ready(self) -> Visitor:
        expect(self["#state"]).to_have_text("ready")
        return self

    def reload(self) -> None:
        self.page.reload()
        self.ready()

    def button(self, name: str, exact: bool = False) -> Locator:
        return self.page.get_by_role("button", name=name, exact=exact)

    def retype(self, text: str) -> None:
        """Replace the text of the field that has the focus."""
        self.page.keyboard.press("Control+A")
        self.page.keyboard.type(text)

    def begin(self, text: str = STORY) -> None:
        """Send a question with a long answer, and wait for its first tokens."""
        self.set(**LONG).type(text)
        self.answer.locator(".own").nth(5).wait_for(state="attached")

    def sent(self, act: Callable[[], object]) -> list[str]:
        """The texts of the messages of the request that an action sends."""
        with self.page.expect_request("**/v1/chat/completions") as request:
            act()
        body: dict[str, Any] = request.value.post_data_json or {}
        return [message["content"] for message in body["messages"]]

    def set(self, **fields: str) -> Visitor:
        """Fill in settings by the ids of their fields."""
        if not self["#settings"].evaluate("(settings) => settings.open"):
            self["#settings summary"].click()
        for name, value in fields.items():
            self[f"#{name}"].fill(value)
        self["#settings summary"].click()
        return self

    def type(self, text: str) -> None:
        """Type a text: Shift+Enter breaks lines, Enter sends."""
        self["#text"].focus()
        for i, line in enumerate(text.split("\n")):
            if i:
                self.page.keyboard.press("Shift+Enter")
            self.page.keyboard.type(line)
        self.page.keyboard.press("Enter")

    def ask(self, text: str) -> Stream:
        """Send a question and wait until its answer is complete."""
        return self.streamed(lambda: self.type(text))

    def script(self, *tokens: tuple[str, bool], complete: bool = True, ending: str = "stop", **round: Any) -> None:
        """Have the next questions answered by these tokens, each with a flag for the model's own.

        The stream of an answer that is not `complete` ends without a finish reason. `round`: fields of the rounds of
        tokens that are not the model's own.
        """
        chunks: list[dict[str, Any]] = [
            {
                "choices": [
                    {
                        "delta": {"content": text},
                        "finish_reason": None,
                        "round": _ROUND | ({} if own else round) | {"tokens": [[text, own]]},
                    }
                ]
            }
            for text, own in tokens
        ]
        if complete:
            chunks.append({"choices": [{"delta": {}, "finish_reason": ending}]})
        body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        self.page.route(
            "**/v1/chat/completions",
            lambda route: route.fulfill(status=200, content_type="text/event-stream", body=body),
        )

    def compare(self) -> Stream:
        return self.streamed(self["#again"].click)

    def streamed(self, send: Any, answers: int = 1) -> Stream:
        """Wait for an answer, which adds so many `answers` to the page: none if it continues one."""
        before = self[".facts"].count() - (1 - answers)
        with self.page.expect_response("**/v1/chat/completions") as response:
            send()
        expect(self[".facts"]).to_have_count(before + 1)
        self.page.evaluate(_PAINTED)
        *events, done, rest = response.value.body().split(b"\n\n")
        assert (done, rest) == (b"data: [DONE]", b"")
        chunks = [json.loads(event.removeprefix(b"data: ")) for event in events if event.startswith(b"data: ")]
        return Stream(response.value.request.post_data_json or {}, chunks)

    def overflow(self) -> int:
        """The most pixels by which the page, its log or its figures are wider than what is shown of them."""
        wider = "(all) => Math.max(...all.map((e) => e.scrollWidth - e.clientWidth))"
        return int(self["html, #log, #figures"].evaluate_all(wider))

    def focused(self) -> str:
        """The id of the element that has the focus; its tag where it has none."""
        name: str = self.page.evaluate("document.activeElement.id || document.activeElement.tagName")
        return name
