"""Our counters and histograms show what prometheus_client's own would."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from server.instruments import CounterFamily, HistogramFamily

BOUNDS = (0.001, 0.5, 1, 2.5, 1000, 2_000_000)


def samples(registry: CollectorRegistry) -> set[tuple[str, tuple[tuple[str, str], ...], float]]:
    return {
        (sample.name, tuple(sorted(sample.labels.items())), sample.value)
        for family in text_string_to_metric_families(generate_latest(registry).decode())
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


@given(st.lists(st.tuples(st.sampled_from("ab"), st.one_of(st.sampled_from(BOUNDS), st.floats(0, 1e7)))))
def test_they_show_what_the_library_shows(seen: list[tuple[str, float]]) -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    families = (
        (
            CounterFamily(ours, "k_things", "Things.", ["kind"]),
            Counter("k_things", "Things.", ["kind"], registry=theirs),
        ),
        (
            HistogramFamily(ours, "k_sizes", "Sizes.", ["kind"], BOUNDS),
            Histogram("k_sizes", "Sizes.", ["kind"], buckets=BOUNDS, registry=theirs),
        ),
    )
    for kind, value in seen:
        for family in families[0]:
            family.labels(kind).inc(value)
        for family in families[1]:
            family.labels(kind).observe(value)
    assert samples(ours) == samples(theirs)
