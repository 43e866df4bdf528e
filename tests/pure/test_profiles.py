"""Latency profiles: the fit, its prices, and how files are saved, refused and found."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, fields, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiles import store
from profiles.fit import Observation, add_copy, fit
from profiles.schema import LatencyProfile, ProfileError, ProfileKey
from tests.support.examples import examples

KEY = ProfileKey("Some CPU @ 2.0 GHz 4 cores", 4, "L4-d64-f128-h4x16-kv2-v512", "float32", "torch-sdpa", 0)
LAYERS = 4
PROFILE = LatencyProfile(
    key=KEY,
    rows=(1, 2, 4),
    contexts=(512, 2048),
    fixed=1e-3,
    projection_at=((1e-4, 2e-4, 3e-4),),
    mlp_at=((2e-4, 3e-4, 6e-4),),
    head_at=((5e-4, 6e-4, 7e-4),),
    scan_at=((5e-5, 5e-5, 1e-4), (8e-5, 9e-5, 3e-4)),
    drafting=0.8,
    residual=0.01,
    worst=0.05,
)


def price(profile: LatencyProfile, rows: int, context: int, attention: int, mlp: int, head: bool) -> float:
    """Seconds of a pass of one request, by the formula of `profiles.schema`."""
    knot = profile.rows.index(rows)
    return (
        profile.fixed
        + attention * (profile.projection_at[0][knot] + profile.scan(context, rows))
        + mlp * profile.mlp_at[0][knot]
        + head * profile.head_at[0][knot]
    )


def observe(profile: LatencyProfile, noise: Callable[[], float] = lambda: 1.0) -> list[Observation]:
    """Passes that distinguish the terms: several sub-networks, contexts and widths."""
    return [
        Observation(
            *(rows, ((attention, context),), (attention,), (mlp,), (int(head),)),
            price(profile, rows, context, attention, mlp, head) * noise(),
        )
        for rows in profile.rows
        for context in (64, *profile.contexts)
        for attention, mlp in ((0, 0), (LAYERS, LAYERS), (LAYERS, 0), (0, LAYERS), (LAYERS // 2, 1))
        for head in (False, True)
    ]


def seconds(most: float, least: float = 0.0) -> st.SearchStrategy[float]:
    return st.floats(least, most, allow_subnormal=False)


@st.composite
def latency_profiles(draw: st.DrawFn) -> LatencyProfile:
    rows = tuple(sorted(draw(st.sets(st.integers(1, 64), min_size=1, max_size=4))))

    def column(most: float, least: float) -> tuple[float, ...]:
        return tuple(draw(st.lists(seconds(most, least), min_size=len(rows), max_size=len(rows))))

    contexts = tuple(sorted(draw(st.sets(st.integers(100, 10_000), min_size=1, max_size=3))))
    scans = [column(1e-3, 1e-4)]
    for _ in contexts[1:]:
        scans.append(tuple(a + b for a, b in zip(scans[-1], column(1e-3, 1e-4), strict=True)))
    return replace(
        PROFILE,
        rows=rows,
        contexts=contexts,
        fixed=draw(seconds(1e-2, 1e-4)),
        projection_at=(column(1e-3, 1e-4),),
        mlp_at=(column(1e-3, 1e-4),),
        head_at=(column(1e-3, 1e-4),),
        scan_at=tuple(scans),
    )


def again(profile: LatencyProfile) -> LatencyProfile:
    """The profile after a journey through JSON."""
    return LatencyProfile.from_dict(json.loads(json.dumps(asdict(profile))))


COLUMNS = ("projection_at", "mlp_at", "head_at")


@examples(40)
@given(latency_profiles())
def test_the_fit_recovers_the_coefficients_behind_exact_times(made: LatencyProfile) -> None:
    found = fit(KEY, observe(made))
    assert found.rows == made.rows
    assert found.fixed == pytest.approx(made.fixed, rel=1e-6)
    for name in COLUMNS:
        assert getattr(found, name)[0] == pytest.approx(getattr(made, name)[0], rel=1e-6)
    assert found.contexts == made.contexts
    for values, expected in zip(found.scan_at, made.scan_at, strict=True):
        assert values == pytest.approx(expected, rel=1e-6)
    assert found.worst < 1e-8
    assert found.key == KEY


@pytest.mark.parametrize("name", ["fixed", *COLUMNS, "scan_at"])
def test_the_fit_recovers_coefficients_of_zero(name: str) -> None:
    nothing = 0.0 * np.array(getattr(PROFILE, name))
    made = replace(PROFILE, **{name: nothing.tolist()})
    found = fit(KEY, [o for o in observe(made) if o.seconds > 0])
    assert np.array(getattr(found, name)) == pytest.approx(nothing, abs=1e-12)
    assert found.worst < 1e-6


def variant(index: int, observations: list[Observation]) -> list[Observation]:
    """Passes of the model itself (0) or of its copy in fewer bits (1), of two variants."""

    def placed(part: tuple[int, ...]) -> tuple[int, ...]:
        return (*part, 0) if index == 0 else (0, *part)

    return [replace(o, attention=placed(o.attention), mlp=placed(o.mlp), head=placed(o.head)) for o in observations]


def test_a_copy_in_fewer_bits_has_prices_of_its_own() -> None:
    """Passes of the copy, and of either with the other's head, determine both sets of prices."""
    copy = replace(PROFILE, projection_at=((4e-5, 5e-5, 9e-5),), mlp_at=((6e-5, 9e-5, 2e-4),), head_at=((1e-4,) * 3,))
    found = fit(KEY, variant(0, observe(PROFILE)) + variant(1, observe(copy)))
    assert found.variants == 2
    for name in COLUMNS:
        for own, made in zip(getattr(found, name), (PROFILE, copy), strict=True):
            assert own == pytest.approx(getattr(made, name)[0], rel=1e-6)
    assert found.mlp(1, 2) == pytest.approx(6e-5, rel=1e-6)
    assert again(found) == found


