"""Tables with their columns and values, and the phrasings of questions about them."""

from __future__ import annotations

from engine.embedded.corpus import sql_further as further
from engine.embedded.corpus.base import Phrases
from engine.embedded.corpus.wordings import wordings

# t text, n a person's name, c a city, i whole number, r decimal number, d date
THEMES = """
employees: name:n city:c salary:i age:i department:t job_title:t hire_date:d bonus:i
customers: name:n city:c country:t age:i join_date:d points:i status:t balance:r
orders: order_date:d total:r status:t quantity:i customer:n city:c discount:i priority:t
products: name:t price:r stock:i category:t color:t weight:i brand:t rating:i
students: name:n age:i grade:i school:t city:c birthday:d score:i major:t
teachers: name:n subject:t salary:i city:c age:i start_date:d school:t
courses: title:t credits:i teacher:n level:t start_date:d room:t price:i language:t
books: title:t author:n year:i price:r pages:i genre:t language:t publisher:t
authors: name:n country:t birth_year:i city:c books:i language:t
movies: title:t director:n year:i rating:i genre:t length:i country:t budget:i
actors: name:n age:i country:t movies:i award:t birthday:d
songs: title:t artist:n album:t year:i length:i genre:t plays:i
albums: title:t artist:n year:i label:t songs:i price:r release_date:d
cities: name:c country:t population:i area:i mayor:n founded:i region:t
countries: name:t capital:c population:i area:i language:t continent:t currency:t
players: name:n team:t goals:i age:i position:t country:t height:i salary:i
teams: name:t city:c coach:n wins:i losses:i league:t founded:i points:i
matches: home_team:t away_team:t match_date:d score:i stadium:t city:c visitors:i
cars: brand:t model:t year:i price:i color:t mileage:i fuel:t owner:n
drivers: name:n age:i city:c license:t rating:i hire_date:d trips:i
flights: airline:t origin:c destination:c price:i departure:d seats:i gate:t status:t
airports: name:t city:c country:t gates:i opened:i passengers:i
hotels: name:t city:c stars:i rooms:i price:i country:t rating:i opened:i
rooms: number:i floor:i beds:i price:i building:t size:i status:t color:t
guests: name:n city:c age:i arrival:d nights:i room:t country:t
patients: name:n age:i city:c doctor:n admitted:d blood_type:t weight:i ward:t
doctors: name:n specialty:t city:c age:i salary:i hospital:t start_date:d
hospitals: name:t city:c beds:i opened:i director:n country:t staff:i
appointments: patient:n doctor:n day:d room:t duration:i reason:t status:t
invoices: customer:n amount:r due_date:d status:t city:c tax:r currency:t
payments: amount:r payment_date:d method:t payer:n status:t currency:t fee:r
accounts: owner:n balance:r bank:t opened:d type:t currency:t branch:c
suppliers: name:t city:c country:t contact:n rating:i since:d products:i
warehouses: name:t city:c capacity:i manager:n area:i opened:d country:t
shipments: destination:c ship_date:d weight:i carrier:t status:t cost:r boxes:i
projects: name:t manager:n budget:i start_date:d end_date:d status:t city:c priority:t
tasks: title:t owner:n priority:i due_date:d status:t hours:i project:t
departments: name:t manager:n budget:i floor:i city:c employees:i
events: title:t city:c event_date:d price:i visitors:i organizer:n type:t venue:t
tickets: holder:n price:r seat:t event:t sold_on:d status:t section:t
members: name:n age:i city:c join_date:d fee:i level:t points:i
users: name:n country:t age:i created:d logins:i role:t status:t language:t
posts: title:t author:n created:d likes:i views:i topic:t comments:i status:t
comments: author:n created:d likes:i language:t topic:t status:t length:i
recipes: title:t author:n minutes:i calories:i servings:i cuisine:t level:t
restaurants: name:t city:c cuisine:t rating:i seats:i owner:n opened:i price:i
animals: name:t species:t age:i weight:i cage:t color:t born:d keeper:n
plants: name:t color:t height:i price:r family:t origin:t stock:i
houses: city:c street:t price:i rooms:i area:i built:i owner:n color:t
machines: model:t maker:t price:i year:i location:c power:i status:t hours:i
sensors: type:t location:c value:r installed:d status:t unit:t battery:i
planets: name:t mass:i radius:i moons:i star:t distance:i type:t
rivers: name:t length:i country:t depth:i source:t mouth:t
mountains: name:t height:i country:t range:t first_climb:d region:t
trains: line:t origin:c destination:c price:i seats:i departure:d operator:t speed:i
buses: line:i driver:n seats:i city:c year:i fuel:t status:t
ships: name:t captain:n length:i weight:i harbor:c built:i flag:t
games: title:t studio:t year:i price:r rating:i genre:t platform:t players:i
loans: borrower:n amount:i rate:r start_date:d status:t bank:t years:i
reviews: author:n rating:i created:d product:t language:t votes:i title:t
classes: name:t teacher:n room:t students:i level:t start_date:d day:t
pets: name:t species:t age:i owner:n weight:i color:t born:d
stores: name:t city:c manager:n employees:i opened:i area:i country:t
visits: visitor:n visit_date:d minutes:i page:t country:t browser:t
jobs: title:t company:t salary:i city:c posted:d level:t hours:i
"""

