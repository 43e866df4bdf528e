"""instructor: structured answers by a schema and by a tool."""

import os

import instructor
from openai import OpenAI
from pydantic import BaseModel, Field

URL, MODEL = os.environ["CLIENTS_URL"], os.environ["CLIENTS_MODEL"]


class City(BaseModel):
    name: str = Field(max_length=20)
    people: int = Field(ge=1, le=99_000_000)


for mode in (instructor.Mode.JSON_SCHEMA, instructor.Mode.TOOLS):
    client = instructor.from_openai(OpenAI(base_url=f"{URL}/v1", api_key="none"), mode=mode)
    options = {"model": MODEL, "messages": [{"role": "user", "content": "Name a city."}], "temperature": 0}
    city = client.create(response_model=City, max_tokens=80, max_retries=0, **options)
    assert isinstance(city, City)
