"""Structured output matches its grammar, drafted or not, and does not change other requests."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from copy import copy
from dataclasses import replace
from itertools import islice
from random import Random
from typing import Any

import pytest
import torch
from llguidance import LLMatcher
from tokenizers import AddedToken
from tokenizers import Tokenizer as BackendTokenizer
from torch import Tensor

from engine.config.engine import EngineConfig
from engine.config.grammar import GrammarConfig
from engine.config.policies import KnapSpecConfig
from engine.core.constraints import Processors
from engine.core.engine import EngineCore
from engine.draft.base import CandidatePass
from engine.errors import RequestError
from engine.kernels.library import kernel_library
from engine.plans import Variants
from engine.runtime.build import LoadedModel
from engine.sampling.grammar import GrammarMatcher
from engine.sampling.logits import LogitsProcessor
from engine.text.tokenizer import Tokenizer
from engine.types import GenerateRequest, RequestFailure, SamplingParams, TokenEvent
from papers.settings import LayerSkipConfig
from server.answer.calls import make_parser
from server.conversation import Tool
from server.forms.grammar import Answer, grammar_of, tool_call_grammar
from server.tool_formats import HERMES, TOOL_FORMATS
from tests.support import PREPARED
from tests.support.cores import GREEDY, answer, chat_ids, exact
from tests.support.timed import Delegate

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "kind": {"enum": ["cat", "dog", "bird"]},
        "ages": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3},
    },
    "required": ["name", "kind", "ages"],
    "additionalProperties": False,
}
JSON = LLMatcher.grammar_from_json_schema(SCHEMA, overrides={"whitespace_pattern": "[ ]{0,1}"})
WORDS = LLMatcher.grammar_from_regex(r"(red|green|blue)(, (red|green|blue)){2,30}\.")
NIGHTLY = pytest.mark.nightly


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    return exact()


@pytest.fixture(scope="module")
def core(model: LoadedModel) -> EngineCore:
    return model.core(EngineConfig(policies=(LayerSkipConfig(exit=model.spec.layers - 2),), draft_confidence=0.0))


@pytest.fixture(scope="module")
def ids(core: EngineCore, prompts: Sequence[str]) -> list[tuple[int, ...]]:
    return [chat_ids(core, text) for text in prompts[::34]]


Begin = Callable[[str], GrammarMatcher]


@pytest.fixture(scope="module")
def processors(core: EngineCore) -> Iterator[Processors]:
    processors = Processors(core.tokenizer, core.info, kernel_library(), GrammarConfig())
    yield processors
    processors.close()


@pytest.fixture
def begin(processors: Processors) -> Iterator[Begin]:
    """Makes matchers at the start of an answer. They are closed after the test."""
    with ExitStack() as matchers:
        yield lambda grammar: matchers.enter_context(closing(processors.begin(grammar, "response_format")))


def run(core: EngineCore, prompt: tuple[int, ...], sampling: SamplingParams, policy: str) -> tuple[str, TokenEvent]:
    core.add(GenerateRequest("a", prompt, sampling, policy))
    events = [event for event in drain(core) if isinstance(event, TokenEvent)]
    return "".join(event.text for event in events), events[-1]


def drain(core: EngineCore) -> list[TokenEvent | RequestFailure]:
    """Serve all requests to their ends."""
    events: list[TokenEvent | RequestFailure] = []
    while not core.scheduler.idle:
        events += core.step().events
    return events


def tokens_of(events: Sequence[TokenEvent | RequestFailure], request_id: str) -> tuple[int, ...]:
    """The tokens of an answer."""
    own = [event for event in events if isinstance(event, TokenEvent) and event.request_id == request_id]
    return tuple(token for event in own for token in event.token_ids)


def failures(events: Sequence[TokenEvent | RequestFailure]) -> dict[str, Exception]:
    return {event.request_id: event.error for event in events if isinstance(event, RequestFailure)}


def fits(text: str) -> bool:
    found = json.loads(text)
    return (
        list(found) == ["name", "kind", "ages"]
        and isinstance(found["name"], str)
        and found["kind"] in ("cat", "dog", "bird")
        and 1 <= len(found["ages"]) <= 3
        and all(isinstance(age, int) for age in found["ages"])
    )


@pytest.mark.slow
@pytest.mark.parametrize(("temperature", "policy"), [(0.0, "none"), (0.7, "layerskip"), (2.0, "knapspec")])
def test_answers_match_their_schema(
    core: EngineCore, ids: list[tuple[int, ...]], temperature: float, policy: str
) -> None:
    for seed, prompt in enumerate(ids):
        text, last = run(core, prompt, SamplingParams(200, temperature, seed=seed, grammar=JSON), policy)
        if last.finish_reason == "length":  # a number may be long at such temperatures
            continue
        assert last.finish_reason == "stop"
        assert fits(text), text


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [pytest.param(0.0, marks=NIGHTLY), 1.0])
@pytest.mark.parametrize("grammar", [pytest.param(JSON, marks=NIGHTLY), WORDS], ids=["schema", "regex"])
def test_drafting_changes_no_token(
    core: EngineCore, ids: list[tuple[int, ...]], grammar: str, temperature: float
) -> None:
    sampling = SamplingParams(80, temperature, grammar=grammar, frequency_penalty=0.2)
    plain = answer(core, ids, sampling, ["none"])
    assert answer(core, ids, sampling, ["layerskip"]) == plain
    assert answer(core, ids, sampling, ["knapspec", "fixed", "none"], concurrency=3) == plain
    figures = run(core, ids[0], sampling, "layerskip")[1].speculation
    assert figures is not None
    assert figures.num_accepted_draft_tokens > 0


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_masks_are_computed_only_for_draws_that_need_them(
    core: EngineCore, ids: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch, temperature: float
) -> None:
    masked: list[int] = []
    mask = GrammarMatcher.mask

    def counted(matcher: GrammarMatcher, scores: torch.Tensor, drafted: Sequence[int]) -> None:
        masked.append(len(drafted))
        mask(matcher, scores, drafted)

    monkeypatch.setattr(GrammarMatcher, "mask", counted)
    sampling = SamplingParams(80, temperature, grammar=JSON)
    plain = answer(core, ids, sampling, ["none"])
    assert 0 < len(masked) < sum(map(len, plain))
    # Where the probabilities of others count, it is all of them.
    masked.clear()
    said = answer(core, ids, replace(sampling, temperature=0.7, top_p=0.9), ["none"])
    assert len(masked) == sum(map(len, said))


def test_a_grammar_ends_an_answer_even_if_its_end_is_ignored(core: EngineCore, ids: list[tuple[int, ...]]) -> None:
    sampling = replace(GREEDY, max_tokens=200, ignore_eos=True, grammar=LLMatcher.grammar_from_regex("yes|no"))
    text, last = run(core, ids[0], sampling, "layerskip")
    assert text in ("yes", "no")
    assert last.finish_reason == "stop"


@pytest.mark.parametrize("seed", range(8))
def test_masks_equal_those_of_a_matcher_that_never_rolls_back(
    core: EngineCore, processors: Processors, begin: Begin, seed: int
) -> None:
    """Drafts are accepted, rejected, or forbidden by the grammar."""
    random = Random(seed)
    matcher, said = begin(JSON), []

    @contextmanager
    def matched(path: Sequence[int]) -> Iterator[GrammarMatcher]:
        with closing(processors.begin(JSON, "")) as other:
            other.advance(path)
            yield other

    def fresh(path: Sequence[int]) -> torch.Tensor:
        with matched(path) as other:
            return other.allowed(())

    while not matcher.stopped and len(said) < 60:
        drafted: list[int] = []
        for _ in range(random.randrange(5)):
            mask = matcher.allowed(drafted)
            assert torch.equal(mask, fresh([*said, *drafted]))
            for token in (*random.sample(range(len(mask)), 8), random.choice(mask.nonzero()[:, 0].tolist())):
                allowed = matcher.allows(token, drafted)
                with matched([*said, *drafted]) as other:
                    assert allowed == other.allows(token, [])
                assert allowed or not mask[token]
            drafted.append(random.choice(mask.nonzero()[:, 0].tolist()))
            with matched([*said, *drafted]) as other:
                if other.stopped:  # drafted tokens behind the end do not count
                    break
        banned = (~matcher.allowed(drafted)).nonzero()[:, 0].tolist()
        if banned and random.random() < 0.3:
            assert matcher.allowed([*drafted, random.choice(banned), 5]).all()
        if banned and random.random() < 0.3:
            assert matcher.allows(5, [*drafted, random.choice(banned)])
        kept = drafted[: random.randrange(len(drafted) + 1)]
        for length in range(len(kept) + 1):
            assert torch.equal(matcher.allowed(kept[:length]), fresh([*said, *kept[:length]]))
        own = random.choice(matcher.allowed(kept).nonzero()[:, 0].tolist())
        for token in (*kept, own):
            if not matcher.stopped:
                assert random.random() < 0.5 or matcher.allows(token, [])  # half of the time it matches ahead
                matcher.advance((token,))
                said.append(token)
    text = core.tokenizer.decode(said)
    assert text.startswith("{")


def too_complex() -> str:
    """A valid grammar that exceeds the library's limits once the object has begun."""
    optional = {f"p{i}": {"type": "string", "pattern": f"^(a|b|c{i})*$"} for i in range(6000)}
    return LLMatcher.grammar_from_json_schema({"type": "object", "properties": optional, "additionalProperties": False})