LINKS = """
orders customers|books authors|songs albums|employees departments|tasks projects|players teams|flights airports
comments posts|posts users|reviews products|invoices customers|payments invoices|patients doctors|doctors hospitals
rooms hotels|guests rooms|appointments patients|courses teachers|students classes|shipments warehouses|tickets events
products suppliers|loans members|cars drivers|pets members|accounts users|movies authors|cities countries
restaurants cities|machines departments|sensors machines|visits users|jobs stores|buses drivers|animals countries
hotels cities|projects departments|matches teams|members teams|shipments orders|payments orders|trains cities
"""

VALUES = {
    "department": "Sales IT HR Finance Marketing Legal Support Design Research Logistics",
    "job_title": "manager engineer analyst clerk designer nurse driver chef teacher intern",
    "country": "France Spain Italy Germany Japan Brazil Canada India Kenya Norway Peru Egypt Chile Poland",
    "status": "open closed active inactive pending paid shipped done new late cancelled ready",
    "priority": "high low medium urgent normal",
    "category": "toys tools books food sports garden music clothes shoes games",
    "color": "red blue green black white yellow brown grey orange purple pink",
    "genre": "drama comedy jazz rock fantasy crime history horror pop poetry",
    "language": "English French Spanish German Italian Dutch Polish Turkish Arabic Hindi",
    "fuel": "diesel petrol electric hybrid gas",
    "subject": "math physics history biology music art chemistry geography",
    "major": "math physics history biology music art chemistry law",
    "level": "beginner advanced easy hard medium basic junior senior",
    "role": "admin editor guest owner viewer author",
    "type": "large small basic premium private public standard digital",
    "species": "cat dog lion tiger parrot rabbit wolf horse snake owl",
    "cuisine": "Italian Thai Indian French Greek Mexican Chinese Turkish",
    "continent": "Europe Asia Africa America Oceania",
    "currency": "EUR USD GBP JPY CHF",
    "position": "forward goalkeeper defender midfielder center guard",
    "method": "card cash transfer cheque voucher",
    "specialty": "cardiology surgery neurology pediatrics oncology",
    "day": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    "platform": "PC mobile console web tablet",
    "blood_type": "A B AB O",
    "unit": "celsius percent volt meter bar lux",
}
RANGES = {
    **{"age": (3, 95), "year": (1950, 2025), "birth_year": (1900, 2005), "opened": (1890, 2024)},
    **{"founded": (1700, 2015), "built": (1850, 2024), "rating": (1, 10), "stars": (1, 5), "floor": (0, 30)},
    **{"grade": (1, 12), "beds": (1, 400), "moons": (0, 80), "credits": (1, 12), "nights": (1, 30)},
}
CITIES = (
    *("Paris", "Rome", "Berlin", "Madrid", "Lisbon", "Vienna", "Oslo", "Prague", "Dublin", "Athens", "London", "Lima"),
    *("Tokyo", "Cairo", "Delhi", "Quito", "Boston", "Denver", "Austin", "Milan", "Lyon", "Bonn", "Ghent", "Porto"),
    *("New York", "San Diego", "Cape Town", "Hong Kong", "Sydney", "Toronto", "Geneva", "Warsaw", "Zurich", "Kyoto"),
)
TEXTS = (
    *("alpha", "north", "Sunrise", "river", "Delta", "silver", "Nova", "stone", "Maple", "orbit", "Falcon", "cedar"),
    *("Blue Moon", "ocean", "Atlas", "pixel", "Lotus", "ember", "Summit", "velvet", "Comet", "harbor", "Green Hill"),
)

