"""Who, where and what the stories are about, and the sentences that all plots share.

Slots of the sentences: {name}; {he} {his} {him} {himself} of the hero; {hero} "a small bear"; {friend} "owl" and
{a_friend} "an owl"; {home} "on a hill" (first mention), {at} "on the hill" (later), {place} "hill"; {object} "key" and
{an_object} "a key"; {He}, {Hero}, {Home}, … begin a sentence.
"""

HE, SHE = "he", "she"


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


ANIMALS = words(
    """bear fox cat dog frog mouse rabbit owl horse duck wolf lion tiger elephant monkey penguin hedgehog squirrel
    turtle sheep goat pig crow deer donkey badger otter beaver snail bird parrot kitten puppy dragon unicorn camel koala
    panda swan"""
)
PEOPLE = {
    "baker": "", "farmer": "", "sailor": "", "gardener": "", "teacher": "", "painter": "", "tailor": "", "pirate": "",
    "shepherd": "", "robot": "", "doctor": "", "child": "",
    "king": HE, "prince": HE, "boy": HE, "wizard": HE, "fisherman": HE, "knight": HE, "giant": HE, "grandfather": HE,
    "queen": SHE, "princess": SHE, "girl": SHE, "witch": SHE, "fairy": SHE, "grandmother": SHE,
}  # with the pronoun where it is fixed  # fmt: skip
KINDS = (*ANIMALS, *PEOPLE)

TRAITS = words(
    """brave small big old young happy funny shy lazy clever kind quiet hungry lonely curious proud gentle sleepy tired
    silly tiny little grumpy friendly lucky careful patient playful clumsy honest busy noisy cheerful forgetful strong
    sad wise"""
)
LOOKS = words("red white brown black green golden blue gray orange shiny fluffy")  # of animals, unless asked for

# noun: where one lives, where things happen
PLACES = {
    "hill": ("on", "on"), "lake": ("by", "at"), "beach": ("near", "on"), "farm": ("on", "on"),
    "school": ("near", "at"), "forest": ("in", "in"), "market": ("near", "at"), "river": ("by", "at"),
    "park": ("near", "in"), "garden": ("in", "in"), "mountain": ("on", "on"), "castle": ("in", "in"),
    "village": ("in", "in"), "island": ("on", "on"), "cave": ("in", "in"), "valley": ("in", "in"),
    "bridge": ("near", "at"), "harbor": ("near", "at"), "town": ("in", "in"), "city": ("in", "in"),
    "meadow": ("by", "in"), "field": ("near", "in"), "barn": ("in", "in"), "mill": ("in", "at"),
    "library": ("near", "in"), "bakery": ("near", "at"), "lighthouse": ("in", "at"), "tower": ("in", "in"),
    "pond": ("by", "at"), "cottage": ("in", "in"), "desert": ("in", "in"), "jungle": ("in", "in"),
    "swamp": ("near", "in"), "waterfall": ("by", "at"), "well": ("by", "at"), "orchard": ("in", "in"),
    "playground": ("near", "on"), "station": ("near", "at"), "museum": ("near", "in"), "zoo": ("near", "in"),
    "theater": ("near", "in"), "cliff": ("on", "on"), "palace": ("in", "in"), "kitchen": ("in", "in"),
    "attic": ("in", "in"), "shop": ("near", "in"), "house": ("in", "in"),
}  # fmt: skip

OBJECTS = words(
    """key ball book lantern kite map drum bell coin basket hat scarf button shell mirror feather flute umbrella box
    letter cake apple crown ring clock candle blanket rope spoon teapot lamp bottle balloon pencil whistle pillow jar
    cup picture ladder stone flower bag guitar boat chair broom telescope pumpkin necklace puppet egg"""
)

MEN = frozenset(
    words(
        """Adam Alan Amir Anton Ben Bruno Carl Chen Dan David Ed Eli Emil Eric Felix Frank Fred Hans Henry Hugo Ian Ivan
    Jack Jan Jin Jon Jonas Kai Karl Leo Liam Louis Luis Luke Marc Mark Max Milo Noah Oscar Otto Owen Paul Peter Raul Rob
    Sam Sean Sven Theo Tim Tom Victor Wei Will"""
    )
)

