"""The words of the translation skill, with every form that a rule could get wrong."""

from __future__ import annotations

from dataclasses import dataclass

MASCULINE, FEMININE, NEUTER, PLURAL = range(4)
ARTICLES = {"der": MASCULINE, "die": FEMININE, "das": NEUTER}


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


@dataclass(frozen=True)
class Noun:
    """`oblique` is the singular of accusative and dative; `plurals` is empty for what is not counted here."""

    kind: str
    english: str
    english_plural: str
    gender: int
    singular: str
    oblique: str
    plural: str

    @property
    def dative_plural(self) -> str:
        return self.plural if self.plural.endswith(("n", "s")) else self.plural + "n"


@dataclass(frozen=True)
class Adjective:
    """`stem` takes the endings; comparatives are empty where they are not used here."""

    kinds: frozenset[str]
    english: str
    german: str
    stem: str
    english_comparative: str
    comparative: str


@dataclass(frozen=True)
class Verb:
    """`prefix` is the separable one; `participle` is empty where no past is told.

    subjects, objects  kinds (or English words) of nouns that make sense.
    case               of the object: "accusative", "dative", or "" if there is none.
    """

    base: str
    past: str
    gerund: str
    particle: str
    infinitive: str
    prefix: str
    first: str
    second: str
    third: str
    participle: str
    auxiliary: str
    case: str
    subjects: tuple[str, ...]
    objects: tuple[str, ...]


