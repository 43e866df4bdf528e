"""Text to token ids and chats to prompt text, from the checkpoint's own files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as BackendTokenizer

from engine.architecture.spec import read_json
from engine.errors import ModelError, RequestError

_TOO_MUCH = (ArithmeticError, RecursionError)
# What the renderer's own arguments are called.
_RESERVED = frozenset(
    {"conversations", "messages", "tools", "documents", "chat_template", "add_generation_prompt"}
    | {"continue_final_message", "return_assistant_tokens_mask"}
)


def _byte_alphabet() -> dict[str, int]:
    """The characters that stand for bytes in byte-level vocabularies: printable ones for themselves."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}


_BYTES = _byte_alphabet()


class Tokenizer:
    """tokenizer.json through the `tokenizers` library; chat templates through transformers' sandboxed renderer."""

    def __init__(
        self,
        backend: BackendTokenizer,
        templates: Mapping[str, str] | None = None,
        special: Mapping[str, str] | None = None,
    ) -> None:
        """`templates` by name ("default", "tool_use"); `special` are the tokens that templates may ask for."""
        self.backend = backend
        self._added = frozenset(backend.get_added_tokens_decoder())
        self._byte_level = "ByteLevel" in str(backend.decoder)
        self._templates = dict(templates or {})
        self._special = dict(special or {})

    @classmethod
    def from_directory(cls, directory: Path) -> Tokenizer:
        """A checkpoint's tokenizer. Raises ModelError."""
        path = directory / "tokenizer.json"
        if not path.exists():
            raise ModelError(f"{directory} has no tokenizer.json; other tokenizer formats are not supported")
        try:
            backend = BackendTokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare Exception
            raise ModelError(f"cannot read {path}: {error}") from None
        backend.no_truncation()  # training scripts leave theirs behind
        backend.no_padding()
        config_path = directory / "tokenizer_config.json"
        config = read_json(config_path) if config_path.exists() else {}
        special = {
            key: _text(value)
            for key, value in config.items()
            if key.endswith("_token") and isinstance(value, (str, dict)) and value
        }
        return cls(backend, _templates(directory, config), special)

    @property
    def end_ids(self) -> tuple[int, ...]:
        """The id of the end-of-sequence token that the tokenizer's config names, if it names one."""
        end = self.backend.token_to_id(self._special.get("eos_token", ""))
        return () if end is None else (end,)

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens, special ones included."""
        # As a batch of one, other threads run meanwhile.
        return str(self.backend.decode_batch([list(tokens)], skip_special_tokens=False)[0])

    def token_bytes(self, token: int) -> bytes:
        """What one token stands for: byte-level and SentencePiece vocabularies; an added token stands for its name."""
        name = self.backend.id_to_token(token)
        if name is None:
            return b""
        if token in self._added:
            return name.encode()
        if self._byte_level:
            return bytes(_BYTES[character] for character in name if character in _BYTES)
        if len(name) == 6 and name.startswith("<0x") and name.endswith(">"):
            return bytes.fromhex(name[3:5])
        return name.replace("\u2581", " ").encode()

    @cached_property
    def longest_token(self) -> int:
        """Characters of the longest token."""
        return max((len(token) for token in self.backend.get_vocab()), default=1)

    def prepare(self) -> None:
        """Do now what the first request would wait for, a second and more: import what renders chats, and compile."""
        _ = self.longest_token
        if self.has_chat_template:
            with suppress(RequestError):  # some want more than one empty message
                self.render_chat([{"role": "user", "content": ""}])

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        """Token ids of `text`; `add_special_tokens` puts what the model expects around a bare prompt (BOS)."""
        # As a batch of one, other threads run meanwhile.
        return list(self.backend.encode_batch_fast([text], add_special_tokens=add_special_tokens)[0].ids)

    @property
    def tool_format(self) -> str:
        """How the chat template writes tool calls, by the names of `openai.replies.calls`; "" if it knows no tools."""
        text = "\n".join(self._templates.values())
        if "tools" not in text:
            return ""
        marks = {"hermes": "<tool_call>", "mistral": "[TOOL_CALLS]", "llama3_json": '"parameters"'}
        return next((name for name, mark in marks.items() if mark in text), "")

    @property
    def thinks(self) -> bool:
        """Whether the model writes its reasoning between <think> tags."""
        template = "<think>" in "\n".join(self._templates.values())
        return template or self.backend.token_to_id("<think>") is not None

    def added_id(self, text: str) -> int | None:
        """The id of the token beside the vocabulary proper (special ones, tags) that this is the name of, if any."""
        token = self.backend.token_to_id(text)
        return token if token in self._added else None

    def skips(self, text: str) -> bool:
        """Whether this is the name of a special token, which text leaves out."""
        token = self.backend.token_to_id(text)
        added = None if token is None else self.backend.get_added_tokens_decoder().get(token)
        return added is not None and bool(added.special)

    @property
    def has_chat_template(self) -> bool:
        return bool(self._templates)

    def render_chat(
        self,
        messages: list[dict[str, Any]],
        tools: Sequence[dict[str, Any]] = (),
        options: Mapping[str, Any] | None = None,
        *,
        open_turn: bool = True,
        go_on: bool = False,
    ) -> str:
        """Prompt text of a chat, with the assistant's turn opened, or its last message left open to `go_on` with.

        `tools` are JSON schemas as OpenAI gives them; `options` are further variables of the template
        (`enable_thinking`). Raises RequestError for what the template refuses.
        """
        if taken := _RESERVED & set(options or {}):
            raise RequestError(f"'{min(taken)}' is no variable of a template.", param="chat_template_kwargs")
        template = self._templates.get("tool_use" if tools else "default") or self._templates.get("default")
        if template is None:
            raise RequestError("This model has no chat template; use /v1/completions.", param="messages")
        if "developer" not in template:  # what the role was called before
            messages = [m | {"role": "system"} if m["role"] == "developer" else m for m in messages]
        from jinja2 import TemplateError
        from transformers.utils.chat_template_utils import render_jinja_template

        try:
            rendered = render_jinja_template(
                conversations=[messages],
                tools=list(tools) or None,
                chat_template=template,
                add_generation_prompt=open_turn,
                continue_final_message=go_on,
                **(self._special | dict(options or {})),
            )
        except (TemplateError, TypeError, LookupError, ValueError, AttributeError, *_TOO_MUCH) as error:
            raise RequestError(f"The chat template refuses these messages: {error}", param="messages") from None
        return str(rendered[0][0])


def _text(token: Any) -> str:
    """Special tokens are stored as text or as {"content": text}."""
    return str(token.get("content", "")) if isinstance(token, dict) else str(token)


def _templates(directory: Path, config: dict[str, Any]) -> dict[str, str]:
    """Chat templates by name: "default", and perhaps "tool_use"; from all places where checkpoints keep them."""
    found: dict[str, str] = {}
    given = config.get("chat_template")
    if isinstance(given, str):
        found["default"] = given
    elif isinstance(given, list):
        found |= {
            str(t["name"]): str(t["template"])
            for t in given
            if isinstance(t, dict) and t.keys() >= {"name", "template"}
        }
    for path in (*sorted((directory / "additional_chat_templates").glob("*.jinja")), directory / "chat_template.jinja"):
        if path.is_file():
            try:
                text = path.read_text("utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise ModelError(f"cannot read {path}: {error}") from None
            found["default" if path.parent == directory else path.stem] = text
    return found