OPENINGS = (
    "Once upon a time, {hero} named {name} lived {home}.",
    "There once was {hero} named {name} who lived {home}.",
    "{Home}, there lived {hero} called {name}.",
    "Long ago, {hero} called {name} had a home {home}.",
    "{Hero} named {name} lived {home}.",
    "Not so long ago, {hero} by the name of {name} lived {home}.",
    "This is the story of {name}, {hero} who lived {home}.",
    "{name} was {hero} who lived {home}.",
    "Many years ago, {hero} with the name {name} lived {home}.",
    "{Home} lived {hero}, and everyone called {him} {name}.",
    "In a land far away, {hero} named {name} lived {home}.",
    "Once there lived {hero} {home}, and {his} name was {name}.",
)

HABITS = (
    "Every morning, {he} (sang a little song|said hello to the sun|counted the clouds).",
    "{He} liked (long walks|warm soup|quiet evenings) and (good stories|sweet berries|bright stars).",
    "Everyone {at} knew {him} well.",
    "{name} had a small house with a (red|blue|green) door.",
    "{name} liked to (look at the stars|listen to the wind|watch the birds).",
    "{He} was (always ready to help|never without a smile|known for {his} loud laugh).",
    "Most days there were calm and bright.",
    "The days {at} were (long and sunny|quiet and slow|full of small wonders).",
)

MORALS = {
    "friendship": (
        "True friendship makes every road shorter.",
        "And so a new friendship began.",
        "Friendship, {he} learned, is the greatest treasure of all.",
        "Nothing warms the heart like friendship.",
        "That is how a small moment became a lifelong friendship.",
    ),
    "kindness": (
        "A little kindness always finds its way back.",
        "{name} learned that kindness costs nothing and is worth a lot.",
        "Even a small act of kindness can brighten a whole day.",
        "And everyone {at} still speaks of {his} kindness.",
        "Kindness is a gift that grows when you give it away.",
    ),
    "courage": (
        "{name} learned that courage means going on even when you are afraid.",
        "A little courage can light up the darkest night.",
        "From then on, {he} knew that there was courage in {his} heart.",
        "Courage often begins with one small step.",
        "And everyone {at} praised {his} courage.",
    ),
    "honesty": (
        "{name} learned that honesty makes the heart light.",
        "Honesty is worth more than gold.",
        "With honesty, even a mistake can end well.",
        "And everyone {at} trusted {him} because of {his} honesty.",
        "It takes honesty to make things right.",
    ),
    "patience": (
        "{name} learned that patience brings the sweetest rewards.",
        "With patience, even big dreams come true.",
        "Good things come to those who have patience.",
        "Patience had been {his} best helper.",
        "Step by step, patience wins in the end.",
    ),
    "sharing": (
        "{name} learned that sharing makes joy twice as big.",
        "Sharing turns a little into plenty.",
        "After all, sharing makes every day a little brighter.",
        "And that is how {he} learned the magic of sharing.",
        "The best things in life are made for sharing.",
    ),
    "teamwork": (
        "{name} learned that teamwork makes hard things easy.",
        "With teamwork, no problem is too big.",
        "Teamwork had done what nobody could do alone.",
        "And that is why {he} always believed in teamwork.",
        "A little teamwork goes a long way.",
    ),
    "curiosity": (
        "{name} learned that curiosity opens many doors.",
        "With a little curiosity, the whole world is a storybook.",
        "Curiosity had turned a plain day into an adventure.",
        "And {his} curiosity never went away.",
        "A question and some curiosity are all it takes to begin.",
    ),
    "gratitude": (
        "{name} learned that gratitude is the key to a happy heart.",
        "With gratitude, even a little is enough.",
        "From then on, {he} met each day with gratitude.",
        "Gratitude turns what we have into plenty.",
        "And {his} heart was full of gratitude.",
    ),
    "hope": (
        "{name} learned that hope keeps the heart warm.",
        "A little hope can carry you a long way.",
        "Where there is hope, there is always a way.",
        "And from that day on, {he} was full of hope.",
        "Hope is a small light that never goes out.",
    ),
}

RESTS = (
    "From that day on, {name} and the {friend} were the best of friends.",
    "That night, {name} slept (well and deeply|with a smile|like a stone).",
    "{name} went home with a warm heart.",
    "It was the best day {he} had ever had.",
    "When the stars came out, {name} was the happiest {kind} in the world.",
    "And they still tell this story {at} today.",
    "In the evening, everything {at} was peaceful again.",
    "{name} smiled all the way home.",
    "And if you ever visit the {place}, you may see them there together.",
    "At last {name} could rest, happy and content.",
)