# kind; English[/plural, "-" for none], German with article[/oblique], plural ("-" for none)
NOUNS_TABLE = """
person: man/men der Mann Männer, woman/women die Frau Frauen, child/children das Kind Kinder,
    boy der Junge/Jungen Jungen, girl das Mädchen Mädchen, teacher der Lehrer Lehrer, doctor der Arzt Ärzte,
    friend der Freund Freunde, neighbor der Nachbar/Nachbarn Nachbarn, baker der Bäcker Bäcker,
    farmer der Bauer/Bauern Bauern, king der König Könige, queen die Königin Königinnen, guest der Gast Gäste,
    student der Student/Studenten Studenten, singer der Sänger Sänger, driver der Fahrer Fahrer,
    lady/ladies die Dame Damen, prince der Prinz/Prinzen Prinzen, hero/heroes der Held/Helden Helden,
    colleague der Kollege/Kollegen Kollegen, customer der Kunde/Kunden Kunden
family: father der Vater Väter, mother die Mutter Mütter, brother der Bruder Brüder, sister die Schwester Schwestern,
    son der Sohn Söhne, daughter die Tochter Töchter, uncle der Onkel Onkel, aunt die Tante Tanten,
    grandmother die Großmutter Großmütter, grandfather der Großvater Großväter, baby/babies das Baby Babys,
    family/families die Familie Familien
animal: dog der Hund Hunde, cat die Katze Katzen, horse das Pferd Pferde, bird der Vogel Vögel, fish/- der Fisch -,
    mouse/mice die Maus Mäuse, bear der Bär/Bären Bären, rabbit das Kaninchen Kaninchen, frog der Frosch Frösche,
    duck die Ente Enten, cow die Kuh Kühe, pig das Schwein Schweine, sheep/- das Schaf -,
    lion der Löwe/Löwen Löwen, monkey der Affe/Affen Affen, elephant der Elefant/Elefanten Elefanten,
    fox/foxes der Fuchs Füchse, wolf/wolves der Wolf Wölfe, owl die Eule Eulen, bee die Biene Bienen,
    goat die Ziege Ziegen, animal das Tier Tiere, snake die Schlange Schlangen, goose/geese die Gans Gänse
food: apple der Apfel Äpfel, pear die Birne Birnen, banana die Banane Bananen, orange die Orange Orangen,
    egg das Ei Eier, cake der Kuchen Kuchen, potato/potatoes die Kartoffel Kartoffeln,
    tomato/tomatoes die Tomate Tomaten, carrot die Karotte Karotten, strawberry/strawberries die Erdbeere Erdbeeren,
    cookie der Keks Kekse, soup die Suppe Suppen, salad der Salat Salate, sausage die Wurst Würste,
    cherry/cherries die Kirsche Kirschen, lemon die Zitrone Zitronen, nut die Nuss Nüsse,
    onion die Zwiebel Zwiebeln, mushroom der Pilz Pilze
dish: bread/- das Brot -, cheese/- der Käse -, butter/- die Butter -, sugar/- der Zucker -, salt/- das Salz -,
    meat/- das Fleisch -, rice/- der Reis -, chocolate/- die Schokolade -, honey/- der Honig -, fruit/- das Obst -
drink: water/- das Wasser -, milk/- die Milch -, coffee/- der Kaffee -, tea/- der Tee -, juice/- der Saft -,
    beer/- das Bier -, wine/- der Wein -, lemonade/- die Limonade -
text: book das Buch Bücher, letter der Brief Briefe, newspaper die Zeitung Zeitungen,
    story/stories die Geschichte Geschichten
thing: lamp die Lampe Lampen, key der Schlüssel Schlüssel, bag die Tasche Taschen, box/boxes die Kiste Kisten,
    cup die Tasse Tassen, glass/glasses das Glas Gläser, plate der Teller Teller, knife/knives das Messer Messer,
    spoon der Löffel Löffel, fork die Gabel Gabeln, bottle die Flasche Flaschen, ball der Ball Bälle,
    picture das Bild Bilder, clock die Uhr Uhren, phone das Telefon Telefone, computer der Computer Computer,
    pen der Stift Stifte, coin die Münze Münzen, gift das Geschenk Geschenke,
    umbrella der Regenschirm Regenschirme, camera die Kamera Kameras, mirror der Spiegel Spiegel,
    suitcase der Koffer Koffer, basket der Korb Körbe, ring der Ring Ringe, guitar die Gitarre Gitarren,
    candle die Kerze Kerzen, doll die Puppe Puppen, stone der Stein Steine, map die Karte Karten
furniture: table der Tisch Tische, chair der Stuhl Stühle, bed das Bett Betten, sofa das Sofa Sofas,
    window das Fenster Fenster, door die Tür Türen, wall die Wand Wände, roof das Dach Dächer
clothes: coat der Mantel Mäntel, shirt das Hemd Hemden, dress/dresses das Kleid Kleider, hat der Hut Hüte,
    shoe der Schuh Schuhe, jacket die Jacke Jacken, skirt der Rock Röcke, sweater der Pullover Pullover,
    scarf/scarves der Schal Schals
vehicle: car das Auto Autos, bicycle das Fahrrad Fahrräder, train der Zug Züge, bus/buses der Bus Busse,
    ship das Schiff Schiffe, boat das Boot Boote, plane das Flugzeug Flugzeuge
place: house das Haus Häuser, garden der Garten Gärten, kitchen die Küche Küchen, room das Zimmer Zimmer,
    school die Schule Schulen, city/cities die Stadt Städte, village das Dorf Dörfer, street die Straße Straßen,
    church/churches die Kirche Kirchen, station der Bahnhof Bahnhöfe, market der Markt Märkte, park der Park Parks,
    hotel das Hotel Hotels, restaurant das Restaurant Restaurants, shop der Laden Läden,
    hospital das Krankenhaus Krankenhäuser, castle das Schloss Schlösser, tower der Turm Türme,
    bridge die Brücke Brücken, museum das Museum Museen, library/libraries die Bibliothek Bibliotheken,
    office das Büro Büros, farm der Bauernhof Bauernhöfe
nature: tree der Baum Bäume, flower die Blume Blumen, river der Fluss Flüsse, lake der See Seen,
    mountain der Berg Berge, forest der Wald Wälder, hill der Hügel Hügel, beach/beaches der Strand Strände,
    sea das Meer Meere, island die Insel Inseln, star der Stern Sterne, field das Feld Felder,
    meadow die Wiese Wiesen, leaf/leaves das Blatt Blätter, rose die Rose Rosen, cloud die Wolke Wolken
stuff: money/- das Geld -, time/- die Zeit -
unique: sun/- die Sonne -, moon/- der Mond -, sky/- der Himmel -
"""

