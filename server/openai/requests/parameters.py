"""Which fields of a request are honoured, refused or ignored: one table.

A documented field that would change the output and is not honoured is a 400 that names it, unless it asks for what
happens anyway. What cannot change the output is ignored, and so are unknown fields, those with one warning per name.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from server.http.errors import invalid
from server.openai.requests.schemas import ChatCompletionRequest, GenerationRequest

log = logging.getLogger("knapserve.server")

Neutral = tuple[Any, ...] | Callable[[Mapping[str, Any]], bool]
_NEVER: Neutral = ()
_MAX_WARNED = 100  # names come from clients: neither the set nor the log may grow without bound


def _best_of_n(body: Mapping[str, Any]) -> bool:
    return _same(body["best_of"], body.get("n") or 1)


def _without_penalties(body: Mapping[str, Any]) -> bool:
    penalties = {"presence_penalty": 0, "frequency_penalty": 0, "repetition_penalty": 1}
    return body["repeat_last_n"] == -1 or all(body.get(name, neutral) == neutral for name, neutral in penalties.items())


_ZERO = (0,)
_OFF = (False,)
_EMPTY: Neutral = ([],)
# Field → the values that ask for nothing special; null always does.
_REFUSED: dict[str, Neutral] = {
    **dict.fromkeys(("structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar"), _NEVER),
    **dict.fromkeys(("prompt_logprobs", "prompt_embeds", "allowed_token_ids", "truncate_prompt_tokens"), _NEVER),
    **dict.fromkeys(("use_beam_search", "return_token_ids", "return_tokens_as_token_ids"), _OFF),
    **dict.fromkeys(("bad_words", "logits_processors"), _EMPTY),
    "length_penalty": (1,),
    "spaces_between_special_tokens": (True,),
    # Those of llama.cpp:
    **dict.fromkeys(("samplers", "json_schema"), _NEVER),
    **dict.fromkeys(("typical_p", "tfs_z", "repeat_penalty"), (1,)),
    **dict.fromkeys(("n_predict", "top_n_sigma"), (-1,)),
    **dict.fromkeys(("mirostat", "xtc_probability", "dry_multiplier", "dynatemp_range"), _ZERO),
    **dict.fromkeys(("n_probs", "min_keep", "n_indent"), _ZERO),
    "repeat_last_n": _without_penalties,
    "reasoning_format": ("auto", "deepseek"),
    "lora": _EMPTY,
    "t_max_predict_ms": (0, -1),
    "grammar": ("",),
}
_REFUSED_CHAT: dict[str, Neutral] = {
    **dict.fromkeys(("chat_template", "reasoning_effort", "thinking_token_budget"), _NEVER),
    **dict.fromkeys(("audio", "web_search_options"), _NEVER),
    **dict.fromkeys(("echo", "add_special_tokens"), _OFF),
    **dict.fromkeys(("functions", "documents"), _EMPTY),
    "suffix": ("",),
    "best_of": _best_of_n,
    "function_call": ("none", "auto"),
    "include_reasoning": (True,),
    "verbosity": ("medium",),
    "modalities": (["text"],),
}
_REFUSED_COMPLETIONS: dict[str, Neutral] = {
    **dict.fromkeys(("prediction", "max_completion_tokens"), _NEVER),
    "suffix": ("",),
    "best_of": _best_of_n,
    "add_special_tokens": (True,),
}
_TOLD = ("user", "metadata", "store", "service_tier", "safety_identifier", "request_id", "priority")
_IGNORED = frozenset((*_TOLD, "cache_salt", "prompt_cache_key", "prompt_cache_retention"))

_ADVICE = {
    **dict.fromkeys(("structured_outputs", "guided_json", "json_schema"), ": use 'response_format'"),
    "repeat_penalty": ": use 'repetition_penalty'",
    "n_predict": ": use 'max_tokens'",
    "n_probs": ": use 'logprobs'",
    "repeat_last_n": ": penalties count the whole text, which is -1",
}


def _advice(neutral: Neutral) -> str:
    return ": leave it out" if neutral == _NEVER else ", except where it asks for the default"


def _same(value: Any, neutral: Any) -> bool:
    """Equality that tells true from 1."""
    return isinstance(value, bool) == isinstance(neutral, bool) and bool(value == neutral)


class ParameterCheck:
    """Checks the fields of requests of one kind; remembers the names it has warned of."""

    def __init__(self, kind: type[GenerationRequest]) -> None:
        chat = issubclass(kind, ChatCompletionRequest)
        self._refused = _REFUSED | (_REFUSED_CHAT if chat else _REFUSED_COMPLETIONS)
        self._known = frozenset(kind.model_fields) | _IGNORED
        self._warned: set[str] = set()

    def __call__(self, body: Mapping[str, Any]) -> None:
        """Raise a 400 that names the first field of `body` (nulls removed) that is documented but not supported."""
        for name, value in body.items():
            if name in self._known:
                continue
            neutral = self._refused.get(name)
            if neutral is None:
                self._warn(name)
            elif not (neutral(body) if callable(neutral) else any(_same(value, item) for item in neutral)):
                raise invalid(f"'{name}' is not supported{_ADVICE.get(name) or _advice(neutral)}.", name)
        options = body.get("stream_options")
        if isinstance(options, dict) and options.get("continuous_usage_stats"):
            raise invalid("'continuous_usage_stats' is not supported.", "stream_options.continuous_usage_stats")

    def _warn(self, name: str) -> None:
        if name not in self._warned and len(self._warned) < _MAX_WARNED:
            self._warned.add(name)
            log.warning("ignoring the unknown request field %.80r", name)
