"""Write to stderr: one line per log record, as text or JSON, with fields (`extra={"facts": …}`); progress bars."""

from __future__ import annotations

import json
import logging
import logging.config
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any


def get_facts(record: logging.LogRecord) -> Mapping[str, Any]:
    """Return the structured fields of a record."""
    facts: Mapping[str, Any] = getattr(record, "facts", {})
    return facts


class TextFormatter(logging.Formatter):
    """Format the message, then the facts as `name=value`."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        facts = (f" {name}={_format_value(value)}" for name, value in get_facts(record).items())
        return super().formatMessage(record) + "".join(facts)


class JSONFormatter(logging.Formatter):
    """Format an object with time (UTC), level, logger, message, the facts and a traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        entry = {
            "time": f"{seconds}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **get_facts(record),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


def _format_value(value: object) -> str:
    """Format a value: text in quotes unless it is one word, numbers as such, other values as JSON."""
    if not isinstance(value, str):
        return f"{value:.4g}" if isinstance(value, float) else json.dumps(value, default=str)
    return value if value and not set(value) & set(' "=\n\r\t') else json.dumps(value)


def configure_logging(level: str, style: str) -> None:
    """Log to stderr in `style` "text" or "json". Libraries log warnings and errors only."""
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


def progress_bar(title: str) -> Callable[[float], None]:
    """Return a function that shows the share done, 0 to 1, if the work takes longer than half a second.

    Nothing is shown if stderr is not a terminal.
    """
    from tqdm import tqdm

    bar = tqdm(total=100, desc=title, unit="%", leave=False, delay=0.5, disable=not sys.stderr.isatty())

    def show(share: float) -> None:
        bar.update(round(100 * share) - bar.n)
        if share >= 1:
            bar.close()

    return show