# groups of kinds or English nouns: English, German[|stem][/comparative] ("red wine" is one word in German, so that what
# one eats and drinks by the portion has no color)
EVERYTHING = "person family animal food dish drink text thing furniture clothes vehicle place nature unique"
ADJECTIVES_TABLE = f"""
{EVERYTHING}: good/better gut/besser, bad/worse schlecht/schlechter
person family animal cake text thing furniture clothes vehicle place nature unique:
    beautiful/more_beautiful schön/schöner
text thing furniture clothes vehicle place teacher doctor neighbor friend colleague student customer:
    new/newer neu/neuer
animal food text thing furniture clothes vehicle place nature unique: red rot, blue blau,
    green grün, yellow gelb, black schwarz, white weiß, brown braun, gray grau
person family animal food text thing furniture clothes vehicle place nature unique: big/bigger groß/größer,
    small/smaller klein/kleiner, old/older alt/älter, little klein, ugly hässlich
person family text thing place: important/more_important wichtig/wichtiger
person family animal: young/younger jung/jünger, happy/happier glücklich/glücklicher, sad/sadder traurig/trauriger,
    tired müde|müd, hungry hungrig, strong/stronger stark/stärker, friendly/friendlier freundlich/freundlicher,
    quiet/quieter ruhig/ruhiger, clever/cleverer klug/klüger, lazy faul, brave/braver mutig/mutiger, sick krank,
    funny/funnier lustig/lustiger, thirsty durstig, weak/weaker schwach/schwächer, healthy gesund
animal: wild wild
person family: rich/richer reich/reicher, poor/poorer arm/ärmer, nice/nicer nett/netter, pretty hübsch, famous berühmt
food dish drink text thing furniture clothes vehicle: expensive/more_expensive teuer|teur/teurer,
    cheap/cheaper billig/billiger
thing furniture clothes vehicle animal: heavy/heavier schwer/schwerer
thing furniture clothes vehicle place: clean sauber, dirty schmutzig
text clothes river beach bridge street table bed train snake: long/longer lang/länger, short/shorter kurz/kürzer
thing furniture vehicle: broken kaputt
bag box cup glass plate bottle suitcase basket place vehicle: empty leer
lamp clock phone computer camera furniture vehicle place: modern modern
food bread cheese butter meat fruit milk juice lemonade: fresh frisch
apple pear banana orange cake strawberry cookie cherry chocolate honey fruit juice lemonade tea coffee wine:
    sweet/sweeter süß/süßer
soup sausage potato egg meat rice drink: cold/colder kalt/kälter
soup sausage potato egg meat rice water milk coffee tea: hot/hotter heiß/heißer
place forest sky cloud: dark dunkel|dunkl
place river lake forest beach sea island: quiet/quieter ruhig/ruhiger
mountain tower hill wall roof: high/higher hoch|hoh/höher
vehicle animal: fast/faster schnell/schneller, slow/slower langsam/langsamer
text place: interesting/more_interesting interessant/interessanter
"""

