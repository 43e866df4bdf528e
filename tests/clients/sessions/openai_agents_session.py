"""The OpenAI Agents SDK, which speaks Responses: an answer, a stream, a tool, a structured answer."""

import asyncio
import os

from agents import Agent, ModelSettings, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI
from pydantic import BaseModel, Field

URL, MODEL = os.environ["CLIENTS_URL"], os.environ["CLIENTS_MODEL"]
asked: list[str] = []


class City(BaseModel):
    name: str = Field(max_length=20)
    country: str = Field(max_length=20)


@function_tool
def weather(city: str) -> str:
    """The weather of a city."""
    asked.append(city)
    return "12 degrees"


async def main() -> None:
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=f"{URL}/v1", api_key="none")
    model = OpenAIResponsesModel(MODEL, client)
    short = ModelSettings(temperature=0, max_tokens=60)
    plain = Agent(name="a", instructions="Be brief.", model=model, model_settings=short)
    whole = await Runner.run(plain, "What is the capital of France?")
    assert "Paris" in whole.final_output
    stream = Runner.run_streamed(plain, "What is the capital of France?")
    text = ""
    async for event in stream.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            text += event.data.delta
    assert text == whole.final_output
    settings = ModelSettings(temperature=0, max_tokens=200, tool_choice="required")
    agent = Agent(name="b", model=model, model_settings=settings, tools=[weather])
    assert (await Runner.run(agent, "What is the weather in Bern?", max_turns=4)).final_output
    assert asked
    typed = Agent(name="c", model=model, model_settings=short, output_type=City)
    assert isinstance((await Runner.run(typed, "Name a city.")).final_output, City)


asyncio.run(main())
