"""A real browser in front of a real server: Debian's chromium, driven by Playwright for Python."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


SMOKE = {  # what `make test` looks at; the rest waits for `make nightly`
    "test_text_streams_and_drafted_tokens_are_coloured",
    "test_markup_is_only_text",
    "test_stopping_cancels_the_request",
    "test_a_refused_question_returns_to_the_input",
    "test_every_control_has_an_accessible_name",
    "test_the_browser_enforces_the_content_security_policy",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent and item.name.partition("[")[0] not in SMOKE:
            item.add_marker(pytest.mark.nightly)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="the page's tests need `pip install playwright`")
    if CHROMIUM is None:
        pytest.skip("the page's tests need chromium on the PATH")
    from tests.support.waiting import PATIENCE

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
