"""The web page as its users meet it: keyboard, colours, figures, errors, small screens, a server that goes away."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.support import CONFIG
from tests.support.serving import Process
from tests.support.waiting import until

pytest.importorskip("playwright.sync_api", reason="the page's tests need `pip install playwright`")

from playwright.sync_api import expect

from tests.support.visitor import LONG, PLAIN_ROUNDS, STORY, Stream, Visitor, bare

Visit = Callable[..., Visitor]
NIGHTLY = pytest.mark.nightly

CODE = "Write a short function which should cube a given number."
LAYERS = CONFIG["num_hidden_layers"]


def visible(stream: Stream) -> list[tuple[str, str]]:
    """What a reader sees of a text with lists and quotations: each character with its class."""
    drafted = {"lookup": "drafted lookup"}
    characters = [
        (character, "own" if own else drafted.get(round["source"], "drafted"))
        for round in stream.rounds
        for text, own in round["tokens"]
        for character in text
    ]
    markup = {i for found in re.finditer(r"^(?:\d+\.|>) ", stream.text, re.MULTILINE) for i in range(*found.span())}
    return [pair for i, pair in enumerate(characters) if i not in markup and not pair[0].isspace()]


# -- answers -----------------------------------------------------------------------------------------------------------


def test_text_streams_and_drafted_tokens_are_coloured(server: Process, visitor: Visitor) -> None:
    """Colours, counts, plans and rates on the page are those of the stream, and those of the server's counters."""
    names = ("vllm:spec_decode_num_accepted_tokens_total", "vllm:spec_decode_num_draft_tokens_total")
    before = server.metrics()
    assert visitor.focused() == "text"
    expect(visitor["#where"]).to_have_text(re.compile(r"^cpu · b?float\d+ · knapspec$"))
    seen = visitor["#log"].evaluate_handle(
        """(log) => { const seen = []; const look = () => seen.push(log.querySelectorAll(".assistant span").length);
                      new MutationObserver(look).observe(log, { childList: true, subtree: true }); return seen; }"""
    )
    stream = visitor.set(**LONG | {"limit": "700"}).ask(STORY)
    counts = seen.json_value()
    assert counts == sorted(counts)
    assert len(set(counts)) > 2  # as it is written, not at once
    answer, figures = visitor.answer, stream.figures
    assert figures["num_accepted_draft_tokens"] > 0
    spans = answer.locator(".drafted, .own").evaluate_all("(all) => all.map((e) => [e.textContent, e.className])")
    assert [(character, kind) for text, kind in spans for character in "".join(text.split())] == visible(stream)
    assert bare(visitor.last_text) == "".join(character for character, _ in visible(stream))
    drawn = answer.locator(".drafted").first.evaluate("(e) => getComputedStyle(e).backgroundColor")
    assert drawn != answer.locator(".own").first.evaluate("(e) => getComputedStyle(e).backgroundColor")
    after = server.metrics()
    accepted, drafted = (int(after.total(name) - before.total(name)) for name in names)
    assert (accepted, drafted) == (figures["num_accepted_draft_tokens"], figures["num_draft_tokens"])
    expect(visitor["#accepted-label"]).to_contain_text(f"{accepted} of {drafted}")
    expect(visitor["#accepted"]).to_contain_text("%")
    expect(visitor["#length"]).to_have_text(f"{figures['mean_acceptance_length']:.2f}")
    expect(answer.locator(".facts")).to_contain_text(f"{accepted} of {drafted} drafted tokens accepted")
    shown = float(visitor["#rate"].text_content() or "")
    assert shown == pytest.approx(figures["tokens_per_second"], abs=0.51)  # whole numbers from 100 on
    context = stream.rounds[-1]["context"] + len(stream.rounds[-1]["tokens"])
    expect(visitor["#context"]).to_have_text(str(context))


# Tokens come at times of the test's own: frames and timers run only where it lets them.
_FED = r"""({ count, between }) => {
  const frames = [], timers = [];
  let now = 1000;
  frame = timer = null;
  painted = 0;
  performance.now = () => now;
  requestAnimationFrame = (call) => frames.push(call);
  setTimeout = (call, wait) => timers.push([now + wait, call]);
  clearTimeout = (id) => { if (id) timers[id - 1] = [Infinity, null]; };
  const pass = () => {
    for (const timer of timers) if (timer[0] <= now) { timer[0] = Infinity; timer[1](); }
    for (const call of frames.splice(0)) call();
  };
  const answer = new Answer(true), box = message("assistant running", "Answer").appendChild(make("div", "text"));
  writer = new Writer(box);
  const watch = new MutationObserver(() => 0);
  const renders = {}, coloured = Section.prototype.coloured;
  Section.prototype.coloured = function (fragment, raw, from) {
    renders[from] = (renders[from] ?? 0) + 1;
    return coloured.call(this, fragment, raw, from);
  };
  watch.observe(document.querySelector("main"), { childList: true, subtree: true, characterData: true, attributes: true });
  const seen = [];
  for (let i = 0; i < count; i++) {
    now += between;
    const round = { tokens: [[i % 40 ? "word " : "line.\n\n", i % 3 === 0]], drafted: 1, accepted: 1, plan: "1".repeat(28), context: 10 + i };
    handleEvent({ choices: [{ delta: {}, round }] }, answer);
    pass();
    if (watch.takeRecords().length) seen.push([now, box.querySelectorAll(".own, .drafted").length]);
  }
  const parts = [...box.querySelectorAll(".part")].map((part) => part.textContent);
  writer = null;
  return { seen, parts, renders: Object.values(renders), begun: 1000 + between };
}"""  # noqa: E501


