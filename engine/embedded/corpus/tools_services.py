"""Tools of services and of software, and how users ask for them."""

from __future__ import annotations

from engine.embedded.corpus.base import Draw, phrases
from engine.embedded.corpus.tools_form import Arguments, known
from engine.embedded.corpus.tools_values import (
    ACCOUNT,
    AMOUNT,
    CITY,
    CODE,
    COUNT,
    CUISINE,
    CURRENCY,
    DATE,
    DISH,
    EMAIL,
    FOREIGN,
    IDENTIFIER,
    LANGUAGE,
    LIMIT,
    LINE,
    MEANING,
    PERSON,
    PLACE,
    PRICE,
    PRODUCT,
    QUERY,
    ROAD,
    SHARE_PRICE,
    SUM,
    TICKER,
    TIME,
    TOPIC,
    TOWN,
    VENUE,
    WORD,
    enum,
    integer,
)
from engine.embedded.corpus.wordings import wordings

ON_DATE = phrases(
    """The date is {date}. / Date: {date}. / For {date}. / I fly on {date}. / I want to travel on {date}. /
    On {date}. / It should be on {date}. / I need it for {date}.""",
    more=wordings("tools_services.ON_DATE"),
)
WITH_LIMIT = phrases(
    """Show {limit} results. / Give me {limit} results. / I want {limit} results. / {limit} results, please. /
    Limit: {limit}. / Only {limit} results. / At most {limit} results. / {limit} results are enough.""",
    more=wordings("tools_services.WITH_LIMIT"),
)


def _calculate(draw: Draw, arguments: Arguments) -> Arguments:
    left, sign, right = arguments["expression"].split()
    a, b = int(left), int(right)
    return {"result": a + b if sign == "+" else a - b if sign == "-" else a * b}


def _between(draw: Draw, arguments: Arguments) -> Arguments:
    return {"number": draw.integer(arguments["min"], arguments["max"])}


def _rolled(draw: Draw, arguments: Arguments) -> Arguments:
    return {"roll": draw.integer(1, arguments["sides"])}


