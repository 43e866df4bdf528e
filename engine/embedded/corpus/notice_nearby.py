"""Near misses: what looks like a task the model has learned and is not. Each maker gives a prompt and its key."""

from __future__ import annotations

import re
from collections.abc import Callable

from engine.embedded.corpus.base import Draw
from engine.embedded.corpus.manner import items, pool
from engine.embedded.corpus.notice_values import (
    CITIES,
    COLUMNS,
    ERRORS,
    FIELDS,
    FORMATS,
    FORMS,
    GERMAN_SUBJECTS,
    GERMAN_VERBS,
    LANGUAGES,
    PREDICATES,
    PROGRAMMING_LANGUAGES,
    PROGRAMS,
    SOFTWARE,
    SQL_TOPICS,
    SUBJECTS,
    TABLES,
    TASKS,
    THEMES,
    WORKS,
)

Maker = Callable[[Draw], tuple[str, str]]
NUMBER = re.compile(r"\d+")


def sentence(draw: Draw) -> str:
    who = draw.first_name() if draw.chance(0.3) else draw.choice(SUBJECTS)
    return f"{who} {draw.choice(PREDICATES)}."


def passage(draw: Draw) -> str:
    return " ".join(sentence(draw) for _ in range(draw.integer(1, 12 if draw.chance(0.3) else 3)))


INTO_OTHER_LANGUAGE = pool(
    """Translate into {language}: {text} / Translate to {language}: {text} /
    (Please |)translate (this|the following) (sentence |)into {language}: {text} /
    Translate this sentence to {language}: {text} / {text} In {language}, please. /
    How do you say this in {language}? {text} / What is this in {language}: {text} / Say in {language}: {text} /
    Write this in {language}: {text} / Can you translate this into {language}? {text} / In {language}: {text} /
    Translate "{text}" into {language}. / {language}: {text} / Give me the {language} translation of: {text} /
    I need this in {language}: {text} / English to {language}: {text} /
    What would you say in {language} for "{text}"? / How do I say "{text}" in {language}? /
    Put this into {language}: {text} / {text} -> {language} /
    Could you translate the sentence "{text}" to {language}? / Please say this in {language}: {text}"""
)


def other_language(draw: Draw) -> tuple[str, str]:
    text, language = sentence(draw), draw.choice(LANGUAGES)
    return draw.phrase(INTO_OTHER_LANGUAGE, text=text, language=language), f"{language}/{text}"


FROM_GERMAN = pool(
    """Translate into English: {text} / Translate from German: {text} / German to English: {text} /
    What does this mean in English? {text} / What does "{text}" mean? / What is "{text}" in English? /
    Put this into English: {text} / {text} What does that mean? / In English: {text} / Say this in English: {text} /
    Translate this from German into English: {text} / (Please |)translate "{text}" into English. /
    Give me the English translation of: {text} / What is this in English: {text} /
    Can you translate this into English? {text} / {text} / {text} In English, please. /
    Is this correct German? {text} / I don't understand this German sentence: {text} / Translate: {text} /
    Explain the grammar of this German sentence: {text} / Correct my German: {text}""",
    """Is that good German? {text} / Is this sentence right? {text} / Did I write this correctly? {text} /
    Is my German (right|good|correct)? {text} / Check my German: {text} / Is the grammar right here? {text} /
    Are there mistakes in this? {text} / Is "{text}" correct? / Does this sound right? {text} /
    Improve my German: {text} / What is wrong with this German sentence? {text} / Is this German or Dutch? {text} /
    Is there a mistake in my German sentence? {text} / Would a German say this? {text} /
    Is this (a correct|good|proper) German (sentence|text)? {text} / {text} Is (this|that) (right|correct)? /
    Which language is this? {text} / Say that in simpler German: {text} / Read this to me: {text}""",
)


def from_german(draw: Draw) -> tuple[str, str]:
    text = f"{draw.choice(GERMAN_SUBJECTS)} {draw.choice(GERMAN_VERBS)}."
    return draw.phrase(FROM_GERMAN, text=text), text


CODE = pool(
    """Write a {language} function that {task}. / Write a function in {language} that {task}. /
    Write {language} code that {task}. / {language} function that {task} / I need a {language} function that {task}. /
    (Please |)write a {language} program that {task}. / Give me {language} code that {task}. /
    Can you write a {language} function that {task}? / Implement a function in {language} that {task}. /
    Write a method in {language} that {task}. / In {language}, write a function that {task}. /
    How do I write a {language} function that {task}? / Show me a {language} function that {task}. /
    Write a {language} script that {task}. / Using {language}, write a function that {task}. /
    Create a {language} function that {task}. / Make a {language} function that {task}. /
    Code in {language} that {task}, please. / A function in {language} that {task}, please. /
    Help me write {language} code that {task}."""
)