# English base/past/gerund ("-" for none) particle = infinitive ich du er participle ("+" with sein, "-" for no past)
# : subjects [: case (after a preposition) of the object, objects]
VERBS_TABLE = """
sleep/slept/sleeping = schlafen schlafe schläfst schläft geschlafen : person family animal
eat/ate/eating = essen esse isst isst gegessen : person family animal
drink/drank/drinking = trinken trinke trinkst trinkt getrunken : person family animal
wait/waited/waiting = warten warte wartest wartet gewartet : person family animal
play/played/playing = spielen spiele spielst spielt gespielt : person family animal
sit/-/sitting = sitzen sitze sitzt sitzt - : person family animal
stand/-/standing = stehen stehe stehst steht - : person family animal
lie/-/lying = liegen liege liegst liegt - : person family animal
run/ran/running = laufen laufe läufst läuft +gelaufen : person family animal
jump/jumped/jumping = springen springe springst springt +gesprungen : person family animal
swim/swam/swimming = schwimmen schwimme schwimmst schwimmt +geschwommen : person family dog duck fish
stay/stayed/staying = bleiben bleibe bleibst bleibt +geblieben : person family animal
fly/flew/flying = fliegen fliege fliegst fliegt +geflogen : bird owl bee duck goose
work/worked/working = arbeiten arbeite arbeitest arbeitet gearbeitet : person family
sing/sang/singing = singen singe singst singt gesungen : person family bird
dance/danced/dancing = tanzen tanze tanzt tanzt getanzt : person family bear
laugh/laughed/laughing = lachen lache lachst lacht gelacht : person family
cry/cried/crying = weinen weine weinst weint geweint : person family
smile/smiled/smiling = lächeln lächle lächelst lächelt gelächelt : person family
cook/cooked/cooking = kochen koche kochst kocht gekocht : person family
read/read/reading = lesen lese liest liest gelesen : person family
write/wrote/writing = schreiben schreibe schreibst schreibt geschrieben : person family
learn/learned/learning = lernen lerne lernst lernt gelernt : person family
dream/dreamed/dreaming = träumen träume träumst träumt geträumt : person family animal
live/lived/living = wohnen wohne wohnst wohnt gewohnt : person family
get/got/getting up = auf|stehen stehe stehst steht +aufgestanden : person family
wake/woke/waking up = auf|wachen wache wachst wacht +aufgewacht : person family animal
watch/watched/watching TV = fern|sehen sehe siehst sieht ferngesehen : person family
listen/listened/listening = zu|hören höre hörst hört zugehört : person family
see/saw/- = sehen sehe siehst sieht gesehen : person family animal : accusative
    person family animal text thing clothes vehicle place nature unique
hear/heard/- = hören höre hörst hört gehört : person family animal : accusative person family animal
look/looked/looking for = suchen suche suchst sucht gesucht : person family : accusative
    person animal text thing clothes
look/looked/looking at = an|schauen schaue schaust schaut angeschaut : person family : accusative
    person family animal picture book house castle star tree flower unique
find/found/- = finden finde findest findet gefunden : person family : accusative text thing clothes mushroom
buy/bought/buying = kaufen kaufe kaufst kauft gekauft : person family : accusative
    food dish drink text thing clothes vehicle table chair bed house
sell/sold/selling = verkaufen verkaufe verkaufst verkauft verkauft : person family : accusative
    food dish drink text thing clothes vehicle table chair bed house
have/had/- = haben habe hast hat gehabt : person family : accusative
    animal text thing clothes vehicle stuff stuff house garden brother sister son daughter friend
need/needed/- = brauchen brauche brauchst braucht gebraucht : person family : accusative
    dish drink stuff thing clothes vehicle table chair bed doctor
love/loved/- = lieben liebe liebst liebt geliebt : person family : accusative person family animal
like/-/- = mögen mag magst mag - : person family : accusative person family animal food dish drink
know/knew/- = kennen kenne kennst kennt gekannt : person family : accusative person family place
eat/ate/eating = essen esse isst isst gegessen : person family animal : accusative food dish
drink/drank/drinking = trinken trinke trinkst trinkt getrunken : person family : accusative drink
read/read/reading = lesen lese liest liest gelesen : person family : accusative text
write/wrote/writing = schreiben schreibe schreibst schreibt geschrieben : person family : accusative letter book story
carry/carried/carrying = tragen trage trägst trägt getragen : person family : accusative thing chair table baby
wear/wore/wearing = tragen trage trägst trägt getragen : person family : accusative clothes ring
paint/painted/painting = malen male malst malt gemalt : person family : accusative nature animal
draw/drew/drawing = zeichnen zeichne zeichnest zeichnet gezeichnet : person family : accusative nature animal house
open/opened/opening = öffnen öffne öffnest öffnet geöffnet : person family : accusative
    window door box bottle letter suitcase bag
close/closed/closing = schließen schließe schließt schließt geschlossen : person family : accusative
    window door box suitcase
wash/washed/washing = waschen wasche wäschst wäscht gewaschen : person family : accusative
    clothes car cup plate glass dog apple
clean/cleaned/cleaning = putzen putze putzt putzt geputzt : person family : accusative kitchen room window shoe house
build/built/building = bauen baue baust baut gebaut : person family : accusative
    house tower bridge ship boat church castle
visit/visited/visiting = besuchen besuche besuchst besucht besucht : person family : accusative
    person family city village museum castle
ask/asked/asking = fragen frage fragst fragt gefragt : person family : accusative person family
meet/met/meeting = treffen treffe triffst trifft getroffen : person family : accusative person family
take/took/taking = nehmen nehme nimmst nimmt genommen : person family : accusative thing text bus train
bake/baked/baking = backen backe backst backt gebacken : person family : accusative cake bread cookie
cook/cooked/cooking = kochen koche kochst kocht gekocht : person family : accusative soup rice potato egg meat
call/called/calling = an|rufen rufe rufst ruft angerufen : person family : accusative person family
invite/invited/inviting = ein|laden lade lädst lädt eingeladen : person family : accusative person family
tidy/tidied/tidying up = auf|räumen räume räumst räumt aufgeräumt : person family : accusative
    room kitchen office house
understand/understood/- = verstehen verstehe verstehst versteht verstanden : person family : accusative
    person family text
forget/forgot/- = vergessen vergesse vergisst vergisst vergessen : person family : accusative thing text clothes
lose/lost/- = verlieren verliere verlierst verliert verloren : person family : accusative
    key ring bag ball letter hat umbrella coin
feed/fed/feeding = füttern füttere fütterst füttert gefüttert : person family : accusative animal baby
hold/held/holding = halten halte hältst hält gehalten : person family : accusative thing baby cat rabbit
drive/-/driving = fahren fahre fährst fährt - : person family : accusative car bus
repair/repaired/repairing = reparieren repariere reparierst repariert repariert : person family : accusative
    vehicle computer clock lamp phone chair table roof
help/helped/helping = helfen helfe hilfst hilft geholfen : person family : dative person family animal
thank/thanked/thanking = danken danke dankst dankt gedankt : person family : dative person family
follow/followed/following = folgen folge folgst folgt +gefolgt : person family animal : dative person family animal
answer/answered/answering = antworten antworte antwortest antwortet geantwortet : person family : dative person family
believe/believed/- = glauben glaube glaubst glaubt geglaubt : person family : dative person family
belong/belonged/- to = gehören gehöre gehörst gehört gehört : text thing clothes vehicle house garden animal
    : dative person family
wait/waited/waiting for = warten warte wartest wartet gewartet : person family : auf_accusative
    bus train person family
think/thought/thinking of = denken denke denkst denkt gedacht : person family : an_accusative person family
talk/talked/talking to = sprechen spreche sprichst spricht gesprochen : person family : mit_dative
    person family animal
play/played/playing with = spielen spiele spielst spielt gespielt : person family dog cat : mit_dative
    ball doll child boy girl dog cat friend
dream/dreamed/dreaming of = träumen träume träumst träumt geträumt : person family : von_dative
    animal place vehicle sea island forest
laugh/laughed/laughing about = lachen lache lachst lacht gelacht : person family : über_accusative
    story picture letter book hat
go/went/going = gehen gehe gehst geht +gegangen : direction
run/ran/running = laufen laufe läufst läuft +gelaufen : direction
come/came/coming = kommen komme kommst kommt +gekommen : direction
drive/drove/driving = fahren fahre fährst fährt +gefahren : direction
give/gave/giving = geben gebe gibst gibt gegeben : recipient : accusative food text thing
show/showed/showing = zeigen zeige zeigst zeigt gezeigt : recipient : accusative text thing animal house garden
send/sent/sending = schicken schicke schickst schickt geschickt : recipient : accusative letter book picture gift
bring/brought/bringing = bringen bringe bringst bringt gebracht : recipient : accusative food drink dish text thing
"""

