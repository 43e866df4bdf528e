"""Random weights in real models' shapes, to measure speed where no checkpoint can be had.

`--model synthetic:NAME[,seed=0][,layers=N][,quant=q4_0]`. A pass costs what a pass of the real model costs. The text
means nothing, and neither does the acceptance of drafts. Label every figure taken with such a model as synthetic.
"""

import math
import zlib
from dataclasses import replace

import torch
from torch import Tensor

from engine.checkpoints.shapes import SyntheticModel
from engine.model.weights import expected_tensors
from engine.quantised.formats import GGUF_FORMATS
from engine.quantised.packed import PackedRows, dequantise
from engine.sampling.seeds import mix64


class RandomWeights:
    """`CheckpointWeights` of a synthetic model, each tensor drawn from the seed and its name.

    Embedding and head are separate even in tied shapes; the cost is the same.
    """

    interleaved = False

    def __init__(self, model: SyntheticModel, dtype: torch.dtype, device: torch.device) -> None:
        self._model, self._dtype, self._device = model, dtype, device
        self.spec = replace(model.spec, tied=False)
        self._shapes = expected_tensors(self.spec)
        self._generator = torch.Generator(device)

    def mapped(self, name: str) -> Tensor:
        packed = self.packed_rows(name)
        return self._floats(name) if packed is None else dequantise(packed).to(self._device, self._dtype)

    def packed_rows(self, name: str) -> PackedRows | None:
        shape, quant = self._shapes[name], self._model.quant
        if not quant or len(shape) == 1 or "embed" in name:
            return None
        from gguf import GGMLQuantizationType
        from gguf.quants import quantize

        rows = quantize(self._floats(name).float().cpu().numpy(), GGMLQuantizationType[quant])
        return PackedRows(GGUF_FORMATS[quant], torch.from_numpy(rows), shape[1])

    def release(self, name: str) -> None:
        """Do nothing: no file is mapped."""

    def _floats(self, name: str) -> Tensor:
        """Draw a matrix [out, in], or fill a vector [n]."""
        shape = self._shapes[name]
        if len(shape) == 1:  # biases cost the same whatever they are
            return torch.full(shape, 1.0 if "norm" in name else 0.0, dtype=self._dtype, device=self._device)
        self._generator.manual_seed(mix64(mix64(self._model.seed) ^ zlib.crc32(name.encode())) >> 1)
        std = 1.0 if "embed" in name else 1 / math.sqrt(shape[1])
        return torch.empty(shape, dtype=self._dtype, device=self._device).normal_(0.0, std, generator=self._generator)
