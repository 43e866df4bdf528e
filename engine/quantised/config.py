"""The quantisation of safetensors checkpoints, parsed from config.json.

`Quantisation` names the tensors of each quantised weight and reads them through `engine.quantised.tensors`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import regex
from torch import Tensor

from engine.errors import ModelError
from engine.quantised.packed import PackedRows
from engine.quantised.tensors import Layout, QuantScheme, StoredWeight, read_matrix

_MATCH_SECONDS = 1.0  # an expression that backtracks is not for ever
_ALTERNATIVE = "use the model's bf16, fp16 or fp32 weights instead"


@dataclass(frozen=True)
class Quantisation:
    """The quantised weights of a checkpoint and their layouts."""

    method: str
    targets: tuple[tuple[str, QuantScheme], ...]  # "Linear" (all), "re:" and a regular expression, or a module's name
    ignored: tuple[str, ...] = ()
    ignores_name_parts: bool = False  # `ignored` also matches parts of names, such as mlp or layers.0
    head: bool = False  # "Linear" includes lm_head

    @property
    def label(self) -> str:
        """The method and bits, for names of latency profiles."""
        kinds = {f"fp{scheme.bits}" if scheme.layout == "fp8" else f"w{scheme.bits}" for _, scheme in self.targets}
        return "+".join([self.method, *sorted(kinds)])

    def scheme(self, name: str) -> QuantScheme | None:
        """Return the layout of a weight, or None if it is not quantised."""
        module = name.removesuffix(".weight")
        if module.endswith("embed_tokens") or any(self._ignores(module, pattern) for pattern in self.ignored):
            return None
        targets = dict(reversed(self.targets))  # the first of equal names counts
        if module in targets:  # a module's name takes precedence over a class
            return targets[module]
        classes = (scheme for target, scheme in self.targets if _matches_expression(module, target))
        return next(classes, targets.get("Linear") if self.head or module != "lm_head" else None)

    def _ignores(self, module: str, pattern: str) -> bool:
        return (
            module == pattern
            or _matches_expression(module, pattern)
            or (self.ignores_name_parts and f".{pattern}." in f".{module}.")
        )

    def expected(
        self, name: str, shape: tuple[int, ...], *, required: bool = True
    ) -> dict[str, tuple[int, ...]] | None:
        """Return the required tensors of a quantised weight [out, in] and their shapes, to compare by `shapes_match`.

        With `required` false, return the optional tensors; `read` checks those that matter. None if the weight is not
        quantised or not a matrix.
        """
        scheme, stem = self.scheme(name), name.removesuffix("weight")
        if scheme is None or len(shape) != 2:
            return None
        parts = scheme.parts((shape[0], shape[1])).items()
        return {stem + key: part.shape for key, part in parts if part.required == required}

    def read(
        self,
        name: str,
        shape: tuple[int, int],
        read: Callable[[str], Tensor],
        has: Callable[[str], bool],
        *,
        biased: bool = True,
    ) -> PackedRows:
        """Read a quantised weight [out, in]. `biased`: the architecture has a bias there.

        Raises ModelError for missing tensors and for those of a wrong shape or type.
        """
        scheme = self.scheme(name)
        assert scheme is not None
        stored = StoredWeight(self.method, name.removesuffix("weight"), scheme.parts(shape), read, has)
        if scheme.layout == "gptq" and not biased and has(stored.stem + "bias") and read(stored.stem + "bias").any():
            raise ModelError(f"{stored.stem}bias is not zero, but the architecture has no such bias")
        return read_matrix(stored, scheme, shape)


def _matches_expression(module: str, target: str) -> bool:
    try:
        return target.startswith("re:") and regex.match(target[3:], module, timeout=_MATCH_SECONDS) is not None
    except TimeoutError:
        raise ModelError(f"the expression {target} of quantization_config takes too long") from None


def parse_quantisation(config: dict[str, Any]) -> Quantisation | None:
    """Parse the quantisation in config.json; None if there is none. Raises ModelError if it is not supported."""
    settings = config.get("quantization_config") or config.get("compression_config")
    if not settings:
        return None
    if not isinstance(settings, dict):
        raise ModelError(f"quantization_config must be an object, not {settings!r}")
    if isinstance(inner := settings.get("quantization_config"), dict):
        settings = settings | inner
    method = str(settings.get("quant_method") or ("compressed-tensors" if "config_groups" in settings else "unnamed"))
    parse = _METHODS.get(method.lower())
    if parse is None:
        raise ModelError(f"{method} quantisation is not supported; supported: {', '.join(_METHODS)}; or {_ALTERNATIVE}")
    try:
        return parse(settings)
    except KeyError as missing:
        raise ModelError(f"quantization_config lacks {missing}") from None
    except (TypeError, ValueError, OverflowError, AttributeError, regex.error) as wrong:
        raise ModelError(f"quantization_config has an invalid value: {wrong}") from None


def _unsupported(method: str, feature: str, supported: str) -> ModelError:
    return ModelError(f"{method} with {feature} is not supported; supported: {supported}; or {_ALTERNATIVE}")


def _compressed_tensors(settings: dict[str, Any]) -> Quantisation:
    method = "compressed-tensors"
    cache = settings.get("kv_cache_scheme")
    if cache and cache.get("type") != "float":  # the scales of an FP8 cache are not used
        raise _unsupported(method, "this kv_cache_scheme", "none, and float")
    if settings.get("transform_config"):
        raise _unsupported(method, "a transform_config", "checkpoints without")
    sparsity = (settings.get("sparsity_config") or {}).get("format", "dense")
    if sparsity != "dense":
        raise _unsupported(method, f"{sparsity} sparsity", "dense weights")
    targets: list[tuple[str, QuantScheme]] = []
    for group in settings["config_groups"].values():
        if weights := group.get("weights"):
            scheme = _compressed_scheme(weights, str(group.get("format") or settings["format"]))
            targets += [(target, scheme) for target in _patterns(group["targets"])]
    return Quantisation(method, tuple(targets), _patterns(settings.get("ignore")), head=True)


def _compressed_scheme(weights: dict[str, Any], format: str) -> QuantScheme:
    kind, bits = str(weights.get("type", "int")), int(weights.get("num_bits", 8))
    layouts: dict[tuple[str, str], Layout] = {
        ("pack-quantized", "int"): "packed",
        ("int-quantized", "int"): "integers",
        ("naive-quantized", "int"): "integers",
        ("float-quantized", "float"): "fp8",
        ("naive-quantized", "float"): "fp8",
    }
    layout = layouts.get((format, kind))
    if layout is None or bits not in ((8,) if layout == "fp8" else (4, 8)):
        supported = "pack-quantized and int-quantized (4 or 8 bits), float-quantized (8 bits) and naive-quantized"
        raise _unsupported("compressed-tensors", f"{format} weights ({kind}, {bits} bits)", supported)
    group = weights.get("group_size")
    strategy = weights.get("strategy") or ("tensor" if group is None else "channel" if group == -1 else "group")
    if strategy == "block" and layout == "fp8":
        block = _block(weights["block_structure"])
    elif strategy == "group":
        block = (1, _positive(group))
    elif strategy in ("channel", "tensor"):
        block = (1, 0) if strategy == "channel" else (0, 0)
    else:
        raise _unsupported(
            "compressed-tensors", f"{kind} scales by {strategy}", "group, channel and tensor; block for fp8"
        )
    return QuantScheme(layout, bits, block, bool(weights.get("symmetric", True)))


def _awq_settings(settings: dict[str, Any]) -> Quantisation:
    version = str(settings.get("version") or settings.get("format") or "gemm").lower()
    bits = int(settings.get("bits") or settings.get("w_bit") or 4)
    if version != "gemm" or bits != 4 or not settings.get("zero_point", True):
        zeros = "" if settings.get("zero_point", True) else ", no zero points"
        raise _unsupported("awq", f"version {version}, {bits} bits{zeros}", "version gemm, 4 bits with zero points")
    scheme = QuantScheme("awq", 4, _groups(settings.get("group_size") or settings["q_group_size"]), symmetric=False)
    return Quantisation(
        "awq", (("Linear", scheme),), _patterns(settings.get("modules_to_not_convert")), ignores_name_parts=True
    )


def _gptq(settings: dict[str, Any]) -> Quantisation:
    format = str(settings.get("checkpoint_format") or settings.get("format") or "gptq").lower()
    bits = int(settings["bits"])
    if format not in ("gptq", "gptq_v2") or bits not in (4, 8) or settings.get("is_marlin_format"):
        what = "marlin" if settings.get("is_marlin_format") else format
        raise _unsupported("gptq", f"{bits} bits in format {what}", "4 and 8 bits in formats gptq and gptq_v2")
    skipped = settings.get("dynamic") or {}
    if any(not pattern.startswith("-:") for pattern in skipped):
        raise _unsupported(
            "gptq", "settings that differ between modules (dynamic)", "the same settings for all quantised modules"
        )
    ignored = _patterns(f"re:{pattern[2:]}" for pattern in skipped)
    symmetric = bool(settings.get("sym", True))
    scheme = QuantScheme("gptq", bits, _groups(settings["group_size"]), symmetric, less_one=format == "gptq")
    targets = []
    for names in settings.get("modules_in_block_to_quantize") or []:
        targets += [f"re:.*\\.{regex.escape(name)}$" for name in ([names] if isinstance(names, str) else names)]
    head = bool(settings.get("lm_head", False))
    if head and targets:
        targets.append("lm_head")
    return Quantisation("gptq", tuple((target, scheme) for target in targets or ["Linear"]), ignored, head=head)


def _fp8(settings: dict[str, Any]) -> Quantisation:
    numbers = str(settings.get("fmt") or "e4m3")
    if numbers not in ("e4m3", "float8_e4m3fn"):
        raise _unsupported("fp8", f"{numbers} numbers", "e4m3")
    blocks = settings.get("weight_block_size")
    scheme = QuantScheme("fp8", 8, _block(blocks) if blocks else (0, 0), scale="weight_scale_inv" if blocks else "")
    ignored = settings.get("modules_to_not_convert") or settings.get("ignored_layers")
    return Quantisation("fp8", (("Linear", scheme),), _patterns(ignored), ignores_name_parts=True)


_METHODS = {"compressed-tensors": _compressed_tensors, "awq": _awq_settings, "gptq": _gptq, "fp8": _fp8}


def _patterns(names: Any) -> tuple[str, ...]:
    """Return names of modules and "re:" expressions. Raises regex.error for an invalid expression."""
    patterns = tuple(str(name) for name in names or ())
    for pattern in patterns:
        if pattern.startswith("re:"):
            regex.compile(pattern[3:])
    return patterns


def _positive(number: Any) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise ValueError(f"the group size is {number!r}; it must be a whole number of at least 1")
    return number


def _groups(size: Any) -> tuple[int, int]:
    """Return the block of a group size; -1: one group of all inputs."""
    return (1, 0) if size == -1 else (1, _positive(size))


def _block(sizes: Any) -> tuple[int, int]:
    rows, columns = sizes.split("x") if isinstance(sizes, str) else sizes
    return _positive(int(rows)), _positive(int(columns))
