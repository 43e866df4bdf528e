"""Quantised checkpoints are read by the definition of their format; damaged or unknown ones are refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine.architecture.spec import parse_spec
from engine.checkpoints.safetensors_weights import SafetensorsWeights
from engine.errors import ModelError
from engine.model.weights import expected_tensors
from engine.quantised.config import Quantisation, parse_quantisation
from engine.quantised.packed import PackedRows, dequantise
from engine.quantised.tensors import shapes_match
from tests.support.quantised_checkpoints import KINDS, Kind, act_order, packed_words, quantised, write_quantised

NAME = "model.layers.3.mlp.down_proj.weight"
STEM = NAME.removesuffix("weight")
# Those that the current compressed-tensors still reads itself.
COMPRESSED = [kind for kind in KINDS if "config_groups" in KINDS[kind].config and not KINDS[kind].act_order]


def parsed(**settings: Any) -> Quantisation:
    quantisation = parse_quantisation({"quantization_config": settings})
    assert quantisation is not None
    return quantisation


def reading(quantisation: Quantisation, tensors: dict[str, Tensor], shape: tuple[int, int], **how: Any) -> PackedRows:
    return quantisation.read(NAME, shape, tensors.__getitem__, tensors.__contains__, **how)


def stored(kind: Kind, shape: tuple[int, int] = (96, 256)) -> tuple[dict[str, Tensor], Tensor]:
    parts, meant = quantised(kind, torch.randn(shape, generator=torch.Generator().manual_seed(1)) + 0.1)
    return {STEM + key: tensor for key, tensor in parts.items()}, meant


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_each_format_is_read_by_its_definition(kind: str, tmp_path: Path) -> None:
    meant = write_quantised(tmp_path, kind, layers=1)
    tensors = load_file(tmp_path / "model.safetensors")
    quantisation = parse_quantisation(json.loads((tmp_path / "config.json").read_text()))
    assert quantisation is not None
    known: set[str] = set()
    for name, weight in meant.items():
        shape = (len(weight), weight.shape[-1])
        expected = quantisation.expected(name, tuple(weight.shape))
        assert (expected is not None) == name.endswith("proj.weight")
        known |= (
            {name} if expected is None else expected.keys() | quantisation.expected(name, shape, required=False).keys()
        )
        if expected is None:
            continue
        assert all(shapes_match(tuple(tensors[stored].shape), expected[stored]) for stored in expected)
        packed = quantisation.read(name, shape, tensors.__getitem__, tensors.__contains__)
        assert packed.shape == shape
        assert packed.format.bits == KINDS[kind].bits
        assert packed.format.minimum != KINDS[kind].symmetric
        assert (packed.order is not None) == KINDS[kind].act_order
        assert torch.equal(dequantise(packed), weight), name
    assert tensors.keys() <= known
    assert quantisation.expected("lm_head.weight", (512, 256)) is None
    assert quantisation.expected("model.embed_tokens.weight", (512, 256)) is None


def test_chosen_rows_keep_the_order_of_inputs() -> None:
    tensors, meant = stored(KINDS["gptq-act-order"])
    packed = reading(parsed(**KINDS["gptq-act-order"].config), tensors, (96, 256))
    assert torch.equal(dequantise(packed.select(slice(8, 24))), meant[8:24])


@pytest.mark.parametrize("kind", ["fp8", "compressed-fp8-block", "w4a16", "gptq"])
def test_blocks_that_do_not_divide_the_inputs_become_smaller_groups(kind: str) -> None:
    tensors, meant = stored(KINDS[kind], (192, 160))
    packed = reading(parsed(**KINDS[kind].config), tensors, (192, 160))
    assert packed.format.group == 32
    assert torch.equal(dequantise(packed), meant)


def test_awq_interleaves_columns_and_gptq_stores_zeros_less_one() -> None:
    """Words written by hand: AWQ holds columns 0 2 4 6 1 3 5 7, GPTQ stores a zero point of 8 as 7."""
    words = torch.tensor([[0x75316420]], dtype=torch.int32).repeat(32, 1)
    awq = {"qweight": words, "qzeros": torch.zeros(1, 1, dtype=torch.int32), "scales": torch.ones(1, 8).half()}
    read = parsed(quant_method="awq", bits=4, group_size=32, zero_point=True, version="GEMM")
    packed = reading(read, {STEM + key: tensor for key, tensor in awq.items()}, (8, 32))
    assert torch.equal(dequantise(packed), torch.arange(8.0)[:, None].expand(8, 32))

    rows = torch.tensor([[0x76543210]], dtype=torch.int32).repeat(4, 8)
    gptq = {"qweight": rows, "qzeros": torch.tensor([[0x77777777]], dtype=torch.int32), "scales": awq["scales"]}
    read = parsed(quant_method="gptq", bits=4, group_size=32, sym=True)
    packed = reading(read, {STEM + key: tensor for key, tensor in gptq.items()}, (8, 32))
    assert (packed.format.offset, packed.format.minimum) == (8, False)
    assert torch.equal(dequantise(packed), torch.arange(-8.0, 0).repeat(4).expand(8, 32))


def test_a_gptq_zero_point_of_zero_borrows_from_the_next_one() -> None:
    kind = Kind("gptq", KINDS["gptq-asymmetric"].config, symmetric=False)
    tensors, _ = stored(kind)
    zeros = torch.randint(0, 16, (4, 96), generator=torch.Generator().manual_seed(2))
    assert (zeros == 0).any()
    tensors[STEM + "qzeros"] = packed_words(zeros, 4) - 0x11111111
    first = dequantise(reading(parsed(**kind.config), tensors, (96, 256)))
    tensors[STEM + "qzeros"] = packed_words(zeros, 4)
    assert torch.equal(first, dequantise(reading(parsed(**kind.config, format="gptq_v2"), tensors, (96, 256))))


def test_symmetric_gptq_with_zeros_of_its_own_is_read_with_them() -> None:
    kind = Kind("gptq", KINDS["gptq-asymmetric"].config, symmetric=False)
    tensors, meant = stored(kind)
    packed = reading(parsed(**kind.config | {"sym": True}), tensors, (96, 256))
    assert torch.equal(dequantise(packed), meant)


@pytest.mark.parametrize("kind", ["fp8-tensor", "compressed-fp8", "w4a16"])
@pytest.mark.parametrize(
    "names",
    [
        "kv_scale",
        "k_scale v_scale k_zero_point v_zero_point",
        "attn.q_scale attn.k_scale attn.v_scale attn.prob_scale qkv_proj.k_scale qkv_proj.v_scale",
        "k_proj.k_scale v_proj.v_scale k_proj.output_scale v_proj.output_scale",
    ],
)
def test_scales_of_a_cache_are_named_in_the_log_and_change_nothing(
    kind: str, names: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    meant = write_quantised(tmp_path, kind, layers=1)
    path, config = tmp_path / "model.safetensors", json.loads((tmp_path / "config.json").read_text())
    scales = {f"model.layers.0.self_attn.{name}": torch.full((), 0.5) for name in names.split()}
    save_file(load_file(path) | scales, path)
    if "config_groups" in config["quantization_config"]:
        config["quantization_config"]["kv_cache_scheme"] = {"num_bits": 8, "type": "float", "strategy": "tensor"}
    weights = SafetensorsWeights(tmp_path, expected_tensors(parse_spec(config)), parse_quantisation(config))
    for name, weight in meant.items():
        assert torch.equal(weights.mapped(name).float(), weight.float())
    (line,) = caplog.messages
    assert line == f"{len(scales)} scales of an FP8 K/V cache are not used: the cache keeps 16 or 32 bits"


def test_other_unknown_scales_are_refused(tmp_path: Path) -> None:
    write_quantised(tmp_path, "fp8-tensor", layers=1)
    path, config = tmp_path / "model.safetensors", json.loads((tmp_path / "config.json").read_text())
    save_file(load_file(path) | {"model.layers.0.self_attn.logit_scale": torch.ones(1)}, path)
    with pytest.raises(ModelError, match=r"has unexpected 1 tensors, first model\.layers\.0\.self_attn\.logit_scale"):
        SafetensorsWeights(tmp_path, expected_tensors(parse_spec(config)), parse_quantisation(config))


@pytest.mark.parametrize("unset", [0, -1])
def test_absent_group_indices_mean_consecutive_groups(unset: int) -> None:
    tensors, meant = stored(KINDS["gptq"])
    tensors[STEM + "g_idx"].fill_(unset)
    packed = reading(parsed(**KINDS["gptq"].config), tensors, (96, 256))
    assert packed.order is None
    assert torch.equal(dequantise(packed), meant)


def test_fp8_scales_are_read_under_either_name() -> None:
    tensors, meant = stored(KINDS["fp8-tensor"])
    tensors[STEM + "weight_scale_inv"] = tensors.pop(STEM + "weight_scale").view(())
    assert torch.equal(dequantise(reading(parsed(**KINDS["fp8-tensor"].config), tensors, (96, 256))), meant)


@pytest.mark.slow
@pytest.mark.parametrize("kind", COMPRESSED)
def test_weights_equal_those_of_the_compressed_tensors_library(kind: str) -> None:
    pytest.importorskip("compressed_tensors")
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import QuantizationScheme

    config, (rows, columns) = KINDS[kind].config, KINDS[kind].block
    scheme = QuantizationScheme(**config["config_groups"]["group_0"])
    grid = (-(-96 // rows) if rows else 1, 256 // columns if columns else 1)
    generator = torch.Generator().manual_seed(3)
    size = 0.01 if KINDS[kind].layout == "fp8" else 0.5
    module = {
        "weight": torch.randn(96, 256, generator=generator),
        "weight_scale": (torch.rand(grid, generator=generator) * size + 0.003).bfloat16().float(),
    }
    if not KINDS[kind].symmetric:
        module["weight_zero_point"] = torch.randint(-8, 8, grid, generator=generator).to(torch.int8)
    compressor = BaseCompressor.get_value_from_registry(config["format"])
    compressed = compressor.compress(module, scheme)
    meant = compressor.decompress(compressed, scheme)["weight"]
    tensors = {STEM + key: tensor for key, tensor in compressed.items()}
    assert meant.unique().numel() > 10
    assert torch.equal(dequantise(reading(parsed(**config), tensors, (96, 256))), meant)


# Which weights


def test_compressed_tensors_target_and_ignore_by_class_name_and_expression() -> None:
    config = json.loads(json.dumps(KINDS["w4a16"].config))
    down = json.loads(json.dumps(KINDS["w8a8"].config["config_groups"]["group_0"]))
    down |= {"targets": [r"re:.*down_proj$"], "format": "int-quantized"}
    one = KINDS["w8a16"].config["config_groups"]["group_0"] | {"targets": ["model.layers.1.mlp.down_proj"]}
    config["config_groups"] |= {"group_1": down, "group_2": one}
    config["ignore"] = ["lm_head", r"re:.*layers\.2\.", "model.layers.3.mlp.up_proj"]
    quantisation = parsed(**config)

    def of(module: str) -> tuple[str, int] | None:
        scheme = quantisation.scheme(f"model.layers.{module}.weight")
        return scheme and (scheme.layout, scheme.bits)

    assert of("0.mlp.up_proj") == ("packed", 4)
    assert of("0.mlp.down_proj") == ("integers", 8)
    assert of("1.mlp.down_proj") == ("packed", 8)
    assert of("2.mlp.down_proj") is None
    assert of("3.mlp.up_proj") is None
    assert of("3.mlp.gate_proj") == ("packed", 4)
    assert of("12.mlp.gate_proj") == ("packed", 4)
    config["ignore"] = []
    assert parsed(**config).expected("lm_head.weight", (512, 256)) is not None


@pytest.mark.parametrize("method", ["awq", "fp8"])
def test_modules_not_to_convert_match_parts_of_names(method: str) -> None:
    names = ["lm_head", "self_attn", "model.layers.1", "mlp.gate"]
    quantisation = parsed(**KINDS[method].config, modules_to_not_convert=names)
    plain = ["model.layers.0.self_attn.q_proj", "model.layers.1.mlp.up_proj", "model.layers.0.mlp.gate", "lm_head"]
    for module in plain:
        assert quantisation.expected(module + ".weight", (256, 256)) is None
    for module in ("model.layers.0.mlp.gate_proj", "model.layers.11.mlp.up_proj"):
        assert quantisation.expected(module + ".weight", (256, 256)) is not None


def test_gptq_configs_exclude_and_include_modules_by_name() -> None:
    base = KINDS["gptq"].config
    left_out = parsed(**base, dynamic={r"-:.*\.down_proj": {}})
    assert left_out.expected(NAME, (256, 256)) is None
    assert left_out.expected("model.layers.3.mlp.up_proj.weight", (256, 256)) is not None
    chosen = parsed(**base, modules_in_block_to_quantize=[["self_attn.q_proj"], ["mlp.up_proj"]], lm_head=True)
    assert chosen.expected(NAME, (256, 256)) is None
    assert chosen.expected("model.layers.3.mlp.up_proj.weight", (256, 256)) is not None
    assert chosen.expected("lm_head.weight", (256, 256)) is not None
    assert parsed(**base).expected("lm_head.weight", (256, 256)) is None


def test_old_configs_are_read_from_compression_config() -> None:
    settings = dict(KINDS["w8a8"].config)
    del settings["quant_method"]
    expected = parsed(**settings)
    assert parse_quantisation({"compression_config": settings}) == expected
    assert parse_quantisation({"compression_config": {"quantization_config": settings}}) == expected
    assert parse_quantisation({}) is None
    assert parse_quantisation({"quantization_config": {}}) is None


# Refusals


def changed(kind: str, **weights: Any) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(json.dumps(KINDS[kind].config))
    config["config_groups"]["group_0"]["weights"] |= weights
    return config


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "bitsandbytes"),
        ({"bits": 4}, "unnamed"),
        (KINDS["awq"].config | {"version": "gemv"}, "gemv"),
        (KINDS["awq"].config | {"bits": 8}, "8 bits"),
        (KINDS["awq"].config | {"zero_point": False}, "no zero points"),
        (KINDS["awq"].config | {"group_size": 0}, "q_group_size"),
        (KINDS["gptq"].config | {"bits": 3}, "3 bits"),
        (KINDS["gptq"].config | {"bits": 2}, "2 bits"),
        (KINDS["gptq"].config | {"checkpoint_format": "marlin"}, "marlin"),
        (KINDS["gptq"].config | {"is_marlin_format": True}, "marlin"),
        (KINDS["gptq"].config | {"group_size": "many"}, "the group size is 'many'; it must be"),
        (KINDS["gptq"].config | {"dynamic": {r"+:.*down": {"bits": 8}}}, "dynamic"),
        (KINDS["fp8"].config | {"fmt": "e5m2"}, "e5m2"),
        (KINDS["fp8"].config | {"weight_block_size": [128]}, "invalid value"),
        (KINDS["fp8"].config | {"weight_block_size": [float("inf"), 128]}, "invalid value"),
        (KINDS["w4a16"].config | {"format": "nvfp4-pack-quantized"}, "nvfp4-pack-quantized"),
        (KINDS["w4a16"].config | {"format": "marlin-24"}, "marlin-24"),
        (KINDS["w4a16"].config | {"format": "mixed-precision"}, "mixed-precision"),
        (KINDS["w4a16"].config | {"kv_cache_scheme": {"num_bits": 8}}, "kv_cache_scheme"),
        (KINDS["w4a16"].config | {"transform_config": {"config_groups": {"u": {}}}}, "transform_config"),
        (KINDS["w4a16"].config | {"sparsity_config": {"format": "sparse-24-bitmask"}}, "sparse-24-bitmask"),
        (KINDS["w4a16"].config | {"config_groups": ["W4A16"]}, "invalid value"),
        (KINDS["w4a16"].config | {"ignore": ["re:("]}, "invalid value"),
        (changed("w4a16", num_bits=3), "3 bits"),
        (changed("w4a16", strategy="tensor_group"), "tensor_group"),
        (changed("w4a16", strategy="block", block_structure=[64, 64]), "block"),
        ({"quant_method": "compressed-tensors"}, "config_groups"),
    ],
)
def test_an_unsupported_quantisation_is_refused_by_name(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(ModelError, match=named):
        parse_quantisation({"quantization_config": settings})
    with pytest.raises(ModelError, match="must be an object"):
        parse_quantisation({"quantization_config": "awq"})


def required(kind: str) -> list[str]:
    return [name.removeprefix(STEM) for name in parsed(**KINDS[kind].config).expected(NAME, (96, 256)) or ()]


@pytest.mark.parametrize(("kind", "key"), [(kind, key) for kind in KINDS for key in required(kind)])
def test_missing_cut_and_mistyped_tensors_are_refused_by_name(kind: str, key: str) -> None:
    tensors, _ = stored(KINDS[kind])
    quantisation, name = parsed(**KINDS[kind].config), STEM + key
    whole = tensors[name]
    wrong: list[Tensor | None] = [None, whole.to(torch.float64)]
    if whole.numel() > 1:
        wrong.append(whole[:-1])
    for tensor in wrong:
        broken = {other: kept for other, kept in tensors.items() if other != name}
        if tensor is not None:
            broken[name] = tensor
        with pytest.raises(ModelError, match=name.replace(".", r"\.")):
            reading(quantisation, broken, (96, 256))


@pytest.mark.parametrize(
    ("kind", "key", "value", "named"),
    [
        ("w4a16", "weight_shape", torch.tensor([96, 128]), "weight_shape is"),
        ("w4a16", "weight_scale", torch.full((96, 4), torch.nan).bfloat16(), "not finite"),
        ("w4a8", "weight", torch.full((96, 256), 8, dtype=torch.int8), "more than 4 bits"),
        ("w8a8", "weight_zero_point", torch.ones(96, 1, dtype=torch.int8), "not zero"),
        ("compressed-fp8", "weight_zero_point", torch.ones(96, 1).to(torch.float8_e4m3fn), "not zero"),
        ("gptq-act-order", "g_idx", act_order(256, 64).clamp(max=2), "g_idx"),
        ("gptq-act-order", "g_idx", act_order(256, 64) - 1, "g_idx"),
        ("w4a16-act-order", "weight_g_idx", act_order(256, 32), "weight_g_idx"),
    ],
)
def test_tensors_that_contradict_their_config_are_refused(kind: str, key: str, value: Tensor, named: str) -> None:
    tensors, _ = stored(KINDS[kind])
    with pytest.raises(ModelError, match=named):
        reading(parsed(**KINDS[kind].config), tensors | {STEM + key: value}, (96, 256))


def test_zero_points_of_zero_beside_symmetric_weights_change_nothing() -> None:
    tensors, meant = stored(KINDS["w8a8"])
    tensors[STEM + "weight_zero_point"] = torch.zeros(96, 1, dtype=torch.int8)
    assert torch.equal(dequantise(reading(parsed(**KINDS["w8a8"].config), tensors, (96, 256))), meant)


def test_a_bias_that_the_architecture_lacks_must_be_zero() -> None:
    tensors, meant = stored(KINDS["gptq"])
    quantisation = parsed(**KINDS["gptq"].config)
    tensors[STEM + "bias"] = torch.zeros(96)
    assert torch.equal(dequantise(reading(quantisation, tensors, (96, 256), biased=False)), meant)
    tensors[STEM + "bias"][5] = 1
    assert torch.equal(dequantise(reading(quantisation, tensors, (96, 256))), meant)
    with pytest.raises(ModelError, match="bias is not zero"):
        reading(quantisation, tensors, (96, 256), biased=False)


def test_groups_too_small_for_kernels_are_refused() -> None:
    tensors, _ = stored(KINDS["w4a16"], (96, 72))
    with pytest.raises(ModelError, match=r"down_proj\.weight has 72 inputs in groups of 64"):
        reading(parsed(**KINDS["w4a16"].config), tensors, (96, 72))
