"""The values that tools take and give: a JSON schema and a maker for each kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.embedded.corpus.base import Draw

Said = tuple[Any, str]  # a value as JSON has it, and as a user says it


@dataclass(frozen=True)
class Kind:
    """`free` values may be any words, so that nothing but their quotes tells where they end."""

    type: str
    description: str
    make: Callable[[Draw], Said]
    enum: tuple[str, ...] = ()
    free: bool = False

    def schema(self) -> Mapping[str, Any]:
        return {"type": self.type, "enum": list(self.enum)} if self.enum else {"type": self.type}


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def text(description: str, make: Callable[[Draw], str]) -> Kind:
    def both(draw: Draw) -> Said:
        value = make(draw)
        return value, value

    return Kind("string", description, both)


def free(description: str, *templates: str) -> Kind:
    """Words made of a template, with names, hours and topics to fill in."""

    def both(draw: Draw) -> Said:
        value = draw.expand(
            draw.choice(templates),
            name=draw.first_name(),
            hour=draw.integer(1, 12),
            topic=draw.choice(TOPICS),
            thing=draw.choice(THINGS),
            adjective=draw.choice(ADJECTIVES),
        )
        return value, value

    return Kind("string", description, both, free=True)


def integer(description: str, low: int, high: int, step: int = 1) -> Kind:
    def both(draw: Draw) -> Said:
        value = draw.integer(low // step, high // step) * step
        return value, str(value)

    return Kind("integer", description, both)


def decimal(description: str, low: int, high: int, parts: int) -> Kind:
    """A count of parts of one; whole numbers have no point: 7, not 7.0."""

    def both(draw: Draw) -> Said:
        value = _fraction(draw.integer(low, high), parts)
        return value, str(value)

    return Kind("number", description, both)


def _fraction(count: int, parts: int) -> int | float:
    return count / parts if count % parts else count // parts


def enum(description: str, *values: str) -> Kind:
    def both(draw: Draw) -> Said:
        value = draw.choice(values)
        return value, value

    return Kind("string", description, both, enum=values)


def _number(draw: Draw) -> Said:
    value = draw.choice((draw.integer(1, 99), draw.integer(1, 40) * 50, _fraction(draw.integer(10, 999), 10)))
    return value, str(value)


def _currency(draw: Draw) -> Said:
    code = draw.choice(tuple(CURRENCIES))
    return code, CURRENCIES[code] if draw.chance(0.4) else code


def _switch(draw: Draw) -> Said:
    on = draw.chance(0.5)
    return on, "on" if on else "off"


def _time(draw: Draw) -> str:
    if draw.chance(0.4):
        return f"{draw.integer(1, 12)} {draw.choice(('am', 'pm'))}"
    return f"{draw.integer(0, 23):02}:{draw.choice((0, 5, 10, 15, 20, 30, 40, 45, 50)):02}"


def _date(draw: Draw) -> str:
    kind = draw.integer(0, 3)
    if kind == 0:
        return draw.choice(WEEKDAYS)
    if kind == 1:
        return f"2026-{draw.integer(1, 12):02}-{draw.integer(1, 28):02}"
    return f"{draw.integer(1, 28)} {draw.choice(MONTHS)}"


def _day(draw: Draw) -> Said:
    day = draw.choice((*WEEKDAYS, "tomorrow", "tomorrow"))
    return day, day if day == "tomorrow" else f"on {day}"


def _city(draw: Draw) -> str:
    return draw.choice(CITIES) if draw.chance(0.7) else draw.surname()


def _person(draw: Draw) -> str:
    return f"{draw.first_name()} {draw.surname()}" if draw.chance(0.3) else draw.first_name()


def _email(draw: Draw) -> str:
    domain = draw.choice(("mail.com", "example.com", "example.org", draw.made_up_word(2) + ".com"))
    name = draw.first_name().lower() + draw.choice(("", "", "." + draw.surname().lower()))
    return f"{name}@{domain}"


def _capitals(draw: Draw, count: int) -> str:
    return "".join(draw.choice("ABCDEFGHJKLMNPQRSTUVWXYZ") for _ in range(count))


def _ticker(draw: Draw) -> str:
    return draw.choice(TICKERS) if draw.chance(0.4) else _capitals(draw, draw.integer(3, 4))


def _code(draw: Draw) -> str:
    return _capitals(draw, draw.integer(1, 2)) + draw.choice(("", "-")) + str(draw.integer(10, 9999))


def _file(draw: Draw) -> str:
    stem = draw.choice((*FILES, draw.made_up_word(2))) + draw.choice(("", "", str(draw.integer(1, 9))))
    return f"{stem}.{draw.choice(('txt', 'pdf', 'csv', 'md', 'json', 'log'))}"


def _sum(draw: Draw) -> str:
    a, b = draw.integer(2, 999), draw.integer(2, 99)
    return f"{a} {draw.choice('+-*')} {b}"


def _venue(draw: Draw) -> str:
    return draw.surname() if draw.chance(0.5) else f"{draw.choice(ADJECTIVES)} {draw.choice(THINGS)}"


CITIES = tuple(
    """Oslo,Bergen,Paris,London,Berlin,Rome,Madrid,Vienna,Tokyo,Kyoto,Lima,Cairo,Delhi,Mumbai,Seoul,Dublin,Lisbon,Porto,
    Prague,Warsaw,Athens,Helsinki,Stockholm,Copenhagen,Hamburg,Munich,Cologne,Zürich,Geneva,Milan,Turin,Naples,Lyon,Nice,
    Brussels,Amsterdam,Rotterdam,Boston,Chicago,Denver,Seattle,Austin,Dallas,Miami,Toronto,Montreal,Vancouver,Sydney,
    Melbourne,Perth,Auckland,Nairobi,Lagos,Accra,Dakar,Tunis,Istanbul,Ankara,Tehran,Baghdad,Beijing,Shanghai,Hanoi,
    Bangkok,Manila,Jakarta,Singapore,Santiago,Bogota,Quito,Havana,Riga,Vilnius,Tallinn,Kyiv,Sofia,Zagreb,Malmö,Kraków,
    New York,Los Angeles,San Francisco,Rio de Janeiro,Buenos Aires,Cape Town,Hong Kong,Mexico City""".replace(
        "\n    ", ""
    ).split(",")
)
CURRENCIES = {
    "USD": "dollars",
    "EUR": "euros",
    "GBP": "pounds",
    "JPY": "yen",
    "CHF": "francs",
    "INR": "rupees",
    "BRL": "reais",
    "PLN": "zloty",
}
WEEKDAYS = words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
MONTHS = words("January February March April May June July August September October November December")
TICKERS = words("AAPL MSFT NVDA TSLA AMZN GOOG META IBM INTC AMD SAP SONY ORCL NFLX UBER SHEL")
FILES = words("report notes data list plan letter budget photos todo draft summary readme results")
TOPICS = words(
    """football music science sport politics cooking chess space gardening history travel health money art film
    technology bicycles dogs cats coffee trains birds whales robots weather tennis photography maths poetry"""
)
THINGS = words(
    """River Night Garden Sky Road Star House Ocean Train Moon Forest Dream Fire Stone Rose Island Mirror Winter
    Summer Bird Bridge Door Heart Shadow City Rain Letter Tiger Mountain Song"""
)
ADJECTIVES = words(
    """Blue Red Golden Silent Last First Lost Broken Wild Quiet Long Little Secret Green Silver Black White Bright
    Dark Happy Endless Empty Hidden Old New Sweet"""
)
WORDS = words(
    """house river apple garden window friend winter bread school music horse paper stone light mountain water bridge
    candle forest kitchen letter mirror orange pencil rabbit summer ticket village whisper yellow harbour lantern
    humble gentle rapid fragile ancient brave curious"""
)
DISHES = words("pizzas burgers salads soups burritos curries sandwiches pancakes noodles tacos wraps dumplings")
GROCERIES = words(
    """milk bread eggs butter cheese rice apples bananas tomatoes onions coffee tea sugar flour salt honey pasta soap
    carrots potatoes lemons oranges yoghurt chicken fish"""
)
PRODUCTS = words("lamps chairs tables phones books pens bags shoes bottles cables clocks shirts mugs keyboards")

CITY = text("(City|Name of the city|The city)", _city)
TOWN = text("(Town|Name of the town)", Draw.surname)
PERSON = text("(Name|Name of the person)", _person)
EMAIL = text("(Address|Email address)", _email)
MINUTES = integer("(Minutes|Number of minutes)", 1, 90)
AMOUNT = Kind("number", "(Amount|The amount)", _number)
CURRENCY = Kind("string", "(Currency code|Currency)", _currency)
MESSAGE = free(
    "(Text|The text)",
    "(I am|We are) (late|at home|on the way|ready|at the station)",
    "(See you|Meet me|Let us meet) (at {hour}|tomorrow|on Friday|at the station|tonight)",
    "(I will|I can not|{name} will) (come|call|be there) (at {hour}|tomorrow|tonight|on Sunday)",
    "(Happy birthday|Thank you|Good luck|Good morning|Well done) {name}",
    "(Dinner|The food|The report|The car) is ready",
    "Where are you",
)
CHORE = free(
    "(Text|What to do)",
    "(buy|get|order) (milk|bread|eggs|flowers|stamps|coffee|a cake|a present for {name})",
    "(call|visit|write to|pay|thank|pick up) {name}",
    "(water the plants|feed the cat|walk the dog|clean the (car|kitchen|windows)|take out the (bins|paper))",
    "(send|finish|print|read) the (report|letter|plan|invoice)",
)
SUBJECT = free(
    "(Subject|Subject line)",
    "(Meeting|Lunch|Dinner|Party|Call|Trip) (on Friday|tomorrow|with {name}|at {hour}|next week)",
    "(Invoice|Question|Report|News|Notes|Ideas|Plans) (about {topic}|for {name}|for Monday)",
    "(Holiday plans|Project update|Your order|Happy birthday|Hello|Thank you)",
)
EVENT = free(
    "(Title|Name of the event)",
    "(Lunch|Dinner|Meeting|Call|Coffee|Breakfast) with {name}",
    "(Chess|Yoga|Football|Piano|Team) (practice|meeting|lesson|evening)",
    "({name} birthday|Dentist|Doctor|Haircut|Concert|Interview)",
)
TITLE = free(
    "(Title|The title)", "(The |){adjective} {thing}", "{thing} of {name}", "The {thing}", "{adjective} {thing}s"
)
QUERY = free(
    "(Query|What to search for)",
    "(best|cheap|new|easy) (recipes|books|bicycles|phones|cameras|games|hotels)",
    "(history|rules|basics|future) of {topic}",
    "(how to|where to) (learn|study) {topic}",
    "{topic} (news|for beginners|in winter|clubs)",
)
LINE = free(
    "Text",
    "The {adjective} {thing} opens at {hour}",
    "{name} wins the {topic} prize",
    "New {topic} (museum|school|club|shop) opens",
    "{name} (meets|calls|visits) {name}",
    "All about {topic}",
)
MEANING = free(
    "Text",
    "a (small|large|round|long|soft|strong) (thing|tool|place|animal|plant|kind of food)",
    "(very|quite) (fast|slow|kind|old|small|bright|quiet)",
    "a (place|room|person|thing) for (work|sleep|food|music|water)",
)
DATE = text("(Date|The date)", _date)
DAY = Kind("string", "(Day|Day of the week)", _day)
TIME = text("(Time|The time)", _time)
TICKER = text("(Symbol|Ticker symbol)", _ticker)
ROOM = enum("(Room|The room)", "kitchen", "bedroom", "bathroom", "hall", "office", "garage", "living room")
LEVEL = integer("(Level|Level from 0 to 100)", 0, 100, 5)
LANGUAGE = text(
    "(Language|The language)",
    lambda draw: draw.choice(
        ("French", "German", "Spanish", "Italian", "Dutch", "Polish", "Danish", "Greek", "Hindi", "Swedish", "Turkish")
    ),
)
WORD = text("(Word|The word)", lambda draw: draw.choice(WORDS))
FOREIGN = text("Word", lambda draw: draw.made_up_word(draw.integer(2, 3)))
TOPIC = text("(Topic|The topic)", lambda draw: draw.choice(TOPICS))
DISH = text("(Dish|The dish)", lambda draw: draw.choice(DISHES))
GROCERY = text("(Item|The item)", lambda draw: draw.choice(GROCERIES))
PRODUCT = text("(Product|Name of the product)", lambda draw: draw.choice(PRODUCTS))
CODE = text("(Code|Number)", _code)
SWITCH = Kind("boolean", "(True for on|True to switch on)", _switch)
FILE = text("(File name|Path of the file)", _file)
SUM = text("(Expression|The expression)", _sum)
VENUE = text("(Restaurant|Name of the restaurant)", _venue)
ROAD = text("(Road|The road)", lambda draw: f"{draw.choice('ABEM')}{draw.integer(1, 99)}")
DEGREES = integer("(Degrees|Temperature)", 15, 26)
TEMPERATURE = integer("Temperature", -12, 36)
CONDITION = enum("Condition", "rainy", "sunny", "cloudy", "windy", "foggy", "snowy", "dry", "warm", "stormy")
PLACE = enum("(Place|Where to go)", "airport", "station", "hotel", "hospital", "museum", "office", "stadium")
DEVICE = enum("(Device|The device)", "heater", "fan", "radio", "oven", "printer", "projector", "television")
DOOR = enum("(Door|Which door)", "front", "back", "garage", "garden", "cellar")
ACCOUNT = enum("(Account|Which account)", "savings", "checking", "holiday", "business")
CUISINE = enum("(Cuisine|Kind of food)", "Italian", "Indian", "Thai", "Greek", "Mexican", "Chinese", "Japanese")
APP = text(
    "(App|Name of the app)",
    lambda draw: draw.choice(("Calendar", "Camera", "Maps", "Mail", "Notes", "Photos", "Clock", draw.surname())),
)
PRICE = integer("Price", 20, 990)
SHARE_PRICE = decimal("Price", 500, 99900, 100)
RATING = decimal("Rating", 20, 98, 10)
UNIT = enum("(Unit|Unit of temperature)", "celsius", "fahrenheit")
COUNT = integer("(Count|How many)", 2, 12)
LIMIT = integer("(Number of results|How many)", 2, 20)
IDENTIFIER = integer("(Id|Number)", 10, 99999)