def test_a_fast_answer_is_painted_ten_times_a_second_block_by_block(visitor: Visitor) -> None:
    """The first token is painted at once. Later ones are collected: nothing changes between two paintings.

    A slow answer is painted with every token.
    """
    slow = visitor.page.evaluate(_FED, {"count": 20, "between": 150})
    assert [tokens for _, tokens in slow["seen"]] == list(range(1, 21))
    visitor.reload()
    fed = visitor.page.evaluate(_FED, {"count": 1000, "between": 2})
    times = [at for at, _ in fed["seen"]]
    assert fed["seen"][0] == [fed["begun"], 1]
    assert all(later - earlier >= 100 for earlier, later in pairwise(times))
    assert 15 <= len(times) <= 20  # in two seconds
    assert fed["seen"][-1][1] > 900
    written = "".join(fed["parts"]).split()
    assert written == "".join("word " if i % 40 else "line. " for i in range(fed["seen"][-1][1])).split()
    # Only the last block is rendered again as it grows, and copied text has every block once.
    assert len(fed["parts"]) > 10
    assert all(part.rstrip().endswith("line.") for part in fed["parts"][:-1])
    assert max(fed["renders"][:-1]) <= 3  # 80 ms of tokens a block, and a repaint every 100 ms
    select = "(text) => { getSelection().selectAllChildren(text); return String(getSelection()); }"
    assert visitor.last_text.evaluate(select).split() == " ".join(fed["parts"]).split()


def test_figures_move_while_an_answer_is_written(server: Process, visitor: Visitor) -> None:
    """Rate, context, acceptance and plans are updated during the stream, not only at its end."""
    visitor.set(**LONG).type(STORY)
    tokens = visitor.answer.locator(".drafted, .own")
    seen: list[dict[str, Any]] = []
    for _ in range(3):
        tokens.nth(tokens.count() + 100).wait_for(state="attached")
        seen.append(
            visitor.page.evaluate(
                """() => { const text = (id) => document.getElementById(id).textContent;
                    const plans = document.querySelectorAll("#plans .cells").length;
                    return { rate: +text("rate"), context: +text("context"), length: +text("length"),
                             accepted: text("accepted"), plans }; }"""
            )
        )
    assert server.requests == 1, "the answer was still running"
    visitor["#stop"].click()
    contexts = [look["context"] for look in seen]
    assert contexts == sorted(set(contexts))
    for look in seen:
        assert look["rate"] > 0
        assert look["length"] > 1
        assert look["accepted"].endswith("%")
        assert look["plans"] >= 1
    assert len({look["rate"] for look in seen}) > 1


@pytest.mark.parametrize("policy", ["knapspec", "fixed", "layerskip"])
def test_every_plan_is_shown_as_a_strip_of_cells(visitor: Visitor, policy: str) -> None:
    others = json.dumps({"ignore_eos": True, "draft_policy": policy})
    stream = visitor.set(limit="500", others=others).ask(STORY)
    assert stream.plans
    strips = visitor["#plans .cells"]
    expect(strips).to_have_count(len(stream.plans))
    cells = [strip.locator("i").evaluate_all("(all) => all.map((e) => e.className)") for strip in strips.all()]
    kinds, looks = ("attention", "mlp"), ("", " run", " run low", " run low window")
    expected = [
        [kinds[i % 2] + looks[int(cell)] for i, cell in enumerate(plan[:-1])] + ["head" + looks[int(plan[-1])]]
        for plan in stream.plans
    ]
    assert cells == expected[::-1]  # the newest is on top
    ranges = [[int(end) for end in text.split("–")] for text in visitor["#plans td:first-child"].all_text_contents()]
    assert all(low < high for low, high in ranges)
    assert [low for low, _ in ranges[:-1]] == [high for _, high in ranges[1:]]  # no gap, no overlap
    last, layers = stream.plans[-1][:-1], len(stream.plans[-1]) // 2
    attention, mlp = (layers - last[kind::2].count("0") for kind in (0, 1))
    words = f"{attention} of {layers} attention and {mlp} of {layers} MLP"
    others = "|plain decoding to be faster|copied tokens were accepted" if policy == "knapspec" else ""  # at its end
    expect(visitor["#described"]).to_contain_text(re.compile(words + others))
    assert words in (strips.first.get_attribute("aria-label") or "")


@pytest.mark.parametrize("source", ["lookup", "prediction"])
def test_copied_tokens_are_shown_as_copied(visitor: Visitor, source: str) -> None:
    """In the text, in its facts, in the table of plans and in the words below it: never as plain decoding."""
    visitor.script(
        ("Dear", True), (" guests", False), ("!", True), (" Hi", False), source=source, drafted=3, accepted=1
    )
    visitor.ask("Hi")
    assert visitor.answer.locator(".lookup").all_text_contents() == [" guests", " Hi"]
    styles = visitor["#colour-key .drafted"].evaluate_all(
        "(all) => all.map((e) => getComputedStyle(e).borderBottomStyle)"
    )
    assert styles == ["none", "dotted"]  # for readers who see no difference of colours
    expect(visitor[".facts"]).to_contain_text("2 of 6 drafted tokens accepted · all of them copied")
    where = {"lookup": "copied from the text so far", "prediction": "copied from the expected answer"}[source]
    expect(visitor["#plans td:nth-child(2)"]).to_have_text(where)
    expect(visitor["#described"]).to_have_text(re.compile("^2 of 6 copied tokens were accepted"))
    visitor.reload()
    expect(visitor.answer.locator(".lookup")).to_have_count(2)