@pytest.mark.nightly
@pytest.mark.parametrize("policy", ["none", "layerskip"])
def test_a_grammar_too_complex_to_follow_fails_its_request_alone(
    model: LoadedModel, ids: list[tuple[int, ...]], policy: str
) -> None:
    patient = GrammarConfig(build_seconds=60.0, step_seconds=60.0, memory=2**30)
    core = model.core(EngineConfig(policies=(LayerSkipConfig(exit=model.spec.layers - 2),), grammar=patient))
    alone = answer(core, ids[:1], replace(GREEDY, max_tokens=24, ignore_eos=True), [policy])
    core.add(GenerateRequest("other", ids[2], SamplingParams(60, 1.0, grammar=too_complex()), policy))
    core.add(GenerateRequest("0", ids[0], replace(GREEDY, max_tokens=24, ignore_eos=True), policy))
    events = drain(core)
    failed = failures(events)
    assert [*failed] == ["other"]
    assert isinstance(failed["other"], RequestError)
    assert failed["other"].param == "response_format"
    assert tokens_of(events, "0") == alone[0]


def test_a_tokenizer_may_have_more_tokens_than_the_model(core: EngineCore) -> None:
    size = core.tokenizer.backend.get_vocab_size() - 2
    processors = Processors(core.tokenizer, replace(core.info, vocab_size=size), None, GrammarConfig())
    assert processors.begin(WORDS, "").allowed(()).any()
    processors.close()


