"""The exceptions of the engine. Clients can fix a RequestError, and retry after a QueueFullError."""

PAPERS = "those of published papers come with: pip install 'knapserve[papers]'"  # draft policies


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
    """A checkpoint cannot be loaded or is not supported.

    The message becomes one line that a terminal can show: it may quote whatever the checkpoint's author wrote.
    """

    def __init__(self, message: str) -> None:
        line = " ".join(message.split())
        if len(line) > 600:  # characters; the end says what would be right
            line = f"{line[:400]} … {line[-200:]}"
        super().__init__("".join(c if c.isprintable() else "\ufffd" for c in line))


class ProfileMismatchError(KnapServeError):
    """An explicitly named latency profile does not match this machine or model."""


class TunedFileError(KnapServeError):
    """A file of `knapserve tune` is damaged, or an explicitly named one does not match this model."""


class PolicyUnavailableError(KnapServeError):
    """A draft policy lacks something that it needs on this machine or for this model."""


class RequestError(KnapServeError):
    """The request is invalid or not supported. `param` names the field, if there is one."""

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


class RequestFailedError(KnapServeError):
    """The engine failed to serve one request. Other requests are not affected."""


class PromptError(RequestError):
    """The prompt is at fault. `param` is "prompt", for which an API has its own name."""

    def __init__(self, message: str, *, param: str = "prompt") -> None:
        super().__init__(message, param=param)


class ContextLengthError(PromptError):
    """Prompt and completion together exceed the model's context length, all in tokens.

    `completion` is None if the request sets no limit. `characters`: those of a prompt that is too long to be tokenised.
    """

    def __init__(
        self, limit: int, prompt: int = 0, completion: int | None = None, *, param: str, characters: int = 0
    ) -> None:
        self.limit = limit
        self.requested = limit + 1 if characters else prompt + (completion or 0)  # a lower bound
        rest = "leaving no room for a completion" if completion is None else f"{completion} in the completion"
        asked = f"you requested {self.requested} tokens ({prompt} in the {param}, {rest})"
        if characters:
            asked = f"your prompt has {characters} characters, more than {limit} tokens can hold"
        super().__init__(
            f"This model's maximum context length is {limit} tokens. However, {asked}. "
            "Please reduce the length of the prompt or of the completion.",
            param=param,
        )


class UnknownPolicyError(RequestError):
    """The request names a draft policy that does not exist, or one that is not available, for a `reason`."""

    def __init__(self, name: str, available: tuple[str, ...], reason: str = "") -> None:
        problem = f"Draft policy '{name}' is not available: {reason}." if reason else f"Unknown draft policy '{name}'."
        names = ", ".join(available)
        others = f"Available policies: {names}." if reason else f"Known policies: {names}; {PAPERS}."
        super().__init__(f"{problem} {others}", param="draft_policy")


class QueueFullError(KnapServeError):
    """The queue is full (`--max-queued`)."""

    def __init__(self, waiting: int, retry_after: int = 1) -> None:
        super().__init__(f"The queue is full with {waiting} waiting requests; try again later.")
        self.retry_after = retry_after


class EngineUnavailableError(KnapServeError):
    """The engine does not accept requests now."""


class EngineDrainingError(EngineUnavailableError):
    """The engine is shutting down."""

    def __init__(self) -> None:
        super().__init__("The server is shutting down.")


class EngineRestartingError(EngineUnavailableError):
    """The engine has failed and is being started again."""

    def __init__(self) -> None:
        super().__init__("The engine is restarting.")


class EngineDeadError(EngineUnavailableError):
    """The engine has failed. Every running and waiting request gets this error."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The engine has failed: {reason}")
