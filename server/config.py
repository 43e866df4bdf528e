"""Settings of the HTTP server, loaded by `server.settings`."""

import re
from dataclasses import dataclass
from pathlib import Path

from engine.config.fields import check, flag, parse_bytes, parse_file, setting
from engine.errors import ConfigError
from server.tool_formats import TOOL_FORMATS

LOG_LEVELS = ("debug", "info", "warning", "error")
# Endpoints that generate. Their requests are logged, and have metrics from the start.
GENERATING = ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages")
_SECONDS = (0, 86400)


def _read_keys(text: str) -> tuple[str, ...]:
    """Read a file of API keys, one a line. Raises ConfigError."""
    lines = [line.strip() for line in parse_file(text).read_text("utf-8-sig", "replace").splitlines()]
    keys = tuple(line for line in lines if line and not line.startswith("#"))
    if not keys or not all(re.fullmatch("[!-~]+", key) for key in keys):
        raise ConfigError(f"{text} must have one key a line, at least one, each a word of ASCII characters")
    return keys


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """Settings of the HTTP server. Times are in seconds, sizes in bytes."""

    host: str = setting("127.0.0.1", "address to listen on", group="address")
    port: int = setting(8000, "port to listen on; 0: any free port", limits=(0, 65535))
    uds: Path | None = setting(None, "Unix socket to listen on, instead of --host and --port")
    ssl_certfile: Path | None = setting(None, "PEM file with the certificate: serve HTTPS", parse=parse_file)
    ssl_keyfile: Path | None = setting(
        None, "PEM file with the certificate's private key; default: --ssl-certfile", parse=parse_file
    )
    ssl_keyfile_password: str = setting("", "password of an encrypted private key")
    cors_origins: tuple[str, ...] = setting((), "origins of pages that may call the API ('*': all); default: none")
    api_key: tuple[str, ...] = setting((), "accepted bearer keys; default: no authentication", group="API keys")
    api_key_file: tuple[str, ...] = setting(
        (), "file with further accepted keys, one a line; blank lines and lines that begin with # are ignored",
        parse=_read_keys,
    )  # fmt: skip
    isolate_api_keys: bool = setting(False, "let only requests with the same API key share cached prefixes")
    metrics_auth: bool = setting(False, "require an API key on /metrics")
    max_n: int = setting(128, "maximum number of choices per prompt (parameter n)", limits=(1, 128), group="API")
    served_model_name: tuple[str, ...] = setting(
        (), "names of the model in the API; requests without a name get the first. Default: the model's own name"
    )
    tool_call_parser: str = setting(
        "auto",
        "format of tool calls in the model's text; auto: detected from the chat template",
        choices=("auto", "none", *TOOL_FORMATS),
    )
    reasoning_parser: str = setting(
        "auto",
        "format of reasoning in the model's text; auto: detected from the chat template",
        choices=("auto", "none", "think"),
    )
    spelled_markers: str = setting(
        "text",
        "special tokens spelled in the messages of a chat: plain text, or tokens, which can forge turns",
        choices=("text", "tokens"),
    )
    scheduling_policy: str = setting(
        "fcfs",
        "order of waiting requests: equal shares for API keys and their requests, then first come, first served "
        "(fcfs); or first by the parameter priority",
        choices=("fcfs", "priority"),
    )
    max_body_size: int = setting(
        16 * 2**20,
        "maximum size of a request body, in bytes or with a unit (16MiB)",
        parse=parse_bytes,
        limits=(1, 2**40),
    )
    max_body_values: int = setting(
        200_000, "maximum number of JSON values in a request body, token ids included", limits=(1, 2**40)
    )
    header_timeout: float = setting(
        10.0, "seconds in which the head of a request, or a TLS handshake, must arrive", limits=(0.1, 86400)
    )
    response_store: int = setting(
        0,
        "most memory for stored responses (Responses API), which later requests can continue, in bytes or with a unit "
        "(64MiB); 0: none are stored",
        parse=parse_bytes,
        limits=(0, 2**40),
    )
    keepalive_seconds: float = setting(
        15.0, "seconds without data after which a stream sends a keep-alive comment", limits=(0.01, 86400)
    )
    engine: str = setting(
        "process",
        "run the engine in its own process, or in a thread of the server (less memory, slower with small models)",
        choices=("process", "thread"),
        group="process",
    )
    restart: bool = setting(
        False, "start an engine that has failed again, instead of ending the server; meanwhile requests get status 503"
    )
    heartbeat_timeout: float = setting(
        30.0, "seconds without a heartbeat after which the engine counts as failed", limits=(2, 86400)
    )
    shutdown_timeout: float = setting(30.0, "seconds for running requests to finish after SIGTERM", limits=_SECONDS)
    log_level: str = setting("info", "lowest severity of logged messages", choices=LOG_LEVELS, group="log")
    log_format: str = setting("text", "format of log lines", choices=("text", "json"))
    log_requests: bool = setting(True, "log a line for each generation request")
    log_prompts: bool = setting(False, "include the text of prompts in the lines of --log-requests")
    log_stats_interval: float = setting(
        10.0, "seconds between log lines with the throughput while requests run; 0: never", limits=_SECONDS
    )

    def __post_init__(self) -> None:
        check(self)
        object.__setattr__(self, "api_key", tuple(dict.fromkeys(self.api_key + self.api_key_file)))
        for name in ("api_key", "served_model_name", "cors_origins"):
            if not all(getattr(self, name)):
                raise ConfigError(f"{flag(name)} must not contain an empty value")
        if self.ssl_certfile is None and (self.ssl_keyfile is not None or self.ssl_keyfile_password):
            raise ConfigError("--ssl-keyfile and --ssl-keyfile-password require --ssl-certfile")
        if self.restart and self.engine == "thread":
            raise ConfigError("--restart requires --engine process")
        for name in ("metrics_auth", "isolate_api_keys"):
            if getattr(self, name) and not self.api_key:
                raise ConfigError(f"{flag(name)} requires at least one --api-key")