_STRETCHES = """(rounds) => {
  const answer = new Answer(true), round = { tokens: [["x", true]], drafted: 0, accepted: 0 };
  rounds.forEach((drafts, i) => answer.add({ ...round, context: 10 + i, ...drafts }, i));
  return [answer.stretches.map(({ source, from, to, rounds }) => [source, from, to, rounds]), factsOf(answer)];
}"""


def test_a_plan_is_shown_until_another_drafts_and_copies_have_lines_of_their_own(visitor: Visitor) -> None:
    """The plain rounds that time plain decoding do not end a plan's line; one more plain round does."""
    plan = {"source": "model", "plan": "1100", "drafted": 2, "accepted": 1}
    copy = {"source": "lookup", "plan": None, "drafted": 2, "accepted": 1}
    alone = {"source": None, "plan": None, "accepted": 1}
    lines, facts = visitor.page.evaluate(_STRETCHES, [alone, plan, copy, copy, alone, plan])
    assert [(source, rounds) for source, _, _, rounds in lines] == [("1100", 1), ("lookup", 3), ("1100", 1)]
    assert "of these, 2 of 4 copied" in facts
    plans = [None, "1100", "1100", None, "1100", "1001", *[None] * (PLAIN_ROUNDS + 2), "1100"]
    lines, _ = visitor.page.evaluate(_STRETCHES, [{"plan": plan} for plan in plans])
    plain = 15 + 1 + PLAIN_ROUNDS
    expected = [["1100", 11, 15, 4], ["1001", 15, plain, 1 + PLAIN_ROUNDS], [None, plain, plain + 2, 2]]
    assert lines == [*expected, ["1100", plain + 2, plain + 3, 1]]


def test_plain_decoding_writes_the_same_text_without_drafts(server: Process, visitor: Visitor) -> None:
    drafted = visitor.ask(STORY)
    plans = visitor["#plans"].inner_html()
    before = server.metrics().total("vllm:spec_decode_num_draft_tokens_total")
    plain = visitor.compare()
    expect(visitor[".note"].last).to_have_text("Identical text.")
    assert plain.text == drafted.text
    assert bare(visitor.last_text) == "".join(character for character, _ in visible(plain))
    assert visitor.answer.locator(".drafted").count() == 0
    expect(visitor.answer.locator(".facts")).to_contain_text("plain decoding")
    ratio = float((visitor["#verdict"].text_content() or "").split()[0])
    rates = [stream.figures["tokens_per_second"] for stream in (drafted, plain)]
    assert ratio == pytest.approx(rates[0] / rates[1], abs=0.006)
    assert visitor["#plans"].inner_html() == plans
    visitor["#clear"].click()
    visitor["#draft"].focus()
    visitor.page.keyboard.press("Space")
    again = visitor.ask(STORY)  # a chat of its own, so the same question
    assert (again.text, again.request["draft_policy"]) == (drafted.text, "none")
    assert visitor[".message .drafted"].count() == 0
    assert server.metrics().total("vllm:spec_decode_num_draft_tokens_total") == before
    assert plans
    expect(visitor["#which"]).to_have_text("This answer")
    expect(visitor["#way"]).to_have_text(", plain")
    expect(visitor["#plans tr"]).to_have_count(1)
    expect(visitor["#plans"]).to_contain_text("plain decoding")
    expect(visitor["#described"]).to_contain_text("nothing is drafted")
    visitor["#draft"].focus()
    visitor.page.keyboard.press("Space")
    assert "draft_policy" not in visitor.ask(STORY).request


@pytest.mark.parametrize("first", ["drafting", "plain"])
def test_the_figures_of_a_comparison_are_those_of_the_drafting_answer(visitor: Visitor, first: str) -> None:
    """Headline, tiles, plans and curves belong to one answer, whichever was written last."""
    visitor["#draft"].set_checked(first == "drafting")
    streams = [visitor.ask(STORY), visitor.compare()]
    drafting, plain = streams if first == "drafting" else streams[::-1]
    assert (drafting.figures["policy"], plain.figures["num_draft_tokens"]) == ("knapspec", 0)
    for name, stream in (("#rate", drafting), ("#draft-rate", drafting), ("#plain-rate", plain)):
        shown = float(visitor[name].text_content() or "")
        assert shown == pytest.approx(stream.figures["tokens_per_second"], abs=0.51)
    expect(visitor["#way"]).to_have_text(", drafting")
    expect(visitor["#which"]).to_have_text("The drafting answer")
    tried = f"{drafting.figures['num_accepted_draft_tokens']} of {drafting.figures['num_draft_tokens']}"
    expect(visitor["#accepted-label"]).to_contain_text(tried)
    assert visitor["#plans .cells"].count() == len(drafting.plans)


