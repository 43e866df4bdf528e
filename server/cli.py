"""The command line. Nothing heavy is imported before a subcommand needs it."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from engine.api import Engine
from engine.config import EngineConfig
from engine.errors import EngineUnavailableError, KnapServeError
from server.config import ServerConfig
from server.http.lifecycle import version
from server.settings import Settings, add_arguments


def main(argv: Sequence[str] | None = None) -> int:
    """Run `knapserve`; the exit code. 2: the arguments or settings do not fit; 1: it failed while running."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    args = _parser(arguments[:2]).parse_args(arguments)
    try:
        if args.command == "serve":
            return _serve(args)
        config = _read_settings(args).build(EngineConfig)
        return int(import_module(args.module).run(args, config))
    except KnapServeError as error:
        print(f"knapserve: error: {error}", file=sys.stderr)
        return 1 if isinstance(error, EngineUnavailableError) else 2
    except KeyboardInterrupt:
        return 130


# Commands that measure: what they do, and the module that has their `add_arguments` and `run`.
_MEASURES = {
    "profile": ("measure what passes cost on this machine", "bench.profile"),
    "tune": ("search offline for the plans to begin with", "bench.tune"),
}
_BENCHES = {
    "decode": ("decoding speed, draft policies side by side", "bench.decode"),
    "prefill": ("speed of reading a long prompt", "bench.prefill"),
    "serve": ("load against a running server", "bench.serve"),
}


def _parser(command: list[str]) -> argparse.ArgumentParser:
    """The parser. Only the subcommand in use gets its arguments, for some ask the engine for them."""
    parser = argparse.ArgumentParser(prog="knapserve", description="Serve a language model that drafts for itself.")
    parser.add_argument("--version", action="version", version=f"knapserve {version()}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    serve = _command(commands, "serve", "serve a model over HTTP, with OpenAI's API")
    if command[:1] == ["serve"]:
        _add_settings(serve, ServerConfig, EngineConfig)
    bench = _command(commands, "bench", "measure")
    measures = bench.add_subparsers(dest="measure", required=True, metavar="WHAT")
    for name, (does, module) in _MEASURES.items():
        _add_measure(_command(commands, name, does), module if command[:1] == [name] else None)
    for name, (does, module) in _BENCHES.items():
        _add_measure(_command(measures, name, does), module if command == ["bench", name] else None)
    return parser


def _add_measure(parser: argparse.ArgumentParser, module: str | None) -> None:
    """Arguments of a command that measures, if it is in use."""
    if module is not None:
        import_module(module).add_arguments(parser)
        _add_settings(parser, EngineConfig)
        parser.set_defaults(module=module)


def _command(commands: Any, name: str, does: str) -> argparse.ArgumentParser:
    """A subcommand's parser. `commands`: what `add_subparsers` made."""
    made: argparse.ArgumentParser = commands.add_parser(
        name, help=does, description=f"{does[0].upper()}{does[1:]}.", allow_abbrev=False
    )
    return made


def _add_settings(parser: argparse.ArgumentParser, *kinds: type) -> None:
    parser.add_argument("--config", metavar="FILE", help="TOML file of settings; environment and flags win")
    for kind in kinds:
        add_arguments(parser, kind)


def _read_settings(args: argparse.Namespace) -> Settings:
    # One file may serve all subcommands: each takes what concerns it, and all know every key.
    return Settings.read((ServerConfig, EngineConfig), args, os.environ)


def _serve(args: argparse.Namespace) -> int:
    settings = _read_settings(args)
    config, engine_config = settings.build(ServerConfig), settings.build(EngineConfig)

    from engine.logs import configure_logging

    configure_logging(config.log_level, config.log_format)
    try:
        listener = bind(config.host, config.port)
    except OSError as error:
        print(f"knapserve: error: cannot listen on {config.host}:{config.port}: {error.strerror}", file=sys.stderr)
        return 1
    with listener, _ended_by_sigterm():
        with _loading(config, engine_config) as ready:
            from server.http.loading import Loading

            with Loading(listener):
                from server.http.serve import run

                engine = ready()
        return run(engine, config, listener)


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens: a taken port is found before the model is loaded. Raises OSError."""
    family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
    return socket.create_server(address, family=family, dualstack_ipv6=both)


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Until the server has its own handler, SIGTERM ends the process, also where it is the first one of a container:
    such a process only gets the signals that it asks for."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _loading(config: ServerConfig, engine_config: EngineConfig) -> Iterator[Callable[[], Engine]]:
    """What waits for the engine, which a process of its own loads from now on. Raises KnapServeError."""
    if config.engine == "thread":
        from engine.host.thread import build_engine

        yield lambda: build_engine(engine_config)
        return
    from engine.host.process import EngineLaunch

    with EngineLaunch(engine_config, log_level=config.log_level, log_format=config.log_format) as launch:
        yield launch.ready
