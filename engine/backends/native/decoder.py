"""The decoder whose passes are single calls of the native library. The residual stream is float32."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, cast

import torch
from torch import Tensor

from engine.architecture.spec import LOW_BIT, RECENT, SINKS, SKIP, TARGET, WINDOW, ModelSpec, Variants
from engine.backends.native.attention import NativeAttention, NativeBatch, NativeCache
from engine.backends.native.linear import PANEL, NativeLinear, packed_format, row_addresses
from engine.kernels import structures as native
from engine.model.attention import Attention, AttentionBatch, Segment
from engine.model.decoder import Decoder, LayerWeights
from engine.model.linear import Linear
from engine.model.passes import Drafted, DraftRequest, Draws, OnWait, Verified
from engine.model.search import Row, SearchTable
from engine.quantised.packed import PackedRows
from engine.sampling.logits import MASK_BELOW_CONFIDENCE
from engine.sampling.sample import draft_noise, sample, sampling_array

_VARIANTS = (SKIP, TARGET, LOW_BIT, WINDOW)


def fits(spec: ModelSpec) -> bool:
    """Whether the kernels can run this shape: they take whole vectors."""
    return spec.intermediate % PANEL == 0 and spec.head_dim % PANEL == 0 and spec.hidden % 2 == 0


class NativeDecoder(Decoder):
    """A `Decoder` over `NativeLinear`s and the batches of a `NativeAttention`."""

    drafts_in_one_call = True

    def __init__(
        self,
        spec: ModelSpec,
        dtype: torch.dtype,
        embedding: Tensor | PackedRows,
        layers: Sequence[LayerWeights],
        norm: Tensor,
        head: Linear,
    ) -> None:
        """`embedding` [vocab, hidden] may be packed, in the file's own memory: rows are looked up."""
        self._lookup = embedding if isinstance(embedding, PackedRows) else None
        rows = embedding.rows if isinstance(embedding, PackedRows) else embedding
        super().__init__(spec, dtype, rows, layers, norm.float(), head)
        made_by = cast(NativeLinear, head).made_by
        self._library, self._team = made_by.library, made_by.executor
        self._kept: list[Tensor] = []  # what the structures point to
        self._structs = (native.Layer * spec.layers)(*(self._layer(i, w) for i, w in enumerate(layers)))
        self._all = bytes(spec.whole)
        sizes = (spec.layers, spec.hidden, spec.heads, spec.kv_heads, spec.head_dim, spec.intermediate, RECENT, SINKS)
        self._edits = _Edits(spec.vocab)
        self._rooms: dict[tuple[int, int], _DraftRoom] = {}
        self._ends_of: tuple[NativeAttention, list[Linear]] | None = None
        self._ends_made: Any = None
        self._model = ctypes.byref(native.Model(*sizes, spec.norm_eps, self._structs))

    def _layer(self, index: int, weights: LayerWeights) -> native.Layer:
        def pointer(tensor: Tensor) -> int:
            self._kept.append(tensor.float().contiguous())
            return self._kept[-1].data_ptr()

        layer = native.Layer(
            attention_norm=pointer(weights.attention_norm),
            mlp_norm=pointer(weights.mlp_norm),
            qk_norm=None if weights.qk_norm is None else pointer(weights.qk_norm),
            window=self.spec.windows[index] if self.spec.windows else 0,
        )
        _place(weights, layer, TARGET)
        return layer

    def add_low_bit(self, layers: Sequence[LayerWeights], head: Linear) -> None:
        super().add_low_bit(layers, head)
        for weights, layer in zip(layers, self._structs, strict=True):
            _place(weights, layer, LOW_BIT)
        self._ends_of = None

    @property
    def packed(self) -> Sequence[Tensor]:
        linears = [linear for w in self._layers[TARGET] for linear in (w.qkv, w.output, w.gate_up, w.down)]
        return [weight for linear in (*linears, self._heads[TARGET]) for weight in cast(NativeLinear, linear).weights]

    @property
    def weight_bytes(self) -> int:
        return sum(weight.nbytes for weight in self.packed)

    def embed_ids(self, tokens: Tensor) -> Tensor:
        if self._lookup is not None:
            return self._read_rows(self._lookup.select(tokens))
        return self._embedding.index_select(0, tokens).float()

    def _read_rows(self, packed: PackedRows) -> Tensor:
        """Packed weights as float32 [rows, inputs]."""
        out, addresses = torch.empty(packed.shape), row_addresses(packed)
        self._library.read_rows(packed_format(packed), addresses.ctypes.data, *packed.shape, out.data_ptr())
        return out

    def run(self, x: Tensor, batch: AttentionBatch, record: list[Tensor] | None = None) -> Tensor:
        records = None
        if record is not None:
            records = x.new_empty(self.spec.sublayers + 1, *x.shape)
            record += records.unbind(0)
        return self._pass(x, batch, self._all, records=records)

    def run_plan(self, x: Tensor, batch: AttentionBatch, variants: Variants) -> Tensor:
        return self._pass(x, batch, bytes(variants))

    def run_plans(self, x: Tensor, batch: AttentionBatch, plans: Sequence[Variants]) -> Tensor:
        if all(plan == plans[0] for plan in plans):
            return self._pass(x, batch, bytes(plans[0]))
        return self._pass(x, batch, b"".join(map(bytes, plans)), stride=self.spec.sublayers + 1)

    def sublayer(self, index: int, x: Tensor, batch: AttentionBatch, variant: int = TARGET) -> Tensor:
        return self._pass(x, batch, bytes([variant]) * len(self._all), first=index, last=index + 1)

    def fill_rows(self, table: SearchTable, batch_of: Callable[[int], AttentionBatch], count: int) -> None:
        if not table.beam:  # a row of any width
            super().fill_rows(table, batch_of, count)
            return
        b, beam, (live, rows, hidden) = cast(NativeBatch, batch_of(table.beam)), table.beam, table.states.shape
        assert b.rows == beam * rows
        assert b.read_only
        assert table.states.dtype == table.directions.dtype == torch.float32
        first = len(table.rows)
        count = min(count, len(table.menus) - first)
        states, directions = torch.empty((1 + len(_VARIANTS)) * beam, rows, hidden), table.directions.contiguous()
        states[:live] = table.states
        saved = (ctypes.c_int64 * ((count + 1) * beam))(*table.saved)
        saves = [menu.get(variant, -1) for menu in table.menus for variant in _VARIANTS]
        lives = (ctypes.c_int32 * (count + 1))(live)
        source, variants = (ctypes.c_int32 * len(saved))(), (ctypes.c_uint8 * len(saved))()
        asked = native.SearchTable(
            directions=directions.data_ptr(),
            saves=(ctypes.c_int64 * len(saves))(*saves),
            states=states.data_ptr(),
            cosines=(cosines := (ctypes.c_float * beam)()),
            saved=saved,
            live=lives,
            source=source,
            variant=variants,
            tau=table.tau,
            capacity=table.capacity,
            beam=beam,
            rows=rows,
        )
        passed = _described(b, states, self._all, 0, first, first + count)
        self._library.fill(self._team, self._model, b.cache, passed, asked)
        filled: list[Row] = []
        for at, n in enumerate(lives[1:], 1):
            part = slice(at * beam, at * beam + n)
            filled.append(Row(saved[part], source[part], variants[part]))
            if not n:
                break
        last = len(filled[-1].saved)
        table.take(filled, states[:last], cosines[:last])

    def head(self, x: Tensor, variant: int = TARGET) -> Tensor:
        return cast(NativeLinear, self._heads[variant])(x, self._norm, self.spec.norm_eps)

    def draft(
        self,
        attention: Attention,
        requests: Sequence[DraftRequest],
        *,
        ahead: bool = False,
        on_wait: OnWait | None = None,
    ) -> Drafted:
        if not self._embeds:
            return super().draft(attention, requests, ahead=ahead, on_wait=on_wait)
        native_attention = cast(NativeAttention, attention)
        room = self._room(native_attention.cache, requests)
        width, tokens = room.longest + 1, room.tokens
        if any(r.edit is not None for r in requests):
            room.struct.edited = bytes([_when(r) for r in requests])

        def edit(i: int, drafted: int, row: Callable[[], Tensor]) -> bool:
            request, so_far = requests[i], tokens[i * width + 1 : i * width + 1 + drafted]
            assert request.edit is not None
            request.edit(row(), so_far[:-1] if request.mask_after_draw else so_far)  # the last one is to be drawn again
            return True

        self._edits.begin(edit)
        ends, cache = self._ends(native_attention), ctypes.byref(native_attention.cache.struct)
        passes = self._library.draft(self._team, self._model, cache, ends, room.reference)
        self._edits.end()
        return room.drafted(passes)

    def _room(self, cache: NativeCache, requests: Sequence[DraftRequest]) -> _DraftRoom:
        """Describe these requests, without edits, to the kernels."""
        count, longest = len(requests), max([r.gamma for r in requests])
        room = self._rooms.get((count, longest))
        if room is None:
            room = self._rooms[count, longest] = _DraftRoom(count, longest, self._edits)
        for i, r in enumerate(requests):
            assert 0 <= r.slab < cache.slabs
            assert 0 <= r.start <= cache.length - r.gamma
            room.slabs[i], room.starts[i], room.most[i] = r.slab, r.start, r.gamma
            room.least[i], room.worth[i] = r.min_confidence, r.pass_worth
            room.tokens[i * (longest + 1)] = r.token
        drafts = room.struct
        drafts.plans = b"".join([_plan_bytes(r.variants) for r in requests])
        drafts.sampling = sampling_array([r.sampling for r in requests], [draft_noise(r.variants) for r in requests])
        drafts.edited = room.unedited
        return room

    def verify(
        self,
        attention: Attention,
        segments: Sequence[Segment],
        tokens: Sequence[int],
        draws: Draws,
        *,
        record: bool = False,
        keep_logits: bool = False,
        variants: Variants | None = None,
        on_wait: OnWait | None = None,
    ) -> Verified:
        if keep_logits or not self._embeds:  # the kernels keep neither hidden states nor logits before an edit
            return super().verify(attention, segments, tokens, draws, record=record, variants=variants, on_wait=on_wait)
        native_attention = cast(NativeAttention, attention)
        rows = native_attention.prepare(segments)
        count = len(draws.rows)
        records = torch.empty(self.spec.sublayers + 1, rows.rows, self.spec.hidden) if record else None
        drawn = (ctypes.c_int32 * count)()

        def edit(i: int, _: int, row: Callable[[], Tensor]) -> bool:
            chosen = draws.edits[i]
            assert chosen is not None
            chosen(row())
            return True

        self._edits.begin(edit)
        verify = native.VerifyBatch(
            plan=self._all if variants is None else bytes(variants),
            tokens=(ctypes.c_int32 * rows.rows)(*tokens),
            slabs=rows.slabs,
            positions=rows.positions,
            draw_rows=(ctypes.c_int32 * count)(*draws.rows),
            sampling=sampling_array(draws.sampling),
            edited=bytes([edit is not None for edit in draws.edits]) if draws.edits else bytes(count),
            edit=self._edits.callback,
            drawn=drawn,
            scores=ctypes.pointer(scores := ctypes.c_void_p()),
            records=None if records is None else records.data_ptr(),
            rows=rows.rows,
            draws=count,
        )
        ends = self._ends(native_attention)
        self._library.verify(self._team, self._model, rows.cache, ends, ctypes.byref(verify))
        self._edits.end()

        def redraw(i: int, edit: Callable[[Tensor], None]) -> int:
            assert scores.value is not None
            row = self._edits.row(scores.value + 4 * i * self.spec.vocab)
            edit(row)
            sampling = draws.sampling[i]
            if not sampling.greedy:  # they have been divided by the temperature
                sampling = replace(sampling, temperature=1.0)
            return sample(row[None], [sampling], [rows.positions[draws.rows[i]] + 1]).tokens[0]

        return Verified(drawn[:], None if records is None else list(records.unbind(0)), redraw)

    @property
    def _embeds(self) -> bool:
        """Whether the kernels can read the embedding."""
        return self._lookup is not None or self._embedding.dtype in (torch.bfloat16, torch.float32)

    def _ends(self, attention: NativeAttention) -> Any:
        """Reference to the structure; it is made once per attention."""
        heads = [*self._heads.values()]
        if self._ends_of != (attention, heads):
            ends = native.EmbedAndHead(
                embedding=self._embedding.data_ptr(),
                norm=self._norm.data_ptr(),
                rope=attention.rope,
                float32=self._embedding.dtype == torch.float32,
            )
            for variant, head in self._heads.items():
                ends.head[variant - TARGET] = cast(NativeLinear, head).struct
            if self._lookup is not None:
                ends.row_bytes, ends.format = self._embedding.stride(0), packed_format(self._lookup)
            self._ends_of, self._ends_made = (attention, heads), ctypes.byref(ends)
        return self._ends_made

    def _pass(
        self,
        x: Tensor,
        batch: AttentionBatch,
        plans: bytes,
        *,
        stride: int = 0,
        first: int = 0,
        last: int | None = None,
        records: Tensor | None = None,
    ) -> Tensor:
        """Sublayers first … last-1 that the plans name, on a copy of x [rows, hidden]."""
        b = cast(NativeBatch, batch)
        x = x.clone(memory_format=torch.contiguous_format)
        assert x.shape[0] == b.rows
        last = self.spec.sublayers if last is None else last
        passed = _described(b, x, plans, stride, first, last, records)
        self._library.run(self._team, self._model, b.cache, passed)
        return x


