"""`knapserve bench gpu`: test and measure a GPU in stages, each within its share of a limited time."""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import torch

from bench import gpu_model
from bench.files import check_writable, write
from bench.kernels import MODEL, known_device, spec_of
from bench.kernels import add_arguments as add_context_argument
from bench.prompts import numbers, positive
from bench.results import Row
from engine.config.engine import EngineConfig
from engine.config.fields import COUNT, flag
from engine.errors import ConfigError
from engine.runtime.loading.choices import choose_device
from engine.runtime.machine import hardware

_ROOT = Path(__file__).parents[1]
_PROGRAM = (sys.executable, "-c", "import sys; from server.cli import main; sys.exit(main())")
_FLAGS = {"command", "measure", "module", "predict", "limit", "stages", "out", "context", "model", "device"}
_KILLED = 124  # return code of a stage that ran into its limit, as timeout(1) gives it
_SHOWN = 12  # last lines of a stage's output
_ROOM = 4096  # tokens for a prompt and its answer after the longest context
Stages = dict[str, tuple[int, tuple[str, ...]]]  # by name: most seconds, and the command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `bench gpu`."""
    parser.add_argument("--predict", action="store_true", help="print predictions for several GPUs; measure nothing")
    parser.add_argument("--limit", type=positive, default=570, help="seconds for all stages (default: 570)")
    parser.add_argument("--stages", metavar="NAME,NAME…", help="stages to run (default: all)")
    parser.add_argument(
        "--out", type=Path, default=Path("gpu"), metavar="FOLDER", help="folder of results (default: gpu)"
    )
    add_context_argument(parser)


def run(args: argparse.Namespace, config: EngineConfig) -> int:
    """Run stages one after the other, and keep what they print. Raises ConfigError. Returns 1 if a stage failed."""
    if args.predict:
        print("\n\n".join(gpu_model.tables()))
        return 0
    if others := {name for name, value in vars(args).items() if value is not None} - _FLAGS:
        names = ", ".join(map(flag, sorted(others)))
        raise ConfigError(
            f"bench gpu: only --model and --device reach its stages; set {names} by variables, KNAPSERVE_…"
        )
    device, spec = choose_device("cuda" if config.device == "auto" else config.device), spec_of(config)
    contexts = numbers("--context", args.context, int, COUNT)
    stages = _stages(("--model", config.model or MODEL, "--device", device.type), spec.layers, contexts, args.out)
    chosen = args.stages.split(",") if args.stages else list(stages)
    if unknown := {*chosen} - {*stages}:
        raise ConfigError(f"--stages: unknown: {', '.join(sorted(unknown))}; known: {', '.join(stages)}")
    file = args.out / "gpu.json"
    check_writable(file, "--out")
    known, found = known_device(device), dict[str, Row]()
    facts = {
        "machine": hardware(device),
        "model": config.model or MODEL,
        "torch": torch.__version__,
        "predicted": {n: gpu_model.predict(known, spec, n) for n in contexts} if known is not None else {},
    }
    end = time.monotonic() + args.limit
    for name in chosen:
        seconds, command = stages[name]
        found[name] = _run(command, min(seconds, end - time.monotonic()), args.out / f"{name}.txt")
        write(file, json.dumps({**facts, "stages": found}, indent=1) + "\n")
    print(f"saved: {file}")
    return int(any(stage["code"] for stage in found.values()))


def _stages(common: tuple[str, ...], layers: int, contexts: tuple[int, ...], out: Path) -> Stages:
    """Return the stages in the order of their value."""
    longest, tests = max(contexts), _ROOT / "tests" / "gpu"
    engine = (*common, "--max-model-len", str(longest + _ROOM), "--profile-dir", str(out / "profiles"))
    decode = (
        *(*_PROGRAM, "bench", "decode", *engine, "--prior", "none"),
        *("--policies", "none,fixed:plan=2,fixed,fixed:plan=:skip_ratio=0.5,knapspec"),
        *("--fixed-plan", "32" * layers + "2"),  # the copy with windows
        *("--fixed-gamma", "5", "--draft-confidence", "0", "--limit", "2", "--max-tokens", "200", "--ignore-eos"),
    )  # fmt: skip
    # Warnings of other versions are no errors. Kernels for CPUs, which one test compares with, need not be compiled.
    options = ("-m", "gpu", "-vv", "-o", "filterwarnings=", "-o", "timeout=200", "-p", "no:cacheprovider")
    pytest = ("-m", "pytest", str(tests), *options)
    stages: Stages = {"tests": (240, ("env", "CXX=false", sys.executable, *pytest))} if tests.is_dir() else {}
    stages["kernels"] = 120, (*_PROGRAM, "bench", "kernels", *common, "--context", ",".join(map(str, contexts)))
    stages["profile"] = 170, (*_PROGRAM, "profile", *engine, "--repetitions", "5")
    stages |= {f"decode-{n}": (90, (*decode, "--context", str(n))) for n in contexts}
    stages["prefill"] = 60, (*_PROGRAM, "bench", "prefill", *engine, "--tokens", str(longest), "--repeat", "1")
    if find_spec("vllm") is not None:
        ends = map(str, sorted({min(contexts), longest}))
        untold = ("env", "DO_NOT_TRACK=1")  # vLLM reports its use otherwise
        stages["vllm"] = 180, (*untold, sys.executable, "-m", "bench.vllm", common[1], str(out / "vllm"), *ends)
    return stages


def _run(command: tuple[str, ...], limit: float, log: Path) -> Row:
    """Run a stage. Its output goes to a file, and the last lines to the terminal.

    Returns its return code, its seconds, and its result: the JSON that it prints last, or else its last line.
    """
    path = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
    started, code, env = time.monotonic(), _KILLED, os.environ | {"PYTHONPATH": path}
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True, env=env)
        try:
            with suppress(subprocess.TimeoutExpired):
                code = process.wait(max(limit, 0.0))
        finally:
            with suppress(ProcessLookupError):  # if nothing is left of the stage
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    seconds, lines = time.monotonic() - started, log.read_text("utf-8", "replace").splitlines() or [""]
    print("\n".join(line[:200] for line in lines[-_SHOWN:]))
    print(f"== {log.stem}: return code {code}, {seconds:.0f} s", flush=True)
    result = next((line for line in reversed(lines) if line.startswith(("{", "[{"))), lines[-1])
    with suppress(ValueError):
        result = json.loads(result)
    return {"command": command, "code": code, "seconds": seconds, "result": result}