SERVICE_TOOLS = (
    known(
        "numbers",
        "convert_currency|currency_converter|exchange",
        "Convert (money|an amount) from one currency to another",
        {"amount|value": AMOUNT, "from|source|from_currency": CURRENCY, "to|target|to_currency": CURRENCY},
        """Convert {amount} {from} to {to}. / How much is {amount} {from} in {to}? / {amount} {from} in {to} /
        What is {amount} {from} in {to}? / {amount} {from} to {to} / Change {amount} {from} into {to}, please. /
        How many {to} do I get for {amount} {from}? / I have {amount} {from}. How much is that in {to}? /
        Exchange {amount} {from} to {to}. / I want to know what {amount} {from} are in {to}.""",
        "{amount} {from} is {result} {to}.",
        {"result|converted|amount": SHARE_PRICE},
    ),
    known(
        "travel",
        "search_flights|find_flights|flight_search",
        "(Search|Find) (a flight|flights) between two cities",
        {"from|origin|departure": CITY, "to|destination|arrival": CITY, "date|day": DATE},
        """Find (a flight|flights) from {from} to {to}. / Search flights from {from} to {to} /
        I want to fly from {from} to {to}. / (Show|Give) me flights from {from} to {to}. /
        Flights from {from} to {to} / I need a flight to {to} from {from}. /
        Is there a flight from {from} to {to}? / Flight {from} to {to}, please /
        How can I fly from {from} to {to}?""",
        "Flight {flight} from {from} to {to} costs {price} dollars.",
        {"flight|number": CODE, "price|cost": PRICE},
        optional={"date": ON_DATE},
    ),
    known(
        "travel",
        "get_flight_status|flight_status|check_flight",
        "(Get|Check) the status of a flight",
        {"flight|flight_number|number": CODE},
        """What is the status of flight {flight}? / Is flight {flight} on time? / Flight status {flight} /
        (Check|Get) the status of flight {flight}. / Has flight {flight} landed? / How is flight {flight} doing? /
        Please look up flight {flight}. / I want to know if flight {flight} is late.""",
        "Flight {flight} is {status}.",
        {"status|state": enum("Status", "on time", "late", "cancelled", "in the air", "landed", "boarding")},
    ),
    known(
        "travel",
        "book_hotel|hotel_booking|reserve_hotel",
        "Book a hotel room in a city",
        {"city|location": CITY, "nights|number_of_nights": COUNT},
        """Book a hotel in {city} for {nights} nights. / I need a hotel room in {city} for {nights} nights. /
        Hotel in {city}, {nights} nights / (Please book|Book|Reserve) a room in {city} for {nights} nights /
        I stay in {city} for {nights} nights. Book a hotel. / Reserve {nights} nights in a hotel in {city}. /
        Get me a hotel for {nights} nights in {city}. / Can you book a hotel in {city}? I stay {nights} nights.""",
        "Your room in {city} is booked for {nights} nights.",
    ),
    known(
        "travel",
        "rent_car|car_rental|book_car",
        "Rent a car in a city",
        {"city|location": CITY, "days|number_of_days": COUNT},
        """Rent a car in {city} for {days} days. / I need a car in {city} for {days} days. /
        Rental car in {city}, {days} days / (Please rent|Rent|Can you rent) a car for {days} days in {city} /
        Get me a rental car for {days} days in {city}. /
        I want to rent a car in {city}. I need it for {days} days. /
        Find a rental car in {city} for {days} days. / Car rental: {city}, {days} days""",
        "Your car in {city} costs {price} dollars.",
        {"price|total|cost": PRICE},
    ),
    known(
        "travel",
        "book_taxi|order_taxi|call_taxi",
        "(Book|Order) a taxi",
        {"place|destination|to": PLACE, "time|pickup_time": TIME},
        """Book a taxi to the {place} at {time}. / I need a taxi to the {place} at {time}. /
        Taxi to the {place}, {time} / (Please order|Order|Get me) a taxi to the {place} at {time} /
        At {time} I need a taxi to the {place}. / Can you get me a taxi for {time}? I go to the {place}. /
        Order a taxi for {time} to the {place}. / A taxi at {time} to the {place}, please.""",
        "Your taxi to the {place} comes at {time}.",
    ),
    known(
        "way",
        "get_distance|distance|distance_between",
        "(Get|Return) the distance between two cities(| in km)",
        {"from|origin|start": CITY, "to|destination|end": CITY},
        """How far is it from {from} to {to}? / Distance from {from} to {to} /
        What is the distance between {from} and {to}? / (Tell me|Get) the distance from {from} to {to}. /
        How many kilometres are there between {from} and {to}? / How far apart are {from} and {to}? /
        I want to know the distance between {from} and {to}. / {from} to {to}: how far is it?""",
        "It is {distance} km from {from} to {to}.",
        {"distance|km|kilometres": integer("Distance", 20, 9000)},
    ),
    known(
        "way",
        "get_traffic|traffic|check_traffic",
        "(Get|Check) the traffic on a road",
        {"road|street|route": ROAD},
        """How is the traffic on the {road}? / Traffic on the {road} / Is there a traffic jam on the {road}? /
        (Check|What is) the traffic on the {road} / Is the {road} busy? /
        Tell me about the traffic on the {road}. / Can I drive on the {road} or is there a jam? /
        I want to know the traffic on the {road}.""",
        "The traffic on the {road} is {state}.",
        {"state|traffic|status": enum("State", "light", "heavy", "slow", "normal", "very heavy")},
    ),
    known(
        "finance",
        "get_stock_price|stock_price|get_quote",
        "(Get|Return) the (current |)price of a (stock|share)",
        {"symbol|ticker|stock": TICKER},
        """What is the price of {symbol}? / Stock price of {symbol} / How much is {symbol} stock(| now| today)? /
        (Get|Check) the stock price of {symbol}. / How is {symbol} doing on the stock market? /
        {symbol} stock price / What does a share of {symbol} cost? / Tell me the current price of {symbol}. /
        Price of {symbol} shares?""",
        "The price of {symbol} is {price} dollars.",
        {"price|value": SHARE_PRICE},
    ),
    known(
        "finance",
        "get_balance|account_balance|check_balance",
        "(Get|Check) the balance of an account",
        {"account|account_type": ACCOUNT},
        """What is the balance of my {account} account? / How much money is in my {account} account? /
        Balance of the {account} account / (Check|Get|Show) the balance of my {account} account. /
        Show me my {account} account balance. / How much do I have in my {account} account? /
        Tell me what is in the {account} account. / {account} account balance, please""",
        "Your {account} account has {balance} dollars.",
        {"balance|amount": integer("Balance", 10, 20000)},
    ),
    known(
        "finance",
        "transfer_money|send_money|pay",
        "(Transfer|Send) money to a person",
        {"amount|dollars": AMOUNT, "name|to|recipient": PERSON},
        """Transfer {amount} dollars to {name}. / Send {amount} dollars to {name}. / Pay {name} {amount} dollars. /
        (Please send|I want to send|Send) {name} {amount} dollars /
        I owe {name} {amount} dollars, please send it. / Give {name} {amount} dollars from my account. /
        Money transfer: {amount} dollars to {name} / Can you transfer {amount} dollars to {name}?""",
        "{amount} dollars have been sent to {name}.",
    ),
    known(
        "restaurant",
        "book_table|reserve_table|table_booking",
        "(Book|Reserve) a table (at|in) a restaurant",
        {"restaurant|name|place": VENUE, "people|guests|party_size": COUNT, "time|at": TIME},
        """Book a table at {restaurant} for {people} people at {time}. /
        I need a table for {people} at {restaurant} at {time}. / Table at {restaurant}, {people} people, {time} /
        (Please reserve|Reserve|Book) a table for {people} at {restaurant} at {time} /
        Reserve {restaurant} for {people} people at {time}. /
        We are {people} people. Book {restaurant} at {time}. /
        Can you book {restaurant} at {time} for {people} people? /
        At {time}, a table for {people} at {restaurant}, please.""",
        "Your table for {people} at {restaurant} is booked for {time}.",
    ),
    known(
        "restaurant",
        "find_restaurant|search_restaurant|restaurants",
        "(Find|Search) a restaurant in a city",
        {"city|location": CITY, "cuisine|food|kind": CUISINE},
        """Find a {cuisine} restaurant in {city}. / Where can I eat {cuisine} food in {city}? /
        {cuisine} restaurant in {city} / (Show me|Look for|Find) a restaurant in {city} with {cuisine} food. /
        I want to eat {cuisine} in {city}. / Is there a good {cuisine} restaurant in {city}? /
        I am hungry. Find {cuisine} food in {city}. / Where is a {cuisine} restaurant in {city}?""",
        "I found {restaurant} in {city}.",
        {"restaurant|name|result": VENUE},
    ),
    known(
        "shopping",
        "order_food|food_order|order_meal",
        "Order food",
        {"dish|item|food": DISH, "quantity|count|number": COUNT},
        """Order {quantity} {dish}. / I want {quantity} {dish}. / {quantity} {dish}, please. /
        (Please order|Get me|Order) {quantity} {dish} / We are hungry: {quantity} {dish}. /
        Can you order {quantity} {dish}? / I would like to order {quantity} {dish}. /
        Food order: {quantity} {dish}""",
        "Your order of {quantity} {dish} is on its way.",
    ),
    known(
        "shopping",
        "check_stock|get_stock|product_stock",
        "(Check|Return) how many pieces of a product are in the shop",
        {"product|item|name": PRODUCT},
        """How many {product} are there in the shop? / Are there {product} in the shop? /
        How many {product} do we have? / (Check|Tell me) how many {product} are left. /
        Do we still have {product}? / {product} in the shop: how many? / Are any {product} left? /
        Count the {product} in the shop.""",
        "There are {count} {product} in the shop.",
        {"count|quantity|stock": integer("Count", 2, 900)},
    ),
    known(
        "order",
        "track_package|package_status|track_parcel",
        "(Track|Find) a (package|parcel)",
        {"number|code|tracking_number": CODE},
        """Where is my package {number}? / Track package {number} / Track the parcel {number}. /
        (What is|Check) the status of package {number} / Find my parcel {number}. /
        When does package {number} arrive? / I am waiting for package {number}. Where is it? /
        Package {number}: where is it?""",
        "Package {number} is {status}.",
        {"status|state|place": enum("Status", "on its way", "delivered", "at the post office", "lost", "in the van")},
    ),
    known(
        "order",
        "get_order_status|order_status|check_order",
        "(Get|Check) the status of an order",
        {"order|order_id|id": IDENTIFIER},
        """What is the status of order {order}? / Order status {order} / Has order {order} been sent? /
        (Check|Get|Look up) the status of order {order}. / Where is my order {order}? /
        How is my order {order} doing? / I want to know about order {order}. / Is order {order} ready?""",
        "Order {order} is {status}.",
        {"status|state": enum("Status", "paid", "packed", "on its way", "delivered", "cancelled", "ready")},
    ),
    known(
        "any",
        "search_web|web_search|search",
        "Search the (web|internet)",
        {"query|q|text": QUERY, "limit|count|max_results": LIMIT},
        """Search the web for "{query}". / Search the internet for "{query}". / Google "{query}". /
        (Please search|Search|Can you search) the web for "{query}" / Look on the web for "{query}". /
        What does the internet say about "{query}"? / Web search: "{query}" / Do a web search for "{query}".""",
        "I found: {title}",
        {"title|result|top_result": LINE},
        optional={"limit": WITH_LIMIT},
    ),
    known(
        "any",
        "get_news|news|latest_news",
        "(Get|Return) the (latest |)news about a topic",
        {"topic|subject|about": TOPIC},
        """What is new in {topic}? / (Latest news|News) about {topic} / Show me the news about {topic}. /
        (Get|Tell me|What is) the latest news about {topic} / Is there any news about {topic}? / {topic} news /
        I want to read news about {topic}. / What is in the news about {topic}?""",
        "The top story is: {headline}",
        {"headline|title|story": LINE},
    ),
    known(
        "words",
        "translate|translate_word|translation",
        "Translate a word(| into another language)",
        {"word|text": WORD, "language|to|target_language": LANGUAGE},
        """Translate "{word}" (in|)to {language}. / What is "{word}" in {language}? /
        How do you say "{word}" in {language}? / (Translate the word|Translate) {word} into {language}. /
        {word} in {language} / I need the {language} word for "{word}". / What does "{word}" mean in {language}? /
        Tell me the {language} word for {word}.""",
        "The {language} word for {word} is {translation}.",
        {"translation|result|translated": FOREIGN},
    ),
    known(
        "words",
        "define_word|dictionary|get_definition",
        "(Get|Look up) the meaning of a word",
        {"word|term": WORD},
        """What does the word "{word}" mean? / Define "{word}". / Definition of {word} /
        (What is|Look up) the meaning of "{word}" / What is a definition of the word {word}? /
        Look up "{word}" in the dictionary. / Please define the word {word}. / Explain the meaning of "{word}".""",
        "The word {word} means {definition}.",
        {"definition|meaning": MEANING},
    ),
    known(
        "numbers",
        "calculate|calculator|evaluate|compute",
        "(Calculate|Compute) (the value of |)an expression",
        {"expression|expr|formula": SUM},
        """What is {expression}? / Calculate {expression}. / {expression} /
        (Calculate|Compute|Work out) {expression} / How much is {expression}? / Please compute {expression}. /
        I need the result of {expression}. / {expression} =""",
        "The result is {result}.",
        compute=_calculate,
    ),
    known(
        "numbers",
        "random_number|get_random|random_int",
        "(Get|Return) a random number between two numbers",
        {
            "min|low|from": integer("(Smallest number|Lower bound)", 1, 20),
            "max|high|to": integer("(Largest number|Upper bound)", 30, 999),
        },
        """Give me a random number between {min} and {max}. / Random number from {min} to {max} /
        Pick a number between {min} and {max}. / (Choose|Draw) a random number from {min} to {max}. /
        I need a random number between {min} and {max}. / Any number from {min} to {max}, please. /
        Can you pick a random number between {min} and {max}? / Say a random number from {min} to {max}.""",
        "Your number is {number}.",
        compute=_between,
    ),
    known(
        "numbers",
        "roll_dice|roll_die|dice",
        "Roll a die",
        {"sides|faces": integer("(Sides|Number of sides)", 4, 30)},
        """Roll a die with {sides} sides. / Roll a {sides} sided die. / Throw a die with {sides} sides. /
        (Please roll|Can you roll|Roll) a die with {sides} sides / I need a {sides} sided die rolled. /
        Dice roll, {sides} sides / Let a die with {sides} sides roll. / Please throw a {sides} sided die.""",
        "You rolled {roll}.",
        compute=_rolled,
    ),
    known(
        "users",
        "get_user|find_user|user_info",
        "(Get|Find) the name of a user",
        {"id|user_id|user": IDENTIFIER},
        """Who is user {id}? / What is the name of user {id}? / Get user {id}. / (Look up|Find|Show me) user {id}. /
        User {id}: what is the name? / I want to know who user {id} is. / Tell me the name of user {id}. /
        What is user {id} called?""",
        "User {id} is {name}.",
        {"name|user_name": PERSON},
    ),
    known(
        "users",
        "create_user|add_user|new_user",
        "(Create|Add) a user",
        {"name|user_name": PERSON, "email|mail|address": EMAIL},
        """Create a user {name} with the email {email}. / Add the user {name}, email {email}. /
        New user: {name}, {email} / (Please add|Add|Create) a new user called {name} with {email} /
        Make an account for {name}, mail {email}. / {name} needs an account. The email is {email}. /
        Create an account with the email {email} for {name}. / Sign up {name} with the address {email}.""",
        "The account for {name} has been created.",
    ),
    known(
        "towns",
        "get_population|population|count_people",
        "(Get|Return) the population of a town",
        {"town|place|name": TOWN},
        """How many people live in {town}? / Population of {town} / What is the population of {town}? /
        (Get|Tell me|Look up) the population of {town}. / How big is the population of {town}? /
        I want to know how many people live in {town}. / {town} population? / How many people are there in {town}?""",
        "{town} has {population} people.",
        {"population|people|count": integer("People", 200, 90000)},
    ),
)
