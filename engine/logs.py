"""Logs: a line a record, as text or as JSON, with facts of their own (`extra={"facts": …}`)."""

from __future__ import annotations

import json
import logging
import logging.config
import time
from collections.abc import Mapping
from typing import Any


def facts_of(record: logging.LogRecord) -> Mapping[str, Any]:
    found: Mapping[str, Any] = getattr(record, "facts", {})
    return found


class TextFormatter(logging.Formatter):
    """The message, then the facts as `name=value`."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        facts = (f" {name}={_shown(value)}" for name, value in facts_of(record).items())
        return super().formatMessage(record) + "".join(facts)


class JSONFormatter(logging.Formatter):
    """One object: time (UTC), level, logger, message, the facts, and the traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        entry = {
            "time": f"{seconds}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **facts_of(record),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


def _shown(value: object) -> str:
    """Text is quoted where it would not be one word; what is neither text nor a number is JSON."""
    if not isinstance(value, str):
        return f"{value:.4g}" if isinstance(value, float) else json.dumps(value, default=str)
    return value if value and not set(value) & set(' "=\n\r\t') else json.dumps(value)


def configure_logging(level: str, style: str) -> None:
    """All logs to stderr, one line each (`style` text or json); those of libraries only from warnings on."""
    formatter = {"()": JSONFormatter if style == "json" else TextFormatter}
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {"line": formatter},
            "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
            "root": {"level": "WARNING", "handlers": ["stderr"]},
            "loggers": {name: {"level": level.upper()} for name in ("knapserve", "engine", "profiles")},
        }
    )