def _place(weights: LayerWeights, layer: native.Layer, variant: int) -> None:
    """A variant's linear layers into the kernels' structure."""
    for name in ("qkv", "output", "gate_up", "down"):
        getattr(layer, name)[variant - TARGET] = cast(NativeLinear, getattr(weights, name)).struct


def _described(
    batch: NativeBatch, x: Tensor, plans: bytes, stride: int, first: int, last: int, records: Tensor | None = None
) -> native.Pass:
    """What x, plans and records have to outlive."""
    return native.Pass(
        batch.rope,
        x.data_ptr(),
        ctypes.addressof(batch.slabs),
        ctypes.addressof(batch.positions),
        ctypes.cast(ctypes.c_char_p(plans), ctypes.c_void_p),
        None if records is None else records.data_ptr(),
        *(stride, batch.rows, first, last, batch.read_only),
    )


@lru_cache(256)
def _plan_bytes(variants: Variants) -> bytes:
    return bytes(variants)


class _DraftRoom:
    """Arrays for drafts of so many requests and tokens. They are used again: making them takes as long as a pass."""

    def __init__(self, count: int, longest: int, edits: _Edits) -> None:
        self.longest = longest
        ints, floats = ctypes.c_int32 * count, ctypes.c_float * count
        self.slabs, self.starts, self.most, self.lengths = ints(), ints(), ints(), ints()
        self.least, self.worth = floats(), floats()
        self.tokens = (ctypes.c_int32 * (count * (longest + 1)))()
        self.confidences = (ctypes.c_float * (count * longest))()
        self.unedited = bytes(count)
        self.struct = native.DraftBatch(
            slabs=self.slabs,
            starts=self.starts,
            max_tokens=self.most,
            min_confidence=self.least,
            pass_worth=self.worth,
            edit=edits.callback,
            tokens=self.tokens,
            lengths=self.lengths,
            confidences=self.confidences,
            mask_below=MASK_BELOW_CONFIDENCE,
            requests=count,
            longest=longest,
        )
        self.reference = ctypes.byref(self.struct)

    def drafted(self, passes: int) -> Drafted:
        """What the kernels wrote, in so many passes."""
        lengths, longest = self.lengths[:], self.longest
        firsts = range(1, len(lengths) * (longest + 1), longest + 1)
        return Drafted(
            [self.tokens[first : first + n] for first, n in zip(firsts, lengths, strict=True)],
            [self.confidences[i * longest : i * longest + n] for i, n in enumerate(lengths)],
            passes,
        )