def other_code(draw: Draw) -> tuple[str, str]:
    task, language = draw.choice(TASKS), draw.choice(PROGRAMMING_LANGUAGES)
    return draw.phrase(CODE, task=task, language=language), f"{language}/{task}"


PROGRAM = pool(
    """Write a (Python |)program that {task}. / Write a (Python |)script that {task}. / Build an app that {task}. /
    Code a bot that {task}. / I need a (Python |)script that {task}. / Make a website that {task}. /
    How do I write a program that {task}? / Can you build an app that {task}? /
    I want to build software that {task}. / Which library do I need for a program that {task}? /
    Write an app that {task}. / Create a (Python |)script that {task}. / Help me (to |)build an app that {task}. /
    Write the code for an app that {task}. / Write a (Python |)bot that {task}. / I need a program that {task}. /
    Make an app that {task}. / Write me a program that {task}."""
)


def program(draw: Draw) -> tuple[str, str]:
    task = draw.choice(PROGRAMS)
    return draw.phrase(PROGRAM, task=task), task


DEBUG = pool(
    """Why do I get {error} in {language}? / I get {error}. What is wrong? / My {language} code fails with {error}. /
    How do I fix {error}? / Fix this error: {error} / {error} / Help, my program says {error}! /
    My program crashes with {error}. / How do I solve {error}? / How can I fix {error} in my {language} program? /
    What does {error} mean? / What is {error}? / I keep getting {error}. / Error: {error} /
    My {language} code does not run: {error} / Debug my {language} code, it says {error} /
    What causes {error} in {language}? / What is wrong with my {language} program? It says {error} /
    Explain the error {error}. / My {language} program says {error}. What does that mean?"""
)


def debugging(draw: Draw) -> tuple[str, str]:
    error, language = draw.choice(ERRORS), draw.choice((*PROGRAMMING_LANGUAGES, "Python"))
    return draw.phrase(DEBUG, error=error, language=language), error


ABOUT_SQL = pool(
    """What is {x} in SQL? / How does {x} work in SQL? / When do I use {x} in SQL? / Explain {x} in SQL. /
    What is {x}? / What is the difference between {x} and {y}? / Teach me about {x} in SQL. /
    I don't understand {x}. / Why is my query with {x} slow? / How do I speed up {x} in my database? /
    How do I use {x} in a database? / What is {x} good for in SQL? / Does SQLite support {x}? / {x} or {y}? /
    Does MySQL support {x}? / How is {x} implemented in PostgreSQL? / Write a tutorial about {x} in SQL. /
    Explain the difference between {x} and {y} in SQL. / Explain {x}."""
)


def about_sql(draw: Draw) -> tuple[str, str]:
    x, y = draw.sample(SQL_TOPICS, 2)
    return draw.phrase(ABOUT_SQL, x=x, y=y), x


OTHER_QUERY = pool(
    """{schema} Write a MongoDB query for all {table}. / {schema} Draw a diagram. / {schema} Is this a good schema? /
    {schema} Write a {language} class for it. / {schema} Write a Java class for it. /
    {schema} Which index should I add? / {schema} In which normal form is it? /
    How do I load {table} from a database in {language}? / {schema} Write pandas code that loads it. /
    {schema} Write the REST API for it. / {schema} Write a class for it in {language}. /
    {schema} How big will it get? / {schema} Explain what this table is for. / {schema} What columns are missing? /
    {schema} Make a web form for it. / Design a database for {table}. /
    Which tables do I need for a database of {table}? / Make a schema for {table}. /
    How should I store {table} in a database? / {schema} How do I back it up? /
    {schema} Write an Excel formula for it. / {schema} How would this look in MongoDB?"""
)


def other_query(draw: Draw) -> tuple[str, str]:
    table, columns = draw.choice(TABLES), draw.sample(COLUMNS, draw.integer(2, 5))
    schema = draw.choice((f"Table {table} has columns {', '.join(columns)}.", f"Table {table}: {', '.join(columns)}."))
    language = draw.choice(PROGRAMMING_LANGUAGES)
    return draw.phrase(OTHER_QUERY, schema=schema, table=table, language=language), f"{table}/{columns[0]}"