# Conditions: as a clause (after "where", "whose") and after a noun ("with a salary over 3000")

CLAUSES = {
    "=": Phrases(
        "{c} is {v}",
        "{c} = {v}",
        "{c} equals {v}",
        "{c} is (exactly |){v}",
        "{c} is equal to {v}",
        "{c} is exactly {v}",
        "{c} has the value {v}",
        "{c}={v}",
        more=(*further.CLAUSES["="], *wordings("sql_words.CLAUSES[=]")),
    ),
    "<>": Phrases(
        "{c} is not {v}",
        "{c} != {v}",
        "{c} <> {v}",
        "{c} is not (equal to |){v}",
        "{c} is not equal to {v}",
        "{c} is different from {v}",
        "{c} does not equal {v}",
        "{c} is anything but {v}",
        more=(*further.CLAUSES["<>"], *wordings("sql_words.CLAUSES[<>]")),
    ),
    ">": Phrases(
        "{c} is (more|greater) than {v}",
        "{c} > {v}",
        "{c} is (higher|larger|bigger) than {v}",
        "{c} is (over|above) {v}",
        "{c} exceeds {v}",
        "{c} is above {v}",
        "{c} is over {v}",
        "{c} > {v}",
        "{c} is strictly more than {v}",
        more=(*further.CLAUSES[">"], *wordings("sql_words.CLAUSES[>]")),
    ),
    "<": Phrases(
        "{c} is (less|smaller) than {v}",
        "{c} < {v}",
        "{c} is (lower|smaller) than {v}",
        "{c} is (below|under) {v}",
        "{c} is below {v}",
        "{c} is under {v}",
        "{c} is strictly less than {v}",
        "{c} < {v}",
        more=(*further.CLAUSES["<"], *wordings("sql_words.CLAUSES[<]")),
    ),
    ">=": Phrases(
        "{c} is at least {v}",
        "{c} >= {v}",
        "{c} is {v} or more",
        "{c} is (at least {v}|{v} or more)",
        "{c} is not less than {v}",
        "{c} is greater than or equal to {v}",
        "{c} is no less than {v}",
        "{c} is {v} or (higher|greater)",
        "{c} is {v} or above",
        more=(*further.CLAUSES[">="], *wordings("sql_words.CLAUSES[>=]")),
    ),
    "<=": Phrases(
        "{c} is at most {v}",
        "{c} <= {v}",
        "{c} is {v} or less",
        "{c} is (at most {v}|{v} or less)",
        "{c} is not more than {v}",
        "{c} is less than or equal to {v}",
        "{c} is no more than {v}",
        "{c} is {v} or (lower|below)",
        "{c} does not exceed {v}",
        more=(*further.CLAUSES["<="], *wordings("sql_words.CLAUSES[<=]")),
    ),
    "after": Phrases(
        "{c} is after {v}",
        "{c} is later than {v}",
        "{c} > {v}",
        "{c} (is |)(after|later than) {v}",
        "{c} comes after {v}",
        "{c} lies after {v}",
        "{c} is (past|after) {v}",
        more=(*further.CLAUSES["after"], *wordings("sql_words.CLAUSES[after]")),
    ),
    "before": Phrases(
        "{c} is before {v}",
        "{c} is earlier than {v}",
        "{c} < {v}",
        "{c} (is |)(before|earlier than) {v}",
        "{c} comes before {v}",
        "{c} lies before {v}",
        "{c} is (older than|before) {v}",
        more=(*further.CLAUSES["before"], *wordings("sql_words.CLAUSES[before]")),
    ),
    "between": Phrases(
        "{c} is between {v} and {w}",
        "{c} lies between {v} and {w}",
        "{c} is from {v} to {w}",
        "{c} is (somewhere |)between {v} and {w}",
        "{c} between {v} and {w}",
        "{c} is in the range {v} to {w}",
        "{c} ranges from {v} to {w}",
        more=(*further.CLAUSES["between"], *wordings("sql_words.CLAUSES[between]")),
    ),
    "prefix": Phrases(
        "{c} starts with {v}",
        "{c} begins with {v}",
        "{c} has the prefix {v}",
        "{c} (starts|begins) with {v}",
        "{c} is starting with {v}",
        "{c} has {v} at the start",
        "{c} starts with the letters {v}",
        more=(*further.CLAUSES["prefix"], *wordings("sql_words.CLAUSES[prefix]")),
    ),
    "suffix": Phrases(
        "{c} ends with {v}",
        "{c} ends in {v}",
        "{c} has the suffix {v}",
        "{c} ends (with|in) {v}",
        "{c} is ending with {v}",
        "{c} has {v} at the end",
        "{c} ends with the letters {v}",
        more=(*further.CLAUSES["suffix"], *wordings("sql_words.CLAUSES[suffix]")),
    ),
    "contains": Phrases(
        "{c} contains {v}",
        "{c} includes {v}",
        "{c} has {v} in it",
        "{c} (contains|includes) {v}",
        "{c} contains the text {v}",
        "{c} has {v} somewhere",
        "{c} contains the letters {v}",
        more=(*further.CLAUSES["contains"], *wordings("sql_words.CLAUSES[contains]")),
    ),
}

