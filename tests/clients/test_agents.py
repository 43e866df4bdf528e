"""Codex CLI and Claude Code write a file, with an engine that calls their tools by a script.

Models of the size that runs here cannot do that by themselves.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.types import GenerateRequest, TokenEvent
from server.config import ServerConfig
from tests.support import REPOSITORY
from tests.support.fake import INFO, FakeEngine
from tests.support.harness import Live

COMMANDS = REPOSITORY / "build" / "clients" / "node_modules" / ".bin"
WRITE = "printf hello > hello.txt"
ARGUMENTS = {"exec_command": {"cmd": WRITE}, "shell": {"command": ["sh", "-c", WRITE]}, "Bash": {"command": WRITE}}
pytestmark = pytest.mark.nightly


class WritingEngine(FakeEngine):
    """Calls the client's tool for commands once, then ends."""

    info = replace(INFO, max_model_len=1 << 20)

    def submit(self, request: GenerateRequest) -> AsyncIterator[TokenEvent]:
        text = bytes(request.prompt).decode()
        name = next((name for name in ARGUMENTS if f'"name": "{name}"' in text), None)
        said = "Done."
        if name is not None and "<tool_response>" not in text:
            call = json.dumps({"name": name, "arguments": ARGUMENTS[name]})
            said = f"<tool_call>\n{call}\n</tool_call>"
        self.script = tuple(said[i : i + 7] for i in range(0, len(said), 7))
        return super().submit(request)


@pytest.fixture
def live() -> Iterator[Live]:
    live = Live(WritingEngine(), ServerConfig(served_model_name=("ours",)))
    yield live
    live.close()


def run(name: str, arguments: list[str], directory: Path, **environ: str) -> None:
    if not (COMMANDS / name).exists():
        pytest.skip("needs `make clients` and npm")
    inherited: dict[str, Any] = os.environ | environ | {"HOME": str(directory / "home")}
    work = directory / "work"
    (directory / "home").mkdir()
    work.mkdir()
    done = subprocess.run(
        [str(COMMANDS / name), *arguments],
        cwd=work,
        env=inherited,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Done." in done.stdout
    assert (work / "hello.txt").read_text() == "hello"


def test_codex_writes_a_file(live: Live, tmp_path: Path) -> None:
    provider = f'{{name = "ours", base_url = "{live.url}/v1", wire_api = "responses"}}'
    settings = ["-c", 'model="ours"', "-c", 'model_provider="ours"', "-c", f"model_providers.ours={provider}"]
    flags = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    run("codex", ["exec", *settings, *flags, "Write hello into hello.txt"], tmp_path)


def test_claude_code_writes_a_file(live: Live, tmp_path: Path) -> None:
    environ = {"ANTHROPIC_BASE_URL": live.url, "ANTHROPIC_AUTH_TOKEN": "none", "ANTHROPIC_MODEL": "ours"}
    environ |= {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "IS_SANDBOX": "1"}
    run("claude", ["-p", "Write hello into hello.txt", "--dangerously-skip-permissions"], tmp_path, **environ)