def test_a_chat_remembers_until_it_is_cleared(server: Process, visitor: Visitor) -> None:
    """Also while it is answered."""
    visitor.set(system="Be kind.", temperature="0.5", limit="", others='{"top_p": 0.9}')
    first = visitor.ask("Hello!\nWho are you?")
    system, question = {"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello!\nWho are you?"}
    assert first.request["messages"] == [system, question]
    assert (first.request["temperature"], first.request["top_p"]) == (0.5, 0.9)
    assert "max_tokens" not in first.request
    second = visitor.ask("Thanks.")
    answered = {"role": "assistant", "content": first.text}
    assert second.request["messages"] == [system, question, answered, {"role": "user", "content": "Thanks."}]
    visitor["#clear"].click()
    assert visitor[".message"].count() == 0
    assert visitor.focused() == "text"
    visitor.set(system="").begin()
    visitor["#clear"].click()
    until(lambda: server.requests == 0, "the request to be cancelled")
    visitor.set(limit="20", others="")
    assert visitor.ask("Hi").request["messages"] == [{"role": "user", "content": "Hi"}]
    assert visitor[".message"].count() == 2


@pytest.mark.parametrize("edits", [False, True])
def test_an_example_is_a_question(visitor: Visitor, edits: bool) -> None:
    """One asks to edit a text, of which look-up copies most."""
    example = visitor[".examples button[data-question]" if edits else ".examples button:not([data-question])"].last
    question = example.get_attribute("data-question") if edits else example.text_content()
    stream = visitor.set(limit="10").streamed(example.click)
    assert stream.request["messages"] == [{"role": "user", "content": question}]
    expect(visitor["#welcome"]).to_be_hidden()
    visitor["#clear"].click()
    expect(example).to_be_visible()


def test_markup_is_only_text(visitor: Visitor) -> None:
    question = '<img src=x onerror="document.title=1"><b>bold</b>'
    visitor.set(limit="5").ask(question)
    assert visitor[".message.user .text"].text_content() == question
    assert visitor["#log img, #log b"].count() == 0


def test_an_answer_of_one_round_has_no_rate(visitor: Visitor) -> None:
    visitor.set(limit="1").ask("Hi")
    expect(visitor["#rate"]).to_have_text("–")
    expect(visitor.answer.locator(".facts")).to_contain_text("1 token ·")


# -- stopping ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [pytest.param("Escape", marks=NIGHTLY), "Stop", pytest.param("reload", marks=NIGHTLY)])
def test_stopping_cancels_the_request(server: Process, visitor: Visitor, how: str) -> None:
    made = server.metrics().total("vllm:generation_tokens_total")
    visitor.set(**LONG).type(STORY)
    tokens = visitor.answer.locator(".drafted, .own")
    tokens.nth(20).wait_for(state="attached")
    assert server.requests == 1
    if how == "reload":
        visitor.reload()
        expect(visitor[".message"]).to_have_count(2)  # what had come
    elif how == "Escape":
        visitor.page.keyboard.press(how)
    else:
        visitor["#stop"].click()
    until(lambda: server.requests == 0, "the request to be cancelled")
    assert server.metrics().total("vllm:generation_tokens_total") - made < int(LONG["limit"])
    if how != "reload":
        expect(visitor.answer.locator(".facts")).to_contain_text("stopped")
        count = tokens.count()
        expect(visitor["#stop"]).to_be_disabled()
        assert visitor.focused() == "text"
        visitor.set(limit="20", others="").ask("Hi")
        assert visitor[".message.assistant"].first.locator(".drafted, .own").count() == count
    else:
        visitor.set(limit="20").ask("Hi")


# -- errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "message", "advised"),
    [
        ({"limit": "99999"}, "This model's maximum context length is 4096 tokens", "lower the maximum tokens"),
        pytest.param({"others": '{"top_p": 7}'}, "top_p", "", marks=NIGHTLY),
        pytest.param({"others": '{"draft_policy": "magic"}'}, "magic", "", marks=NIGHTLY),
    ],
)
def test_a_refused_question_returns_to_the_input(
    visitor: Visitor, fields: dict[str, str], message: str, advised: str
) -> None:
    """The message gives the reason, figures of the last answer stay, and Enter sends the question again."""
    visitor.excused = ("status of 400",)
    visitor.ask("Hello!")
    kept = visitor["#figures"].text_content() or ""
    visitor.set(**fields).type("Hi")
    alert = visitor.page.get_by_role("alert")
    expect(alert).to_contain_text(message)
    expect(alert).to_contain_text(advised)
    expect(visitor["#text"]).to_have_value("Hi")
    expect(visitor["#figures"]).to_have_text(kept)
    visitor.set(limit="20", others="")
    assert len(visitor.sent(lambda: visitor["#text"].press("Enter"))) == 3
    expect(visitor[".facts"]).to_have_count(2)


@pytest.mark.parametrize("sent", ["Send", "Enter"])
@pytest.mark.parametrize(("field", "value"), [("temperature", "5"), ("others", "{nonsense"), ("others", "[1]")])
def test_a_setting_that_is_not_valid_is_shown_and_not_sent(visitor: Visitor, field: str, value: str, sent: str) -> None:
    visitor.set(**{field: value})
    visitor["#text"].fill("Hi")
    if sent == "Enter":
        visitor["#text"].press("Enter")
    else:
        visitor["#send"].click()
    expect(visitor[f"#{field}"]).to_be_focused()
    expect(visitor[f"#{field}"]).to_be_visible()
    expect(visitor["#text"]).to_have_value("Hi")
    expect(visitor[".message"]).to_have_count(0)


