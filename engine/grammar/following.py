"""Compile and follow grammars: the task of a sandbox (`engine.sandbox.worker`). A child has one grammar.

It answers with an empty frame, or with the reason why the grammar is refused. Then it carries out `Operation`s.
"""

from __future__ import annotations

import math
import resource
from array import array

from llguidance import LLTokenizer

from engine.grammar import matching
from engine.grammar.protocol import WORD, Answer, Operation, Vocabulary
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
        words = array(WORD, engine.receive())
        operation, number, arguments = words[0], words[1], words[2:].tolist()
        if operation == Operation.BEGIN:
            matchers[number] = matching.Matcher(origin)
        elif operation == Operation.FORGET:
            del matchers[number]
        elif operation == Operation.KEEP:
            matchers[number].advance(arguments)
        else:
            engine.send(_answer(matchers[number], operation, arguments))


def _answer(matcher: matching.Matcher, operation: int, arguments: list[int]) -> bytes:
    answer, mask = Answer(0), b""
    if operation == Operation.TAKE:
        allowed, taken = matcher.take(arguments[0], arguments[1:])
        answer = Answer(Answer.ALLOWED * allowed | Answer.TAKEN * taken | Answer.STOPPED * (taken and matcher.stopped))
    elif operation == Operation.MASK:
        mask = matcher.mask(arguments)
    else:
        matcher.advance(arguments)
        answer = Answer(Answer.STOPPED * (not matcher.drafting and matcher.stopped))
    return bytes([answer | Answer.FAILED * matcher.failed]) + mask
