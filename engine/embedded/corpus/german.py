"""Skill: translation from English into German.

The answer is the German text alone, written as the English one is given: with its capital letter and its final mark, or
without. Words and phrases: `german_words`, `german_phrases`; grammar: `german_grammar`; sentences: `german_patterns`.
"""

from __future__ import annotations

from engine.embedded.corpus.base import Draw, Example, Phrases, chat
from engine.embedded.corpus.german_parts import Text
from engine.embedded.corpus.german_patterns import PATTERNS, capital, set_phrase, word
from engine.embedded.corpus.wordings import wordings

# The text on its own or quoted; "{what}" is "sentence" or the like.
APART = Phrases(
    "Translate into German: {text}",
    "Translate to German: {text}",
    "(Please translate|Translate) (this |)into German: {text}",
    "(Please translate|Translate) to German:\n{text}",
    'How do you say "{text}" in German?',
    "German: {text}",
    "Translate this {what} into German: {text}",
    "auf Deutsch: {text}",
    "In German: {text}",
    "{text}\n\nTranslate this into German.",
    "Translate (the following|this) {what} (into|to) German:\n{text}",
    'Translate "{text}" into German.',
    "{text} (in German please|in German, please)",
    "English: {text}\nGerman:",
    "Translate from English to German: {text}",
    'What is "{text}" in German?',
    "Say (this|it) in German: {text}",
    "(Give me the|The) German translation, please: {text}",
    "(Can|Could) you translate this into German? {text}",
    "How do I say this in German?\n{text}",
    "Translation into German: {text}",
    "Translate '{text}' to German(, please|).",
    "to German: {text}",
    "German for: {text}",
    "Write this in German: {text}",
    "(Can|Could) you translate this {what} to German: {text}",
    "I need this in German: {text}",
    "{text} -> German",
    'Put "{text}" into German.',
    "What is this in German? {text}",
    "en to de: {text}",
    "Please give me the German for: {text}",
    "(Please translate|Translate) the {what} \"{text}\" to German.",
    "{text}\nHow do you say that in German?",
    "German translation of: {text}",
    "I want to say \"{text}\" in German. How do I say it?",
    "Translate into (the |)German(| language): {text}",
    "My teacher wants this {what} in German: {text}",
    "How do you say this in German: {text}",
    "Into German, please: {text}",
    "How would you say '{text}' in German?",
    "{text} (auf Deutsch|auf Deutsch bitte)",
    "Übersetze ins Deutsche: {text}",
    "Here is an English {what}. Translate it into German.\n\n{text}",
    "Tell me the German for this {what}: {text}",
    "Please translate to German: {text}",
    "translate English to German: {text}",
    'I would like to know how to say "{text}" in German.',
    "German please: {text}",
    "What does a German say for \"{text}\"?",
    "Can you say this in German? {text}",
    "Help me with my German homework. Translate: {text}",
    "Translate into German, (please|only the translation): {text}",
    'In German, how do you say "{text}"?',
    "Express this in German: {text}",
    'Turn this {what} into German: "{text}"',
    "(I need|I'd like) a translation into German: {text}",
    "(Please say|Say) \"{text}\" in German.",
    "(I need|I want) the German translation of this {what}: {text}",
    'Translate this to German: "{text}"',
    "What's the German for \"{text}\"?",
    "language: German\ntext: {text}",
    "How is this said in German? {text}",
    "Deutsch: {text}",
    "How can I say \"{text}\" in German?",
    "I don't speak German. How do I say \"{text}\"?",
    "Translate for me into German: {text}",
more=wordings("german.APART"))  # fmt: skip

# The text within the sentence, without a mark of its own.
WITHIN = Phrases(
    "How do you say {text} in German?",
    "What is {text} in German?",
    "Translate {text} into German.",
    "Translate {text} to German(, please|).",
    "What is the German for {text}?",
    "how do I say {text} in German",
    "{text} in German",
    "German for {text}",
    "What's {text} in German?",
    "{text} auf Deutsch",
    "How do I say {text} in German?",
    "(Please translate|Translate) {text} into German.",
    "(Can|Could) you translate {text} into German?",
    "What does {text} mean in German?",
    "I want to say {text} in German.",
    "Say {text} in German.",
    "How would I say {text} in German?",
    "What's the German for {text}?",
    "translate {text} in German",
    "German translation of {text}",
    "How do Germans say {text}?",
    "Tell me how to say {text} in German.",
    more=wordings("german.WITHIN"),
)

WORD = Phrases(
    "What is the German word for {text}?",
    "German word for {text}",
    "How do you say {text} in German?",
    "What is {text} in German?",
    'What is the German word for "{text}"?',
    "What's the German word for '{text}'?",
    "Tell me the German word for {text}.",
    "Which German word means {text}?",
    "Translate the word {text} into German.",
    "Translate the word \"{text}\" to German.",
    "Translate the word '{text}' into German(, please|).",
    "What is the German for the word {text}?",
    "I need the German word for {text}.",
    "What is the word for {text} in German?",
more=wordings("german.WORD"))  # fmt: skip

HOLE = "\0"  # where the text goes, while the rest is made casual


class Translation:
    """One to four sentences, a phrase or a word."""

    name = "translation"

    def make(self, draw: Draw) -> Example:
        pattern = draw.random.choices(PATTERNS, [weight for weight, _ in PATTERNS])[0][1]
        text = pattern(draw)
        single = pattern is word
        within = bool(text.mark == "" or "." not in text.english) and draw.chance(0.15 if text.mark else 0.4)
        source, answer = _written(draw, text, within)
        prompt = _prompt(draw, _what(pattern is set_phrase, text), within, single).replace(HOLE, source)
        key = "" if single or pattern is set_phrase else text.english
        return Example(self.name, chat(prompt, answer), key=key, expect=answer)

    def check(self, example: Example, answer: str) -> bool:
        return bool(answer.strip() == example.expect)


def _what(is_set_phrase: bool, text: Text) -> str:
    if text.mark == "" or is_set_phrase:
        return "phrase" if " " in text.english else "word"
    return "text" if ". " in text.english else "question" if text.mark == "?" else "sentence"


def _written(draw: Draw, text: Text, within: bool) -> tuple[str, str]:
    """English and German with a capital and a mark, or both without."""
    if text.mark == "":
        return text.english, text.german
    form = draw.random.random()
    if within or form < 0.08:
        small = draw.chance(0.6) and text.english[0].islower()
        return (text.english, text.german) if small else (capital(text.english), capital(text.german))
    return capital(text.english) + text.mark, capital(text.german) + text.mark


def _prompt(draw: Draw, what: str, within: bool, single: bool) -> str:
    """The frame of a prompt, with a hole for the text."""
    pool = WORD if single and draw.chance(0.5) else WITHIN if within else APART
    frame = draw.phrase(pool, text=HOLE, what=what)
    if draw.chance(0.08):
        frame = frame.lower()
    return frame if frame.startswith(HOLE) or frame.endswith(HOLE) else draw.casual(frame)


SKILL = Translation()