def test_a_full_queue_is_reported(server: Process, visitor: Visitor) -> None:
    visitor.excused = ("status of 429",)
    body = {"prompt": "x", "stream": True, "max_tokens": 3500, "ignore_eos": True}
    with ExitStack() as streams:
        for _ in range(2):
            reply = streams.enter_context(server.http.stream("POST", "/v1/completions", json=body))
            assert reply.status_code == 200
        visitor.type("Hi")
        expect(visitor.page.get_by_role("alert")).to_contain_text(re.compile(r"Try again in \d+ s\."))
        expect(visitor["#text"]).to_have_value("Hi")


def test_the_page_survives_a_restart_of_its_server(visit: Visit, flags: tuple[str, ...], tmp_path: Path) -> None:
    """The page reports that the server is gone and that a new one is there, asks for its key, and works again."""
    with ExitStack() as processes:
        first = Process(tmp_path / "first", *flags)
        processes.callback(first.close)
        visitor = visit(first.url).ready()
        visitor.excused = ("ERR_", "status of 401", "status of 503")  # 503: while the second loads
        visitor.begin()
        first.popen.kill()
        first.popen.wait()
        expect(visitor.page.get_by_role("alert")).to_contain_text("connection")
        expect(visitor["#state"]).to_have_text("The server does not respond; retrying.")
        expect(visitor["#send"]).to_be_disabled()
        written = bare(visitor.last_text)
        visitor.type("Hi")  # kept, not sent
        expect(visitor["#text"]).to_have_value("Hi")
        second = Process(tmp_path / "second", *flags, "--port", first.url.rpartition(":")[2], "--api-key", "secret")
        processes.callback(second.close)
        expect(visitor["#state"]).to_contain_text("requires an API key")
        for key, state in (("wrong", "The API key is incorrect."), ("secret", "ready")):
            expect(visitor["#key"]).to_be_visible()
            visitor["#key"].fill(key)
            visitor["#key"].press("Tab")
            expect(visitor["#state"]).to_have_text(state)
        visitor.set(limit="20", others="")
        stream = visitor.streamed(lambda: visitor["#text"].press("Enter"))
        before = stream.request["messages"][1]
        assert (before["role"], "".join(before["content"].split())) == ("assistant", written)
        assert stream.rounds


# -- how it looks ------------------------------------------------------------------------------------------------------


def test_nothing_is_wider_than_the_screen(visitor: Visitor) -> None:
    visitor.set(limit="60").ask(CODE)
    visitor.set(system="w" * 200).ask("long" * 100)
    visitor["#settings summary"].click()
    for width in (320, 390, 861, 1280):
        visitor.page.set_viewport_size({"width": width, "height": 640})
        assert visitor.overflow() <= 0
        outside = visitor["button, input, textarea, canvas, table"].evaluate_all(
            "(all) => all.filter((e) => e.offsetParent && (e.getBoundingClientRect().right > innerWidth"
            " || e.getBoundingClientRect().left < 0)).map((e) => e.id)"
        )
        assert outside == []


_CONTRAST = """(all) => {
  const channels = (color) => color.match(/[\\d.]+/g).map(Number);
  const clear = (color) => channels(color)[3] === 0;
  const linear = (c) => c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4;
  const light = (color) => channels(color).slice(0, 3).map(linear).reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
  const behind = (e) => { while (clear(getComputedStyle(e).backgroundColor)) e = e.parentElement; return getComputedStyle(e).backgroundColor; };
  return all.filter((e) => e.offsetParent && !e.disabled && e.textContent.trim()).map((e) => {
    const [one, two] = [light(getComputedStyle(e).color), light(behind(e))].sort((a, b) => a - b);
    return [e.outerHTML.slice(0, 80), (two + .05) / (one + .05)];
  }); }"""  # noqa: E501
