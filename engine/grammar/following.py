"""Compile and follow grammars: the task of a sandbox (`engine.sandbox.worker`). A child has one grammar.

It answers with an empty frame, or with the reason why the grammar is refused. Then it carries out `Operation`s.
"""

from __future__ import annotations

import math
import resource
from array import array

from llguidance import LLTokenizer

from engine.grammar import matching
from engine.grammar.protocol import WORD, Operation, Vocabulary
from engine.sandbox.frames import Frames


def prepare(payload: tuple[Vocabulary, float]) -> tuple[LLTokenizer, float]:
    """Take the vocabulary, and the CPU seconds in which a grammar must be compiled."""
    vocabulary, seconds = payload
    return matching.prepare(vocabulary), seconds


def serve(engine: Frames, prepared: tuple[LLTokenizer, float]) -> None:
    """Compile one grammar, say whether it is refused, and follow it for all answers that need it."""
    tokens, seconds = prepared
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), resource.RLIM_INFINITY))
    grammar = engine.receive().decode()
    try:
        origin = matching.build(tokens, grammar)
    except ValueError as error:
        engine.send((str(error) or "invalid grammar").encode())
        return
    resource.setrlimit(resource.RLIMIT_CPU, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    engine.send(b"")
    matchers: dict[int, matching.Matcher] = {}
    while True:
        operation, number, *arguments = array(WORD, engine.receive())
        if operation == Operation.BEGIN:
            matchers[number] = matching.Matcher(origin)
        elif operation == Operation.FORGET:
            del matchers[number]
        else:
            emitted, kept, *matched = arguments
            answer = matchers[number].answer(emitted, kept, matched, mask=operation == Operation.MASK)
            engine.send(answer.to_bytes())
