"""The server's own settings; `server.settings` fills them from file, environment and flags."""

from __future__ import annotations

from dataclasses import dataclass

from engine.config import check, parse_bytes, setting
from engine.errors import ConfigError
from server.openai.replies.calls import TOOL_FORMATS

LOG_LEVELS = ("debug", "info", "warning", "error")
_SECONDS = (0, 86400)


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """How the HTTP side behaves. Times are in seconds, sizes in bytes."""

    host: str = setting("127.0.0.1", "address to listen on")
    port: int = setting(8000, "port to listen on; 0 takes a free one", limits=(0, 65535))
    engine: str = setting(
        "process",
        "where the engine runs: a process of its own, or a thread of this one (less memory, slower for small models)",
        choices=("process", "thread"),
    )
    api_key: tuple[str, ...] = setting((), "bearer keys, any of which opens /v1/*; none: open to all")
    served_model_name: tuple[str, ...] = setting((), "names the model answers to, the first of which replies carry")
    tool_call_parser: str = setting(
        "auto",
        "how tool calls are told from text; auto: by the model's chat template",
        choices=("auto", "none", *TOOL_FORMATS),
    )
    reasoning_parser: str = setting(
        "auto",
        "how reasoning is told from the answer; auto: by the model's chat template",
        choices=("auto", "none", "think"),
    )
    max_body_size: int = setting(
        16 * 2**20, "largest request body, in bytes or as 16MiB", parse=parse_bytes, limits=(1, 2**40)
    )
    max_n: int = setting(128, "most choices a request may ask for per prompt", limits=(1, 128))
    shutdown_timeout: float = setting(
        30.0, "seconds that running requests get to finish after SIGTERM", limits=_SECONDS
    )
    cors_origins: tuple[str, ...] = setting((), "origins that browsers may call from ('*' for all); none: closed")
    metrics_auth: bool = setting(False, "require an API key on /metrics too")
    keepalive_seconds: float = setting(
        15.0, "seconds of silence after which a stream gets a keep-alive comment", limits=(0.01, 86400)
    )
    heartbeat_timeout: float = setting(
        30.0, "seconds without a sign of life from the engine until /health is 503", limits=(2, 86400)
    )
    log_level: str = setting("info", "least severe messages that are logged", choices=LOG_LEVELS)
    log_format: str = setting("text", "how a log line is written", choices=("text", "json"))
    log_requests: bool = setting(True, "log a line for each request that generates")
    log_prompts: bool = setting(False, "with the text of its prompts")
    log_stats_interval: float = setting(
        10.0, "seconds between lines on throughput while requests run; 0: none", limits=_SECONDS
    )

    def __post_init__(self) -> None:
        check(self)
        for name in ("api_key", "served_model_name", "cors_origins"):
            if not all(getattr(self, name)):
                raise ConfigError(f"{name}: an empty value is not allowed")
        if self.metrics_auth and not self.api_key:
            raise ConfigError("metrics_auth needs at least one api_key")
