"""A tool that the model has to call. Its arguments follow the schema.

The model's chat template has to support tools, as Qwen2.5's does; the default model's does not.
"""

import json

from client import client, model

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "maxLength": 40}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}
answer = client.chat.completions.create(
    model=model,
    messages=[{"role": "user", "content": "What is the weather like in Paris?"}],
    tools=[WEATHER],
    tool_choice="required",
    parallel_tool_calls=False,  # one call at a time
    temperature=0,
    max_tokens=200,
)
for call in answer.choices[0].message.tool_calls:
    print(call.function.name, json.loads(call.function.arguments))
