"""Policies self-sd and knn-ssd: their files, what they draft with, and the search of `knapserve tune --policy`."""

from __future__ import annotations

import argparse
import json
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench import tune, tuning
from bench.prompts import Text, encode
from bench.tuning import last_hidden_vectors, search
from engine.config.engine import EngineConfig
from engine.draft.fixed import uniform_variants
from engine.errors import ConfigError, TunedFileError, UnknownPolicyError
from engine.plans import SKIP, TARGET, Variants
from engine.runtime.build import LoadedModel
from engine.types import RequestRound, SamplingParams
from papers import layer_sets as files
from papers.layer_sets import TUNED_POLICIES, Anchors, LayerSets
from papers.offline import LayerSearch, choose, least_similarity, representatives
from papers.settings import KnnSSDConfig, SelfSDConfig
from profiles import store
from tests.support import PREPARED, PROMPT_FILE
from tests.support.cores import answer, chat_ids, exact, load, made_up_profile

SHORT = SamplingParams(max_tokens=24, temperature=0.0)
MATCHED = LayerSets(
    "knn-ssd",
    "f" * 64,
    {"tales": (1, 0, 1), "sums": (0, 1, 1)},
    {"tales": np.array([[0.6, 0.8], [1.0, 0.0]]), "sums": np.array([[0.0, -1.0]])},
    least_similarity=0.25,
    prompts=24,
    settings={"iterations": 50.0},
)
SINGLE = LayerSets("self-sd", "f" * 64, {"": (1, 0, 1)})


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    return exact()


@pytest.fixture(scope="module")
def ids(model: LoadedModel, prompts: Sequence[str]) -> list[tuple[int, ...]]:
    core = model.core(EngineConfig())
    return [chat_ids(core, text) for text in prompts[::20]]


# Files.


