"""An answer that follows a JSON schema."""

import json

from client import client, model

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 40}, "population": {"type": "integer", "maximum": 99999999}},
    "required": ["city", "population"],
    "additionalProperties": False,
}
answer = client.chat.completions.create(
    model=model,
    messages=[{"role": "user", "content": "What is the capital of France, and how many people live there?"}],
    response_format={"type": "json_schema", "json_schema": {"name": "capital", "schema": SCHEMA, "strict": True}},
    temperature=0,
    max_tokens=200,
)
print(json.loads(answer.choices[0].message.content))
