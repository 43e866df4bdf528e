"""What the metadata of GGUF files say has an effect, is refused by name, or is named in the log."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.architecture.rope import RopeSpec
from engine.checkpoints.gguf_metadata import UNREAD
from engine.checkpoints.gguf_source import GgufSource
from engine.checkpoints.source import open_source
from engine.errors import ModelError
from tests.support.gguf_files import all_keys, floats, small, write

KEY = "tokenizer.ggml."
GUIDE = Path(__file__).parents[2] / "docs" / "guide.md"


def source_of(path: Path, tensors: dict[str, Any] | None = None, **fields: Any) -> GgufSource:
    """The source of a small file; `fields` without the architecture are its own."""
    own, weights = small()
    own |= {key if key.startswith(("tokenizer", "general")) else f"llama.{key}": value for key, value in fields.items()}
    return GgufSource(write(path / "x.gguf", own, weights | (tensors or {})), "x")


def rope_of(path: Path, **fields: Any) -> RopeSpec:
    return source_of(path, **{f"rope.{key}": value for key, value in fields.items()}).spec.rope


# ---- RoPE


def rotation(pair: int, dimensions: int, **scaling: Any) -> tuple[float, float]:
    """Radians per position and magnitude of a pair, by the definition of llama.cpp's rope with YaRN."""
    get = {"factor": 1, "divisor": 1, "fast": 32, "slow": 1, "original": 64, "log": 0, "attn": 1, "yarn": 0} | scaling
    own = 10000 ** (-2 * pair / dimensions) / get["divisor"]
    if not get["yarn"]:
        return own / get["factor"], get["attn"]

    def bound(turns: float) -> float:
        return dimensions * math.log(get["original"] / (turns * 2 * math.pi)) / (2 * math.log(10000))

    low, high = max(0, math.floor(bound(get["fast"]))), min(dimensions - 1, math.ceil(bound(get["slow"])))
    share = 1 - min(1, max(0, (pair - low) / max(0.001, high - low)))
    size = (0.1 * math.log(get["factor"]) + 1) / (0.1 * get["log"] * math.log(get["factor"]) + 1)
    return own / get["factor"] * (1 - share) + own * share, size * get["attn"]


YARN = {"scaling.type": "yarn", "scaling.factor": 4.0}
SCALINGS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "none": ({}, {}),
    "the old key": ({"scale_linear": 4.0}, {"factor": 4}),
    "a factor of the type linear": ({"scaling.type": "linear", "scaling.factor": 4.0}, {"factor": 4}),
    "a factor without a type": ({"scaling.factor": 4.0}, {"factor": 4}),
    "both keys": ({"scaling.factor": 4.0, "scale_linear": 8.0}, {"factor": 4}),
    "a factor of 0": ({"scaling.factor": 0.0}, {}),
    "a factor of the type none": ({"scaling.type": "none", "scaling.factor": 4.0}, {}),
    "magnitude": ({"scaling.attn_factor": 1.5}, {"attn": 1.5}),
    "YaRN": (YARN, {"yarn": 1, "factor": 4}),
    "YaRN by the old key": ({"scaling.type": "yarn", "scale_linear": 4.0}, {"yarn": 1, "factor": 4}),
    "YaRN's length": (YARN | {"scaling.original_context_length": 16}, {"yarn": 1, "factor": 4, "original": 16}),
    "YaRN's bounds": (
        YARN | {"scaling.yarn_beta_fast": 8.0, "scaling.yarn_beta_slow": 2.0},
        {"yarn": 1, "factor": 4, "fast": 8, "slow": 2},
    ),
    "YaRN's magnitude": (
        YARN | {"scaling.attn_factor": 0.5, "scaling.yarn_log_multiplier": 0.7},
        {"yarn": 1, "factor": 4, "log": 0.7, "attn": 0.5},
    ),
}


