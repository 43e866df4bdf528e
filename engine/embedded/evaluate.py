"""Scores a checkpoint on held-out prompts, skill by skill: `python -m engine.embedded.evaluate [--model DIR]`.

Greedy answers of the engine itself to prompts whose phrasing and combination of values the training text never has.
With `--alpha`, also how well a sub-network that leaves out half of the time drafts for each skill.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

from engine.build import EMBEDDED, LoadedModel
from engine.config import EngineConfig
from engine.contenders import PolicyContender, Prompt
from engine.embedded.conversation import segments
from engine.embedded.corpus.base import Example
from engine.embedded.corpus.mixture import SKILLS, example, skill
from engine.seeds import mix64
from engine.types import SamplingParams

EVALUATION_SEED = 0xE7A1
TUNING_SEED = 0x7E57
_NOT_TUNED_ON = 1000  # prompts of the evaluation, a skill
MAX_TOKENS = 320
STREAMS = 16
BENCH_SKILLS = (
    *("knapserve", "notice", "sums", "stories", "translation"),
    *("sql", "summaries", "fields", "python", "documents"),
)
TUNING_SKILLS = (*BENCH_SKILLS, "talk", "echo")
HALF = (0.47, 0.53)  # least and most share of the time skipped


@dataclass
class Score:
    """What one skill reached: answers right of all, and of each of its parts; α and tested tokens of the half-skipped
    drafts."""

    right: int
    count: int
    alpha: float | None = None
    tested: int = 0
    wrong: tuple[tuple[str, str, str], ...] = ()  # prompt, reference and answer of some
    parts: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def share(self) -> float:
        return self.right / self.count


def held_out(name: str, count: int, seed: int = EVALUATION_SEED) -> list[Example]:
    """The first `count` different held-out prompts of a skill that `seed` makes."""
    found: dict[str, Example] = {}
    index = 0
    while len(found) < count and index < 20 * count:
        made = example(name, mix64(seed ^ index), "held_out")
        found.setdefault(prompt_text(made), made)
        index += 1
    return list(found.values())


def prompt_text(made: Example) -> str:
    return "".join(text for text, _ in segments(made.prompt, made.tools)) + "<|assistant|>"


def score(model: LoadedModel, config: EngineConfig, name: str, count: int, policy: str = "none") -> Score:
    """Answers to `count` held-out prompts of a skill, judged by its own check."""
    contender = PolicyContender(policy, model.core(config), SamplingParams(MAX_TOKENS, temperature=0.0))
    examples = held_out(name, count)
    room = model.length - MAX_TOKENS
    texts = [prompt_text(e) for e in examples]
    prompts = [Prompt(t, tuple(model.tokenizer.encode(t, add_special_tokens=False))[:room]) for t in texts]
    answers = [
        model.tokenizer.backend.decode(list(tokens)).strip()
        for tokens in contender.run(prompts, 1 if policy == "knapspec" else STREAMS)
    ]
    judged = [(e, answer, skill(name).check(e, answer)) for e, answer in zip(examples, answers, strict=True)]
    wrong = tuple((str(e.prompt[-1]["content"]), e.answer, answer) for e, answer, right in judged if not right)
    asked, right = Counter(e.part for e in examples), Counter(e.part for e, _, right in judged if right)
    parts = {part: (right[part], count) for part, count in sorted(asked.items()) if part}
    tally = contender.tally
    alpha = tally.accepted / tally.tested if tally.tested else None
    return Score(len(examples) - len(wrong), len(examples), alpha, tally.tested, wrong, parts)


def evaluate(directory: Path, names: Sequence[str], count: int, alpha_count: int, threads: int = 0) -> dict[str, Score]:
    """Scores by skill; α on the first `alpha_count` prompts of each (0: not measured)."""
    least, most = HALF
    config = EngineConfig(model=str(directory), max_num_seqs=STREAMS, threads=threads)
    half = EngineConfig(model=str(directory), knapspec_min_skip=least, knapspec_max_skip=most, threads=threads)
    model = LoadedModel(config)
    scores = {}
    for name in tqdm(names, unit="skill"):
        scores[name] = score(model, config, name, count)
        if alpha_count:
            drafted = score(model, half, name, alpha_count, "knapspec")
            scores[name].alpha, scores[name].tested = drafted.alpha, drafted.tested
    return scores


def sample_prompts(names: Sequence[str], count: int, seed: int = EVALUATION_SEED) -> list[dict[str, str]]:
    """Held-out prompts for `knapserve bench` and, of another seed, `tune`: `count` of each skill that asks in a single
    message. None of another seed is among the first thousand that the evaluation makes. ValueError if there are fewer
    than `count`."""
    lines: list[dict[str, str]] = []
    for name in names:
        others = {prompt_text(e) for e in held_out(name, _NOT_TUNED_ON)} if seed != EVALUATION_SEED else set()
        made = [e for e in held_out(name, 8 * count, seed) if len(e.prompt) == 1 and not e.tools]
        single = [e for e in made if prompt_text(e) not in others]
        if len(single) < count:
            raise ValueError(f"{name} has {len(single)} different prompts of one message, not {count}")
        lines += [{"domain": name, "prompt": str(e.prompt[0]["content"])} for e in single[:count]]
    return lines


def table(scores: dict[str, Score]) -> str:
    """Markdown, one row a skill."""
    lines = ["| skill | right | of | α at half skipped |", "|---|---|---|---|"]
    for name, s in scores.items():
        alpha = "" if s.alpha is None else f"{s.alpha:.3f}"
        lines.append(f"| {name} | {s.share:.1%} | {s.count} | {alpha} |")
        lines += [f"| {name}: {part} | {right / of:.1%} | {of} | |" for part, (right, of) in s.parts.items()]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m engine.embedded.evaluate", description=__doc__)
    parser.add_argument("--model", type=Path, default=EMBEDDED, help="checkpoint directory (the embedded model)")
    parser.add_argument("--skill", action="append", choices=SKILLS, help="only this one; may be repeated")
    parser.add_argument("--count", type=int, default=200, help="held-out prompts a skill (200)")
    parser.add_argument("--alpha", type=int, default=0, metavar="N", help="measure α on N prompts a skill")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads (the engine's choice)")
    parser.add_argument("--wrong", type=int, default=0, metavar="N", help="show N wrong answers a skill")
    written = parser.add_mutually_exclusive_group()
    written.add_argument(
        "--bench-prompts", type=Path, metavar="FILE", help="write prompts for knapserve bench, and end"
    )
    written.add_argument("--tuning-prompts", type=Path, metavar="FILE", help="write others for knapserve tune, and end")
    args = parser.parse_args()
    if path := args.bench_prompts or args.tuning_prompts:
        seed = EVALUATION_SEED if args.bench_prompts else TUNING_SEED
        skills = BENCH_SKILLS if args.bench_prompts else TUNING_SKILLS
        lines = sample_prompts(args.skill or skills, args.count, seed)
        path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")
        return
    scores = evaluate(args.model, args.skill or list(SKILLS), args.count, args.alpha, args.threads)
    for name, s in scores.items():
        for prompt, reference, answer in s.wrong[: args.wrong]:
            print(f"--- {name}\n{prompt}\n  expected: {reference}\n  answered: {answer}")
    print(table(scores))
    print(json.dumps({n: {"right": s.right, "count": s.count, "alpha": s.alpha} for n, s in scores.items()}))


if __name__ == "__main__":
    main()
