"""Tables of unsupported and ignored request fields.

A documented field that would change the output but is not supported is rejected with a 400, unless its value asks for
the default behaviour. Fields that cannot change the output are ignored. Unknown fields are ignored with one warning per
name. `tests/http/test_vendor_fields.py` compares the tables with the schemas of OpenAI, Anthropic, vLLM and llama.cpp.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from server.apis.bodies import ChatCompletionRequest, CompletionRequest
from server.edge.errors import invalid

Defaults = tuple[Any, ...] | Callable[[Mapping[str, Any]], bool]
NO_VALUE: Defaults = ()


def _like_n(name: str) -> Defaults:
    """Accept a field that is equal to `n`."""
    return lambda body: _equal(body[name], body.get("n") or 1)


def _without_penalties(body: Mapping[str, Any]) -> bool:
    penalties = {"presence_penalty": 0, "frequency_penalty": 0, "repetition_penalty": 1}
    return body["repeat_last_n"] == -1 or all(body.get(name, default) == default for name, default in penalties.items())


def _of_type(kind: str) -> Defaults:
    """Accept a field of a response format of this type."""
    return lambda response_format: bool(response_format.get("type") == kind)


def called_directly(tool: Mapping[str, Any]) -> bool:
    """Whether the model may call a tool itself, not only from a program."""
    callers = tool["allowed_callers"]
    return isinstance(callers, list) and "direct" in callers


_ZERO = (0,)
_OFF = (False,)
_ON = (True,)
_EMPTY: Defaults = ([],)
_NOTHING: Defaults = ({},)
# Field → values that ask for the default behaviour; null always does.
_REFUSED: dict[str, Defaults] = {
    **dict.fromkeys(("prompt_logprobs", "prompt_embeds", "truncate_prompt_tokens"), NO_VALUE),
    **dict.fromkeys(("logprob_token_ids", "repetition_detection"), NO_VALUE),
    **dict.fromkeys(("use_beam_search", "return_token_ids", "return_tokens_as_token_ids", "watermarking"), _OFF),
    "return_token_offsets": _OFF,
    "guided_whitespace_pattern": NO_VALUE,
    **dict.fromkeys(("kv_transfer_params", "ec_transfer_params", "vllm_xargs"), _NOTHING),
    "logits_processors": _EMPTY,
    "length_penalty": (1,),
    "spaces_between_special_tokens": _ON,
    # Fields of llama.cpp:
    "samplers": NO_VALUE,
    **dict.fromkeys(("chat_format", "chat_parser", "generation_prompt", "grammar_type"), NO_VALUE),
    **dict.fromkeys(("typical_p", "tfs_z", "repeat_penalty"), (1,)),
    **dict.fromkeys(("n_predict", "top_n_sigma", "adaptive_target"), (-1,)),
    **dict.fromkeys(("reasoning_budget_tokens", "thinking_budget_tokens"), (-1,)),
    **dict.fromkeys(("mirostat", "xtc_probability", "dry_multiplier", "dynatemp_range"), _ZERO),
    **dict.fromkeys(("n_probs", "min_keep", "n_indent"), _ZERO),
    **dict.fromkeys(("return_tokens", "post_sampling_probs", "grammar_lazy", "thinking_forced_open"), _OFF),
    **dict.fromkeys(("reasoning_control", "reasoning_in_content"), _OFF),
    **dict.fromkeys(("lora", "response_fields", "grammar_triggers", "preserved_tokens"), _EMPTY),
    **dict.fromkeys(("t_max_predict_ms", "t_max_prompt_ms"), (0, -1)),
    "n_cmpl": _like_n("n_cmpl"),
    "repeat_last_n": _without_penalties,
    "reasoning_format": ("auto", "deepseek"),
}
_REFUSED_CHAT: dict[str, Defaults] = {
    "chat_template": NO_VALUE,
    **dict.fromkeys(("audio", "web_search_options", "moderation"), NO_VALUE),
    **dict.fromkeys(("echo", "add_special_tokens", "return_prompt_text"), _OFF),
    **dict.fromkeys(("functions", "documents"), _EMPTY),
    "suffix": ("",),
    "best_of": _like_n("best_of"),
    "function_call": ("none", "auto"),
    "include_reasoning": _ON,
    "parse_tool_calls": _ON,
    "modalities": (["text"],),
}
_REFUSED_COMPLETIONS: dict[str, Defaults] = {
    "prediction": NO_VALUE,
    "n_predict": NO_VALUE,  # -1 is no limit there; here, completions without a limit have 16 tokens
    "thinking_token_budget": (-1,),
    "suffix": ("",),
    "best_of": _like_n("best_of"),
    "add_special_tokens": _ON,
    "parse_tool_calls": _OFF,
}
_CHAT = _REFUSED | _REFUSED_CHAT

# Path of an object → its fields, as above.
Inside = Mapping[str, Mapping[str, Defaults]]
_REFUSED_INSIDE: Inside = {
    "response_format": {
        "schema": NO_VALUE,
        "json_schema": _of_type("json_schema"),
        **dict.fromkeys(("format", "structures", "triggers"), _of_type("structural_tag")),
    }
}
_REFUSED_INSIDE_CHAT: Inside = {
    **_REFUSED_INSIDE,
    "messages[]": {"audio": NO_VALUE},
    "tools[]": {"defer_loading": _OFF},
    "tools[].function": {"defer_loading": _OFF},
}

_LABEL = "a label for the client's records"
_CACHE = "prefixes are cached anyway, and cached ones give the same tokens"
_COMPANION = "belongs to a field that is refused"
_DRAFTS = "drafts never change the text"
# Field → why it cannot change the text.
IGNORED: dict[str, str] = {
    **dict.fromkeys(("user", "metadata", "safety_identifier", "request_id", "session_id"), _LABEL),
    "store": "chats are not stored; with --response-store, the Responses API reads it",
    "service_tier": "all requests have the same service",
    **dict.fromkeys(("prompt_cache_key", "prompt_cache_retention", "prompt_cache_options"), _CACHE),
    # Fields of vLLM:
    "truncation_side": _COMPANION,
    **dict.fromkeys(("media_io_kwargs", "mm_processor_kwargs"), "prompts have no images or sound"),
    "return_mm_kwargs": "vLLM reads it on other endpoints only",
    "routed_experts_prompt_start": "routes of experts are not returned",
    "stream_interval": "divides the same text into chunks",
    # Fields of llama.cpp:
    **dict.fromkeys(("cache_prompt", "id_slot", "n_cache_reuse"), _CACHE),
    **dict.fromkeys(("n_keep", "n_discard"), "a context is never shifted: an answer ends where the context does"),
    **dict.fromkeys(("timings_per_token", "return_progress", "verbose"), "adds figures about the work to the reply"),
    "sse_ping_interval": "sets the pause between comments in a stream",
    "backend_sampling": "chooses the device that samples",
    **dict.fromkeys(("xtc_threshold", "mirostat_tau", "mirostat_eta", "dynatemp_exponent"), _COMPANION),
    **dict.fromkeys(("dry_base", "dry_allowed_length", "dry_penalty_last_n", "dry_sequence_breakers"), _COMPANION),
    **dict.fromkeys(("adaptive_decay", "reasoning_budget_start_tag", "reasoning_budget_message"), _COMPANION),
    **dict.fromkeys(("reasoning_budget_end_tag", "reasoning_budget_end_tags"), _COMPANION),
    **dict.fromkeys(("speculative.n_max", "speculative.n_min", "speculative.p_min", "speculative.type"), _DRAFTS),
    **dict.fromkeys(("speculative.ngram_size_n", "speculative.ngram_size_m", "speculative.ngram_min_hits"), _DRAFTS),
    "speculative.ngram_m_hits": _DRAFTS,
}

_ADVICE = {
    "repeat_penalty": ": use 'repetition_penalty', which counts the whole text",
    "n_predict": ": use 'max_tokens'",
    "n_cmpl": ": use 'n'",
    "n_probs": ": use 'logprobs'",
    "logprob_token_ids": ": use 'top_logprobs'",
    "repeat_last_n": ": penalties always count the whole text (-1)",
    "functions": ": use 'tools'",
    "function_call": ": use 'tool_choice'",
    "defer_loading": ": the prompt has all tools from the start",
    "allowed_callers": ", except with 'direct'",
    "response_format.schema": ": use 'response_format.json_schema' with a 'name' and this 'schema'",
    "response_format.json_schema": ", except with the type 'json_schema'",
    **dict.fromkeys(
        ("response_format.format", "response_format.structures", "response_format.triggers"),
        ", except with the type 'structural_tag'",
    ),
}


def _equal(value: object, default: object) -> bool:
    """Compare values, treating true and 1 as different."""
    return isinstance(value, bool) == isinstance(default, bool) and bool(value == default)


class FieldCheck:
    """The fields of one type of request: those that are read, ignored or refused."""

    def __init__(
        self,
        known: Iterable[str],
        refused: Mapping[str, Defaults],
        inside: Inside,
        advice: Mapping[str, str] | None = None,
    ) -> None:
        """`inside` has the refused fields of objects in the body; `advice` says what to use instead of a field."""
        self.refused, self.inside = refused, inside
        self.known = frozenset(known) | frozenset(IGNORED)
        self._advice = _ADVICE | dict(advice or {})

    @classmethod
    def of_other_api(
        cls,
        known: Iterable[str],
        *,
        names: Mapping[str, str],
        ignored: Mapping[str, str] = MappingProxyType({}),
        refused: Mapping[str, Defaults] = MappingProxyType({}),
        inside: Inside = MappingProxyType({}),
    ) -> "FieldCheck":
        """Return a check that refuses what chats refuse, and the names that fields have in chats only.

        `names`: fields of chat completions → what replaces them in this API.
        """
        fields = ChatCompletionRequest.model_fields
        defaults = {name: field.get_default(call_default_factory=True) for name, field in fields.items()}
        of_chats: dict[str, Defaults] = {
            name: NO_VALUE if fields[name].is_required() or default is None else (default,)
            for name, default in defaults.items()
        }
        advice = {old: f": use '{new}'" for old, new in names.items()}
        return cls((*known, *ignored), {**of_chats, **_CHAT, **refused}, inside, advice)

    def unknown(self, body: Mapping[str, Any]) -> list[str]:
        """Return the unknown fields of `body`, which has no null fields. Raises a 400 for an unsupported one."""
        unknown = []
        for name in body:
            if name in self.refused and name not in self.known:
                self._refuse(name, name, body, self.refused[name])
            elif name not in self.known:
                unknown.append(name)
        for place, fields in self.inside.items():
            for path, item in _objects(body, place):
                for name, default in fields.items():
                    if item.get(name) is not None:
                        self._refuse(name, f"{path}.{name}", item, default, f"{place}.{name}")
        return unknown

    def _refuse(self, name: str, path: str, body: Mapping[str, Any], default: Defaults, place: str = "") -> None:
        """Raise a 400 unless field `name` of `body` has a default value."""
        if not (default(body) if callable(default) else any(_equal(body[name], item) for item in default)):
            general = ": omit it" if default == NO_VALUE else ", except with its default value"
            advice = self._advice.get(place, self._advice.get(name, general))
            raise invalid(f"'{path}' is not supported{advice}.", path)


def _objects(item: Mapping[str, Any], path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the objects at a path such as `tools[].function`, each with its name, such as `tools[0].function`."""
    step, _, rest = path.partition(".")
    field = step.removesuffix("[]")
    value = item.get(field)
    if step == field:
        found = [(field, value)]
    else:
        found = [(f"{field}[{index}]", inner) for index, inner in enumerate(value if isinstance(value, list) else ())]
    for name, inner in found:
        if isinstance(inner, dict):
            if rest:
                yield from ((f"{name}.{deeper}", part) for deeper, part in _objects(inner, rest))
            else:
                yield name, inner


CHAT_FIELDS = FieldCheck(ChatCompletionRequest.model_fields, _CHAT, _REFUSED_INSIDE_CHAT)
COMPLETION_FIELDS = FieldCheck(CompletionRequest.model_fields, _REFUSED | _REFUSED_COMPLETIONS, _REFUSED_INSIDE)