@pytest.mark.parametrize("name", SCALINGS)
@pytest.mark.parametrize("divisors", [(1.0, 1.0), (0.5, 7.0)])
def test_scaling_of_rope_is_that_of_llama_cpp(name: str, divisors: tuple[float, ...], tmp_path: Path) -> None:
    fields, scaling = SCALINGS[name]
    tensors = {} if divisors == (1, 1) else {"rope_freqs.weight": floats(torch.tensor(divisors))}
    rope = source_of(tmp_path, tensors, **{f"rope.{key}": value for key, value in fields.items()}).spec.rope
    wanted = [rotation(i, 4, divisor=divisor, **scaling) for i, divisor in enumerate(divisors)]
    assert rope.inverse_frequencies(4).tolist() == pytest.approx([radians for radians, _ in wanted], rel=1e-6)
    assert rope.magnitude == pytest.approx(wanted[0][1])


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"scaling.yarn_ext_factor": 0.5}, r"llama\.rope\.scaling\.yarn_ext_factor is 0\.5; only -1 or 1 is supported"),
        ({"scaling.yarn_attn_factor": 0.5}, r"llama\.rope\.scaling\.yarn_attn_factor is 0\.5; only 1 is supported"),
        ({"scaling.alpha": 1000.0}, r"llama\.rope\.scaling\.alpha is 1000\.0"),
        ({"scaling.attn_factor": -1.0}, r"factor -1\.0 in llama\.rope\.scaling\.attn_factor; it must be positive"),
        ({"dimension_sections": [1, 1, 0, 0]}, r"llama\.rope\.dimension_sections"),
        ({"dimension_count": 2}, "RoPE rotates 2 of 4 dimensions"),
    ],
)
def test_other_scaling_of_rope_is_refused_by_name(fields: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=says):
        rope_of(tmp_path, **fields)


@pytest.mark.parametrize("shape", [(0,), (1,), (3,), (2, 1)])
def test_divisors_of_another_shape_are_refused(shape: tuple[int, ...], tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"x\.gguf: rope_freqs\.weight is F32 .*; it must be 2 floats"):
        source_of(tmp_path, {"rope_freqs.weight": floats(torch.ones(shape))})


# ---- every key


def seen(path: Path, fields: dict[str, Any]) -> Any:
    """All that a file's source gives to the engine."""
    source = source_of(path, **fields)
    tokenizer = json.loads(source.tokenizer.backend.to_str())
    templates = source.tokenizer.__dict__["_templates"], source.tokenizer.__dict__["_special"]
    return source.spec, source.eos_token_ids, source.sampling_defaults, tokenizer, templates