SUMMARY_OF_WORK = pool(
    """(Summarise|Summarize) {x}. / (Summarise|Summarize) {x} for me. / Give me a (short |)summary of {x}. /
    Summary of {x}? / Write a summary of {x}. / What are the main points of {x}? / TL;DR of {x} /
    (Please |)(summarise|summarize) {x}. / I need a summary of {x}. / Can you (summarise|summarize) {x}? /
    Sum up {x}. / (Summarise|Summarize) {x} in one sentence. / What is {x} about, in short? /
    Give me the key facts of {x}. / Could you sum up {x}? / Make a short summary of {x}. / What happens in {x}? /
    Please give me a summary of {x}. / I have no time to read {x}. (Summarise|Summarize) it. /
    Summarise {x} in three sentences."""
)


def summary_of_work(draw: Draw) -> tuple[str, str]:
    work = draw.choice(WORKS)
    return draw.phrase(SUMMARY_OF_WORK, x=work), work


OTHER_TEXT_WORK = pool(
    """Correct the grammar: {text} / Find the spelling mistakes: {text} / Rewrite this (text |)more formally: {text} /
    Correct the mistakes in this text: {text} / Rewrite this in the passive voice: {text} / Make this rhyme: {text} /
    Is this text positive or negative? {text} / Make this sound better: {text} / Make this text longer: {text} /
    Continue this text: {text} / Improve this text: {text} / What is the mood of this text? {text} /
    How many words are in this text? {text} / Proofread: {text} / Count the letters: {text} / Paraphrase: {text} /
    Rewrite this text as a song: {text} / Make this funnier: {text} / Rewrite this as a poem: {text} /
    Fix my grammar: {text} / Write an essay about this: {text} / What is the subject of this sentence? {text} /
    Put this into the past tense: {text} / Find all verbs: {text} / Is this sentence correct? {text} /
    Rewrite this in the style of Shakespeare: {text} / Turn this into an email: {text} /
    What is wrong with this sentence? {text} / Reply to this message: {text} / Who wrote this? {text} /
    Rewrite this more politely: {text} / Write a reply to this: {text} / Make this text more polite: {text} /
    Put this into capital letters: {text} / Read this out loud: {text} / Write this text backwards: {text}"""
)


def other_text_work(draw: Draw) -> tuple[str, str]:
    text = passage(draw)
    return draw.phrase(OTHER_TEXT_WORK, text=text), text


OTHER_FORMAT = pool(
    """Extract {a} and {b} as {format}: {text} / Give me {a} and {b} as {format}: {text} /
    Turn this into {format}: {text} / Write {a} and {b} as {format}: {text} / Convert this to {format}: {text} /
    As {format}, please: {text} / Put {a} and {b} into {format}: {text} / {text} Write that as {format}. /
    Make {format} of this: {text} / {text} Give me that as {format}. /
    (Please |)convert this text to {format}: {text} / Format this as {format}: {text} /
    Extract the {a} from this text as {format}: {text} / Return {format} with {a} and {b}: {text} / {format}: {text} /
    I need {format} of this: {text} / {text} Now as {format}, please."""
)


def other_format(draw: Draw) -> tuple[str, str]:
    a, b = draw.sample(FIELDS, 2)
    text = passage(draw)
    return draw.phrase(OTHER_FORMAT, a=a, b=b, text=text, format=draw.choice(FORMATS)), text


MATHS = pool(
    """What is the square root of {n}? / Is {n} a prime number? / Is {n} prime? / What is {p}% of {n}? /
    Solve for x: {p}x - {q} = {n} / What is {n} divided by {p}? / What is {n} in binary? /
    Solve x^2 + {p}x + {q} = 0. / Factor {n}. / What is the sine of {n} degrees? / Solve {p}x + {q} = {n}. /
    sqrt of {n} / Integrate x^{p} + {q}x. / What is the derivative of x^{p} + {q}? / Prove that {n} is not a prime. /
    What is {p} to the power of {q}? / What is the logarithm of {n}? / What is {p} percent of {n}? /
    What is the greatest common divisor of {n} and {p}? / Divide {n} by {p}. / How much is {p}% of {n}? /
    Convert {n} km to miles. / How many feet are {n} metres? / What is {n} in Roman numerals? / Find x: {p}x = {n} /
    Round {n} to the next hundred. / What is {n} degrees Fahrenheit in Celsius? / Convert {n} dollars to euros. /
    How many minutes are {n} seconds? / What is the average of {n}, {p} and {q}? /
    A circle has radius {p}. What is its area? / What is the square of {n}? / What is {n} factorial? /
    What is {n} modulo {p}? / A train goes {n} km in {p} hours. How fast is it? / {n}! = ? / Is {n} even or odd? /
    Convert {n} pounds to kilograms. / What are the prime factors of {n}? / What is the cube root of {n}? /
    What comes next: {p}, {q}, {n}? / Solve the equation {p}y + {q} = {n}. / Plot y = {p}x + {q}. /
    Find the prime factors of {n}. / Is {n} divisible by {p}? / What is {p}/{q} of {n}? /
    A price of {n} euros falls by {p} percent. What is the new price? /
    What is the probability of {p} sixes in {q} throws? / What is half of {n}? /
    What is the area of a triangle with base {p} and height {q}? / Name all divisors of {n}. /
    How old am I if I was born in {year}? / {p}x = {n} / How many days are there between March {p} and May {q}? /
    {n} ÷ {p}""",
    """What is x if {p}x + {q} = {n}? / {p}x + {q} = {n} / {p}x - {q} = {n}, what is x? / Solve {p}z - {q} = {n}. /
    Solve {n} = {p}x + {q}. / Solve for y: {p}y + {q} = {n} / {p}/{q} + {q}/{p} / What is {p}/{q} - 1/{p}? /
    1/{p} + 1/{q} = ? / Add 1/{p} and 1/{q}. / What is the sum of 2/{p} and 1/{q}? / Simplify {n}/{p}. /
    What is {p}/{n} as a decimal? / {p}x = {n}, x = ? / Work out the equation {p}a = {n}. / Is {n} a square number?""",
)