NOUNS = {
    "=": Phrases(
        "{c} {v}",
        "{c} of {v}",
        "{c} equal to {v}",
        "{c} {v}",
        "{c} = {v}",
        "{v} as {c}",
        "{c} of exactly {v}",
        "{c} (|of ){v}",
        "the {c} {v}",
        more=(*further.NOUNS["="], *wordings("sql_words.NOUNS[=]")),
    ),
    ">": Phrases(
        "{c} over {v}",
        "{c} above {v}",
        "{c} of more than {v}",
        "{c} (over|above) {v}",
        "{c} (greater|higher|larger|bigger) than {v}",
        "more than {v} {c}",
        "{c} > {v}",
        "{c} more than {v}",
        more=(*further.NOUNS[">"], *wordings("sql_words.NOUNS[>]")),
    ),
    "<": Phrases(
        "{c} under {v}",
        "{c} below {v}",
        "{c} of less than {v}",
        "{c} (under|below) {v}",
        "{c} (less|lower|smaller) than {v}",
        "less than {v} {c}",
        "{c} < {v}",
        more=(*further.NOUNS["<"], *wordings("sql_words.NOUNS[<]")),
    ),
    ">=": Phrases(
        "{c} of at least {v}",
        "at least {v} {c}",
        "{c} of {v} or more",
        "{c} (of |)at least {v}",
        "{c} >= {v}",
        "{c} not less than {v}",
        "{v} or more {c}",
        more=(*further.NOUNS[">="], *wordings("sql_words.NOUNS[>=]")),
    ),
    "<=": Phrases(
        "{c} of at most {v}",
        "at most {v} {c}",
        "{c} of {v} or less",
        "{c} (of |)at most {v}",
        "{c} <= {v}",
        "{c} not more than {v}",
        "{v} or less {c}",
        more=(*further.NOUNS["<="], *wordings("sql_words.NOUNS[<=]")),
    ),
}

CLAUSE_LEADS = Phrases(
    " where {x}",
    " where the {x}",
    " whose {x}",
    " where (the |){x}",
    " for which {x}",
    " for which the {x}",
    " in which the {x}",
    ", but only where {x}",
    " if the {x}",
    more=wordings("sql_words.CLAUSE_LEADS"),
)
NOUN_LEADS = Phrases(
    " with {x}",
    " having {x}",
    " that have {x}",
    " (with|having) {x}",
    " which have {x}",
    " with {x}",
    " that have {x}",
    ", only those with {x}",
    more=wordings("sql_words.NOUN_LEADS"),
)

# Questions