def test_the_prices_of_a_copy_are_added_to_a_profile_without_it() -> None:
    """From a measurement at other row counts, on a machine that is now 1.2 times as slow."""
    base = replace(PROFILE, rows=(1, 3, 8))
    quick = replace(
        PROFILE,
        key=replace(KEY, draft_bits=4),
        rows=(1, 4),
        projection_at=((1.0, 1.0), (1.2e-5, 4.8e-5)),
        mlp_at=((1.0, 1.0), (2.4e-5, 6e-5)),
        head_at=((1.0, 1.0), (1.2e-4, 1.2e-4)),
        scan_at=((1e-5, 1e-5), (4e-5, 4e-5)),
        drafting=1.1,
    )
    found = add_copy(base, quick, factor=1.2)
    assert found.projection_at[1] == pytest.approx((1e-5, 3e-5, 8e-5))
    assert found.mlp_at[1] == pytest.approx((2e-5, 4e-5, 9e-5))
    assert found.head_at[1] == pytest.approx((1e-4,) * 3)
    assert found.without_copy() == replace(base, drafting=1.1)
    assert found.key == quick.key
    assert again(found) == found


def test_prices_of_a_copy_continue_beyond_the_rows_at_which_it_was_timed() -> None:
    narrow = [o for o in observe(PROFILE) if o.rows < 4]
    found = fit(KEY, variant(0, observe(PROFILE)) + variant(1, narrow))
    assert found.mlp_at[1] == pytest.approx((2e-4, 3e-4, 5e-4))
    assert found.mlp_at[0] == pytest.approx(PROFILE.mlp_at[0])


def test_row_counts_may_be_timed_at_different_contexts() -> None:
    """Row counts timed at fewer contexts share one price per row and token."""
    slope = 3e-9
    scans = tuple(
        (PROFILE.scan(n, 1), PROFILE.scan(n, 2), *(slope * n * rows for rows in (64, 256))) for n in (512, 2048)
    )
    parts = {}
    for name in COLUMNS:
        one, two, more = getattr(PROFILE, name)[0]
        parts[name] = ((one, two, 8 * more, 32 * more),)
    made = replace(PROFILE, rows=(1, 2, 64, 256), scan_at=scans, **parts)
    found = fit(KEY, [o for o in observe(made) if o.rows < 64 or o.spans[0][1] <= 512])
    assert found.contexts == (512, 2048)
    for rows in made.rows:
        assert found.scan(2048, rows) == pytest.approx(made.scan(2048, rows), rel=1e-6)
    random = Random(1)
    noisy = observe(made, lambda: 1 + random.uniform(-0.01, 0.01))
    found = fit(KEY, [o for o in noisy if o.rows < 64 or o.spans[0][1] <= 512])
    assert found.scan(2048, 256) == pytest.approx(4 * found.scan(2048, 64))


