"""Names of the request fields of vLLM and llama.cpp, and what the fields of nested objects do here.

vLLM: `vllm/entrypoints/openai/{chat_completion,completion}/protocol.py` at 002032ee2b18, `responses/protocol.py` at
010a69cea9ac, `vllm/entrypoints/generate/base/protocol.py` at 022e555dbb75.
llama.cpp: `tools/server/server-schema.cpp` at 0177c34227eb, `server-task.cpp` at 00efb3e18426, `server-common.cpp` at
006639c3ff51, `README.md` at 00dc8057ab28.
The names of OpenAI and Anthropic come from their SDKs.
"""

from __future__ import annotations


def _names(text: str) -> list[str]:
    return text.split()


_VLLM = """
    model frequency_penalty logit_bias logprobs max_tokens n presence_penalty response_format seed stop stream
    stream_options temperature top_p user use_beam_search top_k min_p repetition_penalty watermarking length_penalty
    stop_token_ids include_stop_str_in_output ignore_eos min_tokens skip_special_tokens spaces_between_special_tokens
    truncate_prompt_tokens truncation_side prompt_logprobs logprob_token_ids allowed_token_ids bad_words echo
    add_special_tokens structured_outputs priority request_id session_id return_tokens_as_token_ids return_token_ids
    routed_experts_prompt_start return_token_offsets return_mm_kwargs cache_salt kv_transfer_params ec_transfer_params
    vllm_xargs repetition_detection thinking_token_budget stream_interval
"""
VLLM_CHAT = _names(f"""{_VLLM}
    messages top_logprobs max_completion_tokens tools tool_choice reasoning_effort include_reasoning
    parallel_tool_calls add_generation_prompt continue_final_message documents chat_template chat_template_kwargs
    media_io_kwargs mm_processor_kwargs return_prompt_text
""")
VLLM_COMPLETIONS = _names(f"{_VLLM} prompt suffix prompt_embeds")
VLLM_RESPONSES = _names("""
    background include input instructions max_output_tokens max_tool_calls metadata model logit_bias
    parallel_tool_calls previous_response_id prompt reasoning service_tier store stream temperature text tool_choice
    tools top_logprobs top_p top_k truncation user skip_special_tokens include_stop_str_in_output prompt_cache_key
    request_id mm_processor_kwargs priority cache_salt enable_response_messages previous_input_messages
    previous_response structured_outputs repetition_penalty seed stop ignore_eos vllm_xargs
""")
LLAMA = _names("""
    verbose timings_per_token stream stream_options cache_prompt return_tokens return_progress sse_ping_interval
    n_predict n_indent n_keep n_discard n_cmpl n n_cache_reuse t_max_prompt_ms t_max_predict_ms response_fields top_k
    top_p min_p top_n_sigma xtc_probability xtc_threshold typical_p temperature dynatemp_range dynatemp_exponent
    repeat_last_n repeat_penalty frequency_penalty presence_penalty dry_multiplier dry_base dry_allowed_length
    dry_penalty_last_n mirostat mirostat_tau mirostat_eta adaptive_target adaptive_decay seed n_probs min_keep
    backend_sampling post_sampling_probs speculative.n_max speculative.n_min speculative.p_min speculative.type
    speculative.ngram_size_n speculative.ngram_size_m speculative.ngram_min_hits speculative.ngram_m_hits lora
    dry_sequence_breakers json_schema grammar grammar_type grammar_lazy chat_format reasoning_format
    reasoning_in_content thinking_forced_open generation_prompt parse_tool_calls chat_parser preserved_tokens
    grammar_triggers reasoning_control reasoning_budget_tokens reasoning_budget_start_tag reasoning_budget_end_tags
    reasoning_budget_end_tag reasoning_budget_message thinking_budget_tokens logit_bias ignore_eos stop samplers
    id_slot
""")
LLAMA_CHAT = _names("""
    max_tokens max_completion_tokens logprobs echo continue_final_message messages tools tool_choice
    parallel_tool_calls response_format add_generation_prompt chat_template_kwargs reasoning_effort top_logprobs
    modalities
""")
LLAMA_COMPLETIONS = ["prompt", "max_tokens", "logprobs", "echo"]

# Nested fields of vLLM and llama.cpp that OpenAI has not, by path.
OTHERS_INSIDE = {
    "chat": {
        "stream_options": ["continuous_usage_stats"],
        "tools[]": ["defer_loading"],
        "tools[].function": ["defer_loading"],
        "response_format": ["schema", "format", "structures", "triggers"],
    },
    "completions": {
        "stream_options": ["continuous_usage_stats"],
        "response_format": ["schema", "format", "structures", "triggers"],
    },
}