# What a style makes of a colour, on the ground of an element.
_CONTRAST_OF = (
    _CONTRAST[: _CONTRAST.index("return all.filter")].replace("(all)", "(e, [pseudo, name])")
    + """const probe = document.body.appendChild(document.createElement("p"));
  probe.style.color = name ? `var(--${name})` : getComputedStyle(e, pseudo).color;
  const [one, two] = [light(getComputedStyle(probe).color), light(behind(e))].sort((a, b) => a - b);
  probe.remove();
  return (two + .05) / (one + .05); }"""
)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(server: Process, visit: Visit, scheme: str) -> None:
    """Every text has WCAG's contrast of 4.5, in the colour scheme that the system prefers."""
    visitor = visit(server.url, color_scheme=scheme).ready()
    visitor.excused = ("status of 400",)
    visitor.ask(CODE)
    visitor.compare()
    visitor.set(limit="99999").type("Hi")
    visitor.page.get_by_role("alert").wait_for()
    visitor["#settings summary"].click()
    found = visitor["body :is(h1, h2, p, span, a, b, button, summary, label, th, td, dt, dd, .text, code)"]
    contrasts = found.evaluate_all(_CONTRAST)
    assert len(contrasts) > 40
    assert [(html, ratio) for html, ratio in contrasts if ratio < 4.5] == []
    for name in ("text", "system", "temperature", "top_p", "limit", "seed", "key", "others"):
        assert visitor[f"#{name}"].evaluate(_CONTRAST_OF, ["::placeholder", ""]) >= 4.5, name
    for name in ("accent", "drafted", "plain", "edge"):
        assert visitor["#curves"].evaluate(_CONTRAST_OF, [None, name]) >= 3, name
    back = visitor["body"].evaluate("(e) => getComputedStyle(e).backgroundColor.match(/\\d+/g).map(Number)")
    assert (max(back) < 64) if scheme == "dark" else (min(back) > 192)


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_nothing_moves_for_users_who_prefer_reduced_motion(server: Process, visit: Visit, motion: str) -> None:
    """For other users a cursor blinks until there is text, and the text moves."""
    visitor = visit(server.url, reduced_motion=motion).ready()
    waiting = """() => { message("assistant running", "Answer").append(make("div", "text"));
                         return document.getAnimations().length; }"""
    assert (visitor.page.evaluate(waiting) > 0) is (motion == "no-preference")
    visitor["#clear"].click()
    visitor.begin()
    moving = visitor.page.evaluate("document.getAnimations().length")
    assert visitor["#stop"].is_enabled()
    visitor.page.keyboard.press("Escape")
    assert moving == 0


@pytest.mark.parametrize(("system", "chosen"), [("light", "dark"), ("dark", "light")])
def test_the_theme_can_be_chosen(server: Process, visit: Visit, system: str, chosen: str) -> None:
    """It is there before the first paint. Without a choice, the page follows the system, also while it is open."""
    visitor = visit(server.url, color_scheme=system).ready()

    def looks() -> str:
        red = visitor["body"].evaluate("(e) => Number(getComputedStyle(e).backgroundColor.match(/\\d+/)[0])")
        assert visitor["html"].evaluate("(e) => getComputedStyle(e).colorScheme") == ("dark" if red < 64 else "light")
        return "dark" if red < 64 else "light"

    assert looks() == system
    visitor.page.emulate_media(color_scheme=chosen)  # type: ignore[arg-type]
    assert looks() == chosen
    visitor.page.emulate_media(color_scheme=system)  # type: ignore[arg-type]
    visitor["#settings summary"].click()
    visitor.page.get_by_role("combobox", name="Theme").select_option(chosen)
    assert looks() == chosen
    visitor.context.add_init_script(
        "new MutationObserver(() => { window.first ??= document.body && document.documentElement.dataset.theme; })"
        ".observe(document, { childList: true, subtree: true })"
    )
    visitor.reload()
    assert looks() == chosen
    assert visitor.page.evaluate("first") == chosen


def test_colours_and_panel_can_be_hidden(visitor: Visitor) -> None:
    """For good, until they are shown again. The answer has the room of the panel."""
    visitor.script(("Dear", True), (" guests", False), (" and", False), source="lookup", drafted=1, accepted=1)
    visitor.ask("Hi")
    look = "(e) => { const { backgroundColor, borderBottomStyle, boxShadow } = getComputedStyle(e); return [backgroundColor, borderBottomStyle, boxShadow]; }"  # noqa: E501
    width = "(e) => e.clientWidth"
    coloured, narrow = visitor[".message .lookup"].first.evaluate(look), visitor["#talk"].evaluate(width)
    visitor["#settings summary"].click()
    for name in ("Colour drafted text", "Figures and API"):
        visitor.page.get_by_role("switch", name=name).uncheck()
    visitor.reload()
    expect(visitor["#figures"]).to_be_hidden()
    assert visitor["#talk"].evaluate(width) > narrow + 300
    own = visitor[".message .own"].first.evaluate(look)
    assert own != coloured
    assert visitor[".message .lookup"].first.evaluate(look) == own
    visitor.ask("Again")  # nothing depends on the panel
    visitor["#settings summary"].click()
    for name in ("Colour drafted text", "Figures and API"):
        visitor.page.get_by_role("switch", name=name).check()
    assert visitor[".message .lookup"].first.evaluate(look) == coloured
    expect(visitor["#rate"]).to_be_visible()


def test_curves_have_the_screens_resolution_and_can_be_told_apart_without_colours(
    server: Process, visit: Visit
) -> None:
    visitor = visit(server.url, device_scale_factor=2).ready()
    visitor.page.evaluate(
        """() => { window.strokes = {}; const set = CanvasRenderingContext2D.prototype.setLineDash;
          CanvasRenderingContext2D.prototype.setLineDash = function (dash) { strokes[this.strokeStyle] = String(dash); set.call(this, dash); }; }"""  # noqa: E501
    )
    sizes = """(c) => [c.clientWidth, c.clientHeight, c.width, c.height,
                       c.getContext("2d").getImageData(0, 0, c.width, c.height).data.some((value) => value > 0)]"""
    visitor.excused = ("willReadFrequently",)
    width, height, *_, drawn = visitor["#curves"].evaluate(sizes)
    assert not drawn
    visitor.set(**LONG | {"limit": "1500"}).ask(STORY)  # curves need more than a tenth of a second
    visitor.compare()
    assert visitor["#curves"].evaluate(sizes) == [width, height, 2 * width, 2 * height, True]
    dash = "(name) => strokes[getComputedStyle(document.documentElement).getPropertyValue('--' + name)]"
    strokes = [visitor.page.evaluate(dash, name) for name in ("accent", "drafted", "plain")]
    assert None not in strokes
    assert len(set(strokes)) == 3
    styles = visitor[".legend i.stroke"].evaluate_all("(all) => all.map((e) => getComputedStyle(e).borderTopStyle)")
    assert styles == ["solid", "dashed", "dotted"]


