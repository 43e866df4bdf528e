"""Tokenise text and render chats with the checkpoint's own files."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as BackendTokenizer

from engine.architecture.spec import read_json
from engine.errors import KnapServeError, ModelError, PromptError, RequestError
from engine.text.literal import BREAK, LiteralText
from engine.text.rendering import TemplateError, template_renderer

log = logging.getLogger("knapserve.server")

# Names of the renderer's own arguments.
_RESERVED = frozenset(
    {"conversations", "messages", "tools", "documents", "chat_template", "add_generation_prompt"}
    | {"continue_final_message", "return_assistant_tokens_mask"}
)

# Texts of tokens that end a turn or a text. Those in the second set do so only where they are special tokens.
MARKED_ENDS = {
    "<|eot_id|>", "<|eot|>", "<|eom_id|>", "<|im_end|>", "<|end|>", "<|endoftext|>", "<|end_of_text|>", "<|endofturn|>",
    "<|end_of_turn|>", "<|END_OF_TURN_TOKEN|>", "[|endofturn|]", "<end_of_turn>", "<end_of_utterance>", "<EOT>",
    "_<EOT>", "▁<EOT>", "[EOT]", "[EOS]", "<｜end▁of▁sentence｜>",
}  # fmt: skip
ENDS = MARKED_ENDS | {"</s>", "<eos>"}
REPEATED = "\U0010ffff"  # marks a token whose text another token has too


def _byte_alphabet() -> dict[str, int]:
    """Return the byte of each character in byte-level vocabularies; printable ASCII stands for itself."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}


_BYTES = _byte_alphabet()
_MOST_GROWTH = 1024  # most growth of a text by successive replacements; usual ones keep its length
_MOST_PARTS = 64  # usual length of a list, such as that of the tokens before a text
_BYTE_TOKEN = re.compile("<0x([0-9A-Fa-f]{2})>")