@pytest.mark.parametrize("seed", range(5))
def test_two_per_cent_of_noise_misprices_no_pass_by_more(seed: int) -> None:
    """Passes are priced within 2 %, and so are the terms that dominate them."""
    random = Random(seed)
    found = fit(KEY, observe(PROFILE, lambda: 1 + random.uniform(-0.02, 0.02)))
    for o in observe(PROFILE):
        ((attention, context),) = o.spans
        assert price(found, o.rows, context, attention, *o.mlp, bool(*o.head)) == pytest.approx(o.seconds, rel=0.02)
    assert found.fixed == pytest.approx(PROFILE.fixed, rel=0.02)
    assert found.mlp_at[0] == pytest.approx(PROFILE.mlp_at[0], rel=0.1)
    assert 0 < found.residual <= found.worst < 0.04


@examples(60)
@given(
    st.lists(
        st.builds(
            Observation,
            rows=st.sampled_from([1, 2, 8]),
            spans=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 4096)), max_size=2).map(tuple),
            attention=st.tuples(st.integers(0, 8), st.integers(0, 8)),
            mlp=st.tuples(st.integers(0, 8), st.integers(0, 8)),
            head=st.sampled_from([(0, 0), (1, 0), (0, 1)]),
            seconds=seconds(1.0, 1e-6),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_coefficients_are_never_negative(observations: list[Observation]) -> None:
    """Any timings give a profile that can be saved and loaded."""
    found = fit(KEY, observations)
    numbers = [
        found.fixed,
        *(x for name in COLUMNS for values in getattr(found, name) for x in values),
        *(x for s in found.scan_at for x in s),
    ]
    assert min(numbers) >= 0
    assert all(map(math.isfinite, [*numbers, found.residual, found.worst]))
    assert found.residual <= found.worst
    assert again(found) == found


def test_prices_are_linear_between_knots_and_continue_the_last_slope() -> None:
    assert [PROFILE.mlp(rows) for rows in (1, 1.5, 2, 3, 4)] == pytest.approx([2e-4, 2.5e-4, 3e-4, 4.5e-4, 6e-4])
    assert PROFILE.mlp(10) == pytest.approx(6e-4 + 6 * 1.5e-4)
    assert PROFILE.head(8) == pytest.approx(7e-4 + 4 * 0.5e-4)
    assert PROFILE.projection(0.5) == pytest.approx(0.5e-4)  # the first line continues below the first knot
    assert PROFILE.scan(256, 3) == pytest.approx(0.5 * 7.5e-5)
    assert PROFILE.scan(1280, 1) == pytest.approx(6.5e-5)
    assert PROFILE.scan(2048 + 1536, 2) == pytest.approx(9e-5 + 4e-5)
    assert PROFILE.projection(0) == PROFILE.mlp(0) == PROFILE.head(0) == PROFILE.scan(100, 0) == PROFILE.scan(0, 4) == 0


def test_a_single_knot_makes_a_constant_price() -> None:
    flat = ((1.0,),)
    profile = replace(PROFILE, rows=(4,), projection_at=flat, mlp_at=flat, head_at=flat, scan_at=flat * 2)
    assert [profile.mlp(rows) for rows in (0, 1, 4, 100)] == [0.0, 1.0, 1.0, 1.0]


@examples(100)
@given(latency_profiles(), st.floats(0, 1000))
def test_no_price_is_negative(profile: LatencyProfile, rows: float) -> None:
    """A falling last slope stops at zero."""
    assert min(profile.projection(rows), profile.mlp(rows), profile.head(rows), profile.scan(10**5, rows)) >= 0


DAMAGED: dict[str, list[Any]] = {  # values that fields may not have
    "rows": [[], [1, 2], [4, 2, 1], [1, 2, 2], [0, 2, 4], ["1", "2", "4"], [1, 2.5, 4], [1, 2, math.inf], [True, 2, 4]],
    "contexts": [[], [2048, 512], [0, 2048]],
    "fixed": [math.nan, math.inf, "1e-3", True],
    "projection_at": [[[None, 1.0, 1.0]]],
    "mlp_at": [[[1.0, 1.0]], 1.0, "abc", [[[1.0], [1.0], [1.0]]]],
    "head_at": [[[1.0, -1e-9, 1.0]]],
    "scan_at": [[[1.0] * 4] * 2, [[1.0] * 3] * 3, [1.0] * 3],
    "drafting": ["cheap", 0.0],
    "residual": ["small", None],
    "worst": [math.nan, math.inf],
    "surprise": [1],
    "key": [
        "mine",
        None,
        asdict(KEY) | {"surprise": 1},
        asdict(KEY) | {"threads": "4"},
        asdict(KEY) | {"hardware": []},
    ],
}
FIELDS, KEY_FIELDS = ([f.name for f in fields(kind)] for kind in (LatencyProfile, ProfileKey))