@pytest.mark.parametrize("touch", [False, True])
def test_targets_are_large_enough(server: Process, visit: Visit, touch: bool) -> None:
    """A touch neither zooms nor raises an unwanted keyboard."""
    visitor = visit(server.url, viewport={"width": 390, "height": 844}, has_touch=touch, is_mobile=touch).ready()
    assert (visitor.focused() == "text") is not touch
    visitor["#settings summary"].click()
    visitor["#text"].fill("Hi")
    visitor["#send"].click()
    expect(visitor[".facts"]).to_have_count(1)
    expect(visitor["#send"]).to_be_enabled()
    assert (visitor.focused() == "text") is not touch
    targets = visitor["button, summary, header a, aside a, .row label"].evaluate_all(
        "(all) => all.filter((e) => e.offsetParent).map((e) => [e.textContent, e.getBoundingClientRect().height])"
    )
    assert len(targets) >= 8
    assert [(name, height) for name, height in targets if height < (44 if touch else 24)] == []
    sizes = visitor["textarea, input:not([type=checkbox])"].evaluate_all(
        "(all) => all.map((e) => parseFloat(getComputedStyle(e).fontSize))"
    )
    assert not touch or min(sizes) >= 16
    assert visitor.overflow() <= 0
    visitor["#summary-link"].click()
    expect(visitor["#rate"]).to_be_in_viewport()
    visitor["#back-link"].click()
    expect(visitor["#send"]).to_be_in_viewport()
    expect(visitor["#log"]).to_be_in_viewport()


@pytest.mark.parametrize("width", [320, 360, 1024])
def test_the_header_of_a_touch_screen_is_one_row(server: Process, visit: Visit, width: int) -> None:
    """What is in it fits. A server that is gone gets a row for its message."""
    visitor = visit(server.url, viewport={"width": width, "height": 740}, has_touch=True, is_mobile=True).ready()
    visitor.script(*[("word ", True)] * 30)
    for _ in range(2):
        assert visitor["header"].evaluate("(header) => header.clientHeight") < 60
        right = visitor["header > :is(button, h1, a, #state)"].evaluate_all(
            "(all) => Math.max(...all.map((e) => e.getBoundingClientRect().right))"
        )
        assert right <= width
        visitor["#text"].fill("Hi")
        visitor["#send"].click()
        expect(visitor[".facts"]).not_to_have_count(0)
    visitor.excused = ("status of 503",)
    visitor.page.route("**/health", lambda route: route.fulfill(status=503))
    visitor.page.evaluate("checkHealth()")
    expect(visitor["#state.down"]).to_be_in_viewport()
    assert visitor.overflow() <= 0


def test_enter_breaks_the_line_on_a_touch_screen(server: Process, visit: Visit) -> None:
    """In a question and in its correction. The button sends, and so does Ctrl+Enter of an attached keyboard."""
    visitor = visit(server.url, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True).ready()
    visitor.script(("Yes.", True))
    visitor.type("One")
    visitor.page.keyboard.type("Two")
    expect(visitor["#text"]).to_have_value("One\nTwo")
    expect(visitor[".message"]).to_have_count(0)
    visitor["#send"].click()
    expect(visitor[".message.user .text"]).to_have_text("One\nTwo")
    expect(visitor[".facts"]).to_have_count(1)
    visitor[".edit"].click()
    visitor.retype("Three")
    visitor.page.keyboard.press("Enter")
    expect(visitor[".editor textarea"]).to_have_value("Three\n")
    visitor.page.keyboard.press("Control+Enter")
    expect(visitor[".message.user .text"]).to_have_text("Three")
    expect(visitor["#keys"]).to_contain_text("Enter: new line.")


def test_the_focus_ring_of_the_settings_is_not_cut_off(visitor: Visitor) -> None:
    visitor["#settings summary"].click()
    room = visitor["#temperature, #others, #system, #key"].evaluate_all(
        """(all) => all.map((e) => { const box = e.closest(".settings"); e.scrollIntoView({ block: "nearest" });
          const [inner, outer] = [e, box].map((one) => one.getBoundingClientRect());
          return Math.min(inner.left - outer.left, outer.right - inner.right, box.scrollHeight - e.offsetTop - e.offsetHeight + box.offsetTop); })"""  # noqa: E501
    )
    assert min(room) >= 4


def test_the_log_scrolls_along_unless_the_user_scrolled_up(visitor: Visitor) -> None:
    bottom = "(log) => log.scrollHeight - log.scrollTop - log.clientHeight"
    visitor.set(**LONG | {"limit": "500"}).ask(STORY)
    log = visitor["#log"]
    expect(visitor[".facts"]).to_be_in_viewport()
    assert abs(log.evaluate(bottom)) < 2
    visitor.set(**LONG).type(STORY)
    until(lambda: log.evaluate("(log) => log.scrollTop") > 100, "a log that follows")  # not by what a CSP would forbid
    log.focus()
    visitor.page.keyboard.press("Home")
    expect(visitor[".message.user"].first).to_be_in_viewport()
    reached = visitor.answer.locator(".own, .drafted").count()
    visitor.answer.locator(".own, .drafted").nth(reached + 150).wait_for(state="attached")
    expect(visitor[".message.user"].first).to_be_in_viewport()
    assert log.evaluate(bottom) > 100
    visitor.page.keyboard.press("Escape")


