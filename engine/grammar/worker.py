"""The processes that meet a stranger's grammar first: `python -m engine.grammar.worker FD`.

A grammar can hang, crash, panic or exhaust the memory of the library that compiles it. This process reads the model's
vocabulary once, and compiles nothing. For every socket that it receives it forks a child, which compiles one grammar
and follows it for all answers that need it. The limits of `Limits` hold for each child; its death ends nobody else.

A child answers with its process id, then with an empty frame, or with the reason why the grammar is refused. Then it
carries out `Operation`s. When its socket is closed, it ends.
"""

from __future__ import annotations

import ctypes
import faulthandler
import math
import os
import pickle
import resource
import signal
import socket
import struct
import sys
from array import array
from contextlib import suppress
from typing import NoReturn

from llguidance import LLTokenizer

from engine.grammar.matching import Matcher, build, prepare
from engine.grammar.protocol import WORD, Answer, Limits, Operation, receive, send

_PR_SET_PDEATHSIG = 1


def main(descriptor: int) -> int:
    """Read the vocabulary, then fork a child for each socket that arrives. Ends when the engine is gone."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system removes ended children
    engine = socket.socket(fileno=descriptor)
    try:
        limits, vocabulary = pickle.loads(receive(engine))
    except (EOFError, OSError):
        return 1
    try:
        tokens = prepare(vocabulary)
    except Exception as error:
        send(engine, f"{type(error).__name__}: {error}".encode())
        return 1
    del vocabulary
    send(engine, b"")
    while True:
        try:
            _, descriptors, _, _ = socket.recv_fds(engine, 1, 1)
        except OSError:
            return 0
        if not descriptors:
            return 0
        parent = os.getpid()
        with suppress(OSError):  # no more processes: the closed socket says so
            if os.fork() == 0:
                engine.close()
                _child(parent, socket.socket(fileno=descriptors[0]), tokens, limits)
        os.close(descriptors[0])


def _child(parent: int, engine: socket.socket, tokens: LLTokenizer, limits: Limits) -> NoReturn:
    """Compile and follow one grammar. Never returns."""
    code = 1
    try:
        _end_with(parent)
        _silence()
        _limit(limits)
        send(engine, struct.pack("<I", os.getpid()))
        _follow(engine, tokens)
        code = 0
    except (EOFError, OSError):
        code = 0  # the engine needs the grammar no longer
    finally:
        os._exit(code)  # whatever the library threw: its traceback would be noise in the server's log


def _follow(engine: socket.socket, tokens: LLTokenizer) -> None:
    grammar = receive(engine).decode()
    try:
        origin = build(tokens, grammar)
    except ValueError as error:
        send(engine, (str(error) or "invalid grammar").encode())
        return
    resource.setrlimit(resource.RLIMIT_CPU, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    send(engine, b"")
    matchers: dict[int, Matcher] = {}
    while True:
        words = array(WORD, receive(engine))
        operation, number, arguments = words[0], words[1], words[2:].tolist()
        if operation == Operation.BEGIN:
            matchers[number] = Matcher(origin)
        elif operation == Operation.FORGET:
            del matchers[number]
        elif operation == Operation.KEEP:
            matchers[number].advance(arguments)
        else:
            send(engine, _answer(matchers[number], operation, arguments))


def _answer(matcher: Matcher, operation: int, arguments: list[int]) -> bytes:
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


def _end_with(parent: int) -> None:
    """Have the system kill this process when its parent ends, in the middle of whatever it compiles."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        raise EOFError


def _silence() -> None:
    """Panics of the library and reports of crashes are expected here. The engine says which grammar failed."""
    faulthandler.disable()
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)


def _limit(limits: Limits) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limits.build_seconds), resource.RLIM_INFINITY))
    with suppress(OSError, ValueError), open("/proc/self/statm", encoding="ascii") as statm:
        pages = int(statm.read().split()[0])
        most = pages * resource.getpagesize() + limits.memory
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
