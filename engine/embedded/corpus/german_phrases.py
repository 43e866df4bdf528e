"""What the translation skill knows as a whole: set phrases, time words, numbers and other single words."""

from __future__ import annotations

from engine.embedded.corpus.german_words import words

PHRASES = {
    "Good morning": "Guten Morgen",
    "Good evening": "Guten Abend",
    "Good night": "Gute Nacht",
    "Good day": "Guten Tag",
    "Goodbye": "Auf Wiedersehen",
    "See you tomorrow": "Bis morgen",
    "See you soon": "Bis bald",
    "See you later": "Bis später",
    "Hello": "Hallo",
    "Welcome": "Willkommen",
    "Thank you": "Danke",
    "Thank you very much": "Vielen Dank",
    "Please": "Bitte",
    "You are welcome": "Gern geschehen",
    "Excuse me": "Entschuldigung",
    "I am sorry": "Es tut mir leid",
    "No problem": "Kein Problem",
    "Yes": "Ja",
    "No": "Nein",
    "Maybe": "Vielleicht",
    "Of course": "Natürlich",
    "Good luck": "Viel Glück",
    "Have fun": "Viel Spaß",
    "Happy birthday": "Alles Gute zum Geburtstag",
    "Merry Christmas": "Frohe Weihnachten",
    "Enjoy your meal": "Guten Appetit",
    "Cheers": "Prost",
    "Congratulations": "Herzlichen Glückwunsch",
    "Get well soon": "Gute Besserung",
    "Have a nice day": "Einen schönen Tag",
    "I love you": "Ich liebe dich",
    "I miss you": "Ich vermisse dich",
    "I do not know": "Ich weiß nicht",
    "I don't know": "Ich weiß nicht",
    "I understand": "Ich verstehe",
    "I do not understand": "Ich verstehe nicht",
    "I don't understand": "Ich verstehe nicht",
    "I am fine": "Mir geht es gut",
    "I agree": "Ich stimme zu",
    "I need help": "Ich brauche Hilfe",
    "I have a question": "Ich habe eine Frage",
    "It does not matter": "Das macht nichts",
    "That is right": "Das stimmt",
    "Nice to meet you": "Freut mich, dich kennenzulernen",
    "Let's go": "Los geht's",
    "Come in": "Komm herein",
    "Wait a moment": "Warte einen Moment",
    "To the left": "Nach links",
    "To the right": "Nach rechts",
    "Straight ahead": "Geradeaus",
}
QUESTIONS = {
    "How are you": "Wie geht es dir",
    "What is your name": "Wie heißt du",
    "Where are you from": "Woher kommst du",
    "How old are you": "Wie alt bist du",
    "Where do you live": "Wo wohnst du",
    "Do you speak German": "Sprichst du Deutsch",
    "Do you speak English": "Sprichst du Englisch",
    "Can you help me": "Kannst du mir helfen",
    "What time is it": "Wie spät ist es",
    "How much does it cost": "Wie viel kostet das",
    "Where is the toilet": "Wo ist die Toilette",
    "What is that": "Was ist das",
    "Who is that": "Wer ist das",
    "What are you doing": "Was machst du",
    "How is the weather": "Wie ist das Wetter",
    "Do you understand me": "Verstehst du mich",
    "Why not": "Warum nicht",
    "Is everything okay": "Ist alles in Ordnung",
    "What happened": "Was ist passiert",
}

# when it is used: p(resent), b(efore), l(ater)
TIMES = {
    "today": ("heute", "pbl"), "now": ("jetzt", "p"), "every day": ("jeden Tag", "p"),
    "every morning": ("jeden Morgen", "p"), "every evening": ("jeden Abend", "p"),
    "in the morning": ("am Morgen", "pb"), "in the afternoon": ("am Nachmittag", "pb"),
    "in the evening": ("am Abend", "pb"), "at night": ("in der Nacht", "p"),
    "on Monday": ("am Montag", "pbl"), "on Tuesday": ("am Dienstag", "pbl"), "on Wednesday": ("am Mittwoch", "pbl"),
    "on Thursday": ("am Donnerstag", "pbl"), "on Friday": ("am Freitag", "pbl"), "on Saturday": ("am Samstag", "pbl"),
    "on Sunday": ("am Sonntag", "pbl"), "in spring": ("im Frühling", "p"), "in summer": ("im Sommer", "pb"),
    "in autumn": ("im Herbst", "p"), "in winter": ("im Winter", "pb"), "yesterday": ("gestern", "b"),
    "last week": ("letzte Woche", "b"), "last year": ("letztes Jahr", "b"), "tomorrow": ("morgen", "l"),
    "soon": ("bald", "l"), "next week": ("nächste Woche", "l"), "next year": ("nächstes Jahr", "l"),
    "this week": ("diese Woche", "pbl"), "this evening": ("heute Abend", "pl"),
}  # fmt: skip
ADVERBS = {
    "always": "immer", "often": "oft", "sometimes": "manchmal", "never": "nie", "usually": "meistens",
    "rarely": "selten",
}  # fmt: skip
MANNERS = {
    "work": {"slowly": "langsam", "well": "gut", "alone": "allein", "quickly": "schnell"},
    "sing": {"loudly": "laut", "well": "gut", "quietly": "leise", "alone": "allein"},
    "run": {"fast": "schnell", "slowly": "langsam"},
    "swim": {"fast": "schnell", "well": "gut", "slowly": "langsam"},
    "sleep": {"well": "gut", "badly": "schlecht"},
    "dance": {"well": "gut", "alone": "allein"},
    "cook": {"well": "gut"},
    "play": {"quietly": "leise", "alone": "allein"},
    "learn": {"quickly": "schnell", "slowly": "langsam"},
    "laugh": {"loudly": "laut"},
    "eat": {"slowly": "langsam", "alone": "allein", "quickly": "schnell"},
    "live": {"alone": "allein"},
    "read": {"slowly": "langsam", "fast": "schnell"},
}