def tool(name: str, **properties: object) -> Tool:
    schema = {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
    return Tool(name, "tools[0].function.parameters", parameters=schema)


TOOLS = [
    tool("weather", city={"enum": ["Bern", "Rom"]}, days={"type": "integer", "minimum": 1, "maximum": 9}),
    tool("time"),
]


@pytest.fixture(scope="module")
def marked(core: EngineCore) -> Iterator[tuple[Processors, dict[str, int]]]:
    """Grammars for a tokenizer whose markers are added tokens, but not special ones, such as Qwen's."""
    backend = BackendTokenizer.from_str(core.tokenizer.backend.to_str())
    markers = ["<tool_call>", "</tool_call>", "</think>"]
    backend.add_tokens([AddedToken(marker, special=False, normalized=False) for marker in markers])
    info = replace(core.info, vocab_size=backend.get_vocab_size())
    processors = Processors(Tokenizer(backend), info, None, GrammarConfig())
    yield processors, {marker: backend.token_to_id(marker) for marker in markers}
    processors.close()


def test_a_model_may_reason_before_a_structured_answer(marked: tuple[Processors, dict[str, int]]) -> None:
    """Its template may have begun, or it begins itself. A text or a token of its own ends the reasoning."""
    processors, ids = marked
    close = ids["</think>"]
    answer = Answer("a", '"yes" | "no"')
    opened, free = (
        grammar_of(answer, None, thought=thought, think_close=f"<[{close}]>")
        for thought in ("think", '("<think>" think)?')
    )

    def follows(grammar: str | None, *text: str | int) -> bool:
        assert grammar is not None
        matcher = processors.begin(grammar, "")
        for part in text:
            for token in [part] if isinstance(part, int) else ids_of_text(processors, part):
                if not matcher.allows(token, []):
                    return False
                matcher.advance([token])
        return matcher.stopped

    for thought in ("", "Hm, {free text"):
        assert follows(opened, thought, close, "yes")
    assert follows(free, "yes")
    assert follows(free, "<think>free {text", close, "yes")
    assert not follows(free, "free text yes")


def ids_of_text(processors: Processors, text: str) -> list[int]:
    tokenizer: Tokenizer = vars(processors)["_tokenizer"]
    return [*tokenizer.encode(text, add_special_tokens=False)]


def texts_of_tokens() -> list[str]:
    """Texts that spell the fixture's added tokens, or that its tokenizer might change."""
    added = [token.content for token in Tokenizer.from_directory(PREPARED).backend.get_added_tokens_decoder().values()]
    assert added
    return [*added, f"a{added[0]}b {added[-1]}", added[0] * 2, "e\u0301 x", "\x00\u2028\ufdd0", "\U0001f600"]


@pytest.mark.parametrize("text", texts_of_tokens())
def test_a_forced_text_that_spells_a_token_is_plain_text(core: EngineCore, begin: Begin, text: str) -> None:
    forced: dict[str, Any] = {
        "constant": {"const": text},
        "enum": {"enum": [text, text + "zz"]},
        "pattern": {"type": "string", "pattern": f"^{re.escape(text)}$"},
        "name": {
            "type": "object",
            "properties": {text: {"const": text}},
            "required": [text],
            "additionalProperties": False,
        },
    }
    added = core.tokenizer.backend.get_added_tokens_decoder().keys()
    for kind, schema in forced.items():
        said: list[int] = []
        random = Random(1)
        matcher = begin(schema_of(schema | {"x-guidance": {"whitespace_flexible": False}}))
        while not matcher.stopped:
            allowed = {*matcher.allowed(()).nonzero()[:, 0].tolist()} - {*core.info.eos_token_ids}
            if not allowed:
                break
            said.append(random.choice(sorted(allowed)))
            matcher.advance(said[-1:])
            assert not matcher.failed
        assert not added & {*said}
        found = json.loads(b"".join(map(core.tokenizer.token_bytes, said)))
        assert (found[text] if kind == "name" else found) in (text, text + "zz" * (kind == "enum"))


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "strange"},
        {"type": "string", "pattern": "(?=a)"},
        {"type": "string", "pattern": "^a$", "maxLength": 0},
        {"allOf": [{"$ref": "#/$defs/a"}, {"minimum": 1}], "$defs": {"a": {"allOf": [{"$ref": "#"}, {"minimum": 2}]}}},
    ],
)
def test_an_error_about_a_schema_shows_no_grammar(begin: Begin, schema: Any) -> None:
    call = tool_call_grammar(HERMES, TOOLS, json.dumps, parallel=False)
    rule = f"arguments_0: %json {json.dumps(schema)}"
    rules = "\n".join(rule if line.startswith("arguments_0:") else line for line in call.split("\n"))
    for grammar in (schema_of(schema), grammar_of(None, rules)):
        assert grammar is not None
        with pytest.raises(RequestError, match=r"'\S+' cannot be enforced: [A-Za-z ]+") as refused:
            begin(grammar)
        for internal in ("%json", "arguments_0", " | ", "SearchRegex", "json-schema:", "at 5("):
            assert internal not in str(refused.value)


