"""The documentation names files, symbols, commands, parameters and endpoints that exist."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from tests.support import REPOSITORY as ROOT

PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
CURRENT = [page for page in PAGES if not page.startswith("docs/notes/")]  # notes may name files of the past
OUTSIDE = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "examples/README.md", "profiles/README.md"]  # of the site
FOLDERS = {path.name for path in ROOT.iterdir() if path.is_dir()}
FILES = {path.name for path in ROOT.iterdir() if path.is_file()}


@cache
def text_of(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


def code_spans(text: str) -> list[str]:
    """Inline code, without that of fenced and indented blocks."""
    fenced = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"`([^`\n]+)`", re.sub(r"^ {4}.*$", "", fenced, flags=re.MULTILINE))


def is_path(span: str) -> bool:
    """Whether a code span names a file or folder of the repository."""
    first, slash, _ = span.partition("/")
    return bool(re.fullmatch(r"[\w.*/-]+", span)) and (first in FOLDERS if slash else span in FILES)


@pytest.mark.parametrize("page", [*CURRENT, *OUTSIDE])
def test_every_path_in_a_code_span_exists(page: str) -> None:
    paths = [span for span in code_spans(text_of(page)) if is_path(span)]
    assert [path for path in paths if not list(ROOT.glob(path.rstrip("/")))] == []
    assert paths or page != "docs/architecture.md"


def test_every_path_in_the_diagram_exists() -> None:
    diagram = re.findall(r"^```mermaid$(.*?)^```$", text_of("docs/architecture.md"), re.MULTILINE | re.DOTALL)
    paths = re.findall(r"(?:engine|server)/[\w./]+", "".join(diagram))
    assert len(paths) > 5
    assert [path for path in paths if not (ROOT / path).exists()] == []


def symbols_of(file: str) -> set[str]:
    """Names of the top level of a module, and of its classes as `Class.method`."""
    symbols: set[str] = set()
    for node in ast.parse(text_of(file)).body:
        if isinstance(node, ast.ClassDef):
            symbols |= {f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
            symbols |= {f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.AsyncFunctionDef)}
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            symbols.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            symbols.add(node.target.id)
    return symbols


def test_every_concept_is_where_the_architecture_says() -> None:
    rows = re.findall(r"^\| .* \| `([^`]+)` \| `([^`]+)` \|$", text_of("docs/architecture.md"), re.MULTILINE)
    assert len(rows) > 40
    assert [f"{file}: {symbol}" for file, symbol in rows if symbol not in symbols_of(file)] == []


def test_twins_in_python_and_cpp_name_each_other() -> None:
    """A comment `twin: file, function` stands before each of two functions that must stay equal."""
    pattern = re.compile(r"(?:#|//) twin: (\S+), (\w+)\n(?=(?:.*twin: .*\n)*.*?(\w+)\()")
    twins = {
        ((str(path.relative_to(ROOT)), found[3]), (found[1], found[2]))
        for path in sorted((ROOT / "engine").rglob("*"))
        if path.suffix in (".py", ".h")
        for found in pattern.finditer(path.read_text("utf-8"))
    }
    assert len(twins) > 10
    assert {(twin, one) for one, twin in twins} == twins


def test_every_method_that_the_architecture_names_exists() -> None:
    named = set(re.findall(r"`([A-Z]\w+\.\w+)`", text_of("docs/architecture.md")))
    assert len(named) > 20
    files = [
        path
        for package in ("engine", "server", "papers", "bench", "profiles")
        for path in (ROOT / package).rglob("*.py")
    ]
    known = {symbol for path in files for symbol in symbols_of(str(path.relative_to(ROOT)))}
    assert named - known == {"Class.method"}, "which names the form itself"


def test_the_layers_are_those_that_the_linter_enforces() -> None:
    linter = tomllib.loads(text_of("pyproject.toml"))["tool"]["importlinter"]
    stacks = [contract["layers"] for contract in linter["contracts"] if "containers" in contract]
    assert len(stacks) == 3
    for layers in stacks:
        assert "\n".join(["```text", *layers, "```"]) in text_of("docs/architecture.md")


@pytest.mark.parametrize("page", OUTSIDE)
def test_every_link_outside_the_site_leads_to_a_file(page: str) -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)", text_of(page)) if "://" not in link]
    assert [link for link in links if not (ROOT / page).parent.joinpath(link).exists()] == []


@pytest.mark.parametrize("page", [*CURRENT, *OUTSIDE])
def test_every_make_target_exists(page: str) -> None:
    targets = set(re.findall(r"^(\w+):", text_of("Makefile"), re.MULTILINE))
    assert set(re.findall(r"(?:`|^ {4})make (\w+)", text_of(page), re.MULTILINE)) <= targets


def test_every_endpoint_is_documented() -> None:
    from fastapi.routing import APIRoute

    from server.config import ServerConfig
    from server.routes import build_router

    routes = [route for route in build_router(ServerConfig()).routes if isinstance(route, APIRoute)]
    shown = {(method, route.path.replace(":path", "")) for route in routes for method in route.methods}
    documented = set(re.findall(r"^\| (GET|POST|DELETE) \| `([^`]+)` \|", text_of("docs/api.md"), re.MULTILINE))
    assert documented == shown | {("GET", "/openapi.json")}


def test_every_parameter_is_documented() -> None:
    from server.apis import bodies as schemas

    kinds = (
        schemas.ChatCompletionRequest,
        schemas.CompletionRequest,
        schemas.TokenizeRequest,
        schemas.DetokenizeRequest,
    )
    spans = set(code_spans(text_of("docs/api.md")))
    assert {name for kind in kinds for name in kind.model_fields} - spans == set()


def test_every_error_code_is_documented() -> None:
    sources = [path.read_text("utf-8") for path in Path(ROOT, "server").rglob("*.py")]
    named = re.compile(r'code="(\w+)"|unavailable\([^\n]+, "(\w+)"\)|, "(context_length_exceeded)"\)')
    codes = {"".join(found) for source in sources for found in named.findall(source)}
    assert len(codes) > 5
    assert codes - set(code_spans(text_of("docs/api.md"))) == set()


def flags_of(text: str) -> set[str]:
    """Long flags that a text names."""
    return set(re.findall(r"--[a-z]+(?:-[a-z]+)*(?![a-z-])", text))


def test_every_flag_of_the_guide_exists() -> None:
    import argparse
    import importlib

    from engine.config.engine import EngineConfig
    from server.config import ServerConfig
    from server.settings import add_arguments

    parser = argparse.ArgumentParser()
    for kind in (ServerConfig, EngineConfig):
        add_arguments(parser, kind, baselines=False)
    policies = argparse.ArgumentParser()
    add_arguments(policies, EngineConfig, baselines=True)
    flags = {"--config", "--help", "--help-policies"} | flags_of(parser.format_usage() + policies.format_usage())
    measures = [
        f"bench.{name}" for name in ("compare", "paper", "decode", "gpu", "prefill", "serve", "profile", "tune")
    ]
    for module in (*measures, "server.terminal.chat", "server.terminal.models"):
        command = argparse.ArgumentParser()
        importlib.import_module(module).add_arguments(command)
        flags |= flags_of(command.format_usage())
    pages = ("docs/guide.md", "docs/api.md", "docs/method.md", "docs/results.md", "docs/gpu.md")
    named = {flag for page in pages for span in code_spans(text_of(page)) for flag in flags_of(span)}
    assert named - flags - {"--no-deps"} == set()


def test_every_alert_is_documented_with_its_severity() -> None:
    alerts = re.findall(r"- alert: (\w+).*?severity: (\w+)", text_of("deploy/prometheus/rules/alerts.yml"), re.DOTALL)
    assert len(alerts) > 10
    assert set(re.findall(r"^\| (KnapServe\w+) \| (\w+) \|", text_of("docs/operations.md"), re.MULTILINE)) == set(
        alerts
    )
