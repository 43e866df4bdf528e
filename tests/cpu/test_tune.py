"""`knapserve tune`: the order of its prompts, and its evidence about plans."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench import tune
from bench.prompts import Text
from engine.config.engine import EngineConfig
from engine.draft.knapspec import KnapSpec
from engine.draft.tpt import count
from engine.plans import exit_plan
from engine.runtime.build import LoadedModel
from engine.runtime.prior import Prior
from profiles import store
from profiles.store import write_atomically
from tests.support import PREPARED
from tests.support.cores import exact, load, made_up_profile


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    return exact()


def test_prompts_are_searched_on_in_another_order_than_their_file_has() -> None:
    """A file is in the order of its subjects, and the prompts that are searched on last count for more."""
    texts = [Text(str(i)) for i in range(24)]
    searched, compared = tune.split(texts)
    assert sorted([*searched, *compared], key=lambda text: int(text.prompt)) == texts
    assert set(searched) == set(texts[0::2])
    assert searched != texts[0::2]
    assert compared != texts[1::2]


def test_answers_of_one_token_find_no_plans_and_save_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, profiles = tmp_path / "prompts.jsonl", tmp_path / "profiles"
    file.write_text("".join(json.dumps({"prompt": f"What is {i} + 1?"}) + "\n" for i in range(4)), "utf-8")
    store.save(replace(made_up_profile(), key=load(model=PREPARED).key), profiles)  # so that nothing is measured
    saved = list(profiles.iterdir())
    args = argparse.Namespace(prompts=file, limit=0, max_tokens=1, temperature=0.0, policy="knapspec")
    assert tune.run(args, EngineConfig(model=str(PREPARED), threads=1, profile_dir=profiles)) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {"plans": 0}
    assert list(profiles.iterdir()) == saved


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fastest", "current"),
    [
        *((name, current) for name in ("none", "knapspec", "with new plans") for current in (False, True)),
        ("with current plans", True),
    ],
)
def test_plans_are_saved_only_if_nothing_without_them_is_as_fast(
    model: LoadedModel,
    fastest: str,
    current: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The search and the measurements are made up."""
    file, path = tmp_path / "prompts.jsonl", tmp_path / "prior.json"
    file.write_text('{"prompt": "Hi"}\n' * 4, "utf-8")
    monkeypatch.setattr(tune, "LoadedModel", lambda config: model)
    monkeypatch.setattr(LoadedModel, "tuned_path", lambda self, config, kind="prior": tmp_path / f"{kind}.json")
    old, new = (Prior(model.source.fingerprint, {exit_plan(model.spec.layers, n): count((), ()) + 1.0}) for n in (1, 2))
    monkeypatch.setattr(LoadedModel, "prior", lambda *_: old if current else None)
    if current:
        write_atomically(old.to_json(), path)
    before = path.read_bytes() if current else None
    monkeypatch.setattr(tune, "search", lambda *_: new)
    # In a tie, what runs without the new plans wins.
    monkeypatch.setattr(
        "bench.tune._compare",
        lambda targets, *_: [
            {"policy": target.name, "tokens_per_second": 24.5 if target.name in (fastest, "with new plans") else 23.1}
            for target in sorted(targets, key=lambda target: target.name == "with new plans")
        ],
    )
    args = argparse.Namespace(prompts=file, limit=0, max_tokens=1, temperature=0.0, policy="knapspec")
    assert tune.run(args, EngineConfig()) == 0
    *said, last = capsys.readouterr().out.splitlines()
    saved = fastest == "with new plans"
    assert (json.loads(last)["saved"], json.loads(last)["fastest"]) == (saved, fastest)
    assert (path.read_bytes() if path.exists() else None) == (new.to_json().encode() if saved else before)
    kept = "the current plans are kept" if current else "none are saved"
    assert said[-1] == (f"saved: {path}" if saved else f"{fastest} is at least as fast as the new plans: {kept}.")


@pytest.mark.parametrize("searching", [True, False])
def test_while_tuning_old_evidence_counts_as_much_as_new(model: LoadedModel, searching: bool) -> None:
    core = model.core(EngineConfig(prior="none"))
    policy = tune.without_forgetting(core) if searching else core.policy("knapspec")
    assert isinstance(policy, KnapSpec)
    variants = exit_plan(model.spec.layers, 2)
    policy.estimator.add(variants, count((), ()))
    for right in (True, False):
        for _ in range(1000):
            policy.estimator.observe(2, variants, count([0.95] * 2, [right] * 2))
    rejected, agreed = policy.estimator.counts[variants].sum(axis=0)
    if searching:
        assert (rejected, agreed) == pytest.approx((2000, 2000), rel=1e-3)
    else:
        assert agreed < 0.5 * rejected, "recent evidence counts for more"