def test_an_answer_ends_before_min_tokens_only_if_the_grammar_allows_nothing_else() -> None:
    class Ending:
        """Allows tokens 3 and 5 at first, then 5 alone."""

        failed, stopped = None, False

        def mask(self, scores: Tensor, drafted: Sequence[int]) -> None:
            scores[~self.allowed(drafted)] = float("-inf")

        def allowed(self, drafted: Sequence[int]) -> Tensor:
            return torch.tensor([i in ((3, 5) if not drafted else (5,)) for i in range(8)])

    sampling = SamplingParams(min_tokens=9, stop_token_ids=(5,), ignore_eos=True, max_tokens=20)
    processor = LogitsProcessor(sampling, (), (), Ending())  # type: ignore[arg-type]
    first, second = torch.zeros(8), torch.zeros(8)
    processor.edit(first, ())
    processor.edit(second, (3,))
    assert first.isfinite().nonzero().flatten().tolist() == [3]
    assert second.isfinite().nonzero().flatten().tolist() == [5]


@pytest.mark.parametrize("policy", ["none", "layerskip"])
def test_a_stop_token_ends_no_answer_that_its_grammar_does_not_let_end(
    core: EngineCore, ids: list[tuple[int, ...]], policy: str
) -> None:
    """Its tokens are those of the answer itself, so that each of them may be drawn."""
    prompt, sampling = ids[2], replace(GREEDY, max_tokens=120, grammar=JSON)
    (whole,) = answer(core, [prompt], sampling, ["none"])
    text, last = run(core, prompt, replace(sampling, stop_token_ids=tuple(set(whole))), policy)
    assert (last.finish_reason, fits(text)) == ("stop", True)


