"""Conversations on the page: Markdown, copies, storage, edits, retries, and the same request as a program."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.serving import Process
from tests.support.waiting import PATIENCE, until

pytest.importorskip("playwright.sync_api", reason="the page's tests need `pip install playwright`")

from playwright.sync_api import Page, Route, expect

from tests.support.visitor import LONG, Visitor, bare

Visit = Callable[..., Visitor]

MARKDOWN = """# Title

Some **bold** text, `code` and [a link](https://example.org/page).
Second line.

- one
- two
  1. deeper

| a | b |
|---|--:|
| 1 | 2 |

- [x] done

```python
if 1 < 2:
    print("a")
```

> The end.
"""
HOSTILE = """<script>document.title = "ran"</script>
<img src="https://evil.example/a.png" onerror="document.title = 'ran'">

<iframe src="https://evil.example"></iframe><svg onload="document.title = 'ran'">

<style>body { display: none }</style>

[one](javascript:document.title='ran') [two](JaVaScRiPt:alert(1)) [three](data:text/html,<script>alert(1)</script>)
[four](&#106;avascript:alert(1)) <javascript:alert(1)> [five](//evil.example "x\\" onclick=alert(1)")

![six](https://evil.example/b.png) ![seven](x"onerror="alert(1))

[eight](https://example.org/"onmouseover="alert(1))

```js" onload="alert(1)
<b>nine</b>
```
"""


def tokens(text: str, length: int = 3) -> list[tuple[str, bool]]:
    """Cut a text into tokens, of which every second one was drafted."""
    return [(text[i : i + length], i // length % 2 == 0) for i in range(0, len(text), length)]


REFERENCES = (
    "See [docs][1] and ![more].\n\nText.\n\n[1]: https://example.org/a\n[more]: https://example.org/b\n",
    "> [1]: https://example.org/a\n\nSee [docs][1].\n\nAnd [again][1], [constructor] and [more].\n\n"
    "[1]: https://example.org/other\n\n- text\n\n[more]: https://example.org/b",
)


def titles(visitor: Visitor) -> list[str]:
    return visitor["#chat-list .title"].all_text_contents()


def run(*command: str, source: str | None = None) -> str:
    done = subprocess.run(command, input=source, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout


# -- Markdown ----------------------------------------------------------------------------------------------------------


def test_answers_are_rendered_as_markdown(visitor: Visitor) -> None:
    visitor.script(*tokens(MARKDOWN))
    visitor.ask("Hi")
    text = visitor.last_text
    for selector, content in (
        ("h1", "Title"),
        ("strong", "bold"),
        ("p code", "code"),
        ("a", "a link"),
        ("ul > li > ol > li", "deeper"),
        ("td >> nth=1", "2"),
        ("li:has-text('☑')", "☑ done"),
        ("pre code", 'if 1 < 2:\n    print("a")\n'),
        ("blockquote", "The end."),
    ):
        assert (text.locator(selector).text_content() or "").strip("\n") == content.strip("\n"), selector
    style = "(e) => { const { fontFamily, whiteSpace, overflowX } = getComputedStyle(e); return [fontFamily, whiteSpace, overflowX]; }"  # noqa: E501
    family, *others = text.locator("pre code").evaluate(style)
    assert "monospace" in family
    assert others == ["pre", "auto"]
    assert text.locator("p br").count() == 1
    assert text.locator("a").get_attribute("href") == "https://example.org/page"
    assert "noopener" in (text.locator("a").get_attribute("rel") or "")
    assert not re.search(r"```|\*\*|\|", text.text_content() or "")


def test_nothing_in_an_answer_runs_or_loads(visitor: Visitor) -> None:
    """Neither as it is written nor when the conversation is opened again. HTML is shown as text."""
    visitor.script(*tokens(HOSTILE, 5))
    visitor.ask("Hi")
    for _ in range(2):
        text = visitor.last_text
        assert text.locator("script, img, iframe, svg, style, object, form, input").count() == 0
        found = text.locator("*").evaluate_all(
            "(all) => all.flatMap((e) => [...e.attributes]).map(({ name, value }) => [name, value])"
        )
        assert [name for name, _ in found if name.startswith("on") or name in ("src", "style")] == []
        links = [value for name, value in found if name == "href"]
        assert links
        assert all(re.match("https?:", link) for link in links)
        assert '<img src="https://evil.example/a.png"' in (text.text_content() or "")
        assert text.locator("pre code").text_content() == "<b>nine</b>\n"
        assert visitor.page.title() == "KnapServe"
        visitor.reload()


def test_rendered_text_has_the_colours_of_its_tokens(visitor: Visitor) -> None:
    """Markup and addresses are skipped, also where they have the letters of the text that follows."""
    visitor.script(
        *[("A **bo", True), ("ld**", False), (" and [li", True), ("nk](http://a.example/li", False), (") li &", True)],
        *[("lt; x\n\n", False), ("```p", True), ("ython\nprint", False), ("(1)\n```", True), ("\n\n1. one\n2.", False)],
        (" two", True),
    )
    visitor.ask("Hi")
    seen = visitor.answer.locator(".own, .drafted").evaluate_all(
        "(all) => all.map((e) => [e.textContent, e.className])"
    )
    assert [(text.strip(), kind) for text, kind in seen if text.strip()] == [
        *[("A", "own"), ("bo", "own"), ("ld", "drafted"), ("and", "own"), ("li", "own"), ("nk", "drafted")],
        *[("li <", "own"), ("x", "drafted"), ("print", "drafted"), ("(1)", "own"), ("one", "drafted"), ("two", "own")],
    ]


# Formulas that Markdown would take for lists, headings, quotations, tables, emphasis, links or escapes.
FORMULAS = (
    r"\(a_1 * b\)",
    r"\[x \, y*z*\]",
    r"$$c \\ d_1*e*$$",
    "$e_1 * f * g$",
    "$|x|_1$",
    r"\(a|b\)",
    r"$\$5_1*2*$",
    "$[a](b)$",
    "$$\nx\n=\ny\n---\n- b\n> 0\n+ 1\n$$",
    "\\[\n\\begin{aligned}\n  a_1 &= b \\\\\n  c*d* &= `e`\n\\end{aligned}\n\\]",
    "\\begin{align*}\n  a_1 &= b \\\\\n- c*d* &= e\n\\end{align*}",
    "\\[\n\n    a_1*b*\n\n1. c\n\n\\]",
)
TABLED = tuple(f"| a | b |\n|---|---|\n| {formula} | b |" for formula in FORMULAS if "\n" not in formula)
AROUND = ("{}", "Text {} and *more*.", "Text\n{}\nand *more*.", "- one\n- {}\n- *three*", "**bold {} text**")


def test_formulas_are_shown_as_written_wherever_they_stand(visitor: Visitor) -> None:
    for text in (*(around.format(formula) for formula in FORMULAS for around in AROUND), *TABLED):
        visitor.page.evaluate(
            "(text) => { const box = make('div'), written = new Writer(box); written.write(text, 'own');"
            " written.flush(); log.replaceChildren(box); }",
            text,
        )
        formula = next(each for each in FORMULAS if each in text)
        assert "".join(visitor["#log .formula"].all_text_contents()) == formula, text
        assert visitor["#log em"].count() == text.count("*more*") + text.count("*three*")
        assert visitor["#log strong"].count() == text.startswith("**")


def test_rendering_step_by_step_or_at_once_is_the_same(visitor: Visitor) -> None:
    rendered = visitor.page.evaluate(
        """(texts) => texts.map((text) => {
          const write = (step) => {
            const box = make("div"), writer = new Writer(document.body.appendChild(box));
            for (let i = 0; i < text.length; i++) { writer.write(text[i], "own"); if (i % step === 0) writer.flush(); }
            writer.flush();
            box.remove();
            return box.innerHTML;
          };
          return [write(1), write(7), write(Infinity)];
        })""",
        [
            MARKDOWN,
            HOSTILE,
            *REFERENCES,
            "1. a\n\n   b\n\n2. c\n",
            "~~~\n```\n\n~~~\n\n    indented\n\ntext\n====\n\n***\n",
            *(around.format(formula) for formula in FORMULAS for around in AROUND),
            "> quoted $$\n> a_1*b*c\n> $$\n> end *x*\n\n# `$x_1*y*$\n\nopen $$ a_1*b*\n\nopen \\[ *c*",
        ],
    )
    for one, seven, whole in rendered:
        assert one == seven == whole
    for _, _, whole in rendered[2:4]:
        assert set(re.findall(r'href="([^"]*)"', whole)) == {"https://example.org/a", "https://example.org/b"}


AS_WRITTEN = (
    r"\(a_1 * b\) and \[x \, y*z*\] $$c \\ d$$ $e_1 * f * g$ [one](javascript:alert(1)) [two](/here), \*plain\*."
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (AS_WRITTEN, {"p": [AS_WRITTEN.replace(r"\*", "*")], "a, em": []}),
        (  # dollars in code and addresses do not pair with others
            "`$a` *b* `$c`\n\n```sh\necho $$ \\[\n```\n\n*d* <https://e.example/$f> *g* $h\n",
            {
                "em": ["b", "d", "g"],
                "code": ["$a", "$c", "echo $$ \\[\n"],
                "[href='https://e.example/$f']": ["https://e.example/$f"],
            },
        ),
        (
            "From $5 *up* to $6, $7*x*$8, $ *y* $ and $9.",
            {"p": ["From $5 up to $6, $7x$8, $ y $ and $9."], "em": ["up", "x", "y"]},
        ),
    ],
    ids=["formulas and blocked links", "code and addresses", "prices"],
)
def test_what_is_no_markup_is_shown_as_written(visitor: Visitor, text: str, shown: dict[str, list[str]]) -> None:
    visitor.script(*tokens(text))
    visitor.ask("Hi")
    for selector, texts in shown.items():
        expect(visitor.last_text.locator(selector)).to_have_text(texts)


def test_nesting_too_deep_to_render_is_shown_as_text(visitor: Visitor) -> None:
    visitor.script(("Fine.\n\n", True), (">" * 20000, True), (" end", True))
    visitor.ask("Hi")
    assert bare(visitor.last_text) == "Fine." + ">" * 20000 + "end"


@pytest.mark.parametrize("secure", [True, False])
def test_code_and_answers_can_be_copied(server: Process, visit: Visit, secure: bool) -> None:
    """Also where the browser withholds its clipboard interface, as without HTTPS."""
    visitor = visit(server.url, permissions=["clipboard-read", "clipboard-write"]).ready()
    read = "() => clipboard.readText()"
    visitor.page.evaluate("() => { window.clipboard = navigator.clipboard; }")
    if not secure:
        visitor.page.evaluate("() => Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    visitor.script(*tokens(MARKDOWN))
    visitor.ask("Hi")
    visitor.button("Copy code").click()
    expect(visitor[".copied"]).to_have_count(1)
    assert visitor.page.evaluate(read) == 'if 1 < 2:\n    print("a")'
    visitor.button("Copy", exact=True).click()
    expect(visitor[".copied.copy-text"]).to_have_count(1)
    assert visitor.page.evaluate(read) == MARKDOWN
    expect(visitor[".copied"]).to_have_count(0)


# -- storage -----------------------------------------------------------------------------------------------------------


def test_a_conversation_survives_a_reload(visitor: Visitor) -> None:
    """With its colours and figures, and it goes on where it was."""
    first = visitor.set(limit="30").ask("What is\n a hill?")
    before = bare(visitor["#log"])
    coloured = visitor.answer.locator(".drafted").count() > 0
    visitor.reload()
    assert bare(visitor["#log"]) == before
    assert (visitor.answer.locator(".drafted").count() > 0) is coloured
    assert bare(visitor.last_text) == "".join(first.text.split())
    assert titles(visitor) == ["What is a hill?"]
    second = visitor.ask("Thanks.")
    assert [message["content"] for message in second.request["messages"]] == [
        "What is\n a hill?",
        first.text,
        "Thanks.",
    ]
    assert second.request["max_tokens"] == 30
    assert titles(visitor) == ["What is a hill?"]


def test_a_question_without_an_answer_survives_a_reload(visitor: Visitor) -> None:
    visitor.page.route("**/v1/chat/completions", lambda route: None)
    visitor.type("What is a hill?")
    expect(visitor[".running"]).to_have_count(1)
    expect(visitor["#text"]).to_have_value("")
    visitor.page.reload()
    expect(visitor["#text"]).to_have_value("What is a hill?")
    expect(visitor[".message"]).to_have_count(0)


def test_conversations_can_be_opened_renamed_and_deleted(visitor: Visitor) -> None:
    visitor.script(("Yes.", True))
    for question in ("First", "Second", "Third"):
        visitor["#clear"].click()
        visitor.ask(question)
    assert titles(visitor) == ["Third", "Second", "First"]
    visitor["#chat-list .title"].last.click()
    expect(visitor[".message.user .text"]).to_have_text("First")
    expect(visitor["[aria-current=true]"]).to_have_text("First")
    visitor.button("Rename First").click()
    assert visitor.page.evaluate("document.activeElement.value") == "First"
    visitor.page.keyboard.type("Other <b>")
    visitor.page.keyboard.press("Enter")
    assert titles(visitor) == ["Third", "Second", "Other <b>"]
    visitor.ask("More")
    assert titles(visitor) == ["Other <b>", "Third", "Second"]
    for _ in range(2):  # the second click confirms
        assert titles(visitor) == ["Other <b>", "Third", "Second"]
        visitor["#chat-list li"].first.locator(".small").last.click()
    assert titles(visitor) == ["Third", "Second"]
    expect(visitor[".message"]).to_have_count(0)
    visitor.reload()
    assert titles(visitor) == ["Third", "Second"]
    assert "Other" not in visitor.page.evaluate("JSON.stringify(localStorage)")


def test_a_conversation_deleted_while_it_is_answered_stays_deleted(server: Process, visitor: Visitor) -> None:
    visitor.script(("Yes.", True))
    visitor.ask("Hi")
    visitor.page.unroute_all()
    visitor.begin("More")
    for _ in range(2):
        visitor["#chat-list .small"].last.click()
    until(lambda: server.requests == 0, "the request to be cancelled")
    expect(visitor["#stop"]).to_be_disabled()
    assert titles(visitor) == []


_BROKEN = {
    "full": "Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); }",
    "forbidden": """for (const name of ["localStorage", "sessionStorage"])
        Object.defineProperty(window, name, { get() { throw new DOMException("no", "SecurityError"); } })""",
    "corrupt": """const bad = ["", "{", "null", "[]", '{"title":"x","messages":[]}'];
        bad.push('{"title":"x","messages":[{"role":"tool"}]}');
        bad.forEach((text, i) => localStorage.setItem("knapserve.chat." + i, text));
        localStorage.setItem("knapserve.settings", "[1"); sessionStorage.setItem("knapserve.open", "3");""",
}


@pytest.mark.parametrize("kind", list(_BROKEN))
def test_the_page_works_with_broken_storage(server: Process, visit: Visit, kind: str) -> None:
    visitor = visit(server.url)
    visitor.context.add_init_script(_BROKEN[kind])
    visitor.reload()
    visitor.script(("Yes.", True))
    visitor.ask("First")
    expect(visitor["#kept"]).to_have_text("" if kind == "corrupt" else re.compile("does not keep conversations"))
    visitor["#clear"].click()
    visitor.ask("Second")
    assert titles(visitor) == ["Second", "First"]
    visitor["#chat-list .title"].last.click()
    expect(visitor[".message.user .text"]).to_have_text("First")


def test_settings_survive_a_reload_and_the_key_does_not(visitor: Visitor) -> None:
    visitor.set(
        system="Be kind.", temperature="0.5", top_p="0.8", seed="7", limit="9", key="secret", others='{"top_k": 5}'
    )
    visitor["#draft"].uncheck()
    visitor.reload()
    request = visitor.ask("Hi").request
    expected = {"temperature": 0.5, "top_p": 0.8, "seed": 7, "max_tokens": 9, "top_k": 5, "draft_policy": "none"}
    assert request.items() >= expected.items()
    assert request["messages"][0] == {"role": "system", "content": "Be kind."}
    expect(visitor["#key"]).to_have_value("")
    assert "secret" not in visitor.page.evaluate("JSON.stringify([localStorage, sessionStorage])")


# -- another try -------------------------------------------------------------------------------------------------------


def test_a_question_can_be_edited_and_the_last_answer_retried(visitor: Visitor) -> None:
    """What followed the question is dropped. Escape leaves all as it was."""
    visitor.set(limit="10")
    first = visitor.ask("One")
    visitor.ask("Two")
    visitor.ask("Three")
    visitor.button("Edit").nth(1).click()
    assert visitor.page.evaluate("document.activeElement.value") == "Two"
    visitor.page.keyboard.press("Escape")
    expect(visitor[".message"]).to_have_count(6)
    visitor.button("Edit").nth(1).click()
    visitor.retype("Other")
    assert visitor.sent(lambda: visitor.page.keyboard.press("Enter")) == ["One", first.text, "Other"]
    expect(visitor[".facts"]).to_have_count(2)
    expect(visitor[".retry:visible"]).to_have_count(1)
    assert visitor.sent(visitor[".retry:visible"].click) == ["One", first.text, "Other"]
    expect(visitor[".facts"]).to_have_count(2)
    assert visitor[".message.user .text"].all_text_contents() == ["One", "Other"]
    visitor.page.reload()
    expect(visitor[".message.user .text"]).to_have_text(["One", "Other"])


def test_a_stopped_answer_can_be_retried_and_counts(server: Process, visitor: Visitor) -> None:
    visitor.begin("One")
    expect(visitor[".retry:visible, .edit:enabled"]).to_have_count(0)
    visitor["#stop"].click()
    expect(visitor[".facts"]).to_contain_text("stopped")
    visitor.reload()
    expect(visitor[".facts"]).to_contain_text("stopped")
    visitor.set(limit="10", others="")
    visitor[".retry:visible"].click()
    expect(visitor[".facts"]).not_to_contain_text("stopped")
    expect(visitor[".message"]).to_have_count(2)


@pytest.mark.parametrize(("how", "stopped"), [("Retry", True), ("Retry", False), ("Edit", False)])
def test_messages_are_replaced_only_by_an_answer(visitor: Visitor, how: str, stopped: bool) -> None:
    """Neither what is stopped before its first token nor what is refused changes the conversation."""
    visitor.excused = ("status of 500",)
    visitor.script(("Yes.", True))
    for question in ("One", "Two"):
        visitor.ask(question)
    before = visitor[".message .text"].all_text_contents()
    visitor.page.route("**/v1/chat/completions", lambda route: None if stopped else route.fulfill(status=500))
    if how == "Retry":
        visitor[".retry:visible"].click()
    else:
        visitor[".edit"].first.click()
        visitor.page.keyboard.press("Enter")
    if stopped:
        expect(visitor[".message"]).to_have_count(4)
        visitor["#stop"].click()
    else:
        expect(visitor["#text"]).to_have_value("Two" if how == "Retry" else "One")
    expect(visitor[".lost"]).to_have_count(1)
    assert visitor[".message:not(.lost):not(.lost + *) .text"].all_text_contents() == before
    visitor["#clear"].click()
    visitor["#chat-list .title"].click()
    expect(visitor[".message .text"]).to_have_text(before)
    visitor.button("Rename One").click()
    visitor.page.keyboard.type("Other")
    visitor.page.keyboard.press("Enter")
    visitor.page.reload()
    assert titles(visitor) == ["Other"]
    expect(visitor[".message .text"]).to_have_text(before)


def test_a_cut_off_answer_is_marked_for_good(visitor: Visitor) -> None:
    visitor.script(("Half an", True), complete=False)
    visitor.type("Hi")
    expect(visitor.page.get_by_role("alert")).to_contain_text("ended unexpectedly")
    for _ in range(2):
        expect(visitor[".facts"]).to_contain_text("cut off by an error")
        expect(visitor.last_text).to_have_text("Half an")
        visitor.page.reload()


@pytest.mark.parametrize("cut", ["length", "Stop"])
def test_a_cut_answer_is_continued_in_its_place(visitor: Visitor, cut: str) -> None:
    """The whole text is one answer, on the screen, in the storage and in the next request."""
    if cut == "length":
        first = visitor.set(**LONG | {"limit": "10"}).ask("One").text
    else:
        visitor.begin("One")
        visitor["#stop"].click()
        expect(visitor[".facts"]).to_contain_text("stopped")
        first = visitor.page.evaluate("chat.messages[1].content")
    visitor.set(limit="12", others="")
    with visitor.page.expect_response("**/v1/chat/completions") as response:
        visitor.button("Continue").click()
    request = response.value.request.post_data_json
    assert request["continue_final_message"] is True
    assert request["messages"] == [{"role": "user", "content": "One"}, {"role": "assistant", "content": first}]
    expect(visitor[".facts"]).to_contain_text("continued")
    expect(visitor[".message"]).to_have_count(2)
    whole = visitor.page.evaluate("chat.messages[1].content")
    assert whole.startswith(first)
    assert len(whole) > len(first) or cut == "Stop"  # which may come where the model has nothing to add
    shown = bare(visitor.last_text)
    visitor.reload()
    assert bare(visitor.last_text) == shown
    again = visitor.ask("Two").request
    assert [message["content"] for message in again["messages"]] == ["One", whole, "Two"]
    assert "continue_final_message" not in again


@pytest.mark.parametrize("how", ["refused", "stopped"])
def test_a_continuation_without_text_leaves_the_answer(visitor: Visitor, how: str) -> None:
    visitor.excused = ("status of 500",)
    visitor.script(("Half", True), (" an", False), ending="length")
    visitor.ask("Hi")
    before = visitor["#log"].inner_text()
    visitor.page.unroute_all()
    if how == "refused":
        visitor.page.route("**/v1/chat/completions", lambda route: route.fulfill(status=500))
        visitor[".resume"].click()
        expect(visitor.page.get_by_role("alert")).to_be_visible()
    else:
        visitor.page.route("**/v1/chat/completions", lambda route: None)  # no reply
        visitor[".resume"].click()
        expect(visitor[".resume"]).to_have_count(0)
        visitor["#stop"].click()
    expect(visitor[".resume"]).to_be_enabled()
    assert visitor["#log"].inner_text().startswith(before)
    expect(visitor["#text"]).to_have_value("")
    visitor.reload()
    assert visitor["#log"].inner_text() == before


def test_a_complete_answer_is_not_continued(visitor: Visitor) -> None:
    """Nor one that consists of reasoning only: it is no part of the next request."""
    visitor.script(("Yes.", True))
    visitor.ask("Hi")
    expect(visitor[".resume"]).to_have_count(0)
    visitor.script(("", True), ending="length")
    visitor.ask("Hi")
    expect(visitor[".resume"]).to_have_count(0)


# -- files -------------------------------------------------------------------------------------------------------------


def imported(visitor: Visitor, text: str | bytes) -> str:
    """Import a file. Returns the report."""
    data = text.encode() if isinstance(text, str) else text
    visitor["#imported"].evaluate("(report) => { report.textContent = ''; }")
    visitor["#file"].set_input_files({"name": "chats.json", "mimeType": "application/json", "buffer": data})
    expect(visitor["#imported"]).not_to_be_empty()
    return visitor["#imported"].text_content() or ""


def export(visitor: Visitor) -> str:
    with visitor.page.expect_download() as download:
        visitor.button("Export").click()
    assert re.fullmatch(r"knapserve-\d{4}-\d\d-\d\d\.json", download.value.suggested_filename)
    return Path(download.value.path()).read_text("utf-8")


def test_conversations_are_exported_and_imported(server: Process, visit: Visit, visitor: Visitor) -> None:
    """Another browser shows what this one showed. A second import adds nothing."""
    expect(visitor["#export"]).to_be_disabled()
    visitor.script(*tokens(MARKDOWN), source="lookup", drafted=1, accepted=1)
    for question in ("First é 🐉", "Second"):
        visitor["#clear"].click()
        visitor.ask(question)
    shown, file = visitor["#log"].inner_html(), export(visitor)
    other = visit(server.url).ready()
    assert imported(other, "\ufeff" + file) == "2 imported."
    assert titles(other) == ["Second", "First é 🐉"]
    other["#chat-list .title"].first.click()
    assert other["#log"].inner_html() == shown
    assert imported(other, file) == "0 imported, 2 already here."
    other.page.reload()
    assert titles(other) == ["Second", "First é 🐉"]


def test_an_import_overwrites_nothing(visitor: Visitor) -> None:
    """A conversation that went on since it was exported stays, beside the older one."""
    visitor.script(("Yes.", True))
    visitor.ask("First")
    file = export(visitor)
    visitor.ask("More")
    assert imported(visitor, file) == "1 imported."
    assert titles(visitor) == ["First", "First"]
    expect(visitor[".message.user .text"]).to_have_text(["First", "More"])
    visitor.reload()
    expect(visitor[".message.user .text"]).to_have_text(["First", "More"])
    visitor["#chat-list .title"].last.click()
    expect(visitor[".message.user .text"]).to_have_text("First")


_GOOD = {"title": "Good", "updated": 1, "messages": [{"role": "user", "content": "Hi"}]}
_DAMAGED = [None, [], {"title": 1}, _GOOD | {"messages": []}, _GOOD | {"messages": [{"role": "tool", "content": ""}]}]


@pytest.mark.parametrize(
    "text",
    ["", "{", b"\xff\x00\xfe", "null", "3", "[]", "{}", '{"conversations": []}', "[" * 100_000]
    + [json.dumps({"format": format, "conversations": [_GOOD]}) for format in ("other", None)]
    + [json.dumps({"format": "knapserve-conversations", "conversations": value}) for value in (None, {}, "x")],
)
def test_a_foreign_or_damaged_file_changes_nothing(visitor: Visitor, text: str | bytes) -> None:
    visitor.script(("Yes.", True))
    visitor.ask("Mine")
    before = visitor.page.evaluate("JSON.stringify(localStorage)")
    assert re.match(r"chats\.json is .* Nothing was imported\.$", imported(visitor, text))
    assert visitor.page.evaluate("JSON.stringify(localStorage)") == before
    assert titles(visitor) == ["Mine"]


def test_what_can_be_read_of_a_damaged_file_is_imported(visitor: Visitor) -> None:
    """Its text is as untrusted as that of an answer."""
    said = {"role": "assistant", "content": HOSTILE, "tokens": [["<b>x</b>", "evil"]], "facts": {"a": 1}, "ending": 3}
    hostile = {"title": "", "updated": 1e300, "messages": [{"role": "user", "content": "<b>Who</b>"}, said]}
    file = {"format": "knapserve-conversations", "conversations": [*_DAMAGED, _GOOD, hostile]}
    assert imported(visitor, json.dumps(file)) == f"2 imported, {len(_DAMAGED)} damaged."
    assert titles(visitor) == ["<b>Who</b>", "Good"]
    visitor["#chat-list .title"].first.click()
    expect(visitor.last_text.locator("script, img, iframe, svg")).to_have_count(0)
    expect(visitor["[data-at], .retry:visible"]).not_to_have_count(0)
    visitor.script(("Yes.", True))
    visitor.ask("More")
    assert titles(visitor)[0] == "<b>Who</b>"


def test_an_import_that_the_storage_cannot_hold_is_reported(visitor: Visitor) -> None:
    visitor.page.evaluate(f"() => {{ {_BROKEN['full']} }}")
    report = imported(visitor, json.dumps({"format": "knapserve-conversations", "conversations": [_GOOD]}))
    assert report.startswith("1 imported. This browser's storage is full")
    assert titles(visitor) == ["Good"]


# -- two tabs ----------------------------------------------------------------------------------------------------------


def second_tab(server: Process, visitor: Visitor) -> Page:
    """Another tab of the browser, with the same conversation."""
    other = visitor.context.new_page()
    other.goto(server.url)
    expect(other.locator("#state")).to_have_text("ready")
    other.locator("#chat-list .title").click()
    return other


def test_two_tabs_share_a_conversation(server: Process, visitor: Visitor) -> None:
    visitor.set(limit="5").ask("One")
    other = second_tab(server, visitor)
    other.locator("#text").fill("Two")
    other.locator("#send").click()
    expect(visitor[".message.user .text"]).to_have_text(["One", "Two"])
    said = [message["content"] for message in visitor.ask("Three").request["messages"]]
    assert said[::2] == ["One", "Two", "Three"]
    expect(other.locator(".message.user .text")).to_have_text(["One", "Two", "Three"])
    for _ in range(2):
        other.locator("#chat-list .small").last.click()
    expect(visitor[".message"]).to_have_count(0)
    visitor.ask("Four")
    assert titles(visitor) == ["Four"]


def test_two_tabs_that_answer_at_once_lose_nothing(server: Process, visitor: Visitor) -> None:
    visitor.set(limit="5").ask("One")
    other = second_tab(server, visitor)
    held: list[Route] = []
    visitor.page.route("**/v1/chat/completions", lambda route: held.append(route))
    visitor.type("Here")
    expect(visitor[".running"]).to_have_count(1)
    other.locator("#text").fill("There")
    other.locator("#send").click()
    expect(other.locator(".facts")).to_have_count(2)
    expect(visitor["[aria-current=true]"]).to_have_count(0)  # the answer will be in a conversation of its own
    held[0].continue_()
    expect(visitor[".facts"]).to_have_count(2)
    expect(visitor[".message.user .text"]).to_have_text(["One", "Here"])
    visitor.page.reload()
    expect(visitor[".message.user .text"]).to_have_text(["One", "Here"])
    assert titles(visitor) == ["One", "One"]
    visitor["#chat-list .title"].last.click()
    expect(visitor[".message.user .text"]).to_have_text(["One", "There"])


# -- the API -----------------------------------------------------------------------------------------------------------


def programs(visitor: Visitor) -> dict[str, str]:
    visitor.page.get_by_role("tab", name="API").click()
    found = {}
    for name in ("curl", "Python", "JavaScript"):
        visitor.page.get_by_role("tab", name=name).click()
        expect(visitor.page.get_by_role("tab", name=name)).to_have_attribute("aria-selected", "true")
        visitor.page.evaluate("paintSnippet()")
        found[name] = visitor["#snippet"].text_content() or ""
    return found


def answers(found: dict[str, str], tmp_path: Path) -> list[str]:
    """Run the programs. Returns what the model said."""
    said = [json.loads(run("bash", source=found["curl"]))["choices"][0]["message"]["content"]]
    said.append(run(sys.executable, "-c", found["Python"]).removesuffix("\n"))
    if node := shutil.which("node"):
        (tmp_path / "ask.mjs").write_text(found["JavaScript"], "utf-8")
        said.append(run(node, str(tmp_path / "ask.mjs")).removesuffix("\n"))
    return said


def test_the_shown_programs_repeat_the_last_answer(visitor: Visitor, tmp_path: Path) -> None:
    """Whatever characters the question has, and with parameters that the SDK does not know."""
    others = '{"repetition_penalty": 1.1, "stop": ["zzz"], "ignore_eos": false}'
    visitor.set(system='It\'s "kind".', temperature="0.9", top_p="0.9", limit="20", others=others)
    stream = visitor.ask("It's a \"test\" of $HOME `x` \\n %s ${y} é 🐉\n'")
    found = programs(visitor)
    expect(visitor["#api-what"]).to_contain_text("The request of the last answer")
    assert answers(found, tmp_path) == [stream.text] * (3 if shutil.which("node") else 2)
    continued = visitor.streamed(visitor[".resume"].click, answers=0)
    assert answers(programs(visitor), tmp_path) == [continued.text] * (3 if shutil.which("node") else 2)
    card = visitor["#model"].text_content() or "?"
    assert all(card in program for program in found.values())


def test_the_shown_program_follows_the_screen(visitor: Visitor) -> None:
    example = programs(visitor)
    assert all("What is the capital of France?" in program for program in example.values())
    assert not any(re.search("seed|undefined", program) for program in example.values())
    visitor.page.get_by_role("tab", name="curl").click()
    visitor["#text"].fill("Typed")
    expect(visitor["#snippet"]).to_contain_text('"content": "Typed"')
    expect(visitor["#api-what"]).to_contain_text("The request that Send makes")
    visitor.set(seed="5", others="{")
    expect(visitor["#api-what"]).to_have_text("Other parameters (JSON): Write a JSON object.")
    visitor.set(others="", key="secret")
    expect(visitor["#snippet"]).to_contain_text('"seed": 5')
    expect(visitor["#snippet"]).to_contain_text("$KNAPSERVE_API_KEY")
    assert "secret" not in (visitor["#snippet"].text_content() or "")
    visitor["#draft"].uncheck()
    expect(visitor["#snippet"]).to_contain_text('"draft_policy": "none"')


def test_tabs_are_chosen_by_arrow_keys(visitor: Visitor) -> None:
    visitor["#numbers-tab"].focus()
    visitor.page.keyboard.press("ArrowRight")
    expect(visitor["#api"]).to_be_visible()
    expect(visitor["#numbers"]).to_be_hidden()
    visitor.page.keyboard.press("Tab")
    visitor.page.keyboard.press("ArrowLeft")
    expect(visitor["#languages [data-language=javascript]"]).to_be_focused()
    expect(visitor["#snippet"]).to_contain_text("await fetch")


# -- small screens -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_small_screen_has_everything(server: Process, visit: Visit, scheme: str) -> None:
    visitor = visit(server.url, viewport={"width": 360, "height": 740}, color_scheme=scheme).ready()
    visitor.script(*tokens(MARKDOWN + "\n" + "wide" * 60 + "\n\n```\n" + "wide " * 60 + "\n```\n"))
    visitor.ask("Hi")
    programs(visitor)
    assert visitor.overflow() <= 0
    expect(visitor["#chats"]).to_be_hidden()
    visitor["#chats-button"].click()
    expect(visitor["#chats .title"]).to_be_in_viewport()
    visitor.page.keyboard.press("Escape")
    expect(visitor["#chats"]).to_be_hidden()
    visitor["#chats-button"].click()
    visitor["#chats .title"].click()
    expect(visitor["#chats"]).to_be_hidden()
    expect(visitor["#send"]).to_be_in_viewport()
