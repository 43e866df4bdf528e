"""A shopping list in a conversation: things, and how users put them on it."""

from __future__ import annotations

from collections.abc import Sequence

from engine.embedded.corpus.base import phrases
from engine.embedded.corpus.wordings import wordings

GROCERIES = (
    *("milk", "bread", "eggs", "butter", "cheese", "rice", "apples", "bananas", "tomatoes", "onions", "coffee", "tea"),
    *(
        "sugar",
        "flour",
        "salt",
        "honey",
        "pasta",
        "soap",
        "carrots",
        "potatoes",
        "lemons",
        "oranges",
        "yoghurt",
        "fish",
    ),
    *("chicken", "candles", "pears", "nuts", "jam", "juice", "garlic", "beans", "paper", "batteries", "flowers", "oil"),
)

LIST_OPENS = phrases(
    """Put {items} on my shopping list. / My shopping list: {items}. / I have to buy {items}. /
    (Add|Please add) {items} to my list. / Make a shopping list with {items}. / I need {items}. /
    Start a shopping list: {items}. / My list is {items}. / On my shopping list are {items}. /
    Shopping list: {items} / I want to buy {items}. / Write down that I need {items}. /
    Please remember my shopping list: {items}. / Make a list: {items}. / My shopping list has {items}. /
    Start my list with {items}. / I am going shopping for {items}. / Please put {items} on the list. /
    For my list: {items}.""",
    more=wordings("turns_list.LIST_OPENS"),
)
LIST_ADDS = phrases(
    """Add {items}. / Also add {items}. / And {items}. / (Put {items} on the list|Add {items} to the list) too. /
    I also need {items}. / Please add {items}. / Also {items}, please. / Put {items} on it too. /
    Oh, and {items}. / We also need {items}. / Add {items} as well. / I forgot {items}. /
    Put {items} on my list. / Can you add {items}? / Also put {items} on my list. / And I need {items}. /
    Please put {items} on the list too.""",
    more=wordings("turns_list.LIST_ADDS"),
)
LIST_REMOVES = phrases(
    """Remove {item}. / Take {item} off the list. / I do not need {item} any more. /
    (Please remove|Remove) {item} from the list. / Delete {item}. / Take {item} off. / No {item}, please. /
    I have {item} already, take it off. / Strike out {item}. / Please take {item} off my list. /
    Take off {item}. / Remove {item} from my list. / Without {item}, please. / I do not want {item}. /
    Cross out {item}. / Drop {item} from the list. / Please delete {item}. / I no longer need {item}.""",
    more=wordings("turns_list.LIST_REMOVES"),
)
LIST_ASKS = phrases(
    """What is on my list? / What was on my list? / What do I have to buy? / (Show me|Tell me) my (shopping |)list. /
    Which things are on my list? / Read my list. / My list? / What is on my shopping list now? /
    What do I need to buy? / Say my shopping list. / What is on the (shopping |)list? / Can you read me my list? /
    What does my list say? / What should I buy? / What is my shopping list? / Give me my list. / What do I need? /
    What is on my list now?""",
    more=wordings("turns_list.LIST_ASKS"),
)


def listed(items: Sequence[str]) -> str:
    return f"{', '.join(items[:-1])} and {items[-1]}" if len(items) > 1 else items[0]