@pytest.mark.parametrize("top_k", [-1, 40])
@pytest.mark.parametrize("policy", ["none", "layerskip"])
def test_a_stop_token_ends_an_answer_where_its_grammar_may_end(
    core: EngineCore, ids: list[tuple[int, ...]], policy: str, top_k: int
) -> None:
    """A special token that is drawn wherever it may be."""
    lines = LLMatcher.grammar_from_regex("[a-z ]{9}[a-z ]*")
    sampling = SamplingParams(60, 0.0, grammar=lines, logit_bias=((3, 100.0),), stop_token_ids=(3,), top_k=top_k)
    text, last = run(core, ids[0], sampling, policy)
    assert last.finish_reason == "stop"
    assert last.token_ids[-1] == 3
    assert re.fullmatch("[a-z ]{9,}", text)


def test_a_stop_token_that_may_follow_needs_no_mask(core: EngineCore, begin: Begin) -> None:
    sampling = SamplingParams(grammar=LLMatcher.grammar_from_regex("[a-z]{3}[a-z]*"), stop_token_ids=(3,))
    processor = LogitsProcessor(sampling, (), core.info.eos_token_ids, begin(sampling.grammar or ""))
    word = core.tokenizer.encode("abcd", add_special_tokens=False)
    assert processor.mask_after_draw
    assert (processor.allows(3, []), processor.allows(3, word), processor.allows(word[0], [])) == (False, True, True)


def schema_of(schema: object) -> str:
    return json.dumps({"grammars": [{"json_schema": schema}]})