@contextmanager
def library_errors(kind: Callable[[str], KnapServeError], what: str) -> Iterator[None]:
    """Raise `kind` for the library's errors: bare exceptions, and panics, which are no Exception in Python."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise kind(f"{what}: {error}") from None


class Tokenizer:
    """tokenizer.json through the `tokenizers` library; chat templates through transformers' renderer."""

    def __init__(
        self,
        backend: BackendTokenizer,
        templates: Mapping[str, str] | None = None,
        special: Mapping[str, str] | None = None,
    ) -> None:
        """`templates` by name ("default", "tool_use"); `special` are the special tokens that templates may use."""
        self.backend = backend
        self._added = backend.get_added_tokens_decoder()
        self._byte_level = "ByteLevel" in str(backend.decoder)
        self._templates = dict(templates or {})
        self._all_templates = "\n".join(self._templates.values())
        self._special = dict(special or {})

    def restrict(self, rows: int) -> None:
        """Forget tokens that have no embedding: their texts are encoded by others. Raises ModelError."""
        if max(self.backend.get_vocab().values(), default=0) < rows:
            return
        description = json.loads(self.backend.to_str())
        description["added_tokens"] = [token for token in description["added_tokens"] if token["id"] < rows]
        model = description["model"]
        if isinstance(model["vocab"], dict):
            model["vocab"] = {token: i for token, i in model["vocab"].items() if i < rows}
            merges = (merge for merge in model.get("merges", ()) if {*merge, "".join(merge)} <= model["vocab"].keys())
            model["merges"] = [*merges]
        else:
            model["vocab"] = model["vocab"][:rows]
        with library_errors(ModelError, "the tokenizer needs tokens for which the model has no embedding"):
            self.backend = BackendTokenizer.from_str(json.dumps(description))
        self._added = self.backend.get_added_tokens_decoder()

    @classmethod
    def from_directory(cls, directory: Path) -> Tokenizer:
        """Read a checkpoint's tokenizer. Raises ModelError."""
        path = directory / "tokenizer.json"
        if not path.exists():
            raise ModelError(f"{directory} has no tokenizer.json, and other tokenizer formats are not supported")
        with library_errors(ModelError, f"cannot read {path}"):
            backend = BackendTokenizer.from_file(str(path))
        _check_growth(path, backend)
        backend.no_truncation()  # training scripts may have saved theirs
        backend.no_padding()
        path = directory / "tokenizer_config.json"
        config = read_json(path) if path.exists() else {}
        special = {
            key: _text(value)
            for key, value in config.items()
            if key.endswith("_token") and isinstance(value, (str, dict)) and value
        }
        return cls(backend, _templates(directory, config), special)

    @property
    def end_ids(self) -> tuple[int, ...]:
        """The id of the end-of-sequence token in the tokenizer's config, if there is one."""
        end = self.backend.token_to_id(self._special.get("eos_token", ""))
        return () if end is None else (end,)

    @property
    def turn_end_ids(self) -> set[int]:
        """The ids of special tokens that are known to end a turn, and that the chat templates write."""
        ends = ((i, token.content) for i, token in self._added.items() if token.special)
        return {i for i, text in ends if text in ENDS and text in self._all_templates}

    def decode(self, tokens: Sequence[int]) -> str:
        """Decode tokens, special ones included."""
        with library_errors(RequestError, "The model's tokenizer cannot decode this"):
            # A batch releases the interpreter lock.
            return str(self.backend.decode_batch([list(tokens)], skip_special_tokens=False)[0])

    def token_bytes(self, token: int) -> bytes:
        """Return the bytes of one token. An added token stands for its name."""
        name = self.backend.id_to_token(token)
        if name is None:
            return b""
        name = name.partition(REPEATED)[0]
        if token in self._added:
            return name.encode()
        if self._byte_level:
            return bytes(_BYTES[character] for character in name if character in _BYTES)
        if (byte := _BYTE_TOKEN.fullmatch(name)) is not None:
            return bytes.fromhex(byte[1])
        return name.replace("\u2581", " ").encode()

    @cached_property
    def longest_token(self) -> int:
        """The length of the longest token in characters."""
        return max((len(token) for token in self.backend.get_vocab()), default=1)

    def prepare(self) -> None:
        """Start the chat renderer and compile the template, which would delay the first request by seconds."""
        _ = self.longest_token
        if self.has_chat_template:
            try:
                self.render_chat([{"role": "user", "content": "Hello"}])
            except KnapServeError as error:
                log.warning("chats may fail with this model: %s", error)

    def encode(self, text: str, *, add_special_tokens: bool = True, literal: bool = False) -> list[int]:
        """Return the token ids of `text`. `add_special_tokens` adds tokens such as BOS, which a bare prompt needs.

        `literal`: the text is a chat, rendered so that markers spelled in messages are no tokens.
        """
        tokens: list[int] = []
        with library_errors(RequestError, "The model's tokenizer fails at this text"):
            for index, part in enumerate(text.split(BREAK) if literal else [text]):
                adds = add_special_tokens and index == 0
                # A batch releases the interpreter lock.
                tokens += self.backend.encode_batch_fast([part], add_special_tokens=adds)[0].ids
        return tokens

    @cached_property
    def _literal(self) -> LiteralText:
        """Breaks special tokens, and the added tokens that the chat templates use."""
        special = [token.content for token in self._added.values() if token.special]
        others = [token.content for token in self._added.values() if not token.special]
        splitter = self.backend.pre_tokenizer

        def split(text: str) -> list[str]:
            if splitter is None:
                return [text]
            with library_errors(RequestError, "The model's tokenizer fails at a marker"):
                return [text[first:last] for _, (first, last) in splitter.pre_tokenize_str(text)]

        return LiteralText(special, [text for text in others if text in self._all_templates], split)

    @property
    def tool_format(self) -> str:
        """The chat template's format of tool calls, as `--tool-call-parser` names it; "": no tools."""
        if "tools" not in self._all_templates:
            return ""
        marks = {"hermes": "<tool_call>", "mistral": "[TOOL_CALLS]", "llama3_json": '"parameters"'}
        return next((name for name, mark in marks.items() if mark in self._all_templates), "")

    @property
    def thinks(self) -> bool:
        """Whether the model writes reasoning between <think> tags."""
        return "<think>" in self._all_templates or self.backend.token_to_id("<think>") is not None

    def added_token_id(self, text: str) -> int | None:
        """Return the id of an added token (special tokens, tags), or None if `text` does not name one."""
        token = self.backend.token_to_id(text)
        return token if token in self._added else None

    def is_special(self, text: str) -> bool:
        """Return whether `text` names a special token, which decoded text omits."""
        token = self.added_token_id(text)
        return token is not None and bool(self._added[token].special)

    @property
    def has_chat_template(self) -> bool:
        return bool(self._templates)

    def render_chat(
        self,
        messages: list[dict[str, Any]],
        tools: Sequence[dict[str, Any]] = (),
        options: Mapping[str, Any] | None = None,
        *,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        literal: bool = False,
    ) -> str:
        """Render a chat to the text of a prompt.

        `tools` are JSON schemas in OpenAI's format, `options` further variables of the template (`enable_thinking`).
        `add_generation_prompt` opens the assistant's turn; `continue_final_message` leaves its last message open.
        With `literal`, markers that the chat spells are text, if `encode` gets the result with `literal` too.
        Raises RequestError if the template rejects the chat.
        """
        if taken := _RESERVED & set(options or {}):
            raise RequestError(
                f"'{min(taken)}' cannot be set in 'chat_template_kwargs': the server sets it.",
                param="chat_template_kwargs",
            )
        template = self._templates.get("tool_use" if tools else "default") or self._templates.get("default")
        if template is None:
            raise PromptError("This model has no chat template; send a prompt without a chat.")
        if "developer" not in template:  # older templates call this role `system`
            messages = [m | {"role": "system"} if m["role"] == "developer" else m for m in messages]
        if literal:
            messages, tools = self._literal.messages(messages), self._literal.values(list(tools))
            options = self._literal.values(dict(options or {}))
        arguments = {
            **self._special,
            **(options or {}),
            "conversations": [messages],
            "tools": list(tools) or None,
            "add_generation_prompt": add_generation_prompt,
            "continue_final_message": continue_final_message,
        }
        try:
            return template_renderer().render(template, arguments)
        except TemplateError as error:
            raise PromptError(f"The chat template rejects these messages: {error}") from None


