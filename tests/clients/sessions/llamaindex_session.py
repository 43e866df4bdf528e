"""LlamaIndex."""

import os

from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike

URL, MODEL = os.environ["CLIENTS_URL"], os.environ["CLIENTS_MODEL"]


def weather(city: str) -> str:
    """The weather of a city."""
    return "12 degrees"


llm = OpenAILike(
    *(MODEL,),
    api_base=f"{URL}/v1",
    api_key="none",
    is_chat_model=True,
    is_function_calling_model=True,
    temperature=0,
    max_tokens=80,
)
question = [ChatMessage(role="user", content="What is the capital of France?")]
answer = llm.chat(question).message.content
assert "Paris" in answer
assert "".join(chunk.delta for chunk in llm.stream_chat(question)) == answer
tool = FunctionTool.from_defaults(weather)
called = llm.chat_with_tools([tool], "What is the weather in Bern?", tool_required=True)
assert llm.get_tool_calls_from_response(called)[0].tool_name == "weather"
