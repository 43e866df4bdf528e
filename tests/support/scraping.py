"""What `/metrics` shows after some requests."""

from __future__ import annotations

from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.support.fake import FakeEngine
from tests.support.harness import asks

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(text: str) -> Samples:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def scrape(engine: FakeEngine, *bodies: tuple[str, dict[str, Any]]) -> tuple[list[Any], Samples]:
    requests = [("POST", path, {"json": body}) for path, body in bodies]
    *replies, last = asks(engine, *requests, ("GET", "/metrics", {}))
    assert last.headers["content-type"].startswith("text/plain; version=0.0.4")
    return replies, samples(last.text)


def vllm(found: Samples, name: str, **labels: str) -> float:
    labels |= {"model_name": "fake/model"}
    if name != "admission_rejections_total":
        labels["engine"] = "0"
    return found[f"vllm:{name}", tuple(sorted(labels.items()))]
