"""The Anthropic SDK: an answer, a stream, a tool, its result."""

import os

from anthropic import Anthropic

URL, MODEL = os.environ["CLIENTS_URL"], os.environ["CLIENTS_MODEL"]
question = [{"role": "user", "content": "What is the capital of France?"}]
client = Anthropic(base_url=URL, api_key="none")
options = {"model": MODEL, "max_tokens": 80, "extra_body": {"temperature": 0}}
message = client.messages.create(messages=question, system="Be brief.", **options)
assert "Paris" in message.content[0].text
with client.messages.stream(messages=question, system="Be brief.", **options) as stream:
    assert "".join(stream.text_stream) == message.content[0].text
schema = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}}, "required": ["city"]}
tools = [{"name": "weather", "description": "The weather of a city.", "input_schema": schema}]
choice = {"type": "any", "disable_parallel_tool_use": True}
called = client.messages.create(messages=question, tools=tools, tool_choice=choice, **options)
assert called.stop_reason == "tool_use"
(use,) = [block for block in called.content if block.type == "tool_use"]
result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use.id, "content": "12 degrees"}]}
told = [*question, {"role": "assistant", "content": called.content}, result]
assert client.messages.create(messages=told, tools=tools, **options).content
assert client.messages.count_tokens(model=MODEL, messages=told, tools=tools).input_tokens > 50