CITIES = words("Berlin Hamburg Bremen Leipzig Dresden Paris London Madrid Oslo Frankfurt Bonn Stuttgart Amsterdam")
COUNTRIES = {
    "Germany": "Deutschland", "France": "Frankreich", "Italy": "Italien", "Spain": "Spanien", "Austria": "Österreich",
    "England": "England", "Poland": "Polen", "Norway": "Norwegen", "Japan": "Japan", "Portugal": "Portugal",
}  # fmt: skip
LANGUAGES = {
    "German": "Deutsch", "English": "Englisch", "French": "Französisch", "Spanish": "Spanisch",
    "Italian": "Italienisch",
}  # fmt: skip
GAMES = {
    "football": "Fußball", "chess": "Schach", "tennis": "Tennis", "cards": "Karten", "the piano": "Klavier",
    "the guitar": "Gitarre",
}  # fmt: skip
PROFESSIONS = words("teacher doctor baker farmer student singer driver king")

WORDS = {
    "Monday": "Montag", "Tuesday": "Dienstag", "Wednesday": "Mittwoch", "Thursday": "Donnerstag", "Friday": "Freitag",
    "Saturday": "Samstag", "Sunday": "Sonntag", "January": "Januar", "February": "Februar", "March": "März",
    "April": "April", "May": "Mai", "June": "Juni", "July": "Juli", "August": "August", "September": "September",
    "October": "Oktober", "November": "November", "December": "Dezember", "spring": "Frühling", "summer": "Sommer",
    "autumn": "Herbst", "winter": "Winter", "today": "heute", "tomorrow": "morgen", "yesterday": "gestern",
    "now": "jetzt", "and": "und", "but": "aber", "because": "weil", "always": "immer", "never": "nie", "often": "oft",
    "sometimes": "manchmal", "here": "hier", "there": "dort", "where": "wo", "when": "wann", "who": "wer",
    "why": "warum", "what": "was", "how": "wie", "with": "mit", "without": "ohne", "under": "unter", "for": "für",
    "very": "sehr", "many": "viele", "day": "Tag", "night": "Nacht", "week": "Woche", "month": "Monat", "year": "Jahr",
    "hour": "Stunde", "minute": "Minute", "time": "Zeit", "Germany": "Deutschland", "France": "Frankreich",
    "language": "Sprache", "word": "Wort", "name": "Name", "love": "Liebe", "friendship": "Freundschaft",
    "head": "Kopf", "hand": "Hand", "foot": "Fuß", "eye": "Auge", "ear": "Ohr", "nose": "Nase", "mouth": "Mund",
    "hair": "Haar", "heart": "Herz", "work": "Arbeit", "weather": "Wetter", "rain": "Regen", "snow": "Schnee",
    "wind": "Wind", "breakfast": "Frühstück", "butterfly": "Schmetterling", "world": "Welt", "country": "Land",
    "birthday": "Geburtstag", "color": "Farbe", "number": "Zahl",
}  # fmt: skip

UNITS = words(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
TENS = words("twenty thirty forty fifty sixty seventy eighty ninety")
GERMAN_UNITS = words(
    "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn "
    "achtzehn neunzehn"
)
GERMAN_TENS = words("zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig")


def number_words(number: int) -> tuple[str, str]:
    """English and German, from 0 to 100."""
    if number == 100:
        return "one hundred", "hundert"
    if number < 20:
        return UNITS[number], GERMAN_UNITS[number]
    tens, units = divmod(number, 10)
    english, german = TENS[tens - 2], GERMAN_TENS[tens - 2]
    if not units:
        return english, german
    return f"{english}-{UNITS[units]}", ("ein" if units == 1 else GERMAN_UNITS[units]) + "und" + german


# English verb: the German imperative (and its prefix)
IMPERATIVES = {
    "open": "öffne", "close": "schließ", "buy": "kauf", "read": "lies", "take": "nimm", "wash": "wasch",
    "bring": "bring", "eat": "iss", "drink": "trink", "clean": "putz", "feed": "füttere", "repair": "repariere",
    "visit": "besuch", "ask": "frag", "call": "ruf", "invite": "lade", "tidy up": "räum", "paint": "mal",
    "look for": "such", "forget": "vergiss",
}  # fmt: skip
