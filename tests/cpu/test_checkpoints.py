"""Real and damaged config.json and safetensors files: each is read, or refused with a typed error."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import LlamaConfig, MistralConfig, PreTrainedConfig, Qwen2Config, Qwen3Config

from engine.architecture.spec import ModelSpec, load_spec, parse_spec
from engine.checkpoints import hub
from engine.checkpoints.generation import sampling_defaults
from engine.config.engine import EngineConfig
from engine.errors import ConfigError, ModelError
from engine.kv.cache import PagedCache
from engine.kv.pages import CacheSize
from tests.support.cores import GREEDY, answer, load, tiny_model

BASE: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "max_position_embeddings": 64,
}
LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}


def spec_of(**changes: Any) -> ModelSpec:
    return parse_spec(BASE | changes)


@pytest.mark.parametrize("kind", ["type", "rope_type"])
def test_older_names_in_a_config_mean_the_same(kind: str) -> None:
    new = spec_of(rope_parameters={"rope_type": "llama3", "rope_theta": 5e5} | LLAMA3, dtype="bfloat16")
    old = spec_of(rope_theta=5e5, rope_scaling={kind: "llama3"} | LLAMA3, torch_dtype="bfloat16")
    assert new == old
    assert spec_of(rope_theta=1e6) == spec_of(rope_parameters={"rope_type": "default", "rope_theta": 1e6})
    assert spec_of(rope_scaling=None) == spec_of()


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        (LlamaConfig, {}),
        (LlamaConfig, {"rope_parameters": {"rope_type": "llama3", "rope_theta": 5e5} | LLAMA3}),
        (LlamaConfig, {"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0}}),
        (MistralConfig, {}),
        (MistralConfig, {"sliding_window": None}),
        (Qwen2Config, {}),
        (Qwen2Config, {"use_sliding_window": True, "max_window_layers": 3}),
        (Qwen3Config, {}),
    ],
)
@pytest.mark.parametrize("spelled_out", [True, False])
def test_absent_keys_of_a_config_mean_transformers_defaults(
    family: type[PreTrainedConfig], changes: dict[str, Any], spelled_out: bool
) -> None:
    """A config with only the changed keys is read as transformers reads it."""
    known = {k: v for k, v in BASE.items() if k not in ("architectures", "num_key_value_heads")}
    config = family(**known, **changes, num_key_value_heads=2)
    given_ = config.to_dict() if spelled_out else known | changes | {"num_key_value_heads": 2}
    spec = parse_spec(given_ | {"architectures": [family.__name__.replace("Config", "ForCausalLM")]})
    assert (spec.head_dim, spec.kv_heads, spec.max_positions) == (
        getattr(config, "head_dim", None) or 16,
        config.num_key_value_heads,
        config.max_position_embeddings
        * int(config.rope_parameters.get("factor", 1) if spec.rope.type == "yarn" else 1),
    )
    windows = getattr(config, "layer_types", None) or ["sliding_attention"] * 4
    window = getattr(config, "sliding_window", None)
    assert spec.windows == (tuple(window if w[0] == "s" else 0 for w in windows) if window else ())
    assert (spec.norm_eps, spec.tied) == (config.rms_norm_eps, config.tie_word_embeddings)
    assert spec.rope.theta == config.rope_parameters["rope_theta"]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"architectures": ["GPT2LMHeadModel"]}, "GPT2LMHeadModel is not supported; supported: LlamaForCausalLM, Mistral"),
    ({"architectures": ["MixtralForCausalLM"], "num_local_experts": 8}, "mixture-of-experts.*MixtralForCausalLM"),
    ({"architectures": ["Qwen3MoeForCausalLM"], "num_experts": 8}, "mixture-of-experts"),
    ({"architectures": None}, "none named"),
    ({"architectures": "LlamaForCausalLM"}, "none named"),
    ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "dynamic.*frequencies depend on the length"),
    ({"rope_scaling": {"type": "longrope"}}, "longrope"),
    ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, "lacks 'low_freq_factor'"),
    ({"rope_scaling": {"rope_type": "linear", "factor": 0}}, "RoPE scaling has the factor 0.0"),
    ({"rope_scaling": {"rope_type": ["a"]}}, r"\['a'\]"),
    ({"rope_theta": -1}, "rope_theta"),
    ({"rope_scaling": {"type": "yarn", "factor": 4.0, "beta_fast": float("inf")}}, "beta_fast"),
    ({"rope_scaling": {"type": "yarn", "factor": 4.0, "beta_slow": float("nan")}}, "beta_slow"),
    ({"rope_scaling": {"type": "yarn", "factor": 4.0, "attention_factor": float("nan")}}, "attention factor"),
    ({"rope_scaling": {"type": "yarn", "factor": math.e, "mscale": 1, "mscale_all_dim": -10}}, "attention factor"),
    ({"num_hidden_layers": 10**6}, "num_hidden_layers is 1000000; the limit is 2000"),
    ({"partial_rotary_factor": 0.5}, "partial_rotary_factor"),
    ({"hidden_act": "gelu"}, "gelu"),
    ({"torch_dtype": "float8_e4m3fn"}, "float8_e4m3fn"),
    ({"num_attention_heads": 3}, "impossible"),
    ({"num_attention_heads": 0}, "num_attention_heads"),
    ({"hidden_size": "wide"}, "hidden_size is 'wide'; it must be a whole number from 0"),
    ({"vocab_size": None}, "lacks 'vocab_size'"),
    ({"num_hidden_layers": 10**30}, "num_hidden_layers is 1000.*; it must be a whole number from 0 to 2147483647"),
    ({"rms_norm_eps": float("nan")}, "rms_norm_eps"),
    ({"eos_token_id": "</s>"}, "eos_token_id is '</s>'; it must be"),
]


@pytest.mark.parametrize(("change", "says"), REFUSED, ids=[says for _, says in REFUSED])
def test_an_unsupported_config_is_refused_by_name(change: dict[str, Any], says: str) -> None:
    spec_of()
    with pytest.raises(ModelError, match=says):
        spec_of(**change)


def test_yarn_extends_the_context_as_model_cards_say() -> None:
    """Model cards add the scaling and keep max_position_embeddings; the scaling wins, as in transformers."""
    card = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
    saved = {"rope_type": "default", "rope_theta": 1e6}
    assert spec_of(rope_scaling=card).max_positions == 256
    assert spec_of(rope_scaling=card, max_position_embeddings=1000).max_positions == 1000
    both = spec_of(rope_scaling=card, rope_parameters=saved)
    assert both.rope.type == "yarn"


def test_windows_by_layer_must_fit_the_layers() -> None:
    qwen = {"architectures": ["Qwen2ForCausalLM"], "use_sliding_window": True, "sliding_window": 8}
    assert spec_of(**qwen, layer_types=["full_attention", "sliding_attention"] * 2).windows == (0, 8, 0, 8)
    for kinds, says in (
        (["full_attention"], "must have 4 entries"),
        (["chunked"] * 4, "chunked"),
        ("sliding", "must have 4 entries"),
    ):
        with pytest.raises(ModelError, match=says):
            spec_of(**qwen, layer_types=kinds)


# ---- files


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("whole")
    tiny_model(directory)
    return directory


def copy_of(whole: Path, target: Path) -> Path:
    for path in whole.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    return target


def refuse(directory: Path, says: str) -> None:
    with pytest.raises(ModelError, match=says):
        load(torch.float32, model=directory)


def test_missing_unexpected_and_misshapen_tensors_are_named(whole: Path, tmp_path: Path) -> None:
    path = copy_of(whole, tmp_path) / "model.safetensors"
    tensors = load_file(path)
    name = "model.layers.1.mlp.up_proj.weight"
    for damaged, says in (
        ({k: v for k, v in tensors.items() if k != name}, "lacks 1 tensors, first " + name),
        (tensors | {"model.extra": torch.zeros(1)}, "unexpected 1 tensors, first model.extra"),
        (tensors | {name: torch.zeros(3, 3)}, name + r" in model.safetensors is \[3, 3\]"),
        (tensors | {name: tensors[name].to(torch.int8)}, name + " in model.safetensors is I8, and config.json has"),
        (tensors | {name: tensors[name].to(torch.float8_e4m3fn)}, name + " in model.safetensors is F8_E4M3, and"),
    ):
        save_file(damaged, path)
        refuse(tmp_path, says)


def test_a_sharded_checkpoint_equals_one_file(whole: Path, tmp_path: Path) -> None:
    tensors = load_file(whole / "model.safetensors")
    copy_of(whole, tmp_path)
    (tmp_path / "model.safetensors").unlink()
    names = sorted(tensors)
    parts = {f"model-0000{i + 1}-of-00003.safetensors": names[i::3] for i in range(3)}
    for file, own in parts.items():
        save_file({name: tensors[name] for name in own}, tmp_path / file)
    index = {"weight_map": {name: file for file, own in parts.items() for name in own}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    one, several = load(torch.float32, model=whole), load(torch.float32, model=tmp_path)
    x = torch.randn(3, 64, generator=torch.Generator().manual_seed(0))
    assert torch.equal(one.decoder.head(one.decoder.mlp(2, x)), several.decoder.head(several.decoder.mlp(2, x)))

    file = tmp_path / next(iter(parts))
    file.write_bytes(file.read_bytes()[:-100])
    refuse(tmp_path, f"cannot read {file}.*is the download complete")
    file.unlink()
    refuse(tmp_path, f"has no {file.name}")
    for bad in ([], {}, *({"weight_map": value} for value in (None, {}, {"a": "../x.safetensors"}, {"a": 3}))):
        (tmp_path / "model.safetensors.index.json").write_text(json.dumps(bad))
        refuse(tmp_path, "index.json")


@pytest.mark.parametrize(("file", "says"), [("model.gguf", "give --model its path"), ("pytorch_model.bin", ".bin")])
def test_a_checkpoint_of_another_format_is_refused_by_name(whole: Path, tmp_path: Path, file: str, says: str) -> None:
    (copy_of(whole, tmp_path) / "model.safetensors").rename(tmp_path / file)
    refuse(tmp_path, says)
    (tmp_path / "x.bin").touch()
    with pytest.raises(ModelError, match=r"x\.bin is a file; --model takes a checkpoint's directory, a \.gguf file"):
        hub.resolve(str(tmp_path / "x.bin"))


# ---- names, defaults, memory


def test_a_name_that_is_neither_a_path_nor_a_hub_id_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    for name, says in (
        ("./nothing", "nothing does not exist"),
        ("nothing", "nothing does not exist, and 'nothing' is not a hub id"),
        ("a b/c", "not a hub id"),
        ("owner/name", "cannot download owner/name: the hub is unreachable.*hf download owner/name"),
    ):
        with pytest.raises(ModelError, match=says):
            hub.resolve(name)
    assert hub.display_name("owner/name") == "owner/name"
    assert hub.display_name(str(tmp_path)) == tmp_path.name


def test_sampling_defaults_come_from_generation_config(tmp_path: Path) -> None:
    def given_(**values: Any) -> dict[str, float]:
        (tmp_path / "generation_config.json").write_text(json.dumps(values))
        return dict(sampling_defaults(tmp_path))

    assert sampling_defaults(tmp_path) == ()
    assert given_(temperature=0.6, top_p=0.95, top_k=20, max_new_tokens=64, do_sample=True) == {
        "temperature": 0.6,
        "top_p": 0.95,
        "top_k": 20,
        "max_tokens": 64,
    }
    assert given_(temperature=None) == {}
    assert given_(repetition_penalty=1.1, min_p=0.05) == {"repetition_penalty": 1.1, "min_p": 0.05}
    for bad in ({"temperature": "hot"}, {"top_k": 1.5}, {"top_p": -1}, {"top_p": 0}, {"max_new_tokens": True}):
        with pytest.raises(ModelError, match=next(iter(bad))):
            given_(**bad)


def test_sampling_defaults_can_be_ignored(whole: Path, tmp_path: Path) -> None:
    copy_of(whole, tmp_path)
    (tmp_path / "generation_config.json").write_text('{"temperature": 0.5, "eos_token_id": [7, 9]}')
    wanted = load(torch.float32, model=tmp_path)
    assert wanted.core(EngineConfig()).info.sampling_defaults == (("temperature", 0.5),)
    (tmp_path / "generation_config.json").write_text('{"temperature": 99, "eos_token_id": [7, 9]}')
    refuse(tmp_path, "temperature is 99; it must be a number, at least 0 and at most 2")
    left_out = load(torch.float32, model=tmp_path, generation_config="none")
    assert left_out.core(EngineConfig()).info.sampling_defaults == ()


def test_end_tokens_come_from_generation_config_and_the_tokenizer(whole: Path, tmp_path: Path) -> None:
    """A fine-tune's turns often end with a token that only its tokenizer config names."""
    copy_of(whole, tmp_path)
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [7, 9]}')
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": {"content": "<|user|>"}, "add_bos_token": true}')
    user = load(model=tmp_path).tokenizer.backend.token_to_id("<|user|>")
    assert load(model=tmp_path).core(EngineConfig()).info.eos_token_ids == (*sorted((user, 7, 9)),)