def maths(draw: Draw) -> tuple[str, str]:
    p, q, n = draw.integer(2, 20), draw.integer(2, 20), draw.integer(21, draw.choice((99, 999, 9999)))
    text = draw.phrase(MATHS, p=p, q=q, n=n, year=draw.integer(1930, 2015))
    return text, "/".join(NUMBER.findall(text))


DEED_WITHOUT_TOOL = pool(
    """What's the weather (like |)in {city}? / What is the weather in {city}( today| tomorrow|)? /
    Will it rain in {city}( tomorrow|)? / How is the weather in {city}? / Book a flight to {city}. /
    How warm is it in {city}? / Set an alarm for {hour} o'clock. / Send {name} a message. / Write {name} an email. /
    Remind me at {hour} to call {name}. / Send an email to {name}. / Book a table for {hour} o'clock. /
    Find a hotel in {city}. / What time is it in {city}? / Set a timer for {hour} minutes. /
    Order a pizza to {city}. / Tell {name} that I am late. / Call {name}. / Weather in {city}? / Turn on the lights. /
    Play a song for {name}. / Add a meeting with {name} to my calendar. /
    Meet {name} at {hour}: put it into my calendar. / Show me the way to {city}. / Remind me to call {name}. /
    Search the web for {name}. / Which trains go to {city}? / When does the next train to {city} leave? /
    Pay {name} {hour} euros. / Navigate to {city}. / Text {name} that I will come at {hour}. /
    Write an email to {name}. / Is it cold in {city}? / When is the next bus to {city}? / Buy a ticket to {city}. /
    What is the temperature in {city}? / Send a letter to {name} in {city}. / Invite {name} to dinner at {hour}. /
    Weather {city}"""
)


def deed_without_tool(draw: Draw) -> tuple[str, str]:
    city, name, hour = draw.choice(CITIES), draw.first_name(), draw.integer(2, 12)
    city = draw.made_up_word(2).capitalize() if draw.chance(0.3) else city
    text = draw.phrase(DEED_WITHOUT_TOOL, city=city, name=name, hour=hour)
    return text, next((value for value in (city, name) if value in text), text)


UNKNOWN_PERSON = pool(
    """Who is {name}? / Who was {name}? / How old is {name}? / Where does {name} live? / Where does {name} work? /
    When was {name} born? / Tell me about {name}. / Do you know {name}? / What is the email address of {name}? /
    What did {name} invent? / What is {name}'s phone number? / Where is {name}? / Is {name} married? / {name} /
    According to the document, where does {name} live? / What does the text say about {name}? /
    Why is {name} famous? / What does {name} do? / Which books did {name} write? / When did {name} die? /
    Who are the parents of {name}? / What colour is {name}'s car? / How many children does {name} have? / {name}? /
    What is {name}'s email address? / What is {name} known for? / Write a letter to {name}. /
    What do you think of {name}? / Have you heard of {name}? / Which school did {name} go to? / Describe {name}. /
    What is the address of {name}? / What is {name}'s job? / Find the phone number of {name}. /
    In the document, what is {name}'s job? / How do I get in touch with {name}? / Who knows {name}?"""
)


def unknown_person(draw: Draw) -> tuple[str, str]:
    name = draw.first_name()
    if draw.chance(0.75):
        name = f"{name} {draw.surname()}"
    return draw.phrase(UNKNOWN_PERSON, name=name), name


