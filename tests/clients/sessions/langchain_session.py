"""LangChain, with chats, responses and messages."""

import os

from langchain_anthropic import ChatAnthropic
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, Field

URL, MODEL = os.environ["CLIENTS_URL"], os.environ["CLIENTS_MODEL"]


class City(BaseModel):
    """A city."""

    name: str = Field(max_length=20)


@tool
def weather(city: str) -> str:
    """The weather of a city."""
    return "12 degrees"


chat = ChatOpenAI(base_url=f"{URL}/v1", api_key="none", model=MODEL, temperature=0, max_tokens=80)
responses = ChatOpenAI(
    base_url=f"{URL}/v1", api_key="none", model=MODEL, temperature=0, max_tokens=80, use_responses_api=True
)
messages = ChatAnthropic(base_url=URL, api_key="none", model=MODEL, temperature=0, max_tokens=80)
for model in (chat, responses, messages):
    answer = model.invoke("What is the capital of France?").text
    assert "Paris" in answer
    assert "".join(chunk.text for chunk in model.stream("What is the capital of France?")) == answer
    forced = "any" if model is messages else "required"
    called = model.bind_tools([weather], tool_choice=forced).invoke("What is the weather in Bern?")
    assert {call["name"] for call in called.tool_calls} == {"weather"}
    assert isinstance(model.with_structured_output(City).invoke("Name a city."), City)
