"""Every failure the engine reports is one of these.

KnapServeError
├── ConfigError            a setting cannot be honoured
├── ModelError             a checkpoint cannot be served (what it is, what is supported)
├── ProfileMismatchError   a latency profile was named that does not fit this machine or model
├── PriorError             prior plans are damaged, or were named and are not this model's
├── RequestError           the client can fix it; `param` names the field
│   ├── ContextLengthError
│   └── UnknownPolicyError
├── RequestFailedError     this request failed inside the engine; others did not
├── QueueFullError         try again after `retry_after` seconds
└── EngineUnavailableError
    ├── EngineDrainingError    stopping: no new requests
    └── EngineDeadError        the loop, or its process, has failed
"""

from __future__ import annotations


class KnapServeError(Exception):
    """Base of all errors raised by `engine`. Can be pickled, whatever arguments a subclass takes."""

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (type(self), self.args, self.__dict__)


def _restore(kind: type[KnapServeError], args: tuple[object, ...], fields: dict[str, object]) -> KnapServeError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(fields)
    return error


class ConfigError(KnapServeError):
    """A setting, or a combination of settings, cannot be honoured."""


class ModelError(KnapServeError):
    """A checkpoint cannot be loaded or is of an unsupported kind."""


class ProfileMismatchError(KnapServeError):
    """A latency profile was named explicitly and does not match this machine or model."""


class PriorError(KnapServeError):
    """Prior plans are damaged, or were named explicitly and are not of this model."""


class RequestError(KnapServeError):
    """The request cannot be served as it is; the client can fix it."""

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


class RequestFailedError(KnapServeError):
    """The engine could not serve this request; nobody else is affected."""


class ContextLengthError(RequestError):
    """Prompt and requested tokens do not fit into the model's context; `asked` says what was wanted."""

    def __init__(self, limit: int, asked: str, *, param: str) -> None:
        super().__init__(
            f"This model's maximum context length is {limit} tokens. However, {asked}. "
            "Please reduce the length of the prompt or of the completion.",
            param=param,
        )


class UnknownPolicyError(RequestError):
    """The request names a draft policy that does not exist."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(f"Unknown draft policy '{name}'. Known policies: {', '.join(known)}.", param="draft_policy")


class QueueFullError(KnapServeError):
    """As many requests wait as `--max-queued` allows."""

    def __init__(self, waiting: int, retry_after: int = 1) -> None:
        super().__init__(f"{waiting} requests are waiting already; try again later.")
        self.retry_after = retry_after


class EngineUnavailableError(KnapServeError):
    """The engine does not take requests now."""


class EngineDrainingError(EngineUnavailableError):
    """The engine is shutting down."""

    def __init__(self) -> None:
        super().__init__("The server is shutting down.")


class EngineDeadError(EngineUnavailableError):
    """The engine loop has failed; every waiting request gets this."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The engine has failed: {reason}")