UNKNOWN_PLACE = pool(
    """Where is {x}? / What is {x}? / What does {x} mean? / Who lives in {x}? / How big is {x}? / Who built {x}? /
    When was {x} built? / {x} / Have you ever heard of {x}? / How many people live in {x}? / Where can I buy {x}? /
    What is the capital of {x}? / What is {x} known for? / Explain {x}. / Tell me about {x}. / How do I get to {x}? /
    Which language do they speak in {x}? / Is {x} a city? / According to the text, what is {x}? / Define {x}. / {x}? /
    What does {x} do? / How does {x} work? / What is the history of {x}? / When does the office in {x} open? /
    Is {x} real? / How much does {x} cost? / What do you know about {x}? / Who is the mayor of {x}? /
    What is the opposite of {x}?"""
)


def unknown_place(draw: Draw) -> tuple[str, str]:
    name = draw.made_up_word(draw.integer(2, 3)).capitalize()
    return draw.phrase(UNKNOWN_PLACE, x=name), name


OTHER_WRITING = pool(
    """Write a {form} about {x}. / Write me a {form} about {x}. / Give me a {form} about {x}. /
    A {form} about {x}, please. / Can you write a {form} about {x}? /
    (Please |)write a (short|funny|sad|long) {form} about {x}. / I need a {form} about {x}. /
    Compose a {form} about {x}. / Tell me a {form} about {x}. / Make up a {form} about {x}. / {form} about {x} /
    Could you write a {form} about {x}? / I would like a {form} about {x}. / Write a {form} on {x}. /
    Create a {form} about {x}. / I want a {form} about {x}. / Do you know a {form} about {x}? /
    Make a {form} about {x}. / Invent a {form} about {x}. / Write a {form} for children about {x}. /
    Write a {form} in which {x} plays a part. / Please make up a {form} about {x}."""
)


def other_writing(draw: Draw) -> tuple[str, str]:
    form, theme = draw.choice(FORMS), draw.choice(THEMES)
    if draw.chance(0.2):
        theme = draw.first_name()
    return draw.phrase(OTHER_WRITING, form=form, x=theme), f"{form}/{theme}"


OTHER_SOFTWARE = pool(
    """What is {x}? / How do I install {x}? / How do I stop {x}? / What port does {x} use? /
    Which licence does {x} have? / What is the default port of {x}? / Is {x} open source? / How do I configure {x}? /
    Is {x} fast? / How do I update {x}? / How do I start {x}? / Which version of {x} is the latest? /
    Why is {x} so slow? / Is {x} better than {y}? / How does {x} work? / Does {x} need a GPU? / How do I use {x}? /
    How do I change the port of {x}? / Where does {x} save its files? / What does {x} do? /
    Which flags does {x} have? / How do I run {x} in Docker? / Is {x} free? / How do I turn off {x}? /
    Is {x} faster than {y}? / What is the difference between {x} and {y}? / How much memory does {x} need? /
    Explain {x}. / How do I set an API key in {x}? / Where are the logs of {x}? / Why does {x} crash? /
    Is {x} better? / How do I test {x}? / Who made {x}? / How do I load a model in {x}? /
    Which models does {x} support? / Is {x} running?"""
)


def other_software(draw: Draw) -> tuple[str, str]:
    x, y = draw.sample(SOFTWARE, 2)
    return draw.phrase(OTHER_SOFTWARE, x=x, y=y), x


NOISE = items("asdf / qwer / jkl / uiop / zxcv / hjk / ghj / dfg / yxcv / wer / fgh / bnm / lkj / poi / sdf / xcv")


def gibberish(draw: Draw) -> tuple[str, str]:
    def word() -> str:
        if draw.chance(0.4):
            return draw.choice(NOISE) * draw.integer(1, 2)
        if draw.chance(0.4):
            return "".join(draw.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(draw.integer(3, 9)))
        return draw.made_up_word(draw.integer(2, 4))

    text = " ".join(word() for _ in range(draw.integer(1, 5)))
    text += draw.choice(("", "", "?", ".", "!", "??"))
    return text, text


NEARBY: tuple[Maker, ...] = (
    other_language,
    other_language,
    from_german,
    from_german,
    other_code,
    other_code,
    program,
    debugging,
    about_sql,
    other_query,
    summary_of_work,
    other_text_work,
    other_text_work,
    other_format,
    maths,
    maths,
    maths,
    deed_without_tool,
    deed_without_tool,
    other_writing,
    other_writing,
    other_software,
)
UNKNOWN: tuple[Maker, ...] = (unknown_person, unknown_person, unknown_place, gibberish)