@pytest.mark.parametrize("found", [MATCHED, SINGLE], ids=TUNED_POLICIES)
def test_layer_sets_survive_a_file(found: LayerSets, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "sets.json"
    store.write_atomically(files.to_json(found), path)
    read = files.load(path)
    names = ("policy", "model", "sets", "least_similarity", "prompts", "settings")
    assert [getattr(read, name) for name in names] == [getattr(found, name) for name in names]
    assert read.anchors.keys() == found.anchors.keys()
    for domain, vectors in found.anchors.items():
        np.testing.assert_allclose(read.anchors[domain], vectors, atol=1e-6)


def of_domain(raw: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return raw | {"domains": raw["domains"] | {"sums": raw["domains"]["sums"] | changes}}


DAMAGE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "not an object": lambda raw: [raw],
    "another version": lambda raw: raw | {"version": files.VERSION + 1},
    "an unknown policy": lambda raw: raw | {"policy": "fixed"},
    "sets of domains for self-sd": lambda raw: raw | {"policy": "self-sd"},
    "no model": lambda raw: raw | {"model": None},
    "no domains": lambda raw: raw | {"domains": {}},
    "a list of domains": lambda raw: raw | {"domains": [*raw["domains"]]},
    "a set of another length": lambda raw: of_domain(raw, set="01101"),
    "a set of low-bit sublayers": lambda raw: of_domain(raw, set="021"),
    "a set without a head": lambda raw: of_domain(raw, set="010"),
    "a domain without anchors": lambda raw: of_domain(raw, anchors=[]),
    "anchors of another length": lambda raw: of_domain(raw, anchors=[[1.0]]),
    "anchors of two lengths": lambda raw: of_domain(raw, anchors=[[1.0], [1.0, 0.0]]),
    "anchors without end": lambda raw: of_domain(raw, anchors=[[math.inf, 0.0]]),
    "anchors in text": lambda raw: of_domain(raw, anchors="many"),
    "an impossible cosine": lambda raw: raw | {"least_similarity": math.nan},
    "no settings": lambda raw: {name: value for name, value in raw.items() if name != "settings"},
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_files_are_refused_by_name(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "sets.json"
    path.write_text(json.dumps(DAMAGE[damage](json.loads(files.to_json(MATCHED)))))
    with pytest.raises(TunedFileError, match=r"sets\.json"):
        files.load(path)


def test_missing_and_truncated_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TunedFileError, match=r"nothing\.json"):
        files.load(tmp_path / "nothing.json")
    (tmp_path / "cut.json").write_bytes(files.to_json(MATCHED).encode()[:40] + b"\xff")
    with pytest.raises(TunedFileError, match=r"cut\.json"):
        files.load(tmp_path / "cut.json")


def sets_of(model: LoadedModel, policy: str) -> LayerSets:
    """Layer sets that suit a model."""
    sets = {"": uniform_variants(model.spec.layers, 0.5)}
    anchors = {"": np.eye(1, model.spec.hidden)} if policy == "knn-ssd" else {}
    return LayerSets(policy, model.source.fingerprint, sets, anchors)


def naming(path: Path) -> EngineConfig:
    return EngineConfig(policies=(SelfSDConfig(str(path)), KnnSSDConfig(sets="none")))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "e" * 64}, "of another model"),
        ({"sets": {"": (1, 0, 1)}}, "of another model"),
        ({"policy": "knn-ssd", "anchors": {"": np.eye(2)}}, "of policy knn-ssd"),
    ],
)
def test_named_sets_that_do_not_suit_the_model_or_policy_are_refused(
    model: LoadedModel, changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    suiting = sets_of(model, "self-sd")
    store.write_atomically(files.to_json(suiting), tmp_path / "sets.json")
    assert "self-sd" in model.core(naming(tmp_path / "sets.json")).info.policies
    store.write_atomically(files.to_json(replace(suiting, **changes)), tmp_path / "sets.json")
    with pytest.raises(TunedFileError, match=rf"sets\.json.*{message}.*knapserve tune --policy self-sd"):
        model.core(naming(tmp_path / "sets.json"))


def test_anchors_of_another_width_are_refused(model: LoadedModel, tmp_path: Path) -> None:
    store.write_atomically(
        files.to_json(replace(sets_of(model, "knn-ssd"), anchors={"": np.eye(2)})), tmp_path / "sets.json"
    )
    with pytest.raises(TunedFileError, match="of another model"):
        model.core(EngineConfig(policies=(KnnSSDConfig(str(tmp_path / "sets.json")),)))


@pytest.mark.parametrize("policy", TUNED_POLICIES)
def test_a_policy_without_layer_sets_is_not_available(model: LoadedModel, policy: str, tmp_path: Path) -> None:
    config = EngineConfig(profile_dir=tmp_path)
    core = model.core(config)
    assert policy not in core.info.policies
    with pytest.raises(UnknownPolicyError, match=f"'{policy}' is not available: .*knapserve tune --policy {policy}"):
        core.info.check_policy(policy)
    with pytest.raises(ConfigError, match=f"--draft-policy {policy} .*knapserve tune --policy {policy}"):
        model.core(replace(config, draft_policy=policy))


def test_a_damaged_file_that_is_not_named_stops_only_servers_whose_default_it_is(
    model: LoadedModel, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = EngineConfig(profile_dir=tmp_path)
    model.tuned_path(config, "self-sd").write_text("{}")
    with caplog.at_level(logging.WARNING):
        core = model.core(config)
    assert "self-sd.json" in caplog.text
    with pytest.raises(UnknownPolicyError, match="as the log says"):
        core.info.check_policy("self-sd")
    with pytest.raises(TunedFileError, match="run `knapserve tune"):
        model.core(replace(config, draft_policy="self-sd"))


# Drafting.


def test_the_nearest_anchor_is_the_one_of_the_largest_cosine() -> None:
    """By hand: KNN-SSD, eq. 4 and 5. Lengths do not count."""
    anchors = Anchors({"a": np.array([[1.0, 0.0], [0.0, 1.0]]), "b": np.array([[30.0, -30.0]])})
    for vector, domain, cosine in (
        ([2.0, 1.0], "a", 2 / math.sqrt(5)),
        ([1.0, -3.0], "b", 4 / math.sqrt(20)),
        ([0.0, 5.0], "a", 1.0),
        ([-1.0, -1.0], "b", 0.0),
    ):
        found, similarity = anchors.nearest(np.array(vector))
        assert (found, similarity) == (domain, pytest.approx(cosine))


@pytest.mark.parametrize("fallback", ["none", "plain"])
def test_each_request_drafts_with_the_set_of_its_own_domain_and_a_stranger_may_decode_plainly(
    model: LoadedModel, ids: list[tuple[int, ...]], prompts: Sequence[str], tmp_path: Path, fallback: str
) -> None:
    vectors = last_hidden_vectors(model, EngineConfig(), [encode(model, Text(text)) for text in prompts[::20]])
    plans = [uniform_variants(model.spec.layers, ratio) for ratio in (0.25, 0.5)]
    sets = LayerSets(
        "knn-ssd",
        model.source.fingerprint,
        {"first": plans[0], "second": plans[1]},
        {"first": vectors[:1], "second": vectors[1:2]},
        least_similarity=0.9999,
    )
    assert (vectors[2:] @ vectors[:2].T).max() < sets.least_similarity, "the other prompts must be strangers"
    store.write_atomically(files.to_json(sets), tmp_path / "sets.json")
    core = model.core(EngineConfig(policies=(KnnSSDConfig(str(tmp_path / "sets.json"), fallback=fallback),)))
    plain = answer(core, ids, SHORT, ["none"])
    for concurrency in (1, len(ids)):
        rounds: list[RequestRound] = []
        assert answer(core, ids, SHORT, ["knn-ssd"], concurrency=concurrency, rounds=rounds) == plain
        drafted = {(r.request_id, r.plan) for r in rounds if r.drafted}
        own = {("0", plans[0]), ("1", plans[1])}
        assert drafted == own if fallback == "plain" else drafted > own


# The search.


def around(axis: int, *offsets: float) -> list[np.ndarray]:
    """Unit vectors near an axis, off it by these angles."""
    return [np.cos(offset) * np.eye(4)[axis] + np.sin(offset) * np.eye(4)[3] for offset in offsets]


def test_representatives_are_the_centres_of_clusters_under_any_seed() -> None:
    vectors = np.array([*around(0, -0.1, 0.0, 0.1), *around(1, 0.0, 0.1, -0.1), *around(2, 0.1, -0.1, 0.0)])
    for seed in range(3):
        assert representatives(vectors, 3, seed) == [1, 3, 8]
    assert representatives(vectors[:3], 3, 0) == [0, 1, 2], "all, if they are few"


def test_anchors_are_the_same_under_the_same_seed_and_of_their_domain() -> None:
    vectors = np.random.default_rng(0).normal(size=(60, 8))
    domains = ["even", "odd"] * 30
    chosen = choose(domains, vectors)
    assert chosen == choose(domains, vectors)
    assert {domain: {domains[i] for i in own} for domain, own in chosen.items()} == {"even": {"even"}, "odd": {"odd"}}
    assert all(5 <= len(set(own)) == len(own) <= 10 for own in chosen.values())


def test_the_least_similarity_is_that_of_the_most_remote_prompt() -> None:
    """By hand: anchors at 0 and 60 degrees, a prompt at 100; an anchor does not count for itself."""
    vectors = np.array([[math.cos(math.radians(a)), math.sin(math.radians(a))] for a in (0, 60, 100)])
    assert least_similarity(vectors, [0, 1]) == pytest.approx(math.cos(math.radians(60)), abs=1e-4)
    assert least_similarity(vectors[[0, 0, 2]], [0, 1]) == pytest.approx(math.cos(math.radians(100)), abs=1e-4)


def skip_value(plan: Variants) -> float:
    """A made-up speed: skipping the first half of the sublayers helps, skipping the others hurts."""
    half = len(plan) // 2
    return 100.0 + plan[:half].count(SKIP) - 2 * plan[half:].count(SKIP)


def test_the_search_returns_the_best_set_that_it_measured_and_measures_the_known_ones_first() -> None:
    measured: list[Variants] = []

    def measure(plan: Variants) -> float:
        measured.append(plan)
        return skip_value(plan)

    first = [(SKIP, SKIP, TARGET, TARGET, TARGET), (TARGET,) * 5]
    searched = LayerSearch(2, measure, first)
    improved = [searched.step() for _ in range(12)]
    assert measured[:2] == first
    assert len(set(measured)) > 4
    assert all(len(plan) == 5 and plan[-1] == TARGET for plan in measured)
    assert searched.best == max(measured, key=skip_value)
    assert searched.speed == skip_value(searched.best)
    speeds = [skip_value(plan) for plan in measured]
    assert improved == [speed > max([0.0, *speeds[:i]]) for i, speed in enumerate(speeds)]


def test_the_search_beats_its_first_sets_and_depends_on_the_seed_alone() -> None:
    first = [uniform_variants(4, 0.5)]
    runs = [LayerSearch(4, skip_value, first) for _ in range(2)]
    for _ in range(12):
        assert len({run.step() for run in runs}) == 1
    assert runs[0].best == runs[1].best
    assert runs[0].speed > skip_value(first[0])


def test_an_interrupted_search_leaves_the_best_sets_so_far_in_the_file(tmp_path: Path) -> None:
    speeds = iter((10.0, 30.0, 20.0))

    def measure(_: Variants) -> float:
        if (speed := next(speeds, None)) is None:
            raise KeyboardInterrupt
        return speed

    first = [(TARGET, TARGET, TARGET), (SKIP, TARGET, TARGET), (TARGET, SKIP, TARGET), (SKIP, SKIP, TARGET)]
    with pytest.raises(KeyboardInterrupt):
        search({"": LayerSearch(1, measure, first)}, 9, SINGLE, tmp_path / "sets.json")
    assert files.load(tmp_path / "sets.json").sets == {"": first[1]}
    assert [path.name for path in tmp_path.iterdir()] == ["sets.json"]


def tuned(policy: str, directory: Path, iterations: int) -> tuple[EngineConfig, Path]:
    """Run `knapserve tune` on a few prompts of two domains. Returns the settings to serve with, and the file."""
    lines = [json.loads(line) for line in PROMPT_FILE.read_text("utf-8").splitlines()[::25]]
    prompts = directory / "prompts.jsonl"
    chosen = [json.dumps({"prompt": line["prompt"], "domain": "ab"[i // 3]}) for i, line in enumerate(lines[:6])]
    prompts.write_text("\n".join(chosen), "utf-8")
    config = EngineConfig(model=str(PREPARED), threads=1, profile_dir=directory / "profiles")
    model = load(model=PREPARED)
    store.save(replace(made_up_profile(), key=model.key), directory / "profiles")  # so that nothing is measured
    args = argparse.Namespace(
        prompts=prompts, limit=0, max_tokens=4, temperature=0.0, policy=policy, iterations=iterations, samples=2
    )
    assert tune.run(args, config) == 0
    return config, model.tuned_path(config, policy)


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy", [pytest.param(name, marks=pytest.mark.nightly if name == "self-sd" else ()) for name in TUNED_POLICIES]
)
def test_tuning_writes_a_file_that_loads_and_serves(
    policy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], ids: list[tuple[int, ...]]
) -> None:
    config, path = tuned(policy, tmp_path, iterations=3)
    printed = json.loads(capsys.readouterr().out.splitlines()[-1])
    found = files.load(path)
    assert printed["path"] == str(path)
    assert {domain: "".join(map(str, plan)) for domain, plan in found.sets.items()} == {
        domain: figures["set"] for domain, figures in printed["domains"].items()
    }
    assert [*found.sets] == ([""] if policy == "self-sd" else ["a", "b"])
    core = load(model=PREPARED).core(replace(config, draft_policy=policy))
    rounds: list[RequestRound] = []
    assert answer(core, ids, SHORT, [policy], rounds=rounds) == answer(core, ids, SHORT, ["none"])
    assert {r.plan for r in rounds if r.drafted} <= set(found.sets.values())
    assert policy == "knn-ssd" or any(r.drafted for r in rounds)


@pytest.mark.slow
def test_exits_and_lengths_are_measured_and_the_fastest_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "LENGTHS", (1, 4))
    tuned("layerskip", tmp_path, iterations=1)
    *_, line, last = capsys.readouterr().out.splitlines()
    found = json.loads(last)
    layers = load(model=PREPARED).spec.layers
    points = [(each["exit"], each["gamma"]) for each in found["measured"]]
    assert points == [(max(1, round(share * layers)), gamma) for share in tuning.EXITS for gamma in (1, 4)]
    best = max(found["measured"], key=lambda each: each["decode_speedup"])
    assert (found["exit"], found["gamma"]) == (best["exit"], best["gamma"])
    assert line.endswith(f"--layerskip-exit {best['exit']} --layerskip-gamma {best['gamma']}")


@pytest.mark.slow
def test_tuning_again_begins_with_the_sets_of_the_file(tmp_path: Path) -> None:
    model = load(model=PREPARED)
    config = EngineConfig(profile_dir=tmp_path / "profiles")
    known = replace(sets_of(model, "self-sd"), sets={"": (*((TARGET, SKIP) * model.spec.layers), TARGET)})
    store.write_atomically(files.to_json(known), model.tuned_path(config, "self-sd"))
    _, path = tuned("self-sd", tmp_path, iterations=1)
    found = files.load(path)
    assert found.sets == known.sets
    assert found.settings["iterations"] == 1, "the file is a new one"