def as_read() -> dict[str, Any]:
    """A valid entry of a file."""
    raw: dict[str, Any] = json.loads(json.dumps(asdict(PROFILE)))
    return raw


def written(directory: Path, text: bytes) -> Path:
    path = store.path_of(KEY.hardware, directory)
    path.write_bytes(text)
    return path


def entry(directory: Path, raw: Any) -> Path:
    """A file whose second entry is `raw`."""
    return written(directory, json.dumps({"profiles": [as_read(), raw]}).encode())


def refused(path: Path) -> None:
    with pytest.raises(ProfileError) as caught:
        store.load(path)
    assert str(path) in str(caught.value)


def without(name: str) -> dict[str, Any]:
    raw = as_read()
    del (raw if name in FIELDS else raw["key"])[name]
    return raw


def test_damaged_entries_are_refused_by_the_name_of_the_file(tmp_path: Path) -> None:
    """A field has a wrong value or is missing, or the entry is no profile."""
    no_rows = {"rows": [], "scan_at": [[], []]} | {name: [] for name in COLUMNS}
    changes = [{name: value} for name, values in DAMAGED.items() for value in values]
    bad: list[Any] = [as_read() | change for change in (*changes, {"contexts": [], "scan_at": []}, no_rows)]
    for raw in (*bad, *map(without, [*FIELDS, *KEY_FIELDS]), [as_read()], None):
        refused(entry(tmp_path, raw))


def test_what_is_no_whole_file_is_refused(tmp_path: Path) -> None:
    refused(tmp_path / "nothing.json")
    refused(tmp_path)
    text = json.dumps({"profiles": [as_read()]}).encode()
    for cut in (text[:length] for length in range(0, len(text), 7)):
        refused(written(tmp_path, cut))
    for bad in (b"\xff\xfe{}", b"[" * 100_000, b'{"fixed": ' + b"9" * 5000 + b"}"):
        refused(written(tmp_path, bad))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 5) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=6,
)


