"""A model of a decode step on a GPU: bytes, instructions, and borders between kernels. It needs no torch.

A kernel takes border + max(bytes ÷ read bandwidth, instructions ÷ issue rate); a pass is the sum of its kernels.
`knapserve bench gpu --predict` prints the tables of docs/gpu.md, which explains them.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from bench.results import Row, expected_tokens
from engine.architecture.spec import ModelSpec
from engine.checkpoints.shapes import shape
from engine.plans import RECENT, SINKS


class Device(NamedTuple):
    """A GPU, by its data sheet."""

    bandwidth: float  # GB/s
    memory: float  # GB
    processors: int  # streaming multiprocessors, each with four schedulers
    clock: float  # GHz, boost
    pdl: bool  # programmatic dependent launch


# NVIDIA's data sheets of H200, H100, A100 and L4; its architecture papers of Hopper, Ampere and Ada.
DEVICES = {  # by the names that drivers give, without NVIDIA
    "H200": Device(4800, 141, 132, 1.98, True),
    "H100 80GB HBM3": Device(3350, 80, 132, 1.98, True),
    "A100-SXM4-80GB": Device(2039, 80, 108, 1.41, False),
    "L4": Device(300, 24, 58, 2.04, False),
    "GeForce RTX 4090": Device(1008, 24, 128, 2.52, False),
}
MODELS = ("llama-3.1-8b", "qwen3-8b")
CONTEXTS = (1024, 16384, 32768)


class Assumption(NamedTuple):
    value: float
    what: str
    source: str


_NOTES = "[notes](notes/kernels.md#on-a-gpu-h200)"
READ = Assumption(0.93, "read bandwidth ÷ the data sheet's", f"a sum on an H200: 4,470 GB/s of 4,800 ({_NOTES})")
BORDER = Assumption(4.0, "µs from kernel to kernel", f"H200, four products of a layer above their reads ({_NOTES})")
PDL = Assumption(1.75, "the same with dependent launch, µs", "estimate, 1.5–2; not measured")
ISSUE = Assumption(0.7, "instructions a scheduler issues a cycle", "estimate; not measured")
COPY = Assumption(
    270, "instructions of a warp for 4,096 weights of the copy", "machine code for sm_90, the most of any product"
)
COPY_BITS = Assumption(4.5, "bits a weight of the copy", "groups of 32 with a 16-bit scale")
GAP = Assumption(400, "µs a round without a kernel", "estimate: half of [what was](#the-model-against-measurements)")
ALPHA = Assumption(0.93, "share of the copy's tokens accepted", "[results](results.md): .92–.94 of bf16 models")
ASSUMPTIONS = (READ, BORDER, PDL, ISSUE, COPY, COPY_BITS, GAP, ALPHA)

# Instructions of a warp for 4,096 weights, and for 128 keys of a K/V head (a program has four warps): loops as compiled
# for sm_90 by Triton 3.7.1.
INSTRUCTIONS = {"qkv": 232, "output": 240, "gate up": 244, "down": 240, "head": 216}
# Most queries (rows × heads of a group): share of the read bandwidth that the scan reaches, and its instructions. The
# shares are those of the shipped profile of the H200 after 32,768 tokens: 33.7, 41.5 and 72 µs for 30.0 µs of reads.
SCANS = {16: (0.89, 4 * 1066), 32: (0.72, 4 * 1566), 64: (0.42, 8 * 1566)}


class Kernel(NamedTuple):
    """Equal kernels of a pass, with the figures of one."""

    name: str
    times: float  # a pass
    read: float = 0.0  # bytes
    instructions: float = 0.0  # of all warps
    share: float = 1.0  # of the read bandwidth

    def micros(self, device: Device) -> float:
        """Return the time of one kernel and its border, in µs."""
        reading = self.read / (device.bandwidth * 1e3 * READ.value * self.share)
        issuing = self.instructions / (4e3 * device.processors * device.clock * ISSUE.value)
        return max(reading, issuing) + (PDL if device.pdl else BORDER).value


def step(spec: ModelSpec, context: int, rows: int = 1, *, copy: float = 0.0, window: bool = False) -> list[Kernel]:
    """Return the kernels of a pass of one request. `copy`: instructions for 4,096 weights of the copy; 0: bf16."""
    layers, tokens = spec.layers, min(context, SINKS + RECENT) if window else context
    layout = 1 << (rows - 1).bit_length()
    most = min((each for each in SCANS if layout * spec.heads <= each * spec.kv_heads), default=max(SCANS))
    share, issued = SCANS[most]
    products = {}
    for name, (outputs, inputs) in product_shapes(spec).items():
        weights, count = outputs * inputs, 1 if name == "head" else layers
        bits, issues = (COPY_BITS.value, copy) if copy else (16, INSTRUCTIONS[name])
        products[name] = Kernel(name, count, weights * bits / 8, weights / 4096 * issues)
    scan = 4 * spec.kv_heads * spec.head_dim * tokens  # bytes
    return [
        Kernel("embed", 1, 2 * spec.hidden * rows),
        products["qkv"],
        Kernel("scan", layers, scan, tokens / 128 * spec.kv_heads * issued, share),
        Kernel("merge", layers),
        *(products[name] for name in ("output", "gate up", "down", "head")),
        Kernel("draw", 2, spec.vocab * rows),
    ]


def product_shapes(spec: ModelSpec) -> dict[str, tuple[int, int]]:
    """Return outputs and inputs of the products of a layer, and of the head."""
    width, kv = spec.heads * spec.head_dim, spec.kv_heads * spec.head_dim
    return {
        "qkv": (width + 2 * kv, spec.hidden),
        "output": (spec.hidden, width),
        "gate up": (2 * spec.intermediate, spec.hidden),
        "down": (spec.hidden, spec.intermediate),
        "head": (spec.vocab, spec.hidden),
    }


def micros(device: Device, kernels: Iterable[Kernel]) -> float:
    """Return the time of a pass, in µs."""
    return sum(kernel.times * kernel.micros(device) for kernel in kernels)


def read_bytes(kernels: Iterable[Kernel]) -> float:
    """Return the bytes that a pass reads."""
    return sum(kernel.times * kernel.read for kernel in kernels)


def predict(device: Device, spec: ModelSpec, context: int, copy: float = COPY.value) -> Row:
    """Predict plain decoding, and drafting by the copy, with windows where these are faster."""
    kernels = step(spec, context)
    plain = micros(device, kernels)
    f, f_window = (micros(device, step(spec, context, copy=copy, window=each)) / plain for each in (False, True))

    def v(rows: int) -> float:
        return micros(device, step(spec, context, rows)) / plain

    def gain(gamma: int) -> float:
        return expected_tokens(ALPHA.value, gamma) / (gamma * min(f, f_window) + v(gamma + 1) + GAP.value / plain)

    gamma = max(range(1, 11), key=gain)
    return {
        "tokens_per_second": 1e6 / plain,
        "share": read_bytes(kernels) / plain / (device.bandwidth * 1e3 * READ.value),
        "f": f,
        "f_window": f_window,
        "v6": v(6),
        "v9": v(9),
        "gamma": gamma,
        "speedup": gain(gamma),
    }


def tables() -> Iterator[str]:
    """Yield the tables of docs/gpu.md, in Markdown."""
    yield _table("assumption | value | source", [[each.what, f"{each.value:g}", each.source] for each in ASSUMPTIONS])
    sheets = [[name, *(f"{each:g}" for each in own[:-1]), "yes" if own.pdl else "no"] for name, own in DEVICES.items()]
    yield _table("GPU | GB/s | GB | multiprocessors | GHz | dependent launch", sheets)
    for name in MODELS:
        spec, copies = shape(name), step(shape(name), 16384, copy=COPY.value)
        kernels = [*step(spec, 16384), *(k._replace(name=f"{k.name}, copy") for k in copies if k.name in INSTRUCTIONS)]
        kernels = [each for each in kernels if each.instructions]
        yield _table(f"{name} | a pass | MB | M instructions | {' | '.join(DEVICES)}", map(_kernel, kernels))
        titles = "context | plain | share | f | f, windows | v, 6 rows | v, 9 rows | γ | knapspec | GB"
        yield _table(f"{name} | {titles}", [_pass(spec, device, n) for device in DEVICES for n in CONTEXTS])
    counts = (200, 270, 400, 500, 568, 787, 978)
    f = [f"{predict(DEVICES['H200'], shape(MODELS[0]), 1024, each)['f']:.2f}" for each in counts]
    yield _table(f"instructions for 4,096 weights | {' | '.join(map(str, counts))}", [["f on an H200", *f]])


def _kernel(kernel: Kernel) -> list[str]:
    size = f"{kernel.read / 1e6:,.1f}", f"{kernel.instructions / 1e6:.1f}"
    return [kernel.name, f"{kernel.times:g}", *size, *(f"{kernel.micros(each):,.1f}" for each in DEVICES.values())]


def _pass(spec: ModelSpec, name: str, context: int) -> list[str]:
    own, copied = predict(DEVICES[name], spec, context), spec.parameters - spec.vocab * spec.hidden
    cache = 4 * spec.layers * spec.kv_heads * spec.head_dim * context
    memory = (2 * spec.parameters + COPY_BITS.value / 8 * copied + cache) / 1e9
    plain, ratios = own["tokens_per_second"], [f"{own[key]:.2f}" for key in ("f", "f_window", "v6", "v9")]
    drafting = [f"{own['gamma']}", f"{plain * own['speedup']:.0f}", f"{memory:.1f} of {DEVICES[name].memory}"]
    return [name, f"{context:,}", f"{plain:.0f}", f"{own['share']:.0%}", *ratios, *drafting]


def _table(titles: str, rows: Iterable[Sequence[str]]) -> str:
    """Format a Markdown table, with all columns but the first aligned to the right."""
    lines = [f"| {titles} |", "|---|" + "--:|" * titles.count("|"), *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines)