BE = Verb("be", "was", "being", "", "sein", "", "bin", "bist", "ist", "gewesen", "sein", "", (), ())

# English; ich du er wir. Those with "to" take do in English, the others are auxiliaries themselves.
MODALS = {
    "can": "kann kannst kann können",
    "must": "muss musst muss müssen",
    "have to": "muss musst muss müssen",
    "want to": "will willst will wollen",
    "should": "sollte solltest sollte sollten",
    "may": "darf darfst darf dürfen",
    "would like to": "möchte möchtest möchte möchten",
    "will": "werde wirst wird werden",
}

# German preposition: English preposition and the nouns that it goes with, of where something is
PLACES_TABLE = """
in: in house garden kitchen room school city village church park hotel restaurant shop hospital castle forest car bus
    museum library office lake sea river train tower
in: on train bus plane
auf: on table chair bed sofa roof bridge hill island mountain ship farm street boat
auf: in meadow field
auf: at market
unter: under table bed tree bridge chair
neben: next_to house tree door window river lamp church school table box
hinter: behind house tree church door castle school
vor: in_front_of house church school station door hotel museum
an: at station lake river sea beach window table door
an: on beach
"""

# of where someone goes: German preposition and case
DIRECTIONS_TABLE = """
zu_dative: to school station market church park museum castle bridge lake river library hospital beach doctor baker
in_accusative: into house garden forest kitchen room church hotel shop castle museum
von_dative: from station market doctor beach lake
"""

NUMBERS = dict(
    zip(
        words("two three four five six seven eight nine ten eleven twelve twenty"),
        words("zwei drei vier fünf sechs sieben acht neun zehn elf zwölf zwanzig"),
        strict=True,
    )
)
