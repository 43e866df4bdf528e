"""A real browser in front of a real server: Debian's chromium, driven by Playwright for Python."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

from profiles import store
from tests.support.cores import load, made_up_profile
from tests.support.serving import DTYPE, Process
from tests.support.waiting import PATIENCE, until

if TYPE_CHECKING:
    from tests.support.visitor import Visitor

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


SMOKE = {  # what `make test` looks at; the rest waits for `make nightly`
    "test_text_streams_and_drafted_tokens_are_coloured",
    "test_markup_is_only_text",
    "test_stopping_cancels_the_request",
    "test_a_refused_question_returns_to_the_input",
    "test_every_control_has_an_accessible_name",
    "test_the_browser_enforces_the_content_security_policy",
    "test_answers_are_rendered_as_markdown",
    "test_copied_tokens_are_shown_as_copied",
    "test_a_cut_answer_is_continued_in_its_place",
    "test_nothing_in_an_answer_runs_or_loads",
    "test_a_conversation_survives_a_reload",
    "test_messages_are_replaced_only_by_an_answer",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent and item.name.partition("[")[0] not in SMOKE:
            item.add_marker(pytest.mark.nightly)


@pytest.fixture(scope="session")
def playwright() -> Any:
    """The library, which runs an event loop in this thread while a browser is open."""
    playwright = pytest.importorskip("playwright.sync_api", reason="the page's tests need `pip install playwright`")
    if CHROMIUM is None:
        pytest.skip("the page's tests need chromium on the PATH")
    return playwright


@pytest.fixture(scope="module")
def browser(playwright: Any) -> Iterator[Any]:
    playwright.expect.set_options(timeout=1000 * PATIENCE)
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open pages. A message in the console or a request to another host fails the test."""
    from tests.support.visitor import Visitor

    visitors: list[Visitor] = []

    def visit(url: str, **options: Any) -> Visitor:
        visitors.append(Visitor(browser, url, options))
        return visitors[-1]

    yield visit
    for visitor in visitors:
        visitor.leave()


@pytest.fixture(scope="session")
def flags(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """Flags of a server that drafts by its copy, which a made-up profile says always pays.

    One request runs and one waits: its queue is soon full.
    """
    directory = tmp_path_factory.mktemp("profiles")
    key = load(getattr(torch, DTYPE), draft_bits="auto").key
    store.save(replace(made_up_profile(low_bit=0.05), key=key), directory)
    settings = ("--max-model-len=4096", "--max-num-seqs=1", "--max-queued=1", "--keepalive-seconds=0.2")
    return "--profile-dir", str(directory), *settings


@pytest.fixture(scope="session")
def shared_server(
    playwright: Any, flags: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Process]:
    with Process(tmp_path_factory.mktemp("log") / "stderr", *flags) as process:
        yield process


@pytest.fixture
def server(shared_server: Process) -> Iterator[Process]:
    """The shared server, idle before and after each test."""
    yield shared_server
    until(lambda: shared_server.requests == 0, "an idle server")


@pytest.fixture
def visitor(server: Process, visit: Callable[..., Visitor]) -> Visitor:
    return visit(server.url).ready()
