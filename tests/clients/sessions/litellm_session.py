"""LiteLLM, which also translates Anthropic's messages and OpenAI's responses itself."""

import os

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

import litellm

litellm.suppress_debug_info = True

URL, MODEL = os.environ["CLIENTS_URL"], os.environ["CLIENTS_MODEL"]
question = [{"role": "user", "content": "What is the capital of France?"}]
schema = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}}, "required": ["city"]}
tools = [{"type": "function", "function": {"name": "weather", "parameters": schema}}]
openai = {"model": f"openai/{MODEL}", "api_base": f"{URL}/v1", "api_key": "none"}
anthropic = {"model": f"anthropic/{MODEL}", "api_base": URL, "api_key": "none"}
for options in (openai, anthropic):
    options |= {"temperature": 0, "max_tokens": 80}
    answer = litellm.completion(messages=question, **options).choices[0].message.content
    assert "Paris" in answer
    chunks = litellm.completion(messages=question, stream=True, **options)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == answer
    called = litellm.completion(messages=question, tools=tools, tool_choice="required", **options)
    assert called.choices[0].message.tool_calls[0].function.name == "weather"
forced = {"messages": question, "tools": tools, "tool_choice": "required", **openai}
whole = litellm.completion(**forced)
rebuilt = litellm.stream_chunk_builder(list(litellm.completion(stream=True, **forced)))
first, second = (reply.choices[0].message.tool_calls[0].function for reply in (whole, rebuilt))
assert first.arguments == second.arguments
text = {**openai, "model": f"text-completion-openai/{MODEL}", "extra_body": {"ignore_eos": True}, "max_tokens": 8}
assert litellm.text_completion(prompt="Once upon a time", **text).usage.completion_tokens == 8
for refusal, wrong in (
    (litellm.ContextWindowExceededError, {"messages": [{"role": "user", "content": "a b " * 50_000}]}),
    (litellm.NotFoundError, {"model": "openai/another"}),
    (litellm.BadRequestError, {"temperature": 3}),
):
    try:
        litellm.completion(**{"messages": question, "max_retries": 0, **openai} | wrong)
    except refusal:
        continue
    raise AssertionError(refusal)
limits = {"max_output_tokens": 30, "temperature": 0}
assert litellm.responses(input="What is the capital of France?", **openai | limits).output