@pytest.mark.slow
def test_no_key_is_ignored_silently(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Some value of each key of the format has an effect, is refused or logged by name, or is listed as harmless."""
    # Without these, some keys have nothing to act on.
    base = {"rope.scaling.type": "yarn", "rope.scale_linear": 4.0}
    base |= {KEY + "bos_token_id": 5, "tokenizer.chat_template.rag": "x"}
    plain, silent = seen(tmp_path, base), []
    for key in all_keys():
        if key.replace("llama.", "{}.", 1) in UNREAD[()] or key.endswith("_token_id"):
            continue
        for value in (0.75, 7, True, "odd", [1, 2], ["rag"]):
            caplog.clear()
            try:
                if seen(tmp_path, base | {key.removeprefix("llama."): value}) != plain or key in caplog.text:
                    break
            except ModelError as error:
                # A value of another type says nothing about the key; a shape that is impossible does.
                if "must be" not in str(error) or "impossible" in str(error):
                    break
        else:
            silent.append(key)
    assert not silent


@pytest.mark.parametrize("name", [name for off, names in UNREAD.items() for name in names if off])
def test_a_feature_that_is_missing_is_refused_unless_it_is_off(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    key = name.replace("{}.", "")
    off = next(values for values, names in UNREAD.items() if name in names)
    for value in off:
        source_of(tmp_path, **{key: value if key.endswith("ions") else float(value)})
    source_of(tmp_path, **{key: [off[0]]})
    with pytest.raises(ModelError, match=rf"x\.gguf: {re.escape(name.format('llama'))} is 0\.5; only .* supported"):
        source_of(tmp_path, **{key: 0.5})
    assert not caplog.records


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"attention.value_length": 2}, r"llama\.attention\.value_length is 2; only 4"),
        ({"attention.scale": 0.25}, r"llama\.attention\.scale is 0\.25; only 0\.5"),
        ({"attention.sliding_window": 32}, r"llama\.attention\.sliding_window is 32"),
        ({"attention.layer_norm_rms_epsilon": None}, r"lacks llama\.attention\.layer_norm_rms_epsilon"),
    ],
)
def test_attention_of_another_kind_is_refused(fields: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=says):
        source_of(tmp_path, **fields)
    usual = {"attention.value_length": 4, "attention.scale": 0.5, "attention.sliding_window": 64}
    assert source_of(tmp_path, **usual).spec == source_of(tmp_path).spec


def test_keys_without_effect_are_named_in_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    fields = {
        "of_the_future": 1,
        KEY + "new": "x",
        "general.sampling.mirostat": 2,
        "general.author": "me",
        "other.x": 1,
    }
    own, tensors = small()
    path = write(
        tmp_path / "x.gguf", own | {("llama." * (k == "of_the_future")) + k: v for k, v in fields.items()}, tensors
    )
    GgufSource(path, "x")
    (line,) = caplog.messages
    assert line.endswith("here: general.sampling.mirostat, llama.of_the_future, tokenizer.ggml.new")
    caplog.clear()
    GgufSource(path, "x", defaults=False)
    assert "mirostat" not in caplog.text


def test_a_file_without_a_pre_tokenizer_says_how_text_is_split(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source_of(tmp_path, **{KEY + "pre": None})
    assert "x.gguf lacks tokenizer.ggml.pre: text is split as for GPT-2" in caplog.text


def test_the_guide_lists_every_key_that_is_treated() -> None:
    text = GUIDE.read_text("utf-8")
    listed = set(re.findall(r"`([^`\s]+)`", text[text.index("### Metadata of GGUF files") :].split("\n### ")[0]))
    treated = {name for names in UNREAD.values() for name in names}
    assert {name.removeprefix("{}.").removeprefix(KEY) for name in treated} <= {
        name.removeprefix(KEY) for name in listed
    }


# ---- sampling

NAMES = {
    "temp": "temperature",
    "penalty_repeat": "repetition_penalty",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
}


def sampling(**values: Any) -> dict[str, Any]:
    return {f"general.sampling.{key}": value for key, value in values.items()}


def test_sampling_defaults_come_from_the_metadata(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    values = {"temp": 0.5, "top_k": 20, "top_p": 0.75, "min_p": 0.25, "penalty_repeat": 1.125}
    source = source_of(tmp_path, **sampling(**values))
    assert dict(source.sampling_defaults) == {NAMES[key]: value for key, value in values.items()}
    assert source_of(tmp_path).sampling_defaults == ()
    assert not caplog.records
    own, tensors = small()
    path = str(write(tmp_path / "x.gguf", own | sampling(temp=99.0), tensors))
    with pytest.raises(ModelError, match=r"x\.gguf: general\.sampling\.temp is 99\.0; it must be a number, at least 0"):
        open_source(path, defaults=True)
    assert open_source(path, defaults=False).sampling_defaults == ()


@pytest.mark.parametrize("key", NAMES)
@pytest.mark.parametrize("value", ["hot", -2.0, float("nan"), float("inf"), True, [1.0]])
def test_sampling_defaults_out_of_range_are_refused(key: str, value: Any, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=rf"^x\.gguf: general\.sampling\.{key} "):
        source_of(tmp_path, **sampling(**{key: value}))
