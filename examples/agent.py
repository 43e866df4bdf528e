"""An agent: the model calls a tool, reads its result, and answers, in five turns at most.

The model's chat template has to support tools, as Qwen2.5's does; the default model's does not.
"""

import json

from client import client, model

PRICES = {"apple": 0.4, "pear": 0.5, "melon": 2.5}
PRICE = {
    "type": "function",
    "function": {
        "name": "price",
        "description": "The price of a fruit in euros.",
        "parameters": {
            "type": "object",
            "properties": {"fruit": {"type": "string", "enum": list(PRICES)}},
            "required": ["fruit"],
            "additionalProperties": False,
        },
    },
}


def price(arguments: str) -> str:
    """Run the tool. An error is a result too: the model can read it and try again."""
    try:
        return str(PRICES[json.loads(arguments)["fruit"]])
    except (ValueError, KeyError, TypeError) as error:
        return f"error: {error!r}"


messages = [
    {"role": "system", "content": "You work in a shop. When you know the price, answer the customer in one sentence."},
    {"role": "user", "content": "How much does a melon cost?"},
]
for turn in range(5):
    answer = client.chat.completions.create(
        model=model,
        messages=messages,
        tools=[PRICE],
        tool_choice="auto" if turn else "required",  # small models seldom call a tool of their own accord
        parallel_tool_calls=False,  # one call at a time
        temperature=0,
        max_tokens=200,
    )
    message = answer.choices[0].message
    if not message.tool_calls:
        print(message.content)
        break
    messages.append(message.model_dump(exclude_none=True))
    for call in message.tool_calls:
        result = price(call.function.arguments)
        print(f"{call.function.name}({call.function.arguments}) = {result}")
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
