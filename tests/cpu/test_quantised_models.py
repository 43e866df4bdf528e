"""A quantised model equals the plain model of its dequantised weights."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from engine.kernels.library import compiler
from engine.model.attention import Segment
from tests.support.cores import load
from tests.support.quantised_checkpoints import KINDS, write_quantised

CHECKED = ("awq", "fp8", "gptq-act-order")
OFTEN = [pytest.param(kind, marks=[] if kind in CHECKED else pytest.mark.nightly) for kind in KINDS]
TOKENS = torch.randint(0, 3072, (100,), generator=torch.Generator().manual_seed(1)).tolist()


def twins(directory: Path, kind: str) -> tuple[Path, Path]:
    """Directories of the quantised model and of its dequantised twin in float32."""
    quantised, plain = directory / "quantised", directory / "plain"
    meant = write_quantised(quantised, kind, vocab=3072)
    shutil.copytree(quantised, plain)
    save_file({name: tensor.float().contiguous() for name, tensor in meant.items()}, plain / "model.safetensors")
    config = json.loads((quantised / "config.json").read_text("utf-8"))
    assert config.pop("quantization_config") == KINDS[kind].config
    (plain / "config.json").write_text(json.dumps(config | {"dtype": "float32"}), "utf-8")
    return quantised, plain


@torch.inference_mode()
def logits(directory: Path, dtype: torch.dtype, kernels: str = "torch") -> Tensor:
    model = load(dtype, model=directory, kernels=kernels)
    x = model.decoder.run(model.decoder.embed(TOKENS), model.attention.prepare([Segment(0, 0, len(TOKENS))]))
    return model.decoder.head(x)


def error(found: Tensor, wanted: Tensor) -> float:
    return float((found - wanted).norm() / wanted.norm())


@pytest.mark.slow
@pytest.mark.parametrize("kind", OFTEN)
def test_quantised_models_equal_their_dequantised_twins(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    quantised, plain = twins(tmp_path, kind)
    wanted = logits(plain, torch.float32)
    assert error(logits(quantised, torch.float32), wanted) < 1e-5
    if compiler() is None:
        return
    caplog.clear()
    packed = logits(quantised, torch.bfloat16, "native")
    assert error(packed, wanted) < 0.02
    assert (packed.argmax(1) == wanted.argmax(1)).float().mean() > 0.9
    assert "expanded to" not in caplog.text


@pytest.mark.skipif(compiler() is None, reason="needs a C++ compiler")
@pytest.mark.parametrize("kind", ["w4a16", pytest.param("gptq", marks=pytest.mark.nightly)])
def test_matrices_stay_packed(kind: str, tmp_path: Path) -> None:
    quantised, plain = twins(tmp_path, kind)
    packed, whole = (load(torch.bfloat16, model=path, kernels="native") for path in (quantised, plain))
    matrices = 2 * (256 * 256 * 2 + 128 * 256 * 2 + 3 * 512 * 256)
    saved = whole.decoder.weights.nbytes - packed.decoder.weights.nbytes
    assert abs(saved - matrices * (2 - 0.5 - 2 / 64)) < 0.05 * matrices
    assert packed.key.dtype.startswith("bfloat16-")
    assert packed.source.fingerprint != whole.source.fingerprint
