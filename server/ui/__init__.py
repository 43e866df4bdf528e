"""The built-in page: one document, with its styles, scripts and vendored libraries inlined."""

import base64
import hashlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent
_STYLE = re.compile(r'<link rel="stylesheet" href="([\w./]+)">')
_SCRIPT = re.compile(r'<script src="([\w./]+)"></script>')


@dataclass(frozen=True)
class Document:
    html: str
    policy: str  # the Content-Security-Policy of the page


@cache
def document() -> Document:
    """Return the page. Its policy admits its own scripts by their hashes, and connections to this server only."""
    hashes = []

    def inline_script(match: re.Match[str]) -> str:
        text = _read(match[1])
        assert not re.search(r"</?script", text, re.IGNORECASE), f"{match[1]} would end its element early"
        hashes.append(f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'")
        return f"<script>{text}</script>"

    html = _STYLE.sub(lambda match: f"<style>{_read(match[1])}</style>", _read("page.html"))
    html = _SCRIPT.sub(inline_script, html)
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {' '.join(hashes)}; connect-src 'self'; "
        "img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    )
    return Document(html, policy)


def _read(name: str) -> str:
    return (_FOLDER / name).read_text("utf-8")