def _check_growth(path: Path, backend: BackendTokenizer) -> None:
    """Raise ModelError for a tokenizer whose replacements, or tokens around a text, could fill the memory."""
    for name in ("normalizer", "decoder", "post_processor"):
        part = getattr(backend, name)
        values, growth = [None if part is None else json.loads(part.__getstate__())], 1
        for value in values:  # the loop appends to `values`
            if isinstance(value, dict):
                growth *= len(str(value.get("content") or " "))  # the length of a replacement
                values += value.values()
            elif isinstance(value, list):
                growth *= max(len(value) // _MOST_PARTS, 1)
                values += value
        if growth > _MOST_GROWTH:
            raise ModelError(f"{path}: the {name} could make a text {_MOST_GROWTH} times as long; that is too much")


def _text(token: Any) -> str:
    """Return the text of a special token, stored as text or as {"content": text}."""
    return str(token.get("content", "")) if isinstance(token, dict) else str(token)


def _templates(directory: Path, config: dict[str, Any]) -> dict[str, str]:
    """Collect the chat templates by name ("default", "tool_use") from all files that may hold them."""
    templates: dict[str, str] = {}
    configured = config.get("chat_template")
    if isinstance(configured, str):
        templates["default"] = configured
    elif isinstance(configured, list):
        templates |= {
            str(t["name"]): str(t["template"])
            for t in configured
            if isinstance(t, dict) and t.keys() >= {"name", "template"}
        }
    for path in (*sorted((directory / "additional_chat_templates").glob("*.jinja")), directory / "chat_template.jinja"):
        if path.is_file():
            try:
                text = path.read_text("utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise ModelError(f"cannot read {path}: {error}") from None
            templates["default" if path.parent == directory else path.stem] = text
    return templates