@examples(400)
@given(st.data())
def test_a_changed_file_is_refused_or_prices_every_pass(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """One value anywhere is replaced: loading raises ProfileError, or every price is a finite time."""
    raw = as_read()
    inside: Any = raw
    while True:
        place = data.draw(st.sampled_from(list(inside) if isinstance(inside, dict) else range(len(inside))))
        if not isinstance(inside[place], dict | list) or data.draw(st.booleans()):
            break
        inside = inside[place]
    inside[place] = data.draw(VALUES)
    path = entry(tmp_path_factory.getbasetemp(), raw)
    try:
        _, *changed = store.load(path)
    except ProfileError:
        refused(path)
        return
    if not changed:  # of another version
        return
    (profile,) = changed
    assert again(profile) == profile
    for rows in (1, 3, 100):
        parts = profile.projection(rows), profile.mlp(rows), profile.head(rows), profile.scan(10, rows)
        assert all(0 <= part < math.inf for part in (profile.fixed, *parts))


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in place of the one that is shipped with the package. The user has another."""
    directory = tmp_path / "shipped"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    return directory


def test_the_users_profile_comes_before_a_shipped_one_and_a_named_directory_is_the_only_one(
    shipped: Path, tmp_path: Path
) -> None:
    there = store.save(replace(PROFILE, fixed=2.0), shipped)
    assert store.find(KEY, None, shipped) == (replace(PROFILE, fixed=2.0), there)
    own = store.save(PROFILE, store.default_directory())
    assert store.find(KEY, None, shipped) == (PROFILE, own)
    mine = tmp_path / "deep" / "mine"
    assert store.find(KEY, mine, shipped) is None
    path = store.save(replace(PROFILE, fixed=3.0), mine)
    assert store.find(KEY, mine, shipped) == (replace(PROFILE, fixed=3.0), path)


def test_an_unreadable_home_is_skipped_but_a_named_directory_is_an_error(
    shipped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service may run with root's HOME."""
    there = store.save(PROFILE, shipped)
    exists = Path.exists

    def closed(path: Path) -> bool:
        if store.default_directory() in path.parents or tmp_path / "mine" in path.parents:
            raise PermissionError(13, "Permission denied")
        return exists(path)

    monkeypatch.setattr(Path, "exists", closed)
    assert store.find(KEY, None, shipped) == (PROFILE, there)
    with pytest.raises(ProfileError, match="denied"):
        store.find(KEY, tmp_path / "mine", shipped)


def test_hardware_that_differs_in_punctuation_shares_a_file(shipped: Path, tmp_path: Path) -> None:
    """File names omit some characters of hardware names, and no entry hides another."""
    other = replace(PROFILE, key=replace(KEY, hardware=KEY.hardware.replace("@", "#")))
    own = store.save(other, store.default_directory())
    assert store.find(KEY, None, shipped) is None
    there = store.save(PROFILE, shipped)
    assert there.name == own.name
    assert store.find(KEY, None, shipped) == (PROFILE, there)
    assert store.save(PROFILE, store.default_directory()) == own
    assert store.find(other.key, None, shipped) == (other, own)


def test_a_key_that_differs_anywhere_but_in_the_copy_does_not_match(tmp_path: Path) -> None:
    store.save(PROFILE, tmp_path)
    for name in {*KEY_FIELDS} - {"draft_bits"}:
        value = getattr(KEY, name)
        other = replace(KEY, **{name: value + 1 if isinstance(value, int) else f"{value}x"})
        assert store.find(other, tmp_path) is None
    assert store.find(KEY, tmp_path) is not None


def test_a_profile_of_another_copy_is_found_where_there_is_none_of_this_one(shipped: Path) -> None:
    copy = replace(PROFILE, key=replace(KEY, draft_bits=4))
    own = store.save(PROFILE, store.default_directory())
    assert store.find(copy.key, None, shipped) == (PROFILE, own)
    there = store.save(copy, shipped)
    assert store.find(copy.key, None, shipped) == (copy, there)
    assert store.find(KEY, None, shipped) == (PROFILE, own)
    assert store.find(replace(KEY, draft_bits=8), None, shipped) == (PROFILE, own)


def test_a_damaged_match_is_an_error_not_a_miss(shipped: Path, tmp_path: Path) -> None:
    store.save(PROFILE, shipped)
    store.default_directory().mkdir(parents=True)
    path = written(store.default_directory(), b"{}")
    with pytest.raises(ProfileError, match="profile"):
        store.find(KEY, None, shipped)
    path.unlink()
    assert store.find(KEY, None, shipped) is not None


def test_saving_replaces_the_entry_of_the_key_and_keeps_the_rest(tmp_path: Path) -> None:
    """Also entries of other versions, which this one cannot read, and the note to readers."""
    other = replace(PROFILE, key=replace(KEY, shape="L2-d64"))
    newer = {"key": {"version": KEY.version + 1}, "surprise": 1}
    path = written(tmp_path, json.dumps({"note": "By hand.", "profiles": [as_read(), newer]}).encode())
    assert store.save(other, tmp_path) == path
    store.save(replace(PROFILE, fixed=2.0), tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    assert store.load(path) == [other, replace(PROFILE, fixed=2.0)]
    raw = json.loads(path.read_text("utf-8"))
    assert raw["note"] == "By hand."
    assert newer in raw["profiles"]


def test_saving_into_a_damaged_file_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    path = entry(tmp_path, {"key": None})
    before = path.read_bytes()
    with pytest.raises(ProfileError, match=f"{path}, entry 2"):
        store.save(PROFILE, tmp_path)
    assert path.read_bytes() == before


def test_profiles_saved_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    """Locks belong to an open file, so threads exclude each other as processes do."""
    made = [replace(PROFILE, key=replace(KEY, threads=n)) for n in range(1, 33)]
    with ThreadPoolExecutor(8) as pool:
        (path,) = set(pool.map(lambda profile: store.save(profile, tmp_path), made))
    assert {profile.key for profile in store.load(path)} == {profile.key for profile in made}


def test_a_save_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = store.save(PROFILE, tmp_path)
    write = Path.write_bytes

    def fails_half_way(self: Path, data: bytes) -> int:
        write(self, data[: len(data) // 2])
        raise OSError("disk full")

    monkeypatch.setattr(Path, "write_bytes", fails_half_way)
    with pytest.raises(OSError, match="disk full"):
        store.save(replace(PROFILE, fixed=2.0), tmp_path)
    monkeypatch.undo()
    assert store.load(path) == [PROFILE]


@examples(60)
@given(st.text(max_size=12), st.text(max_size=12))
def test_a_key_names_a_plain_file(hardware: str, backend: str) -> None:
    key = replace(KEY, hardware=hardware, backend=backend)
    for name in (key.slug, store.path_of(key.hardware, Path()).name):
        assert Path(name).name == name
        assert not {"/", "\\", "\0"} & set(name)


def test_every_shipped_profile_is_found_by_its_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is in the file of its hardware."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    shipped = [(profile, path) for path in store.SHIPPED.glob("*.json") for profile in store.load(path)]
    assert shipped
    for profile, path in shipped:
        assert store.find(profile.key, None) == (profile, path)
        assert profile.residual < 0.15
