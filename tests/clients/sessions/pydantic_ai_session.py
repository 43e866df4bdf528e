"""pydantic-ai: text, a stream, a structured answer by a tool and by a schema."""

import os

from pydantic import BaseModel, Field
from pydantic_ai import Agent, NativeOutput, ToolOutput
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

URL, MODEL = os.environ["CLIENTS_URL"], os.environ["CLIENTS_MODEL"]


class City(BaseModel):
    name: str = Field(max_length=20)


provider = OpenAIProvider(base_url=f"{URL}/v1", api_key="none")
# pydantic-ai takes an unknown model for one that reasons, and drops its own field for the temperature.
settings = {"extra_body": {"temperature": 0.0}, "max_tokens": 80}
for model in (OpenAIChatModel(MODEL, provider=provider), OpenAIResponsesModel(MODEL, provider=provider)):
    agent = Agent(model, model_settings=settings)
    assert "Paris" in agent.run_sync("What is the capital of France?").output
    for kind in (ToolOutput(City), NativeOutput(City)):
        typed = Agent(model, output_type=kind, model_settings=settings)
        assert isinstance(typed.run_sync("Name a city.").output, City)