def test_truncation_and_padding_of_a_tokenizer_file_are_ignored(whole: Path, tmp_path: Path) -> None:
    path = copy_of(whole, tmp_path) / "tokenizer.json"
    backend = Tokenizer.from_file(str(path))
    want = backend.encode("a long enough prompt").ids
    backend.enable_truncation(3)
    backend.enable_padding(length=64)
    backend.save(str(path))
    assert load(model=tmp_path).tokenizer.encode("a long enough prompt") == want


def test_a_config_is_checked_before_the_weights_are_downloaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An unsupported model costs no download, and a failed download is a typed error."""
    asked: list[list[str]] = []

    def download(name: str, *, revision: str | None, allow_patterns: list[str]) -> str:
        asked.append(allow_patterns)
        if len(asked) > 1:
            raise RuntimeError("connection reset\nby peer")
        return str(tmp_path)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    (tmp_path / "config.json").write_text(json.dumps(BASE | {"num_local_experts": 8}))
    with pytest.raises(ModelError, match="mixture-of-experts"):
        hub.resolve("owner/name@main")
    assert not any("safetensors" in pattern for pattern in asked[0])
    asked.clear()
    (tmp_path / "config.json").write_text(json.dumps(BASE))
    with pytest.raises(ModelError, match=r"cannot download owner/name: connection reset$"):
        hub.resolve("owner/name")
    assert "model*.safetensors" in asked[1]


def test_a_cache_takes_no_memory_until_it_is_written(whole: Path) -> None:
    size = CacheSize(32, 1 << 14, 16, 1 << 26, 1 << 18)
    cache = PagedCache(load_spec(whole), size, torch.float32, torch.device("cpu"))  # a terabyte
    cache.fill(31, 4)
    assert cache.read([31], 0, 4)[0][0].abs().sum() > 0


def test_too_little_memory_is_refused_before_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.runtime.loading.memory.free_memory", lambda device: 1 << 20)
    with pytest.raises(ConfigError, match="GiB are free on cpu"):
        load()


@pytest.mark.slow
def test_the_context_is_limited_to_memory_unless_a_length_is_set(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tiny_model(tmp_path, max_position_embeddings=100_000)
    model = load(torch.float32, model=tmp_path, kv_cache_memory=1 << 22)
    room = (1 << 22) // (4 * 2 * 2 * 16 * 4)
    assert model.length == room
    assert f"limited to {room} of the model's 100000 tokens" in caplog.text
    core = model.core(EngineConfig())
    assert len(answer(core, [(5,) * (room - 64)], GREEDY, ["none"])[0]) == 64
    with pytest.raises(ConfigError, match=r"one context of 5000 tokens takes .* lower --max-model-len"):
        load(torch.float32, model=tmp_path, kv_cache_memory=1 << 20, max_model_len=5000)