@pytest.mark.parametrize("begun", ["KeyboardEvent('keydown', {key: 'Home'})", "WheelEvent('wheel', {deltaY: -9})"])
def test_a_scroll_gesture_stops_the_log_before_it_moves(visitor: Visitor, begun: str) -> None:
    for _ in range(2):
        visitor.set(**LONG | {"limit": "500"}).ask(STORY)
    log = visitor["#log"]
    at = log.evaluate(f"(log) => {{ log.dispatchEvent(new {begun}); return log.scrollTop; }}")
    assert at > 0
    grown = """(log) => new Promise((done) => {
        log.append(Object.assign(document.createElement("div"), {textContent: "more", style: "min-height: 300px"}));
        repaint(true);
        requestAnimationFrame(() => requestAnimationFrame(() => done(log.scrollTop)));
    })"""
    assert log.evaluate(grown) == at
    visitor.set(**LONG | {"limit": "20"}).ask("Hi")
    expect(visitor[".facts"].last).to_be_in_viewport()


# -- by keyboard and by ear --------------------------------------------------------------------------------------------


def test_the_keyboard_reaches_everything_in_order(visitor: Visitor) -> None:
    visitor.set(limit="20").ask("Hi")
    visitor["#settings summary"].click()
    visitor["#text"].focus()
    order, outlined = [], []
    while (name := visitor.focused()) not in ("BODY", *order):
        order.append(name)
        outlined.append(visitor.page.evaluate("getComputedStyle(document.activeElement).outlineStyle"))
        visitor.page.keyboard.press("Tab")
    expected = "text send again clear draft SUMMARY system temperature top_p limit seed key others"
    assert " ".join(order).startswith(expected)
    assert set(outlined) == {"solid"}
    visitor["#text"].focus()
    visitor.page.keyboard.press("Shift+Tab")
    assert visitor.page.evaluate("document.activeElement.textContent") == "Retry"
    visitor["#again"].focus()
    visitor.page.keyboard.press("Enter")
    expect(visitor[".facts"]).to_have_count(2)


CONTROLS = {
    "textbox": ("Message", "System prompt", "API key", "Other parameters (JSON)"),
    "spinbutton": ("Temperature", "Maximum tokens", "Top p", "Seed"),
    "button": ("Send", "Stop", "Compare", "New chat", "Edit", "Copy", "Retry", "Export", "Import"),
    "switch": ("Drafting", "Colour drafted text", "Figures and API"),
    "combobox": ("Theme",),
    "tab": ("Figures", "API"),
    "log": ("Messages",),
    "complementary": ("Figures and API",),
    "navigation": ("Conversations",),
    "region": ("Chat",),
    "columnheader": ("accepted",),
    "article": ("You", "Answer"),
}


def test_every_control_has_an_accessible_name(visitor: Visitor) -> None:
    visitor.ask(STORY)
    visitor["#settings summary"].click()
    find: Any = visitor.page.get_by_role
    found = [find(role, name=name, exact=True) for role, names in CONTROLS.items() for name in names]
    found.append(find("img", name=re.compile(f"of {LAYERS} attention")).first)
    for element in (*found, find("img", name=re.compile("over the context length"))):
        expect(element).to_have_count(1)
        expect(element).to_be_visible()
    assert visitor["html"].get_attribute("lang") == "en"


def test_an_answer_is_read_out_once_it_is_complete(visitor: Visitor) -> None:
    visitor.begin()
    expect(visitor["#announcement"]).to_be_empty()
    visitor.page.keyboard.press("Escape")
    expect(visitor["#announcement"]).to_contain_text("stopped")
    said = visitor["#announcement"].text_content() or ""
    assert "".join(said.split()).startswith(bare(visitor.last_text) + "drafting,")
    assert visitor["#announcement"].get_attribute("role") == "status"
    assert visitor["#log"].get_attribute("aria-live") == "off"  # not token by token


# -- nothing from elsewhere --------------------------------------------------------------------------------------------


def test_the_browser_enforces_the_content_security_policy(server: Process, visitor: Visitor) -> None:
    """A script in the page could fetch from no other host, and one that got into it would not run.

    Every other test checks that the page does not try.
    """
    directives = visitor.page.evaluate(
        """(url) => new Promise((tell) => {
          const heard = () => violations.length === 3 && tell(violations.splice(0).sort());
          addEventListener("securitypolicyviolation", heard);
          fetch(url).catch(() => 0);
          document.body.append(make("script", "", "document.title = 'ran'"));
          document.body.insertAdjacentHTML("beforeend", `<i onclick="document.title = 'ran'"></i>`);
          document.body.lastChild.click();
        })""",
        "http://localhost:9/",
    )
    assert directives == ["connect-src", "script-src-attr", "script-src-elem"]
    assert visitor.page.title() == "KnapServe"
    visitor.excused = ("Content Security Policy", "Refused to")
    visitor.elsewhere.clear()
