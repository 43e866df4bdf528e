"""The wordings in text files: every pool of them is asked for, and none says what is held out."""

from __future__ import annotations

import gc
import importlib
import pkgutil
import re

import pytest

from engine.embedded import corpus
from engine.embedded.corpus.base import Phrases
from engine.embedded.corpus.wordings import wordings, wordings_by_pool

for module in pkgutil.iter_modules(corpus.__path__):
    importlib.import_module(f"engine.embedded.corpus.{module.name}")
POOLS = [pool for pool in gc.get_objects() if type(pool) is Phrases]  # isinstance would ask other objects what they are
MOST = 3000  # expansions of a template that are looked at


def said(template: str, *, marks: bool) -> set[str]:
    """What a template may say, its slots apart; in small letters and without marks unless these are all there is."""
    left, found = [template], set()
    while left and len(found) < MOST:
        text = left.pop()
        if (close := text.find(")")) < 0:
            found.add(text if marks else " ".join(re.sub(r"[^\w{}]+", " ", text.lower()).split()))
            continue
        start = text.rindex("(", 0, close)
        left += [text[:start] + part + text[close + 1 :] for part in text[start + 1 : close].split("|")]
    return found


def slots(template: str) -> set[str]:
    return set(re.findall(r"{(\w+)}", template))


@pytest.mark.parametrize("name", wordings_by_pool())
def test_a_pool_asks_for_them_and_they_are_not_what_it_holds_out(name: str) -> None:
    further = wordings(name)
    asking = [pool for pool in POOLS if set(further) <= set(pool.train)]
    assert asking, "nobody asks for these"
    marks = "FRAMES_" in name  # which differ by nothing else
    for pool in asking:
        held_out = set().union(*(said(template, marks=marks) for template in pool.held_out))
        known = set().union(*(slots(t) for t in (*pool.train, *pool.held_out) if t not in further))
        for template in further:
            assert not said(template, marks=marks) & held_out, template
            assert slots(template) <= known, template


def test_a_pool_without_any_has_none() -> None:
    assert wordings("no.POOL") == ()