ASCENDING = Phrases(
    "sorted by {c}",
    "ordered by {c}",
    "in ascending order of {c}",
    "(sorted|ordered) by {c}(| ascending)",
    "by {c} in ascending order",
    "sorted by {c} ascending",
    "ordered by {c}, ascending",
    "sort by {c}",
    "ordered by {c} from low to high",
    "in order of {c}",
    "(sorted|ordered) by {c} (asc|in ascending order)",
    "sorted by {c}, lowest first",
    "order by {c}",
    more=(*further.ASCENDING, *wordings("sql_words.ASCENDING")),
)
DESCENDING = Phrases(
    "sorted by {c} in descending order",
    "ordered by {c} descending",
    "in descending order of {c}",
    "(sorted|ordered) by {c} descending",
    "by {c} in descending order",
    "sorted by {c} descending",
    "ordered by {c}, descending",
    "sort by {c} descending",
    "ordered by {c} from high to low",
    "in reverse order of {c}",
    "(sorted|ordered) by {c} (desc|in descending order)",
    "sorted by {c}, highest first",
    "order by {c} desc",
    more=(*further.DESCENDING, *wordings("sql_words.DESCENDING")),
)

ALL = Phrases(
    "Show all {t}{where}{order}.",
    "List all {t}{where}{order}.",
    "Select all rows from {t}{where}{order}.",
    "(Show|Give) me all {t}{where}{order}.",
    "Get all {t}{where}{order}.",
    "Find all {t}{where}{order}.",
    "Give me every row of {t}{where}{order}.",
    "All {t}{where}{order}.",
    "Return all {t}{where}{order}.",
    "Which {t} are there{where}{order}?",
    "(Get|List|Find) all {t}{where}{order}",
    "Show everything from {t}{where}{order}.",
    "Select everything from {t}{where}{order}.",
    "I need all {t}{where}{order}.",
    "Display all rows of {t}{where}{order}.",
    "I want to see all {t}{where}{order}.",
    "Please list all {t}{where}{order}.",
    "(Show|List|Select) all rows (of|from) {t}{where}{order}.",
    "Show all columns of {t}{where}{order}.",
    "Fetch all {t}{where}{order}.",
    "Get all data from {t}{where}{order}.",
    "Can you show me all {t}{where}{order}?",
    "What are all the {t}{where}{order}?",
    "Show every row of {t}{where}{order}.",
    "(Return|Select) (all rows|everything) from {t}{where}{order}.",
    "Show all records of {t}{where}{order}.",
    "all {t}{where}{order}",
    "Find {t}{where}{order}.",
    "Show me the {t}{where}{order}.",
    more=(*further.ALL, *wordings("sql_words.ALL")),
)

LIST = Phrases(
    "Show the {cols} of all {t}{where}{order}.",
    "List the {cols} of all {t}{where}{order}.",
    "Select {cols} from {t}{where}{order}.",
    "(Show|Give) me the {cols} of all {t}{where}{order}.",
    "Get the {cols} of all {t}{where}{order}.",
    "Find the {cols} of {t}{where}{order}.",
    "What are the {cols} of the {t}{where}{order}?",
    "{cols} of all {t}{where}{order}.",
    "Return {cols} of all {t}{where}{order}.",
    "Give me {cols} of the {t}{where}{order}.",
    "(Get|List|Find) the {cols} of all {t}{where}{order}",
    "What is the {cols} of all {t}{where}{order}?",
    "Show {cols} for all {t}{where}{order}.",
    "I need the {cols} of all {t}{where}{order}.",
    "Display {cols} from {t}{where}{order}.",
    "I want the {cols} of {t}{where}{order}.",
    "Please list the {cols} of all {t}{where}{order}.",
    "(Show|List|Select) {cols} (of|from) {t}{where}{order}.",
    "For all {t}{where} show {cols}{order}.",
    "Fetch the {cols} of {t}{where}{order}.",
    "Show only {cols} of {t}{where}{order}.",
    "Can you show me the {cols} of the {t}{where}{order}?",
    "Which {cols} do the {t} have{where}{order}?",
    "Show the columns {cols} of {t}{where}{order}.",
    "(Return|Get) the {cols} (for|of) all {t}{where}{order}.",
    "From {t} show {cols}{where}{order}.",
    "show {cols} from {t}{where}{order}",
    "Tell me the {cols} of all {t}{where}{order}.",
    "Give the {cols} for every row of {t}{where}{order}.",
    more=(*further.LIST, *wordings("sql_words.LIST")),
)