# Shallow definitions that nest deeply, for they lead to one another.
CHAIN = {f"d{i}": {"type": "array", "items": {"$ref": f"#/$defs/d{i + 1}"}} for i in range(2000)}
# These stall, crash or exhaust the library, or kill it.
REFUSED = {
    "a common multiple": ({"allOf": [{"type": "integer", "multipleOf": n} for n in (9973, 9967, 9949)]}, ""),
    "the lowest integer": ({"enum": [1, {"a": [-(2**63)]}]}, "fails"),
    "a chain of references": ({"$ref": "#/$defs/d0", "$defs": CHAIN | {"d2000": {"type": "string"}}}, "fails"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_schema_beyond_its_budget_is_refused_and_does_not_stop_the_rounds(
    core: EngineCore, ids: list[tuple[int, ...]], name: str
) -> None:
    schema, reason = REFUSED[name]
    bad = GenerateRequest("bad", ids[0], replace(GREEDY, grammar=schema_of(schema)))
    core.add(GenerateRequest("other", ids[1], replace(GREEDY, max_tokens=100, ignore_eos=True)))
    while not core.processors.ready(bad.sampling):
        if not core.scheduler.idle:
            core.step()
    with pytest.raises(RequestError) as refused:
        core.add(bad)
    assert refused.value.param == "response_format"
    assert reason in str(refused.value)
    assert len(str(refused.value)) < 1000
    core.cancel("other")
    assert core.scheduler.idle


def test_a_row_of_dear_grammars_delays_no_usual_one(core: EngineCore) -> None:
    processors = Processors(core.tokenizer, core.info, None, GrammarConfig(build_seconds=0.5))
    dear = [replace(GREEDY, grammar=schema_of({"type": "integer", "multipleOf": 10_000_019 + i})) for i in range(8)]
    usual = replace(GREEDY, grammar=WORDS)
    while not processors.ready(usual):
        ready = sum(processors.ready(sampling) for sampling in dear)  # they ask first
        time.sleep(0.001)
    assert ready <= 2
    while not any(processors.ready(sampling) for sampling in dear):
        time.sleep(0.001)
    processors.close()


def test_a_grammar_beyond_its_memory_is_refused(core: EngineCore) -> None:
    processors = Processors(core.tokenizer, core.info, None, GrammarConfig(memory=2**20))
    properties = {f"p{i}": {"type": "string", "pattern": f"^(a|b|c{i})*$"} for i in range(2000)}
    with pytest.raises(RequestError, match="more than 1 MiB of memory"):
        processors.begin(schema_of({"type": "object", "properties": properties}), "response_format")
    processors.close()


def test_a_grammar_whose_process_ends_fails_its_requests_alone(core: EngineCore, ids: list[tuple[int, ...]]) -> None:
    alone = answer(core, ids[:1], replace(GREEDY, max_tokens=24, ignore_eos=True), ["none"])
    grammar = WORDS.replace("2,30", "3,30")
    core.add(GenerateRequest("lost", ids[2], SamplingParams(60, 1.0, grammar=grammar)))
    core.add(GenerateRequest("kept", ids[2], SamplingParams(60, 1.0, grammar=WORDS)))
    core.add(GenerateRequest("0", ids[0], replace(GREEDY, max_tokens=24, ignore_eos=True)))
    events = [*core.step().events, *core.step().events]
    kill_followers_of(core, grammar)
    events += drain(core)
    failed = failures(events)
    assert [*failed] == ["lost"]
    assert isinstance(failed["lost"], RequestError)
    assert tokens_of(events, "0") == alone[0]
    assert [event for event in events if event.request_id == "kept"][-1].finish_reason is not None
    assert run(core, ids[2], SamplingParams(60, 1.0, grammar=grammar), "none")[1].finish_reason is not None


def kill_followers_of(core: EngineCore, grammar: str) -> None:
    """Kill the process that follows a grammar."""
    host = core.processors.host
    assert host is not None
    future = host.compiled(grammar)
    assert future is not None
    os.kill(future.result().pid, signal.SIGKILL)


def test_a_grammar_whose_steps_are_slow_is_given_up(
    core: EngineCore, ids: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answers fail, and so do later requests. Those by other grammars go on."""
    slow = WORDS.replace("2,30", "4,30")
    core.add(GenerateRequest("slow", ids[2], SamplingParams(60, 1.0, top_p=0.9, grammar=slow)))
    core.step()
    monkeypatch.setattr("engine.grammar.host._PER_STEP", -0.1)
    events = drain(core)
    monkeypatch.undo()
    assert [*failures(events)] == ["slow"]
    with pytest.raises(RequestError, match="too long"):
        core.add(GenerateRequest("again", ids[2], SamplingParams(60, 1.0, grammar=slow)))
    assert run(core, ids[2], SamplingParams(60, 1.0, grammar=WORDS), "none")[1].finish_reason is not None


def test_a_grammar_is_compiled_later_if_there_was_no_process(core: EngineCore, monkeypatch: pytest.MonkeyPatch) -> None:
    processors = Processors(core.tokenizer, core.info, None, GrammarConfig())
    with monkeypatch.context() as patched:
        patched.setattr("engine.sandbox.host.subprocess.Popen", lambda *_, **__: no_process())
        with pytest.raises(RequestError, match="cannot be started"):
            processors.begin(WORDS, "")
    monkeypatch.setattr("engine.grammar.host._RETRY", 0.0)
    assert processors.begin(WORDS, "").allowed(()).any()
    processors.close()


def no_process() -> None:
    raise BlockingIOError("no more processes")


def test_slow_grammars_take_turns(core: EngineCore, ids: list[tuple[int, ...]]) -> None:
    """Rounds leave out those that would make the others wait; nobody is left out for ever."""
    for name in "abc":
        core.add(GenerateRequest(name, ids[0], SamplingParams(12, 1.0, ignore_eos=True, grammar=WORDS), "none"))
    core.add(GenerateRequest("free", ids[1], replace(GREEDY, max_tokens=30, ignore_eos=True), "none"))
    served: list[set[str]] = []
    while not core.scheduler.idle:
        for request in core.scheduler.running:
            if request.processor is not None:
                vars(vars(request.processor)["_grammar"])["_seconds"] = 0.08
        served.append({event.request_id for event in core.step().events})
    together = [ids & {"a", "b", "c"} for ids in served[2:]]
    assert max(map(len, together)) == 1
    assert all("free" in ids for ids in served[2:20])


def test_grammars_that_no_answer_needs_lose_their_processes(processors: Processors) -> None:
    matchers = [processors.begin(schema_of({"const": f"value {i}"}), "") for i in range(20)]
    grammars = [matcher.grammar for matcher in matchers]
    assert not any(grammar.lost for grammar in grammars)
    for matcher in matchers:
        matcher.close()
    processors.begin(schema_of({"const": "one more"}), "").close()
    assert 1 < sum(grammar.lost for grammar in grammars) < 20


def test_a_tokenizer_that_grammars_cannot_read_is_the_requests_error(
    model: LoadedModel, ids: list[tuple[int, ...]]
) -> None:
    tried: list[int] = []

    class Unreadable(Tokenizer):
        def token_bytes(self, token: int) -> bytes:
            tried.append(token)
            raise RuntimeError("no byte fallback")

    unreadable = copy(model)
    unreadable.tokenizer = Unreadable(model.tokenizer.backend)
    core = unreadable.core(EngineConfig())
    sampling = replace(GREEDY, grammar=JSON, grammar_param="response_format", max_tokens=5)
    for name in "ab":
        with pytest.raises(RequestError, match="byte fallback") as refused:
            core.add(GenerateRequest(name, ids[0], sampling))
        assert refused.value.param == "response_format"
    assert len(tried) == 1, "the second request is refused without another attempt"
    assert core.scheduler.idle


@pytest.mark.parametrize("thinking", [False, True])
@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("kind", TOOL_FORMATS)
def test_every_call_that_a_grammar_allows_is_parsed_as_a_call(
    core: EngineCore, begin: Begin, kind: str, parallel: bool, thinking: bool
) -> None:
    """Random texts that the grammar allows are parsed as calls of the format."""

    def marker(text: str) -> str:
        token = core.tokenizer.added_token_id(text)
        return json.dumps(text) if token is None else f"<[{token}]>"

    rules = tool_call_grammar(TOOL_FORMATS[kind], TOOLS, marker, parallel=parallel)
    grammar = grammar_of(None, rules, thought="think" if thinking else "", think_close='"</think>"')
    assert grammar is not None
    most = 0
    for seed in range(10):
        random, matcher = Random(seed), begin(grammar)
        said = core.tokenizer.encode("so </think>", add_special_tokens=False) if thinking else []
        for token in said:
            assert matcher.allows(token, [])
            matcher.advance((token,))
        while not matcher.stopped and len(said) < 400:
            allowed = matcher.allowed(()).nonzero()[:, 0].tolist()
            ends = [token for token in allowed if token in core.info.eos_token_ids]
            token = ends[0] if ends and random.random() < 0.2 else random.choice(allowed)
            if token in core.info.eos_token_ids:
                break
            matcher.advance((token,))
            said.append(token)
        text = core.tokenizer.decode(said)
        parser = make_parser(kind, reasoning=thinking, thinking=thinking, names=frozenset({"weather", "time"}))
        assert parser is not None
        deltas = [*parser.push(text), *parser.finish()]
        assert "".join(delta.content for delta in deltas).strip() == ""
        calls: dict[int, list[str]] = {}
        for delta in deltas:
            if delta.call is not None:
                call = calls.setdefault(delta.call, [delta.name or "", ""])
                call[1] += delta.arguments
        assert calls, text
        assert parallel or len(calls) == 1
        most = max(most, len(calls))
        for name, arguments in calls.values():
            found = json.loads(arguments)
            if name == "weather":
                assert found["city"] in ("Bern", "Rom")
                assert 1 <= found["days"] <= 9
            else:
                assert (name, found) == ("time", {})
    assert (most > 1) == parallel, "some texts have several calls if parallel calls are allowed"


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize(
    "asked",
    [
        {"grammar": JSON},
        {"grammar": WORDS.replace("{2,30}", "{30,40}"), "logit_bias": ((20, 3.0), (30, -100.0))},
        {"frequency_penalty": 1.2, "repetition_penalty": 1.2, "min_tokens": 40},
    ],
    ids=["schema", "words", "penalties"],
)
def test_searches_apply_the_requests_edits_to_logits(
    model: LoadedModel,
    ids: list[tuple[int, ...]],
    asked: dict[str, Any],
    temperature: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Verified rows drawn again from the full model's states give the tokens of the answer."""
    monkeypatch.setattr("engine.core.constraints._REPLAY_SECONDS", math.inf)  # on a busy machine too
    replayed: list[tuple[tuple[int, ...], list[int]]] = []

    class WatchedSearch(Delegate):
        """Record the draws of a search at each position."""

        def __init__(self, inner: CandidatePass, positions: Sequence[int]) -> None:
            super().__init__(inner)
            self._positions = iter(positions)

        def draws(self, states: Tensor, plans: Sequence[Variants]) -> tuple[list[list[int]], list[list[float]]]:
            drawn: tuple[list[list[int]], list[list[float]]] = self.inner.draws(states, plans)
            replayed.append((tuple(islice(self._positions, states.shape[1])), drawn[0][-1]))
            return drawn

    class WatchedRunner(Delegate):
        def candidates(self, slab: int, positions: Sequence[int], *sampled: Any) -> WatchedSearch:
            return WatchedSearch(self.inner.candidates(slab, positions, *sampled), positions)

    config = EngineConfig(knapspec=KnapSpecConfig(budget=1.0, interval=8, rows=8), prior="none")
    core = model.core(config, wrap_runner=WatchedRunner)
    sampling = replace(GREEDY, temperature=temperature, max_tokens=60, seed=3, ignore_eos=True, **asked)
    (said,) = answer(core, ids[:1], sampling, ["knapspec"], seeds=[3])
    first = len(ids[0])
    tokens = [*ids[0], *said]
    again = [(p, token) for positions, drawn in replayed for p, token in zip(positions, drawn, strict=True)]
    of_answer = [(p, token) for p, token in again if first <= p + 1 < len(tokens)]
    assert len(of_answer) >= 6
    assert all(tokens[p + 1] == token for p, token in of_answer)
    if core.processors.host is not None:
        grammars = [future.result() for future in vars(core.processors.host)["_grammars"].values()]
        assert [grammar.matchers for grammar in grammars] == [0], "searches and answers forget their matchers"


@pytest.mark.parametrize(
    ("grammar", "pattern"),
    [
        ("start: answer\nanswer: /[a-c]{2,5}/", "[a-c]{2,5}"),
        ('start: answer\nanswer: "yes" | "no"', "yes|no"),
        ('root ::= "v" digit+ "."\ndigit ::= [0-9]', r"v[0-9]+\."),
        ('root ::= "a"\n  | "b"\n  | "c" "d"', "a|b|cd"),
        ('start: "x" DIGIT\nDIGIT: /[0-9]/', "x[0-9]"),
        ('// a comment\nstart: "x"', "x"),
    ],
)
def test_answers_match_expressions_and_grammars(
    core: EngineCore, ids: list[tuple[int, ...]], grammar: str, pattern: str
) -> None:
    for text in (run(core, prompt, SamplingParams(40, 1.0, grammar=grammar), "knapspec")[0] for prompt in ids[:2]):
        assert re.fullmatch(pattern, text) or len(text) > 30


LONG = "\n".join(["start: rule_0 | last", *(f'rule_{i}: "secret"' for i in range(1200)), "last: missing"])


@pytest.mark.parametrize("grammar", ['answer ::= "yes"', 'root ::= "a', "root ::= other", LONG])
def test_the_error_of_a_grammar_says_what_is_wrong(core: EngineCore, begin: Begin, grammar: str) -> None:
    with pytest.raises(RequestError) as refused:
        begin(grammar)
    assert not re.search(r"MiB|secret|\d\(\d", str(refused.value))