# Paths of objects → their fields that have an effect, where no request model says so.
USED: dict[str, dict[str, str]] = {
    "chat": {  # the chat template gets them
        "messages[]": "name refusal tool_calls function_call tool_call_id",
        "messages[].tool_calls[]": "id type function",
        "messages[].tool_calls[].function": "name arguments",
        "messages[].function_call": "name arguments",
    },
    "completions": {},
    "responses": {
        "input[]": "type role content call_id name namespace arguments input output summary",
        "input[].content[]": "type text refusal",
        "input[].output[]": "type text",
        "input[].summary[]": "type text",
        "reasoning": "effort",
        "text": "format verbosity",
        "text.format": "type name schema strict",
        "tool_choice": "type name mode tools",
        "tools[]": "type name description parameters strict tools format",
        "tools[].format": "type syntax definition",
        "tools[].tools[]": "type name description parameters strict format",
        "tools[].tools[].format": "type syntax definition",
    },
    "messages": {
        "messages[]": "role content",
        "messages[].content[]": "type text thinking id input name tool_use_id content is_error",
        "messages[].content[].content[]": "type text",
        "system[]": "type text",
        "tools[]": "type name description input_schema strict input_examples",
        "tools[].input_schema": "type properties required",
        "tool_choice": "type name disable_parallel_tool_use",
        "thinking": "type display",
        "output_config": "effort format",
        "output_config.format": "type schema",
    },
}

# Paths of objects → the types of those that are read.
TYPES: dict[str, dict[str, str]] = {
    "chat": {
        "messages[].content[]": "text refusal",
        "messages[].tool_calls[]": "function",
        "tools[]": "function",
        "tool_choice": "function allowed_tools",
    },
    "completions": {},
    "responses": {
        "input[]": "message function_call function_call_output custom_tool_call custom_tool_call_output reasoning",
        "input[].content[]": "input_text output_text refusal reasoning_text",
        "input[].output[]": "input_text",
        "tools[]": "function namespace custom",
        "tools[].tools[]": "function custom",
        "tool_choice": "function allowed_tools custom",
    },
    "messages": {
        "messages[].content[]": "text thinking redacted_thinking tool_use tool_result",
        "messages[].content[].content[]": "text",
        "tools[]": "custom",
    },
}

_BREAKPOINT = {"prompt_cache_breakpoint": "prefixes are cached anyway"}
_CACHED = {"cache_control": "prefixes are cached anyway", "citations": "marks of an earlier answer, beside its text"}
_TOOL = {
    "defer_loading": "without a search for tools, a function that is not in the prompt could never be called",
    "output_schema": "describes results to programs, which cannot call functions here",
}
# Paths of objects → their fields without effect → why they cannot change the text.
IGNORED_INSIDE: dict[str, dict[str, dict[str, str]]] = {
    "chat": {
        "messages[].content[]": _BREAKPOINT,
        "prediction.content[]": _BREAKPOINT,
        "stream_options": {"include_obfuscation": "pads chunks beside their text"},
    },
    "completions": {"stream_options": {"include_obfuscation": "pads chunks beside their text"}},
    "responses": {
        "input[]": {
            **dict.fromkeys(("id", "status", "caller", "async"), "describes how an earlier item came about"),
            "phase": "chat templates know one kind of answer",
            "encrypted_content": "only who encrypted it can read it",
        },
        "input[].content[]": {**_BREAKPOINT, **dict.fromkeys(("annotations", "logprobs"), "stands beside the text")},
        "input[].output[]": _BREAKPOINT,
        "prompt_cache_options": {
            **dict.fromkeys(("mode", "ttl"), "prefixes are cached anyway"),
            "comparison_response_id": "adds figures about the cache",
        },
        "reasoning": dict.fromkeys(("summary", "generate_summary"), "the reply has the reasoning itself"),
        "text.format": {"description": "the prompt does not show the schema"},
        "tools[]": _TOOL,
        "tools[].tools[]": _TOOL,
    },
    "messages": {
        "messages[].content[]": {
            **_CACHED,
            **dict.fromkeys(("signature", "data"), "only who signed or encrypted it can read it"),
            **dict.fromkeys(("caller", "toolset_name"), "describes how an earlier call came about"),
        },
        "messages[].content[].content[]": _CACHED,
        "system[]": _CACHED,
        "tools[]": {
            "cache_control": "prefixes are cached anyway",
            "defer_loading": _TOOL["defer_loading"],
            "eager_input_streaming": "divides the same arguments into events",
        },
        "thinking": {
            "block_binding": "decides about blocks that Anthropic has signed",
            "budget_tokens": "an upper limit for what a model chooses itself",
        },
    },
}
# Items of the Responses API that only OpenAI's own tools make. A conversation may have begun there.
FOREIGN_ITEMS = {
    *("file_search_call", "computer_call", "computer_call_output", "web_search_call", "image_generation_call"),
    *("code_interpreter_call", "local_shell_call", "local_shell_call_output", "shell_call", "shell_call_output"),
    *("apply_patch_call", "apply_patch_call_output", "mcp_call", "tool_search_call", "tool_search_output"),
    *("program", "program_output", "mcp_approval_request", "mcp_approval_response"),
}
TOOL_LISTS = {"additional_tools", "tool_search_output", "mcp_list_tools"}
# Tools that run on OpenAI's servers, which the prompt leaves out: Codex offers some to every provider.
LEFT_OUT = {
    *("web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11", "file_search"),
    *("code_interpreter", "image_generation", "mcp", "tool_search", "programmatic_tool_calling"),
}