def _when(request: DraftRequest) -> int:
    """The logits of a draft are edited."""
    return 0 if request.edit is None else native.EDIT_AFTER_DRAW if request.mask_after_draw else native.EDIT_BEFORE_DRAW


class _Edits:
    """Logits edited by Python in the middle of a call; what goes wrong there is raised after it."""

    def __init__(self, vocab: int) -> None:
        self._floats = ctypes.c_float * vocab
        self._edit: Callable[[int, int, Callable[[], Tensor]], bool] | None = None
        self._error: BaseException | None = None
        self.callback = native.EDIT_CALLBACK(self._call)

    def begin(self, edit: Callable[[int, int, Callable[[], Tensor]], bool]) -> None:
        """`edit` gets the draw, the number of tokens drafted so far, and the logits [vocab], to change in place or
        not."""
        self._edit, self._error = edit, None

    def end(self) -> None:
        self._edit = None
        if self._error is not None:
            raise self._error

    def row(self, address: int) -> Tensor:
        """The logits [vocab] there."""
        return torch.frombuffer(self._floats.from_address(address), dtype=torch.float32)

    def _call(self, i: int, drafted: int, address: int) -> bool:
        try:
            assert self._edit is not None
            return self._edit(i, drafted, partial(self.row, address))
        except BaseException as error:  # there is no way to pass it through
            self._error = self._error or error
            return False