COUNT = Phrases(
    "How many {t} are there{where}?",
    "Count the {t}{where}.",
    "Count all {t}{where}.",
    "(How many {t} are there|Count the {t}){where}(.|)",
    "What is the number of {t}{where}?",
    "How many rows does {t} have{where}?",
    "Number of {t}{where}?",
    "Find the number of {t}{where}.",
    "Count the rows of {t}{where}.",
    "How many {t} do we have{where}?",
    "(Find|Show|Give me) the number of {t}{where}.",
    "Give me the count of {t}{where}.",
    "I want to know how many {t} there are{where}.",
    "How many {t} exist{where}?",
    "Get the number of {t}{where}.",
    "how many {t}{where}",
    "What is the count of {t}{where}?",
    "(Get|What is) the number of {t}{where}(.|)",
    "Count how many {t} there are{where}.",
    more=(*further.COUNT, *wordings("sql_words.COUNT")),
)

COUNT_DISTINCT = Phrases(
    "How many different {c} values are there in {t}{where}?",
    "Count the distinct {c} values of {t}{where}.",
    "How many distinct {c} values do the {t} have{where}?",
    "How many (different|distinct) {c} values are there in {t}{where}?",
    "Count the different {c} values in {t}{where}.",
    "What is the number of distinct {c} values in {t}{where}?",
    "Number of unique {c} values in {t}{where}?",
    "How many unique {c} values does {t} have{where}?",
    more=(*further.COUNT_DISTINCT, *wordings("sql_words.COUNT_DISTINCT")),
)

FUNCTIONS = {
    "SUM": Phrases(
        "total {c}",
        "sum of {c}",
        "sum of the {c}",
        "(total|sum of the) {c}",
        "total sum of {c}",
        "overall {c}",
        "sum of all {c} values",
        more=wordings("sql_words.FUNCTIONS[SUM]"),
    ),
    "AVG": Phrases(
        "average {c}",
        "mean {c}",
        "average of {c}",
        "(average|mean) {c}",
        "mean value of {c}",
        "average value of {c}",
        "avg {c}",
        more=wordings("sql_words.FUNCTIONS[AVG]"),
    ),
    "MIN": Phrases(
        "lowest {c}",
        "smallest {c}",
        "minimum {c}",
        "(lowest|minimum) {c}",
        "minimum of {c}",
        "smallest value of {c}",
        "min {c}",
        "least {c}",
        more=wordings("sql_words.FUNCTIONS[MIN]"),
    ),
    "MAX": Phrases(
        "highest {c}",
        "largest {c}",
        "maximum {c}",
        "(highest|maximum) {c}",
        "maximum of {c}",
        "largest value of {c}",
        "max {c}",
        "greatest {c}",
        more=wordings("sql_words.FUNCTIONS[MAX]"),
    ),
}
DATE_FUNCTIONS = {
    "MIN": Phrases(
        "earliest {c}",
        "first {c}",
        "oldest {c}",
        "(earliest|first) {c}",
        "minimum {c}",
        "lowest {c}",
        "earliest value of {c}",
        more=wordings("sql_words.DATE_FUNCTIONS[MIN]"),
    ),
    "MAX": Phrases(
        "latest {c}",
        "last {c}",
        "newest {c}",
        "(latest|last) {c}",
        "most recent {c}",
        "maximum {c}",
        "latest value of {c}",
        more=wordings("sql_words.DATE_FUNCTIONS[MAX]"),
    ),
}

AGGREGATE = Phrases(
    "What is the {f} of all {t}{where}?",
    "Find the {f} of the {t}{where}.",
    "Show the {f} of all {t}{where}.",
    "(What is|Find|Give me) the {f} of {t}{where}(.|)",
    "Calculate the {f} of all {t}{where}.",
    "Compute the {f} of {t}{where}.",
    "What's the {f} in {t}{where}?",
    "Give me the {f} of all {t}{where}.",
    "{f} of all {t}{where}",
    "Get the {f} of {t}{where}.",
    "(Show|Get|Calculate) the {f} of (all |the |){t}{where}.",
    "I need the {f} of the {t}{where}.",
    "Return the {f} in {t}{where}.",
    "Tell me the {f} of all {t}{where}.",
    "For the {t}{where}, what is the {f}?",
    "What is the {f} in the table {t}{where}?",
    "Which is the {f} of all {t}{where}?",
    "(What is|Show) the {f} in {t}{where}(.|)",
    more=(*further.AGGREGATE, *wordings("sql_words.AGGREGATE")),
)

