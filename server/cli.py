"""The command line. Modules that import torch or FastAPI are imported by the subcommands that need them."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from engine.clock import SystemClock
from engine.config.engine import EngineConfig
from engine.errors import ConfigError, EngineUnavailableError, KnapServeError
from server.config import ServerConfig
from server.edge.lifecycle import version
from server.settings import Settings, add_arguments

if TYPE_CHECKING:
    from engine.api import Engine

    Meanwhile = Callable[[], object]
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


def main(argv: Sequence[str] | None = None) -> int:
    """Run `knapserve`. Returns the exit code: 1 for a failure while running, 2 for invalid arguments or settings."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    args = _parser(arguments).parse_args(arguments)
    try:
        if args.command == "serve":
            return _serve(args)
        # All subcommands accept all settings, so that they can share one file.
        config = Settings.read((ServerConfig, EngineConfig), args, os.environ).build(EngineConfig)
        return int(import_module(args.module).run(args, config))
    except KnapServeError as error:
        print(f"knapserve: error: {error}", file=sys.stderr)
        return 1 if isinstance(error, EngineUnavailableError) else 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of the output has left; the interpreter must not report it again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


# The other commands: a help text, and the module that has `add_arguments` and `run`.
_COMMANDS = {
    "chat": ("chat with a running server in the terminal", "server.terminal.chat"),
    "models": ("list the models on this machine", "server.terminal.models"),
    "profile": ("measure the latency profile of this machine and model", "bench.profile"),
    "tune": ("search offline for draft plans", "bench.tune"),
    "bench compare": ("compare draft policies over domains, streams and context lengths", "bench.compare"),
    "bench decode": ("compare the decoding speed of draft policies", "bench.decode"),
    "bench gpu": ("test and measure a GPU within ten minutes, or predict its speed", "bench.gpu"),
    "bench kernels": ("time the kernels of a pass on a GPU", "bench.kernels"),
    "bench paper": ("repeat an experiment of the papers", "bench.paper"),
    "bench prefill": ("measure the speed of processing a long prompt", "bench.prefill"),
    "bench serve": ("measure the streaming speed of running servers", "bench.serve"),
}


def _parser(arguments: list[str]) -> argparse.ArgumentParser:
    """Build the parser. Only the subcommand in use gets its arguments, as some import the engine for them."""
    parser = argparse.ArgumentParser(
        prog="knapserve", description="OpenAI-compatible inference server with self-speculative decoding."
    )
    parser.add_argument("--version", action="version", version=f"knapserve {version()}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    policies = "--help-policies" in arguments
    serve = _command(commands, "serve", "serve a model with an OpenAI-compatible HTTP API")
    if arguments[:1] == ["serve"]:
        serve.usage = "knapserve serve [MODEL] [settings]"
        serve.add_argument("positional_model", nargs="?", metavar="MODEL", help="the same as --model")
        _add_settings(serve, ServerConfig, EngineConfig, baselines=policies)
    bench = _command(commands, "bench", "run a benchmark")
    measures = bench.add_subparsers(dest="measure", required=True, metavar="BENCHMARK")
    for name, (summary, module) in _COMMANDS.items():
        own = _command(measures if name.startswith("bench ") else commands, name.removeprefix("bench "), summary)
        if " ".join(arguments[: len(name.split())]) == name:
            import_module(module).add_arguments(own)
            if module.startswith("bench."):
                _add_settings(own, EngineConfig, baselines=policies)
            own.set_defaults(module=module)
    return parser


def _command(commands: Subparsers, name: str, summary: str) -> argparse.ArgumentParser:
    description = f"{summary[0].upper()}{summary[1:]}."
    return commands.add_parser(name, help=summary, description=description, allow_abbrev=False)


def _add_settings(parser: argparse.ArgumentParser, *kinds: type, baselines: bool) -> None:
    parser.add_argument(
        "--config", metavar="FILE", help="TOML file with settings; the environment and flags take precedence"
    )
    parser.add_argument("--help-policies", action="help", help="show the settings of the baseline policies and exit")
    for kind in kinds:
        add_arguments(parser, kind, baselines=baselines)


def _serve(args: argparse.Namespace) -> int:
    if args.positional_model is not None:
        if getattr(args, "model", args.positional_model) != args.positional_model:
            raise ConfigError(f"MODEL is {args.positional_model}, but --model is {args.model}; name one of them")
        args.model = args.positional_model
    settings = Settings.read((ServerConfig, EngineConfig), args, os.environ)
    config, engine_config = settings.build(ServerConfig), settings.build(EngineConfig)

    from engine.architecture.spec import load_spec
    from engine.checkpoints import hub, shapes
    from engine.logs import configure_logging
    from server.edge.listen import listening, tls_context

    # What can be known of the model without torch fails here.
    model = engine_config.model
    if model is not None and model.startswith(hub.SYNTHETIC):
        shapes.parse(model)
    elif (path := hub.resolve(model, download=False)).is_dir():
        load_spec(path)
    tls = tls_context(config)
    configure_logging(config.log_level, config.log_format)
    with ExitStack() as stack:
        if threading.current_thread() is threading.main_thread():
            # Until the server installs its own handler: a container's first process ignores what it does not handle.
            before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
            stack.callback(signal.signal, signal.SIGTERM, before)
        try:
            listener = stack.enter_context(listening(config))
        except OSError as error:
            where = config.uds or f"{config.host}:{config.port}"
            print(f"knapserve: error: cannot listen on {where}: {error.strerror or error}", file=sys.stderr)
            return 1
        with _start_engine(config, engine_config) as ready:
            from server.loading import answer_while_loading

            with answer_while_loading(listener, tls, config.header_timeout):
                # Importing the server before the tokenizer is read would raise the peak of memory by 10 MB.
                engine = ready(lambda: import_module("server.serve"))
                from server.serve import run
        return run(engine, config, listener, tls)


@contextmanager
def _start_engine(config: ServerConfig, engine_config: EngineConfig) -> Iterator[Callable[[Meanwhile], Engine]]:
    """Start to load the engine, and yield a function that waits for it. Raises KnapServeError.

    The function may call another one meanwhile, once it has read the tokenizer.
    """
    if config.engine == "thread":
        from engine.host.thread import build_engine

        yield lambda _: build_engine(engine_config)
        return
    from engine.host.process import EngineLaunch
    from engine.host.restarting import RestartingEngine

    launch = partial(EngineLaunch, engine_config, log_level=config.log_level, log_format=config.log_format)
    with launch() as launched:
        if config.restart:
            yield lambda meanwhile: RestartingEngine(launched.ready(meanwhile), launch, SystemClock())
        else:
            yield launched.ready
