"""Measure the memory that a draft policy takes, in a process of its own.

Policies of one process cannot be told apart: they share weights, allocator and page cache. So each runs alone in a
child process. Its figure is the growth of the resident memory, from the loaded and warmed-up model to the peak of a
short workload: K/V, recorded rows, states, files that the policy reads, and temporary tensors. Weights are not part of
it, nor their copy in fewer bits, which the engine loads for all policies. On a GPU, it is host memory only.
"""

import gc
import json
import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.contenders import Contender
from bench.prompts import Text, encode, evenly
from bench.record import Record
from bench.targets import PolicyTarget
from engine.runtime.build import LoadedModel
from engine.types import SamplingParams

_PROMPTS, _TOKENS = 2, 48  # prompts, and tokens of an answer, at most
_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_RESET_PEAK = "5"  # man 5 proc: the peak becomes the current resident size


def measure_all(
    record: Record, entries: Sequence[Contender], texts: Sequence[Text], max_tokens: int, show: bool = True
) -> None:
    """Measure the policies whose memory the record lacks, and save each; `show` their names on stderr."""
    for entry in entries[len(record.memory) :]:
        if show:
            print(f"memory of {entry.name}", file=sys.stderr)
        record.memory.append(measure_memory(entry, evenly(texts, _PROMPTS), min(max_tokens, _TOKENS)))
        record.save()


def measure_memory(entry: Contender, texts: Sequence[Text], max_tokens: int) -> dict[str, Any]:
    """Answer the texts in a child process.

    Returns its name as `policy`, and its growth in bytes or, as `error`, why that is not known.
    """
    job = pickle.dumps((entry.config, entry.policy, list(texts), max_tokens))
    # -P: modules in the current directory are not ours.
    done = subprocess.run([sys.executable, "-P", "-m", "bench.memory"], input=job, capture_output=True)
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        return {"policy": entry.name, "error": last[0]}
    growth: int = json.loads(done.stdout.splitlines()[-1])
    return {"policy": entry.name, "growth": growth}


def _resident(name: str) -> int:
    """Return VmRSS or VmHWM, its peak, in bytes."""
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(name))
    return 1024 * int(line.split()[1])


def main() -> None:
    """Read the job from stdin, run it, and print the growth in bytes."""
    config, policy, texts, max_tokens = pickle.load(sys.stdin.buffer)
    model = LoadedModel(config)
    model.warm_up()
    prompts = [encode(model, text) for text in texts]
    gc.collect()
    _RESET.write_text(_RESET_PEAK)
    before = _resident("VmRSS")
    PolicyTarget(policy, model.core(config), SamplingParams(max_tokens=max_tokens, temperature=0.0)).run(prompts, 1)
    print(_resident("VmHWM") - before)


if __name__ == "__main__":
    main()