GROUP = Phrases(
    "Show the {f} of {t} per {g}{where}.",
    "What is the {f} of {t} for each {g}{where}?",
    "Show the {f} of {t} by {g}{where}.",
    "(Show|List|Get) the {f} of {t} (per|for each) {g}{where}.",
    "For each {g} show the {f} of {t}{where}.",
    "List the {f} of {t} for every {g}{where}.",
    "{f} of {t} per {g}{where}",
    "Give me the {f} of {t} grouped by {g}{where}.",
    "Find the {f} of the {t} for each {g}{where}.",
    "Get the {f} of {t} in each {g}{where}.",
    "(For each|Per) {g} (show|list|find) the {f} of {t}{where}.",
    "Per {g} list the {f} of {t}{where}.",
    "Group the {t} by {g} and show the {f}{where}.",
    "What is the {f} of {t} per {g}{where}?",
    "For every {g}, find the {f} of {t}{where}.",
    "I need the {f} of all {t} per {g}{where}.",
    "Calculate the {f} of {t} by {g}{where}.",
    "(What is|Give me) the {f} of {t} (per|by) {g}{where}(.|)",
    more=(*further.GROUP, *wordings("sql_words.GROUP")),
)

GROUP_COUNT = Phrases(
    "How many {t} are there per {g}{where}?",
    "Count the {t} per {g}{where}.",
    "Show the number of {t} for each {g}{where}.",
    "(Show|List|Get) the number of {t} (per|for each) {g}{where}.",
    "How many {t} are there for each {g}{where}?",
    "Count {t} by {g}{where}.",
    "For each {g} show the number of {t}{where}.",
    "Number of {t} per {g}{where}",
    "For every {g}, count the {t}{where}.",
    "Give me the count of {t} grouped by {g}{where}.",
    "(For each|Per) {g} (count|show) the (number of |){t}{where}.",
    "Group the {t} by {g} and count them{where}.",
    "List how many {t} each {g} has{where}.",
    "Count the rows of {t} for each {g}{where}.",
    "What is the number of {t} per {g}{where}?",
    "Find the count of {t} in each {g}{where}.",
    "Per {g}, how many {t} are there{where}?",
    "How many {t} are there (per|by|for each) {g}{where}?",
    more=(*further.GROUP_COUNT, *wordings("sql_words.GROUP_COUNT")),
)

DISTINCT = Phrases(
    "List the different {c} values of {t}{where}.",
    "Show the distinct {c} of all {t}{where}.",
    "What are the unique {c} values in {t}{where}?",
    "(Show|List) the (different|distinct|unique) {c} values (of|in) {t}{where}.",
    "Which different {c} values are there in {t}{where}?",
    "Give me the distinct {c} values of the {t}{where}.",
    "Select distinct {c} from {t}{where}.",
    "Find all different {c} of {t}{where}.",
    "Show each {c} of {t} only once{where}.",
    "List the {c} of {t} without duplicates{where}.",
    "(Find|Get|Show) the (distinct|different) {c} of (all |){t}{where}.",
    "List all unique {c} values from {t}{where}.",
    "Get the distinct {c} of {t}{where}.",
    "What distinct {c} values do the {t} have{where}?",
    "distinct {c} of {t}{where}",
    more=(*further.DISTINCT, *wordings("sql_words.DISTINCT")),
)

RANKED = Phrases(
    "Show {head}the {n} {t} with the {most} {c}{where}.",
    "List {head}the {top} {n} {t} by {c}{where}.",
    "Which are {head}the {n} {t} with the {most} {c}{where}?",
    "(Show|Find|Get|Give me) {head}the {n} {t} with the {most} {c}{where}.",
    "Find {head}the {n} {t} with the {most} {c}{where}.",
    "Give me {head}the {top} {n} {t} by {c}{where}.",
    "What are {head}the {n} {t} with the {most} {c}{where}?",
    "Get {head}the {top} {n} {t} by {c}{where}.",
    "Return {head}the {n} {t} that have the {most} {c}{where}.",
    "Show {head}the {top} {n} {t} by {c}{where}.",
    "(List|What are) {head}the {top} {n} {t} (by|in) {c}{where}(.|)",
    "I want {head}the {n} {t} with the {most} {c}{where}.",
    "I need {head}the {top} {n} {t} ranked by {c}{where}.",
    "Select {head}the {n} {t} with the {most} {c}{where}.",
    more=(*further.RANKED, *wordings("sql_words.RANKED")),
)

