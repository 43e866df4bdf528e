"""Values of the fields of short texts.

A value that is a plain number in the text (a count, an age, a year, a price) is a number in JSON; all others are
strings, copied as they stand in the text.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.embedded.corpus.base import Draw
from engine.embedded.corpus.sql_words import CITIES
from engine.embedded.corpus.sums_words import words

Value = str | int | float
Maker = Callable[[Draw], tuple[str, Value]]  # what stands in the text, and the value

MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October"),
    *("November", "December"),
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def of(*choices: str) -> Maker:
    """One of the choices, which are separated by commas."""
    items = tuple(", ".join(choices).split(", "))

    def make(draw: Draw) -> tuple[str, Value]:
        item = draw.choice(items)
        return item, item

    return make


def number(low: int, high: int) -> Maker:
    def make(draw: Draw) -> tuple[str, Value]:
        value = draw.integer(low, high)
        return str(value), value

    return make


def text(make: Callable[[Draw], str]) -> Maker:
    def pair(draw: Draw) -> tuple[str, Value]:
        made = make(draw)
        return made, made

    return pair


def money(low: int, high: int, step: int = 1, cents: float = 0.4) -> Maker:
    def make(draw: Draw) -> tuple[str, Value]:
        value: int | float = draw.integer(low, high) * step
        if draw.chance(cents):
            value = float(f"{value}.{draw.choice('123456789')}{draw.choice('123456789')}")
        return draw.choice(("€{}", "${}", "£{}", "{} euros", "{} euros", "{} EUR", "{} dollars")).format(value), value

    return make


def person(draw: Draw) -> str:
    return f"{draw.first_name()} {draw.surname()}"


def somewhere(draw: Draw) -> str:
    return draw.choice(CITIES) if draw.chance(0.5) else draw.surname()


def company(draw: Draw) -> str:
    ending = draw.choice(
        ("Ltd", "GmbH", "Group", "Labs", "Systems", "Foods", "Media", "Bank", "Works", "AG", "Tech", "")
    )
    return f"{draw.surname()} {ending}".strip()


def email(draw: Draw) -> str:
    first, last = draw.first_name().lower(), draw.surname().lower()
    user = draw.choice((f"{first}.{last}", first, last, f"{first}{draw.integer(1, 99)}", f"{first[0]}.{last}", "info"))
    return f"{user}@{draw.made_up_word(2)}.{draw.choice(('com', 'org', 'net', 'de', 'eu', 'io'))}"


def digits(draw: Draw, count: int) -> str:
    return "".join(str(draw.integer(0, 9)) for _ in range(count))


def phone(draw: Draw) -> str:
    return draw.choice(
        (
            f"555-{digits(draw, 4)}",
            f"0{digits(draw, 2)} {digits(draw, 6)}",
            f"+{draw.integer(1, 99)} {digits(draw, 3)} {digits(draw, 4)}",
            f"{digits(draw, 3)}-{digits(draw, 3)}-{digits(draw, 4)}",
        )
    )


def date(draw: Draw) -> str:
    day, month, year = draw.integer(1, 28), draw.integer(1, 12), draw.integer(2019, 2030)
    name = MONTHS[month - 1]
    return draw.choice(
        (
            f"{year}-{month:02}-{day:02}",
            f"{day} {name} {year}",
            f"{name} {day}, {year}",
            f"{name} {day}",
            f"{day} {name}",
            f"{day:02}.{month:02}.{year}",
            f"{day:02}/{month:02}/{year}",
            draw.choice(WEEKDAYS),
        )
    )


def time(draw: Draw) -> str:
    hour, minute = draw.integer(1, 12), draw.choice((0, 15, 30, 45, 10, 20, 5))
    half = draw.choice(("am", "pm"))
    return draw.choice(
        (
            f"{draw.integer(7, 22)}:{minute:02}",
            f"{draw.integer(7, 22):02}:{minute:02}",
            f"{hour} {half}",
            f"{hour}:{minute:02} {half}",
        )
    )


def letter(draw: Draw) -> str:
    return draw.choice("ABCDEFGHKLMNPRSTVWX")


def code(draw: Draw) -> str:
    return draw.choice(
        (
            f"{letter(draw)}-{draw.integer(100, 99999)}",
            f"{letter(draw)}{letter(draw)}-{draw.integer(100, 9999)}",
            f"{draw.integer(10, 99)}-{draw.integer(100, 9999)}",
            f"{letter(draw)}{letter(draw)}{letter(draw)}{draw.integer(10, 999)}",
            f"{draw.integer(2020, 2029)}-{draw.integer(1, 999):03}",
        )
    )


def item(draw: Draw) -> str:
    noun = draw.choice(ITEMS)
    if draw.chance(0.25):
        return f"{noun} {letter(draw)}{draw.integer(1, 99)}"
    return f"{draw.choice(KINDS_OF_ITEMS)} {noun}" if draw.chance(0.5) else noun


def title(draw: Draw) -> str:
    first, second = draw.choice(TITLE_WORDS), draw.choice(TITLE_WORDS)
    return draw.choice(("The {} {}", "{} and {}", "{} of {}", "The {} of {}", "{} {}")).format(first, second)


ITEMS = words(
    """lamp chair table mouse keyboard phone camera bag jacket watch bottle umbrella printer monitor laptop tablet
    headset speaker kettle toaster mixer fan heater drill hammer bike helmet tent backpack wallet scarf ring router
    charger radio clock mirror desk sofa pillow blanket vase pan knife mug notebook pen suitcase guitar piano drone
    scooter vacuum fridge oven stapler"""
)
KINDS_OF_ITEMS = words("small large wireless wooden leather steel office travel kids smart glass")
TITLE_WORDS = (
    *("River", "Night", "Garden", "Winter", "Stone", "Silence", "Ocean", "Letter", "Fire", "Shadow", "House", "Star"),
    *("Bridge", "Mirror", "Island", "Storm", "Secret", "Road", "Forest", "Glass", "Dream", "Clock", "Bird", "Salt"),
)

MAKERS: dict[str, Maker] = {
    "person": text(person),
    "first": text(lambda draw: draw.first_name()),
    "doctor": text(lambda draw: f"Dr. {draw.surname()}"),
    "company": text(company),
    "city": text(somewhere),
    "country": of(
        "France, Spain, Italy, Germany, Japan, Brazil, Canada, India, Kenya, Norway, Peru, Egypt, Chile, Poland"
    ),
    "street": text(
        lambda draw: f"{draw.integer(1, 199)} {draw.surname()} {draw.choice(('Street', 'Road', 'Lane', 'Avenue'))}"
    ),
    "email": text(email),
    "website": text(
        lambda draw: f"www.{draw.made_up_word(draw.integer(2, 3))}.{draw.choice(('com', 'org', 'net', 'de'))}"
    ),
    "phone": text(phone),
    "date": text(date),
    "time": text(time),
    "code": text(code),
    "room": text(lambda draw: f"{letter(draw)}{draw.integer(1, 420)}"),
    "gate": text(lambda draw: f"{letter(draw)}{draw.integer(1, 60)}"),
    "seat": text(lambda draw: f"{draw.integer(1, 40)}{draw.choice('ABCDEF')}"),
    "flight": text(lambda draw: f"{letter(draw)}{letter(draw)}{draw.integer(10, 9999)}"),
    "model": text(
        lambda draw: draw.choice((f"{letter(draw)}{draw.integer(1, 900)}", draw.made_up_word(2).capitalize()))
    ),
    "item": text(item),
    "title": text(title),
    "brand": text(lambda draw: draw.surname()),
    "carbrand": text(
        lambda draw: (
            draw.choice(("Ford", "Fiat", "Audi", "Toyota", "Opel", "Volvo", "Skoda"))
            if draw.chance(0.4)
            else draw.surname()
        )
    ),
    "hotel": text(lambda draw: draw.choice(("Hotel {}", "{} Inn", "{} Palace", "{} Hotel")).format(draw.surname())),
    "restaurant": text(
        lambda draw: draw.choice(("Cafe {}", "{} Grill", "Casa {}", "{} Garden")).format(draw.surname())
    ),
    "stadium": text(lambda draw: draw.choice(("{} Arena", "{} Park", "{} Stadium")).format(draw.surname())),
    "team": text(
        lambda draw: draw.choice(("FC {}", "{} United", "{} Lions", "{} City", "SV {}", "{}")).format(draw.surname())
    ),
    "weight": text(lambda draw: f"{draw.integer(1, 60)} {draw.choice(('kg', 'kg', 'g', 'lb', 'pounds'))}"),
    "area": text(lambda draw: f"{draw.integer(20, 240)} {draw.choice(('square metres', 'm2', 'sqm'))}"),
    "mileage": text(lambda draw: f"{draw.integer(1, 240)}000 {draw.choice(('km', 'miles'))}"),
    "duration": text(lambda draw: draw.choice((f"{draw.integer(2, 8)} hours", f"{draw.integer(2, 18) * 5} minutes"))),
    "size": of("S, M, L, XL, XXL, small, medium, large"),
    "color": of("red, blue, green, black, white, yellow, brown, grey, pink, orange, purple, silver, beige, dark blue"),
    "priority": of("high, low, medium, urgent, normal"),
    "language": of("English, French, Spanish, German, Italian, Dutch, Polish, Turkish, Arabic, Hindi, Greek"),
    "species": of("cat, dog, rabbit, parrot, hamster, horse, turtle, goat, pony, guinea pig, canary, duck"),
    "job": of(
        "nurse, teacher, cook, driver, engineer, designer, baker, clerk, doctor, lawyer, gardener, painter, plumber",
        "pilot, waiter, manager, data analyst, web developer, sales manager, project manager, tailor, carpenter",
    ),
    "department": of("Sales, IT, Finance, Marketing, Legal, Support, Design, Research, Logistics, Human Resources"),
    "hobby": of(
        "chess, swimming, painting, football, tennis, reading, hiking, cooking, dancing, singing, fishing, cycling",
        "gardening, yoga, old cars, photography, board games, sailing, pottery",
    ),
    "event": of(
        "jazz concert, book fair, summer party, flea market, film night, city run, chess tournament, science day",
        "art show, dance class, wine tasting, open day, street festival, quiz night, poetry reading, charity dinner",
    ),
    "place": of(
        "town hall, city park, main library, old theatre, school gym, museum, station, bus stop, swimming pool, cafe",
        "market hall, church, stadium, cinema, airport, art gallery, sports centre, train",
    ),
    "issue": of(
        "does not start, is broken, makes a loud noise, gets very hot, does not charge, shows an error, is too slow",
        "turns off by itself, has a crack, smells of smoke, lost all data, does not connect, is leaking, came too late",
    ),
    "complaint": of(
        "a cough, back pain, a fever, a headache, a check-up, a sore throat, a broken tooth, knee pain, an allergy",
        "a vaccination, ear pain, a blood test",
    ),
    "topic": of(
        "the new website, the budget, the summer party, the sales plan, the annual report, the office move, safety",
        "the new logo, travel costs, the product launch, hiring, the rent, the workshop, the project plan, privacy",
    ),
    "course": of(
        "Spanish for Beginners, Yoga, Web Design, Drawing, First Aid, Guitar, Python Basics, Pottery, Salsa, Chess",
        "Cooking, Italian, Photography, Public Speaking, Swimming, Sewing, Data Analysis, German B1, Creative Writing",
    ),
    "price": money(1, 950),
    "salary": money(20, 120, step=1000, cents=0),
    "count": number(2, 90),
    "small": number(2, 12),
    "nights": number(2, 21),
    "goals": number(0, 6),
    "rating": number(1, 5),
    "age": number(18, 92),
    "hours": number(10, 40),
    "year": number(1960, 2025),
    "pages": number(60, 900),
    "visitors": number(120, 60000),
}
