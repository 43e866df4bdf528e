"""An engine's process with a fault: `python -m tests.support.faults FD`. `FAULT` names it: KIND:ROUND.

`KIND` is "raise", "memory" or "nan"; the fault happens in that round. "disk:0" lets no process of the server write a
byte to a file.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Sequence
from typing import Any

from engine.host import child
from engine.host.process import EngineLaunch
from engine.runtime.runner import Runner
from engine.step import StepOutput

VARIABLE = "FAULT"


class Faulty:
    """A runner that fails in one round."""

    def __init__(self, inner: Runner) -> None:
        self.inner = inner
        self.kind, at = os.environ[VARIABLE].split(":")
        self.round, self.at = 0, int(at)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def run(self, *arguments: Any, **named: Any) -> StepOutput:
        self.round += 1
        if self.kind == "disk" or self.round != self.at:
            return self.inner.run(*arguments, **named)
        if self.kind == "nan":
            norm = vars(self.inner.decoder)["_norm"]
            kept = norm.clone()
            norm.fill_(float("nan"))
            try:
                return self.inner.run(*arguments, **named)
            finally:
                norm.copy_(kept)
        raise MemoryError if self.kind == "memory" else RuntimeError("an injected fault")


def serve(arguments: Sequence[str]) -> int:
    """Run `knapserve`, whose engines have the fault."""
    from server.cli import main

    if os.environ[VARIABLE].startswith("disk"):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # writes fail instead
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    defaults = EngineLaunch.__init__.__kwdefaults__
    assert defaults is not None
    defaults["module"] = "tests.support.faults"
    return main(arguments)


if __name__ == "__main__":
    sys.exit(child.main(int(sys.argv[1]), Faulty))
