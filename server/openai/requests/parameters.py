"""Tables of unsupported and ignored request fields.

A documented field that would change the output but is not supported is rejected with a 400, unless its value asks for
the default behaviour. Fields that cannot change the output are ignored. Unknown fields are ignored with one warning per
name.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from server.http.errors import invalid
from server.openai.requests.schemas import ChatCompletionRequest, GenerationRequest

log = logging.getLogger("knapserve.server")

Defaults = tuple[Any, ...] | Callable[[Mapping[str, Any]], bool]
_NO_VALUE: Defaults = ()
_MAX_WARNED = 100  # limits the set and the log, as names come from clients


def _best_of_n(body: Mapping[str, Any]) -> bool:
    return _equal(body["best_of"], body.get("n") or 1)


def _without_penalties(body: Mapping[str, Any]) -> bool:
    penalties = {"presence_penalty": 0, "frequency_penalty": 0, "repetition_penalty": 1}
    return body["repeat_last_n"] == -1 or all(body.get(name, default) == default for name, default in penalties.items())


_ZERO = (0,)
_OFF = (False,)
_EMPTY: Defaults = ([],)
# Field → values that ask for the default behaviour; null always does.
_REFUSED: dict[str, Defaults] = {
    **dict.fromkeys(
        ("structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar"), _NO_VALUE
    ),
    **dict.fromkeys(("prompt_logprobs", "prompt_embeds", "allowed_token_ids", "truncate_prompt_tokens"), _NO_VALUE),
    **dict.fromkeys(("use_beam_search", "return_token_ids", "return_tokens_as_token_ids"), _OFF),
    **dict.fromkeys(("bad_words", "logits_processors"), _EMPTY),
    "length_penalty": (1,),
    "spaces_between_special_tokens": (True,),
    # Fields of llama.cpp:
    **dict.fromkeys(("samplers", "json_schema"), _NO_VALUE),
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
_REFUSED_CHAT: dict[str, Defaults] = {
    **dict.fromkeys(("chat_template", "reasoning_effort", "thinking_token_budget"), _NO_VALUE),
    **dict.fromkeys(("audio", "web_search_options"), _NO_VALUE),
    **dict.fromkeys(("echo", "add_special_tokens"), _OFF),
    **dict.fromkeys(("functions", "documents"), _EMPTY),
    "suffix": ("",),
    "best_of": _best_of_n,
    "function_call": ("none", "auto"),
    "include_reasoning": (True,),
    "verbosity": ("medium",),
    "modalities": (["text"],),
}
_REFUSED_COMPLETIONS: dict[str, Defaults] = {
    **dict.fromkeys(("prediction", "max_completion_tokens"), _NO_VALUE),
    "suffix": ("",),
    "best_of": _best_of_n,
    "add_special_tokens": (True,),
}
_METADATA = ("user", "metadata", "store", "service_tier", "safety_identifier", "request_id")
_IGNORED = frozenset((*_METADATA, "prompt_cache_key", "prompt_cache_retention"))

_ADVICE = {
    **dict.fromkeys(("structured_outputs", "guided_json", "json_schema"), ": use 'response_format'"),
    "repeat_penalty": ": use 'repetition_penalty'",
    "n_predict": ": use 'max_tokens'",
    "n_probs": ": use 'logprobs'",
    "repeat_last_n": ": penalties always count the whole text (-1)",
}


def _equal(value: object, default: object) -> bool:
    """Compare values, treating true and 1 as different."""
    return isinstance(value, bool) == isinstance(default, bool) and bool(value == default)


class ParameterCheck:
    """Check the fields of one type of request. Remembers the names that it has warned about."""

    def __init__(self, request_type: type[GenerationRequest]) -> None:
        chat = issubclass(request_type, ChatCompletionRequest)
        self._refused = _REFUSED | (_REFUSED_CHAT if chat else _REFUSED_COMPLETIONS)
        self._known = frozenset(request_type.model_fields) | _IGNORED
        self._warned: set[str] = set()

    def __call__(self, body: Mapping[str, Any]) -> None:
        """Raise a 400 for the first unsupported field of `body`, which has no null fields."""
        for name, value in body.items():
            if name in self._known:
                continue
            default = self._refused.get(name)
            if default is None:
                self._warn(name)
            elif not (default(body) if callable(default) else any(_equal(value, item) for item in default)):
                general = ": omit it" if default == _NO_VALUE else ", except with its default value"
                raise invalid(f"'{name}' is not supported{_ADVICE.get(name, general)}.", name)
        options = body.get("stream_options")
        if isinstance(options, dict) and options.get("continuous_usage_stats"):
            raise invalid("'continuous_usage_stats' is not supported.", "stream_options.continuous_usage_stats")

    def _warn(self, name: str) -> None:
        if name not in self._warned and len(self._warned) < _MAX_WARNED:
            self._warned.add(name)
            log.warning("ignoring the unknown request field %.80r", name)
