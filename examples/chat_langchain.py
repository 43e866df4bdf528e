"""LangChain: a streamed chat, then an answer as a typed object. Needs `pip install langchain-openai`."""

from client import client, model
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, Field

chat = ChatOpenAI(
    base_url=str(client.base_url), api_key=client.api_key, model=model, temperature=0, max_completion_tokens=200
)
for chunk in chat.stream("Name three colours."):
    print(chunk.text, end="", flush=True)
print()


class City(BaseModel):
    """A city and its population."""

    name: str = Field(max_length=40)
    population: int = Field(le=99_999_999)


city = chat.with_structured_output(City, method="json_schema").invoke("What is the capital of France?")
print(city.name, city.population)
