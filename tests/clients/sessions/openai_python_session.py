"""The OpenAI SDK: chats and responses."""

import os

from openai import BadRequestError, OpenAI
from pydantic import BaseModel, Field

URL, MODEL = os.environ["CLIENTS_URL"], os.environ["CLIENTS_MODEL"]
QUESTION = [{"role": "user", "content": "What is the capital of France?"}]
WEATHER = {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}


class City(BaseModel):
    name: str = Field(max_length=20)


client = OpenAI(base_url=f"{URL}/v1", api_key="none")
options = {"model": MODEL, "temperature": 0}
whole = client.chat.completions.create(messages=QUESTION, max_tokens=30, **options)
assert "Paris" in whole.choices[0].message.content
with client.chat.completions.stream(messages=QUESTION, max_tokens=30, **options) as stream:
    assert stream.get_final_completion().choices[0].message.content == whole.choices[0].message.content
tools = [{"type": "function", "function": WEATHER}]
called = client.chat.completions.create(
    messages=QUESTION, tools=tools, tool_choice="required", parallel_tool_calls=False, max_tokens=80, **options
)
assert called.choices[0].message.tool_calls[0].function.name == "weather"
parsed = client.chat.completions.parse(messages=QUESTION, response_format=City, max_tokens=60, **options)
assert isinstance(parsed.choices[0].message.parsed, City)
response = client.responses.create(input=QUESTION, max_output_tokens=30, **options)
assert response.output_text == whole.choices[0].message.content
with client.responses.stream(input=QUESTION, max_output_tokens=30, **options) as stream:
    assert stream.until_done().get_final_response().output_text == response.output_text
assert client.responses.retrieve(response.id).output_text == response.output_text
follow = {"input": "And of Italy?", "previous_response_id": response.id}
assert "Rome" in client.responses.create(max_output_tokens=30, **follow, **options).output_text
client.responses.delete(response.id)
code = None
try:
    client.responses.create(max_output_tokens=30, **follow, **options)
except BadRequestError as error:
    code = error.code
assert code == "previous_response_not_found"
