"""The command line. Modules that import torch or FastAPI are imported by the subcommands that need them."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from engine.clock import SystemClock
from engine.config.engine import EngineConfig
from engine.errors import ConfigError, EngineUnavailableError, KnapServeError
from server.config import ServerConfig
from server.http.lifecycle import version
from server.settings import Settings, add_arguments

if TYPE_CHECKING:
    from engine.api import Engine

    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


def main(argv: Sequence[str] | None = None) -> int:
    """Run `knapserve`. Returns the exit code: 1 for a failure while running, 2 for invalid arguments or settings."""
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


# Commands that measure: help text, and the module with their `add_arguments` and `run`.
_MEASUREMENTS = {
    "profile": ("measure the latency profile of this machine and model", "bench.profile"),
    "tune": ("search offline for draft plans", "bench.tune"),
}
_BENCHES = {
    "compare": ("compare all draft policies over domains, mixed streams and context lengths", "bench.compare.run"),
    "decode": ("compare the decoding speed of draft policies", "bench.decode"),
    "hostile": ("send hostile requests to a running server, with a probe beside them", "bench.hostile.run"),
    "prefill": ("measure the speed of processing a long prompt", "bench.prefill"),
    "serve": ("measure the streaming speed of running servers", "bench.serve"),
}


def _parser(command: list[str]) -> argparse.ArgumentParser:
    """Build the parser. Only the subcommand in use gets its arguments, as some import the engine for them."""
    parser = argparse.ArgumentParser(
        prog="knapserve", description="OpenAI-compatible inference server with self-speculative decoding."
    )
    parser.add_argument("--version", action="version", version=f"knapserve {version()}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    serve = _command(commands, "serve", "serve a model with an OpenAI-compatible HTTP API")
    if command[:1] == ["serve"]:
        serve.add_argument("positional_model", nargs="?", metavar="MODEL", help="the same as --model")
        _add_settings(serve, ServerConfig, EngineConfig)
    bench = _command(commands, "bench", "run a benchmark")
    measures = bench.add_subparsers(dest="measure", required=True, metavar="BENCHMARK")
    for name, (summary, module) in _MEASUREMENTS.items():
        _add_measure(_command(commands, name, summary), module if command[:1] == [name] else None)
    for name, (summary, module) in _BENCHES.items():
        _add_measure(_command(measures, name, summary), module if command == ["bench", name] else None)
    return parser


def _add_measure(parser: argparse.ArgumentParser, module: str | None) -> None:
    """Add the arguments of a measuring command if it is in use, that is, `module` is not None."""
    if module is not None:
        import_module(module).add_arguments(parser)
        _add_settings(parser, EngineConfig)
        parser.set_defaults(module=module)


def _command(commands: Subparsers, name: str, summary: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.", allow_abbrev=False
    )
    return parser


def _add_settings(parser: argparse.ArgumentParser, *kinds: type) -> None:
    parser.add_argument(
        "--config", metavar="FILE", help="TOML file with settings; the environment and flags take precedence"
    )
    for kind in kinds:
        add_arguments(parser, kind)


def _read_settings(args: argparse.Namespace) -> Settings:
    # All subcommands accept all settings, so that they can share one file.
    return Settings.read((ServerConfig, EngineConfig), args, os.environ)


def _serve(args: argparse.Namespace) -> int:
    if args.positional_model is not None:
        if getattr(args, "model", args.positional_model) != args.positional_model:
            raise ConfigError(f"MODEL is {args.positional_model}, but --model is {args.model}; name one of them")
        args.model = args.positional_model
    settings = _read_settings(args)
    config, engine_config = settings.build(ServerConfig), settings.build(EngineConfig)

    from engine.architecture.spec import load_spec
    from engine.checkpoints import hub, shapes
    from engine.checkpoints.default import find_default_model
    from engine.logs import configure_logging
    from server.http.listen import listening, tls_context

    # What can be known of the model without torch fails here.
    model = engine_config.model
    if model is None:
        find_default_model()
    elif model.startswith(hub.SYNTHETIC):
        shapes.parse(model)
    elif (path := hub.resolve(model, download=False)).is_dir():
        load_spec(path)
    tls = tls_context(config)
    configure_logging(config.log_level, config.log_format)
    with ExitStack() as stack:
        try:
            stack.enter_context(_exits_on_sigterm())
            listener = stack.enter_context(listening(config))
        except OSError as error:
            where = config.uds or f"{config.host}:{config.port}"
            print(f"knapserve: error: cannot listen on {where}: {error.strerror or error}", file=sys.stderr)
            return 1
        with _start_engine(config, engine_config) as ready:
            from server.http.loading import answer_while_loading

            with answer_while_loading(listener, tls):
                from server.http.serve import run

                engine = ready()
        return run(engine, config, listener, tls)


@contextmanager
def _exits_on_sigterm() -> Iterator[None]:
    """Exit on SIGTERM until the server installs its own handler.

    The first process of a container ignores signals for which it has no handler.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _start_engine(config: ServerConfig, engine_config: EngineConfig) -> Iterator[Callable[[], Engine]]:
    """Start to load the engine, and yield a function that waits for it. Raises KnapServeError."""
    if config.engine == "thread":
        from engine.host.thread import build_engine

        yield lambda: build_engine(engine_config)
        return
    from engine.host.process import EngineLaunch

    def launch() -> EngineLaunch:
        return EngineLaunch(engine_config, log_level=config.log_level, log_format=config.log_format)

    def ready() -> Engine:
        engine = launched.ready()
        if not config.restart:
            return engine
        from engine.host.restarting import RestartingEngine

        return RestartingEngine(engine, launch, SystemClock())

    with launch() as launched:
        yield ready