FIRST = Phrases(
    "Show {head}the first {n} rows of {t}{where}.",
    "List {head}any {n} rows from {t}{where}.",
    "Give me {head}the first {n} {t}{where}.",
    "(Show|List|Get) {head}the first {n} (rows of |){t}{where}.",
    "Select {head}only {n} rows of {t}{where}.",
    "Show {head}{n} {t}{where}.",
    "Get {head}the first {n} {t}{where}.",
    "List {head}at most {n} rows of {t}{where}.",
    more=(*further.FIRST, *wordings("sql_words.FIRST")),
)

JOIN = Phrases(
    "Show {cols}{where}{order}.",
    "Join {a} and {b} and show {cols}{where}{order}.",
    "List {cols} together{where}{order}.",
    "(Show|List|Get) {cols} for all {a}{where}{order}.",
    "For all {a} show {cols}{where}{order}.",
    "For each row of {a} list {cols}{where}{order}.",
    "List {cols} for every row of {a}{where}{order}.",
    "Give me {cols} by joining {a} and {b}{where}{order}.",
    "Combine {a} with {b} and list {cols}{where}{order}.",
    "Get {cols}{where}{order}.",
    "(Join|Combine) {a} (and|with) {b} and (show|list) {cols}{where}{order}.",
    "What are {cols}{where}{order}?",
    "Select {cols} from {a} joined with {b}{where}{order}.",
    "I need {cols}{where}{order}.",
    "Find {cols} using both tables{where}{order}.",
    more=(*further.JOIN, *wordings("sql_words.JOIN")),
)

PROMPTS = Phrases(
    "{schema}\n\n{q}",
    "{schema}\n\nWrite a SQL query: {q}",
    "Given the schema:\n{schema}\n\nWrite SQL for: {q}",
    "{schema}\n(Question|Task): {q}",
    "Write a SQL query for this question: {q}\n\n{schema}",
    "Schema:\n{schema}\n\nQuestion: {q}",
    "I have this database:\n{schema}\n\n{q}",
    "{schema}\n\nSQL for: {q}",
    "{schema}\nQuestion: {q}\nSQL:",
    "Translate to SQL: {q}\n\nSchema:\n{schema}",
    "(Given|Here is) the schema:\n{schema}\n\n(Question: |Write SQL: ){q}",
    "Given these tables:\n{schema}\nWrite the SQL query. {q}",
    "Turn this question into SQL.\n{schema}\n\n{q}",
    "{q}\n\n{schema}",
    "You write SQL.\n{schema}\n\n{q}",
    "What is the SQL for this? {q}\n\nTables:\n{schema}",
    "Use this schema:\n{schema}\n\n{q}",
    "(Write|Give me) (a SQL query|the SQL) for: {q}\n\n{schema}",
    "Text to SQL.\nSchema: {schema}\nQuestion: {q}",
    "SQL query please.\n{schema}\n{q}",
    "Give me the SQL. {q}\n{schema}",
    "Answer with SQL only.\n\n{schema}\n\n{q}",
    "My database:\n{schema}\n\nWhat is the SQL query for: {q}",
    "{schema}\n\nQuery: {q}",
    "{schema}\n\n(Write (the |)SQL|Write a SQL query): {q}",
    "Write a SQL query.\n\n{schema}\n\n{q}",
    "{schema}\n\nWrite a query in SQL. {q}",
    "Convert the question into a SQL query.\n\n{schema}\n\nQuestion: {q}",
    "Database schema:\n{schema}\n\nRequest: {q}",
    "How do I write this in SQL? {q}\n\n{schema}",
    "{schema}\n\nHelp me with SQL: {q}",
    "(I have|Use) (this schema|these tables):\n{schema}\n\n{q}",
    "{q} Write it in SQL.\n\n{schema}",
    "sql: {q}\n{schema}",
    more=wordings("sql_words.PROMPTS"),
)
