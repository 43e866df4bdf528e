"""How people open a conversation and type: system messages, slips of the fingers. And how long pools are written."""

from __future__ import annotations

from engine.embedded.corpus.base import Draw, Message, Phrases

SLIP_SHARE = 0.04
SYSTEM_SHARE = 0.15


def items(text: str) -> tuple[str, ...]:
    """What stands between " / " in a text; line breaks are spaces."""
    return tuple(" ".join(text.split()).split(" / "))


def pool(text: str, more: str = "") -> Phrases:
    """A pool of the templates that stand between " / " in a text; `more`, written alike, are for training alone."""
    return Phrases(*items(text), more=items(more) if more else ())


SYSTEM = pool(
    """You are a helpful assistant. / You are a helpful, respectful and honest assistant. / You are an AI assistant. /
    You are a helpful AI. / You are a friendly assistant. / Be concise. / Answer in one sentence. /
    You are a chatbot. / You are a (careful|thoughtful) assistant. / Answer the user's question. / Answer briefly. /
    Answer the user's questions as well as you can. / You are an expert assistant. / Help the user. / You help users. /
    You are a polite and brief assistant. / You are a (support|customer service) agent. /
    You are a helpful and honest assistant. / Always be polite. / You are a pirate. / Think step by step. /
    Answer truthfully. / Answer honestly and briefly. / You are a knowledgeable assistant. / You are a teacher. /
    You are an assistant for our company. / You are a (nice|kind) robot. / You speak English. / Give short answers. /
    Use simple English. / You are a large language model. / You are {name}, a helpful assistant. /
    Today is a sunny day. / You are a helpful coding assistant. / Your name is {name}. /
    Please keep answers short and helpful."""
)


def with_system(draw: Draw, messages: list[Message]) -> list[Message]:
    """The messages, sometimes after a system message, which changes nothing."""
    if messages[0]["role"] == "system" or not draw.chance(SYSTEM_SHARE):
        return messages
    return [{"role": "system", "content": draw.phrase(SYSTEM, name=draw.first_name())}, *messages]


def typed(draw: Draw, text: str, *, greeted: bool = True) -> str:
    """`text` as people type it; without an added greeting or thanks where `greeted` is false."""
    text = draw.casual(text) if greeted else _plain(draw, text)
    return slip(draw, text) if draw.chance(SLIP_SHARE) else text


def _plain(draw: Draw, text: str) -> str:
    """Small or capital letters, with or without the last mark."""
    if draw.chance(0.3):
        text = text.lower()
    if draw.chance(0.25):
        text = text.rstrip(".?!") or text
    elif text[-1].isalnum() and draw.chance(0.15):
        text += draw.choice(("!", "."))
    return text


def slip(draw: Draw, text: str) -> str:
    """One word of five letters or more with two letters swapped, or one left out or doubled."""
    words = text.split(" ")
    places = [i for i, word in enumerate(words) if len(word) >= 5 and word.isalpha()]
    if not places:
        return text
    place = draw.choice(places)
    word, at = words[place], draw.integer(1, len(words[place]) - 2)
    kind = draw.integer(0, 2)
    middle = (word[at + 1] + word[at], word[at + 1], word[at] * 2 + word[at + 1])[kind]
    words[place] = word[:at] + middle + word[at + 2 :]
    return " ".join(words)
