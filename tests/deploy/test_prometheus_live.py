"""A real Prometheus scrapes a real server under load: every query returns data, and no alert fires for nothing."""

from __future__ import annotations

import itertools
import math
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.support.files import DASHBOARDS, PROMETHEUS, expressions, program, rules
from tests.support.promql import selectors
from tests.support.serving import MODEL, Process
from tests.support.waiting import PATIENCE, free_port, is_ok, until

PROMPTS = (
    "Tell me a story about a small bear and a hill, and then one about a hungry cat and a mirror.",
    "Write SQL.\n\nbooks(id, title, author, year, price)\n\nShow author and year of all books sorted by year.",
)
INTERVAL = 0.5  # seconds between scrapes; the rules' windows and patience are shortened to fit
WINDOWS = {"10m": "4s", "5m": "4s", "1m": "3s"}


class Prometheus:
    """Debian's Prometheus with our configuration, watching one server."""

    def __init__(self, directory: Path, target: str) -> None:
        port = free_port()
        config = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text("utf-8"))
        interval = f"{INTERVAL * 1000:g}ms"
        config["global"] = dict.fromkeys(("scrape_interval", "scrape_timeout", "evaluation_interval"), interval)
        config["scrape_configs"][0]["static_configs"] = [{"targets": [target]}]
        (directory / "rules").mkdir()
        (directory / "prometheus.yml").write_text(yaml.safe_dump(config))
        for source in (PROMETHEUS / "rules").iterdir():
            text = re.sub(r"\[(\w+)\]", lambda found: f"[{WINDOWS.get(found[1], found[1])}]", source.read_text("utf-8"))
            (directory / "rules" / source.name).write_text(re.sub(r"\bfor: \w+", "for: 0s", text))
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30)
        with (directory / "log").open("w") as log:
            self.popen = subprocess.Popen(
                [
                    program("prometheus"),
                    f"--config.file={directory / 'prometheus.yml'}",
                    f"--storage.tsdb.path={directory / 'data'}",
                    f"--web.listen-address=127.0.0.1:{port}",
                ],
                stdout=log,
                stderr=log,
            )
        until(lambda: is_ok(self.http, "/-/ready"), "Prometheus")

    def query(self, expression: str) -> list[dict[str, Any]]:
        reply = self.http.get("/api/v1/query", params={"query": expression}).json()
        assert reply["status"] == "success", (expression, reply)
        found: list[dict[str, Any]] = reply["data"]["result"]
        return found

    def answers(self, expression: str) -> bool:
        """Whether the query returns at least one number."""
        return any(not math.isnan(float(series["value"][1])) for series in self.query(expression))

    def firing(self) -> set[str]:
        return {series["metric"]["alertname"] for series in self.query('ALERTS{alertstate="firing"}')}

    def until(self, condition: Callable[[], bool], what: object) -> None:
        """Check a condition after every scrape, since nothing changes in between."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, f"in vain waited for: {what}"
            time.sleep(INTERVAL)

    def close(self) -> None:
        self.http.close()
        self.popen.kill()
        self.popen.wait()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    program("prometheus")
    directory = tmp_path_factory.mktemp("server")
    limits = ("--max-num-seqs", "2", "--max-queued", "2")
    with Process(directory / "log", "--profile-dir", str(directory / "profiles"), *limits) as process:
        yield process


@pytest.fixture(scope="module")
def prometheus(server: Process, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    watching = Prometheus(tmp_path_factory.mktemp("prometheus"), server.url.removeprefix("http://"))
    with closing(watching):
        yield watching


@contextmanager
def load(server: Process, *policies: str) -> Iterator[None]:
    """A client for each policy, which sends one request after the other until the block ends."""
    over = threading.Event()

    def client(policy: str) -> None:
        expected: dict[str, dict[str, str]] = {}  # first replies, which later requests predict
        for prompt in itertools.cycle(PROMPTS):
            body = {
                "messages": [{"role": "user", "content": prompt}],
                **{"draft_policy": policy, "max_tokens": 150, "temperature": 0, "prediction": expected.get(prompt)},
            }
            try:
                reply = server.http.post("/v1/chat/completions", json={"model": MODEL, "ignore_eos": True, **body})
            except httpx.HTTPError:  # the test has stopped the server
                return
            if reply.status_code == 200:
                expected[prompt] = {"type": "content", "content": reply.json()["choices"][0]["message"]["content"]}
            if over.wait(0 if reply.status_code == 200 else INTERVAL):
                return

    threads = [threading.Thread(target=client, args=(policy,), daemon=True) for policy in policies]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()


def dashboard_queries() -> list[str]:
    """The queries of all dashboards, with Grafana's variables filled in."""
    chosen = {"$model_name": MODEL, "$instance": ".+", "$policy": ".+", "$__rate_interval": "10s"}
    pattern = re.compile("|".join(map(re.escape, chosen)))
    asked = [expression for dashboard in DASHBOARDS for expression in expressions(dashboard)]
    return [pattern.sub(lambda found: chosen[found[0]], expression) for expression in asked]


@pytest.mark.nightly
def test_no_query_divides_nothing_by_nothing(prometheus: Prometheus) -> None:
    """Without traffic a query returns no sample instead of NaN."""
    prometheus.until(lambda: prometheus.answers("count_over_time(up[1m]) > 4"), "scrapes to rate")
    numbers = {
        query: [float(series["value"][1]) for series in prometheus.query(query)] for query in dashboard_queries()
    }
    assert not [query for query, values in numbers.items() if any(map(math.isnan, values))]


@pytest.mark.nightly
def test_every_metric_of_a_rule_is_scraped(server: Process, prometheus: Prometheus) -> None:
    """An alert on a renamed metric or label would never fire."""
    missing: set[str] = set()
    for rule in [*rules("alerts"), *rules("recording")]:
        missing.update(selectors(rule["expr"]))
    assert len(missing) > 30

    def all_found() -> bool:
        missing.difference_update([series for series in missing if prometheus.query(series)])
        return not missing

    with load(server, "knapspec", "none", "fixed"):
        prometheus.until(all_found, missing)
    for rule in rules("alerts"):
        for label in re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values())):
            labelled = [series for series in selectors(rule["expr"], label) if f'{label}!=""' in series]
            assert any(map(prometheus.query, labelled)), (rule["alert"], label)
    assert not prometheus.query(*selectors('rate(knapserve_rounds_total{policy="unheard of"}[5m]) > 0'))


@pytest.mark.nightly
def test_every_query_returns_data(server: Process, prometheus: Prometheus) -> None:
    recorded = [rule["record"] for rule in rules("recording")]
    unanswered = set(dashboard_queries() + recorded)

    def all_answered() -> bool:
        unanswered.difference_update([query for query in unanswered if prometheus.answers(query)])
        return not unanswered

    with load(server, "knapspec", "none", "fixed"):  # fewer than may run and wait: each policy gets its turn
        prometheus.until(all_answered, unanswered)
        with load(server, "knapspec", "none", "fixed"):
            prometheus.until(lambda: "KnapServeRejecting" in prometheus.firing(), "the alert on refusals")
        untrue = {f"KnapServe{name}" for name in ("Down", "Loading", "NotScraped", "EngineStalled", "RequestErrors")}
        prometheus.until(lambda: not untrue & prometheus.firing(), f"quiet from {untrue}")
