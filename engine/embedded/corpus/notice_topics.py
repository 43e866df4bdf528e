"""What people ask about the world: topics by category, and the ways to ask. None of it has an answer here."""

from __future__ import annotations

from dataclasses import dataclass

from engine.embedded.corpus.base import Phrases
from engine.embedded.corpus.manner import items, pool

ABOUT = pool(
    """Tell me about {x}. / What do you know about {x}? / {x} / Explain {x} to me. / Tell me (more|all) about {x}. /
    Give me (some|five|three) facts about {x}. / Teach me (something |)about {x}. / {x}? /
    (Please |)tell me something about {x}. / I want to know more about {x}. / Can you tell me about {x}? /
    Write a paragraph about {x}. / Information about {x}, please. / I have a question about {x}. /
    What should I know about {x}? / What is your opinion (of|on|about) {x}? / What do you think about {x}? /
    What can you tell me about {x}? / What is interesting about {x}? / Write an essay (about|on) {x}. /
    Is there anything new about {x}? / Quiz me (about|on) {x}. / What are the basics of {x}? /
    Could you tell me something about {x}? / Do you know anything about {x}? / I would like to learn about {x}. /
    Give me an introduction to {x}. / Where can I (read|learn) more about {x}? /
    I am writing a report (about|on) {x}. (Can you help?|Where do I start?) /
    Explain {x} to a (child|five-year-old|beginner). / Recommend a (good |)book about {x}. / Do you like {x}? /
    What about {x}? / Make a list of facts about {x}. / Let's talk about {x}. /
    Give me a (short|long) (text|lecture) about {x}.""",
    """Do you enjoy {x}? / Are you a fan of {x}? / Do you love {x}? / Do you hate {x}? / Are you interested in {x}? /
    What do you like about {x}? / Do you care about {x}? / Do you believe in {x}? / Does {x} interest you? /
    Don't you like {x}? / Would you like {x}? / I like {x}. (And you?|Do you?) / Do you know {x}? /
    Are you for or against {x}? / What is so good about {x}? / How do you feel about {x}? / Can you explain {x}? /
    Have you read anything about {x}? / Do many people like {x}? / Do you dislike {x}? / Do you mind {x}?""",
)

THING = pool(
    """What is {x}? / What's {x}? / How does {x} work? / Explain what {x} is. / (Please |)explain {x}. /
    Explain how {x} works. / Where does {x} come from? / What is {x} (good |used |)for? / Can you explain {x}? /
    Define {x}. / What is meant by {x}? / What does {x} mean? / When was {x} (discovered|invented|first described)? /
    What is the history of {x}? / Why does {x} (exist|matter)? / Who (discovered|invented) {x}? /
    Is {x} (dangerous|useful|expensive|real)? / Why is {x} (so |)important? / Give me an example of {x}. /
    What is the opposite of {x}? / Could you explain {x} in simple words? /
    What is the difference between {x} and {y}? / What causes {x}? / Compare {x} and {y}. / What exactly is {x}? /
    How is {x} made? / Which is more important, {x} or {y}? / Is {x} better than {y}? /
    What are the advantages of {x}?"""
)

MANY = pool(
    """What are {x}? / How do {x} work? / Where do {x} come from? / How many {x} are there? / How big are {x}? /
    Why do people like {x}? / What kinds of {x} are there? / What are {x} (good |used |)for? /
    Why are {x} (so |)important? / Explain {x}. / What do {x} look like? / How old are {x}? / Compare {x} and {y}. /
    Are {x} (dangerous|expensive|useful)? / Which {x} are the (best|biggest|oldest)? /
    What is the difference between {x} and {y}? / Where can I find {x}? / What do {x} need? / Can you explain {x}? /
    What is special about {x}? / Are {x} better than {y}? / How much do {x} (cost|weigh)? /
    Do you prefer {x} or {y}? / Why do we need {x}? / Where are {x} found? / What are {x} made of? /
    What is the history of {x}? / Who invented {x}? / How long do {x} last?"""
)

PERSON = pool(
    """Who is {x}? / Who was {x}? / When was {x} born? / Where was {x} born? / What did {x} do? / How old is {x}? /
    Why is {x} (so |)famous? / What is {x} (best |)known for? / How did {x} die? / Is {x} still alive? /
    Was {x} married? / Who were the parents of {x}? / What are the most important works of {x}? /
    Did {x} have children? / Where does {x} live? / Describe the life of {x}. / What was {x} like? /
    When did {x} die? / Did {x} ever meet {y}? / What nationality was {x}? / Who was greater, {x} or {y}? /
    Give me a short biography of {x}. / How tall (is|was) {x}? / Explain who {x} was. / Where did {x} live? /
    What made {x} famous? / Name three things {x} did. / Who came first, {x} or {y}? / Compare {x} with {y}. /
    Quote something by {x}."""
)

PLACE = pool(
    """Where is {x}? / How big is {x}? / What is there to see in {x}? / What time is it in {x}? /
    Is {x} worth a visit? / What is {x} (famous|known) for? / How do I get to {x}? /
    When is the best time to visit {x}? / What is the weather like in {x}? / Where exactly is {x}? /
    Where should I eat in {x}? / Have you been to {x}? / What can I do in {x}? / What is the history of {x}? /
    How old is {x}? / What is special about {x}? / Is {x} (safe|expensive|beautiful)? / How far is {x} from {y}? /
    Plan a (trip|holiday|weekend) to {x}. / How far is it to {x}? / How many people visit {x} every year? /
    Which is bigger, {x} or {y}? / Describe {x}. / How long is the flight to {x}? / What is near {x}? /
    I am going to {x} next week. What should I pack? / Find me a (cheap |)hotel in {x}. /
    What does a trip to {x} cost?"""
)


@dataclass(frozen=True)
class Category:
    """Topics of one kind, how topics of its form are asked about, and how these are; `y` is another of the topics."""

    form: Phrases
    topics: tuple[str, ...]
    phrases: Phrases


def category(form: Phrases, topics: str, phrases: str) -> Category:
    return Category(form, items(topics), pool(phrases))


HISTORY_AND_PLACES = (
    category(
        THING,
        """the French Revolution / the First World War / the Second World War / the Cold War / the Roman Empire /
        the Industrial Revolution / the American Civil War / the Renaissance / the Black Death / the Middle Ages /
        the fall of the Berlin Wall / the Russian Revolution / the Ottoman Empire / the Vietnam War / the Ice Age /
        the Magna Carta / the Boston Tea Party / the Battle of Waterloo / the moon landing / the Great Depression /
        the Stone Age / the Bronze Age / the Ming dynasty / the Crusades""",
        """When was {x}? / When did {x} begin? / How long did {x} last? / When did {x} end? / What led to {x}? /
        What happened after {x}? / Who won in {x}? / How did {x} change the world? / What were the causes of {x}? /
        In which century was {x}? / What happened in {x}? / Describe daily life during {x}. /
        Who were the main figures of {x}? / What came before {x}? / Why did {x} happen? / Give me a timeline of {x}. /
        What did people eat during {x}? / What happened during {x}? / How did {x} end? /
        What were the effects of {x}? / Why is {x} still important today? / What can we learn from {x}?""",
    ),
    category(
        PERSON,
        """Napoleon / Julius Caesar / Cleopatra / Abraham Lincoln / Winston Churchill / Mahatma Gandhi /
        Queen Victoria / Joan of Arc / Alexander the Great / Nelson Mandela / Genghis Khan / Martin Luther King /
        George Washington / Christopher Columbus / Marco Polo / Otto von Bismarck / Catherine the Great / Rosa Parks /
        Karl Marx / Charlemagne / Henry the Eighth / Che Guevara / Tutankhamun / Spartacus""",
        """What did {x} believe in? / Which battles did {x} fight? / Why did {x} become famous? / When did {x} rule? /
        Which country did {x} rule? / What were the last words of {x}? / How did {x} come to power? /
        Who killed {x}? / What was the greatest mistake of {x}? / Was {x} a good leader? / What did {x} achieve? /
        Who ruled after {x}? / What would {x} think of the world today? / How did {x} change history? /
        Why do we remember {x}? / What did {x} look like? / Which wars did {x} fight? / Was {x} rich?""",
    ),
    category(
        PLACE,
        """France / Japan / Brazil / Egypt / Canada / India / Australia / Mexico / Kenya / Norway / Poland /
        Thailand / Argentina / Portugal / Morocco / Vietnam / Iceland / South Africa / Greece / Turkey / New Zealand /
        Peru / Finland / Indonesia / Nigeria / Switzerland / Ireland / Cuba""",
        """What is the capital of {x}? / Who is the president of {x}? / What language do they speak in {x}? /
        What is the currency of {x}? / What is the population of {x}? / Which currency is used in {x}? /
        How many people live in {x}? / What is the highest mountain in {x}? / What do people eat in {x}? /
        Which countries border {x}? / Capital of {x}? / What is the flag of {x}? / Who rules {x}? /
        What are the biggest cities in {x}? / Do I need a visa for {x}? / What is the national dish of {x}? /
        Is {x} in the European Union? / Population of {x}? / What are the people of {x} like? /
        What is the longest river in {x}? / Name three cities in {x}. / What is the main religion in {x}? /
        On which side do they drive in {x}?""",
    ),
    category(
        PLACE,
        """Paris / London / Berlin / Rome / New York / Tokyo / Madrid / Vienna / Prague / Lisbon / Istanbul / Cairo /
        Sydney / Moscow / Beijing / Dubai / Amsterdam / Barcelona / Chicago / Venice / Singapore / Mumbai / Toronto /
        Warsaw / Copenhagen / Athens / Buenos Aires / Hong Kong""",
        """Which country is {x} in? / What is the population of {x}? / How many people live in {x}? /
        Is {x} a capital? / What should I see in {x}? / What are the best restaurants in {x}? /
        Which river flows through {x}? / Plan three days in {x}. / Who is the mayor of {x}? /
        Is there an underground in {x}? / What are the best museums in {x}? / Will it rain in {x} tomorrow? /
        How expensive is a flat in {x}? / Book a hotel in {x}. / Flights to {x}? / Where should I stay in {x}? /
        How do I get from {x} to {y}? / What is the best bar in {x}? / What is the weather in {x}? /
        How warm is it in {x} today?""",
    ),
    category(
        PLACE,
        """the Nile / the Amazon / Mount Everest / the Alps / the Sahara / the Danube / Lake Victoria /
        the Grand Canyon / the Dead Sea / the Rocky Mountains / the Pacific Ocean / the Great Barrier Reef /
        Kilimanjaro / the Rhine / the North Pole / the Himalayas / the Mississippi / the Black Forest /
        the Mediterranean Sea / Antarctica / Siberia / the Gobi desert / Mount Fuji / Niagara Falls""",
        """How long is {x}? / How high is {x}? / How deep is {x}? / In which country is {x}? /
        Which animals live in {x}? / How was {x} formed? / Who was the first to reach {x}? /
        Which countries does {x} touch? / Who discovered {x}? / How cold does it get in {x}? / Where does {x} end? /
        Does it rain in {x}? / What grows in {x}? / Can you swim in {x}? / Is {x} bigger than {y}? /
        Why is {x} called that? / How many people live near {x}? / Which plants grow in {x}? /
        Where does {x} begin?""",
    ),
    category(
        PLACE,
        """the Eiffel Tower / the Great Wall of China / the Colosseum / the Taj Mahal / the Pyramids / Big Ben /
        the Statue of Liberty / the Brandenburg Gate / Machu Picchu / Stonehenge / the Kremlin / the White House /
        Buckingham Palace / the Louvre / the Golden Gate Bridge / the Sydney Opera House / Notre-Dame /
        the Acropolis / the Leaning Tower of Pisa / Angkor Wat / Neuschwanstein / the Sistine Chapel""",
        """How tall is {x}? / When was {x} built? / How long did it take to build {x}? / In which city is {x}? /
        Who built {x}? / How much is a ticket for {x}? / What are the opening hours of {x}? / Can I go inside {x}? /
        What is inside {x}? / How many steps does {x} have? / Who paid for {x}? / Why was {x} built? /
        Buy me two tickets for {x}. / How many stones are in {x}? / Is {x} taller than {y}? /
        Has {x} ever been destroyed? / What was {x} used for? / Who designed {x}?""",
    ),
)

SCIENCE = (
    category(
        THING,
        """gravity / electricity / magnetism / quantum mechanics / the theory of relativity / friction / a laser /
        entropy / the speed of light / nuclear fusion / radioactivity / sound / momentum / a neutron / dark matter /
        superconductivity / the Doppler effect / string theory / kinetic energy / a vacuum / static electricity /
        the Higgs boson / inertia""",
        """What is the formula for {x}? / How do you measure {x}? / Who found {x}? / Derive the formula for {x}. /
        What is the unit of {x}? / Which experiment shows {x}? / What would happen without {x}? /
        What did Einstein say about {x}? / How strong is {x}? / Is {x} proven? / How is {x} measured? /
        Why do we have {x}? / Where do we see {x} in daily life? / Which experiments are there on {x}? /
        Solve a physics problem about {x}. / What is the link between {x} and {y}? / How is {x} used today?""",
    ),
    category(
        THING,
        """oxygen / hydrogen / gold / iron / carbon / water / an acid / a catalyst / the periodic table / salt /
        helium / rust / plastic / ammonia / a covalent bond / uranium / mercury / an isotope / glass / sulphur /
        alcohol / ozone / carbon dioxide / sodium / chlorine""",
        """What is the chemical formula of {x}? / What is the boiling point of {x}? / What is {x} made of? /
        How dense is {x}? / How do you make {x}? / Is {x} poisonous? / What colour is {x}? /
        At which temperature does {x} melt? / Is {x} a metal? / What happens when {x} meets water? /
        What is the melting point of {x}? / What is the symbol for {x}? / What smells like {x}? /
        What happens when you mix {x} and {y}? / Why does {x} burn? / How do I store {x}? /
        What colour does {x} have?""",
    ),
    category(
        THING,
        """photosynthesis / evolution / DNA / a cell / a virus / osmosis / the immune system / natural selection /
        a protein / the food chain / a gene / mitosis / a hormone / respiration / digestion / an enzyme / bacteria /
        a chromosome / cloning / the nervous system / biodiversity / metabolism""",
        """Where in the body is {x}? / Why do plants need {x}? / Describe the steps of {x}. /
        What are the stages of {x}? / What are the parts of {x}? / How long does {x} take? / Draw a diagram of {x}. /
        What did Darwin say about {x}? / Which organs need {x}? / What happens if {x} goes wrong? /
        Which animals need {x}? / How many kinds of {x} are there? / How do animals use {x}? / How big is {x}? /
        What role does {x} play in the body?""",
    ),
    category(
        THING,
        """the moon / Mars / the sun / Jupiter / a black hole / the Milky Way / Saturn / a comet / the Big Bang /
        Venus / Pluto / a supernova / the solar system / Halley's comet / the universe / a neutron star / Mercury /
        the Andromeda galaxy / the International Space Station / the Hubble telescope / an eclipse / Neptune /
        a meteor""",
        """How far away is {x}? / How old is {x}? / Can we live on {x}? / How hot is {x}? / How big is {x}? /
        How many moons does {x} have? / Has anyone been to {x}? / How was {x} formed? / How heavy is {x}? /
        Is there water on {x}? / When can I see {x}? / Can I see {x} tonight? / What is inside {x}? /
        How fast is {x}? / What colour is {x}? / How long does it take to reach {x}? / Is {x} bigger than {y}? /
        Is there life on {x}? / What would happen if {x} disappeared?""",
    ),
    category(
        MANY,
        """elephants / tigers / penguins / dolphins / spiders / sharks / bees / owls / kangaroos / giraffes /
        crocodiles / octopuses / bats / ants / whales / eagles / snakes / polar bears / wolves / hedgehogs /
        butterflies / frogs / cheetahs / turtles / horses / chickens / goldfish / lions""",
        """What do {x} eat? / How long do {x} live? / How fast are {x}? / Where do {x} live? / Can {x} swim? /
        Are {x} smart? / Do {x} make good pets? / How do {x} hunt? / How do {x} have babies? /
        What sound do {x} make? / Do {x} sleep? / How many legs do {x} have? / Why are {x} endangered? /
        Are {x} mammals? / How do {x} see? / How far can {x} jump? / Who eats {x}? / What eats {x}? / Can {x} fly? /
        What are baby {x} called? / Would {x} win against {y}? / Why do {x} sleep so much? / How heavy are {x}?""",
    ),
    category(
        MANY,
        """roses / oak trees / cacti / tulips / mushrooms / orchids / sunflowers / tomatoes / strawberries / ferns /
        bananas / apple trees / olives / potatoes / palm trees / lilies / pine trees / herbs / pumpkins / carrots /
        bamboos / house plants""",
        """How often do I water {x}? / How do I grow {x}? / Why are my {x} dying? / How do I plant {x}? /
        When should I plant {x}? / Can I eat {x}? / Where do {x} grow? / How much light do {x} need? /
        What soil do {x} need? / How fast do {x} grow? / When do {x} flower? / Why do my {x} have yellow leaves? /
        How tall do {x} grow? / Do {x} need sun? / How often should I feed {x}? / Which insects eat {x}? /
        When do I harvest {x}?""",
    ),
    category(
        MANY,
        """dinosaurs / volcanoes / earthquakes / fossils / hurricanes / tornadoes / clouds / glaciers / tides /
        rainbows / thunderstorms / tsunamis / diamonds / deserts / rainforests / coral reefs / icebergs / seasons /
        caves / geysers / continents""",
        """How are {x} formed? / How do {x} form? / What causes {x}? / Why are there {x}? /
        When did {x} first appear? / Can we predict {x}? / Which is the largest of all {x}? / How are {x} measured? /
        How do scientists study {x}? / What happens during {x}? / How do {x} start? / Why did {x} disappear? /
        What should I do during {x}? / Where in the world are there {x}? / How do {x} end? / What makes {x} happen? /
        Are there {x} in Europe?""",
    ),
    category(
        THING,
        """calculus / the Pythagorean theorem / pi / a prime number / trigonometry / a logarithm / probability /
        infinity / a matrix / an integral / the Fibonacci sequence / the golden ratio / a fraction / algebra /
        standard deviation / Bayes' theorem / a square root / graph theory / a vector / topology /
        the binomial theorem / a derivative""",
        """Prove something about {x}. / What is the formula for {x}? / How do I calculate {x}? /
        How do I compute {x}? / Who came up with {x}? / Help me with my homework on {x}. / I don't understand {x}. /
        Why do we need {x}? / How is {x} used in real life? / Teach me {x}. / Give me exercises on {x}. /
        How do you prove {x}? / Give me the definition of {x}. / What is {x} used for? / How do I learn {x}? /
        What is the theory behind {x}? / Prepare me for an exam on {x}.""",
    ),
    category(
        THING,
        """diabetes / a cold / the flu / cancer / asthma / malaria / high blood pressure / a migraine / an allergy /
        depression / measles / a stroke / pneumonia / arthritis / anaemia / insomnia / chickenpox / dementia /
        a heart attack / eczema / a fever""",
        """What are the symptoms of {x}? / How do you treat {x}? / Do I have {x}? / Is {x} contagious? /
        Can {x} be cured? / How do I prevent {x}? / Which medicine helps with {x}? / What causes {x}? /
        How dangerous is {x}? / My mother has {x}. What should I do? / What helps against {x}? /
        How long does {x} last? / Who gets {x}? / Which doctor treats {x}? / Is there a vaccine against {x}? /
        How common is {x}? / What should I eat with {x}? / Can I die of {x}? / What are the first signs of {x}?""",
    ),
    category(
        THING,
        """the heart / the liver / the brain / the skin / a kidney / the stomach / the spine / blood / the eye /
        the ear / a muscle / the knee / a tooth / the tongue / the lung / the thyroid / a bone / hair / the nose /
        a nerve""",
        """What does {x} do? / How heavy is {x}? / Where in the body is {x}? / What is the function of {x}? /
        Can {x} heal? / Can you live without {x}? / How big is {x}? / How do I keep my body and {x} healthy? /
        Which diseases affect {x}? / Why do we have {x}? / What hurts {x}? / What is {x} made of? /
        How many parts does {x} have? / Which food is good for {x}? / How fast does {x} grow? /
        What can go wrong with {x}?""",
    ),
)

CULTURE = (
    category(
        THING,
        """football / tennis / basketball / chess / cricket / golf / the Olympic Games / the World Cup / boxing /
        ice hockey / swimming / Formula One / rugby / baseball / volleyball / the Super Bowl / judo / cycling /
        skiing / badminton / the Tour de France / table tennis / surfing / archery""",
        """What are the rules of {x}? / Who is the best player in {x}? / How many players are there in {x}? /
        Who won the last final in {x}? / Teach me how to play {x}. / How do I get better at {x}? /
        How long is a match in {x}? / Where can I play {x}? / Who invented {x}? / Who is the world champion in {x}? /
        What do I need to play {x}? / When is the next final in {x}? / How do you score in {x}? /
        Is {x} harder than {y}? / Is {x} an Olympic sport? / Play {x} with me. / Who won yesterday in {x}? /
        What is the best country at {x}? / Which muscles does {x} train?""",
    ),
    category(
        PERSON,
        """Lionel Messi / Serena Williams / Michael Jordan / Usain Bolt / Roger Federer / Muhammad Ali /
        Cristiano Ronaldo / Pelé / Tiger Woods / Lewis Hamilton / Simone Biles / Michael Phelps / LeBron James /
        Steffi Graf / Diego Maradona / Rafael Nadal / Babe Ruth / Magnus Carlsen""",
        """How many titles did {x} win? / Which team did {x} play for? / How much does {x} earn? / How rich is {x}? /
        How many times did {x} win? / Which country does {x} play for? / What is {x}'s record? /
        How many medals does {x} have? / When did {x} retire? / Who trained {x}? / Who beat {x}? /
        Which sport does {x} do? / Does {x} still play? / Is {x} the greatest of all time? /
        How many goals did {x} score? / How fast is {x}? / What is the best game of {x}?""",
    ),
    category(
        PERSON,
        """Mozart / Beethoven / the Beatles / Elvis Presley / Madonna / Bob Dylan / Bach / Taylor Swift /
        Michael Jackson / Queen / Chopin / David Bowie / Adele / Vivaldi / Louis Armstrong / Beyoncé / Verdi /
        Freddie Mercury / Abba / Johnny Cash / Miles Davis / Rihanna / Wagner""",
        """What is the best song by {x}? / Which instruments did {x} play? / What is the most famous work of {x}? /
        How many albums did {x} make? / When did {x} become famous? / What kind of music did {x} make? /
        List the albums of {x}. / Play something by {x}. / Is the music of {x} any good? /
        Which songs did {x} write? / Write a song like {x}. / How many records did {x} sell? /
        Give me the lyrics of a song by {x}. / When is the next concert of {x}? / Recommend music like {x}. /
        Which songs by {x} should I know? / What is the first song by {x}?""",
    ),
    category(
        THING,
        """the piano / the guitar / jazz / the violin / opera / hip hop / the saxophone / rock music / the flute /
        techno / a symphony / the trumpet / classical music / the drums / reggae / a choir / the harp / the blues /
        country music / a fugue""",
        """How do I learn {x}? / Who invented {x}? / Is {x} hard to learn? / Who is the best at {x}? /
        How long does it take to learn {x}? / How much does it cost to learn {x}? /
        What do I need to know about {x}? / Which famous musicians are known for {x}? /
        Which music schools teach {x}? / How old is {x}? / What does {x} sound like? /
        Where does the sound of {x} come from? / Recommend a concert with {x}. / Play some {x}. /
        Why do people love {x}? / What is the best age to start {x}?""",
    ),
    category(
        THING,
        """Titanic / Star Wars / The Godfather / Casablanca / Harry Potter / Jurassic Park / The Matrix /
        Pulp Fiction / Game of Thrones / Friends / Breaking Bad / The Simpsons / Avatar / Jaws / Psycho / Frozen /
        Forrest Gump / The Lion King / Inception / Alien / Shrek / Doctor Who / Stranger Things""",
        """Who directed {x}? / Who plays the main role in {x}? / When did {x} come out? /
        Who are the main characters in {x}? / What happens at the end of {x}? / How does {x} end? /
        What is the plot of {x}? / How long is {x}? / Where can I watch {x}? / How many parts of {x} are there? /
        Is {x} a good film? / What rating does {x} have? / Did {x} win an Oscar? / Recommend a film like {x}. /
        What is {x} about? / Who dies in {x}? / Where was {x} filmed? / Who wrote the music for {x}? /
        Is {x} suitable for children? / How much money did {x} make?""",
    ),
    category(
        THING,
        """Hamlet / Romeo and Juliet / War and Peace / Don Quixote / The Lord of the Rings / Moby Dick /
        Pride and Prejudice / the Odyssey / Faust / 1984 / Animal Farm / The Great Gatsby / Robinson Crusoe /
        Frankenstein / Dracula / Ulysses / The Little Prince / Macbeth / Crime and Punishment / The Hobbit /
        Gulliver's Travels / the Iliad""",
        """Who wrote {x}? / What is {x} about? / Who is the main character in {x}? / What is the moral of {x}? /
        Summarise {x}. / How does {x} end? / When was {x} written? / Is {x} worth reading? /
        How many pages does {x} have? / What is the plot of {x}? / Summarise the plot of {x}. /
        Analyse the first chapter of {x}. / Give me a summary of {x}. / Who dies in {x}? /
        What are the themes of {x}? / Which characters are there in {x}? / Write a review of {x}. /
        What is the first sentence of {x}? / Give me a quote from {x}. / When does {x} take place?""",
    ),
    category(
        PERSON,
        """William Shakespeare / Goethe / Leo Tolstoy / Jane Austen / Mark Twain / Agatha Christie /
        Ernest Hemingway / Charles Dickens / Franz Kafka / Stephen King / Virginia Woolf / Homer / George Orwell /
        Oscar Wilde / Dante / Edgar Allan Poe / J. K. Rowling / Victor Hugo / Thomas Mann / Toni Morrison /
        Astrid Lindgren""",
        """Which books did {x} write? / What is the best book by {x}? / How many books did {x} write? /
        What did {x} write about? / Which language did {x} write in? / List the books of {x}. /
        When did {x} write the first book? / Did {x} win the Nobel Prize? / Write something in the style of {x}. /
        What should I read by {x}? / Which poems did {x} write? / What is the most famous book by {x}? /
        Write a poem like {x}. / What influenced {x}? / Was {x} a good writer? / What is the last book by {x}?""",
    ),
    category(
        PERSON,
        """Leonardo da Vinci / Pablo Picasso / Vincent van Gogh / Rembrandt / Frida Kahlo / Michelangelo /
        Claude Monet / Salvador Dalí / Andy Warhol / Paul Klee / Gustav Klimt / Banksy / Raphael / Albrecht Dürer /
        Edvard Munch / Johannes Vermeer / Henri Matisse""",
        """What did {x} paint? / What is the most famous painting by {x}? / Where can I see paintings by {x}? /
        In which style did {x} paint? / How many paintings did {x} make? / What is a painting by {x} worth? /
        Paint something like {x}. / When did {x} paint? / Which museum has works by {x}? / Who taught {x}? /
        What is the style of {x}? / Why are the paintings of {x} so expensive? / Make an image in the style of {x}. /
        Which paintings by {x} should I know? / Where did {x} paint?""",
    ),
    category(
        PERSON,
        """Albert Einstein / Isaac Newton / Marie Curie / Charles Darwin / Galileo Galilei / Nikola Tesla /
        Stephen Hawking / Aristotle / Alan Turing / Johannes Kepler / Thomas Edison / Louis Pasteur / Niels Bohr /
        Archimedes / Ada Lovelace / Sigmund Freud / Carl Friedrich Gauss / Leonhard Euler / Alexander Fleming /
        Copernicus / Gregor Mendel""",
        """What did {x} discover? / What did {x} invent? / Did {x} win a Nobel Prize? /
        What was the greatest discovery of {x}? / Which theory is {x} known for? / How did {x} change science? /
        Where did {x} study? / Which books did {x} write? / What did {x} find out? / How intelligent was {x}? /
        Was {x} right? / Explain the theories of {x}. / What were the ideas of {x}? /
        When did {x} make the great discovery? / Who helped {x}? / Which invention of {x} is the most important?""",
    ),
    category(
        THING,
        """Buddhism / Islam / Christianity / Judaism / Hinduism / the Bible / the Koran / atheism / karma / the Pope /
        Ramadan / Easter / Christmas / Diwali / the Reformation / Zen / Taoism / baptism / heaven / the Talmud /
        Hanukkah / prayer""",
        """What do people believe about {x}? / Who founded {x}? / How many people believe in {x}? / When is {x}? /
        Do you believe in {x}? / What are the rules of {x}? / How is {x} celebrated? / Is there any truth in {x}? /
        What does the church say about {x}? / When did {x} begin? / How did {x} begin? /
        In which countries is {x} common? / Is {x} true? / What are the main ideas of {x}? /
        Why do people celebrate {x}? / Who believes in {x}?""",
    ),
    category(
        THING,
        """stoicism / existentialism / free will / utilitarianism / consciousness / the meaning of life / truth /
        justice / nihilism / ethics / logic / beauty / happiness / freedom / evil / reality / time / death /
        the soul / love / the trolley problem / knowledge / Plato's cave""",
        """What did Plato say about {x}? / What did Kant think about {x}? / Does {x} exist? / Is {x} an illusion? /
        Which philosophers wrote about {x}? / How do we know that there is {x}? / Can {x} be defined? / Discuss {x}. /
        What is the philosophy of {x}? / How can I find {x}? / What did Socrates say about {x}? /
        Why do philosophers care about {x}? / Write an argument against {x}. / Can there be {x} without {y}? /
        Argue for {x}. / What did Nietzsche write about {x}? / Is {x} possible?""",
    ),
    category(
        PERSON,
        """Zeus / Thor / Odin / Hercules / Athena / Anubis / Medusa / Achilles / King Arthur / Poseidon / Loki /
        Aphrodite / Robin Hood / Merlin / Shiva / Prometheus / Icarus / Apollo / Hades / Osiris / the Minotaur /
        Pandora""",
        """What is the myth of {x}? / Was {x} a real person? / What are the powers of {x}? / Which god is {x}? /
        Is {x} a god? / Where does the legend of {x} come from? / Who was the father of {x}? / Who killed {x}? /
        What did {x} stand for? / What is the symbol of {x}? / What was the weapon of {x}? /
        Who was stronger, {x} or {y}? / Which gods fought {x}? / What happened to {x} in the end? /
        In which myths does {x} appear?""",
    ),
    category(
        THING,
        """democracy / communism / the United Nations / capitalism / the European Union / a constitution / NATO /
        socialism / the Supreme Court / fascism / an election / the Senate / human rights / immigration / a monarchy /
        Brexit / a veto / the House of Lords / a referendum / anarchism / the two-party system""",
        """What are the pros and cons of {x}? / How does {x} work in the United States? /
        Are you for or against {x}? / What is the future of {x}? / Is {x} fair? / Who is in charge of {x}? /
        Is {x} a good thing? / Who controls {x}? / Should we abolish {x}? / Which countries have {x}? /
        What do critics say about {x}? / What does the government say about {x}? / When did {x} start? /
        What would happen without {x}? / Which parties support {x}? / Why do people vote against {x}? /
        Who profits from {x}?""",
    ),
    category(
        THING,
        """inflation / the stock market / a mortgage / bitcoin / a recession / the gold standard / a bond / GDP /
        tax / supply and demand / an interest rate / a trade war / insurance / a pension / an index fund / debt /
        the euro / the dollar / globalisation / a monopoly / unemployment / a hedge fund""",
        """Should I invest in {x}? / How high is {x} right now? / What is the price of {x} today? /
        How is {x} calculated? / Should I worry about {x}? / What drives {x}? / Will {x} rise next year? /
        How can I profit from {x}? / What does {x} mean for me? / What happens to my savings because of {x}? /
        Is {x} a risk? / Can {x} be avoided? / Is it the right time for {x}? / Who decides about {x}? /
        How high was {x} last year? / How does the central bank control {x}? / What do economists say about {x}?""",
    ),
    category(
        THING,
        """Apple / Google / Microsoft / Amazon / Toyota / Tesla / Samsung / IKEA / Coca-Cola / Netflix / Nvidia /
        Siemens / Volkswagen / Disney / Intel / Nintendo / Boeing / McDonald's / Sony / Meta / Lego / Nestlé /
        OpenAI / Spotify""",
        """Who founded {x}? / Who is the CEO of {x}? / When was {x} founded? / What does {x} sell? /
        Where is the head office of {x}? / How many people work for {x}? / What is the stock price of {x}? /
        Who owns {x}? / How much money does {x} make? / Should I buy shares of {x}? / What products does {x} make? /
        How do I get a job at {x}? / Is {x} a good employer? / Which country is {x} from? / How can I contact {x}? /
        What is the phone number of {x}? / Is {x} bigger than {y}? / What is {x} worth?""",
    ),
    category(
        THING,
        """Spanish / French / Latin / Mandarin / Japanese / Arabic / Russian / Italian / Esperanto / Swahili /
        Hebrew / Greek / Portuguese / Korean / Hindi / Dutch / Icelandic / Welsh / Turkish / sign language /
        Old English / Sanskrit""",
        """How do I learn {x}? / How many people speak {x}? / Where do people speak {x}? / Count to ten in {x}. /
        How do you say hello in {x}? / How do I say thank you in {x}? / Is {x} hard to learn? /
        How many letters are there in {x}? / Teach me ten words in {x}. / Write a letter in {x}. /
        What is the word for house in {x}? / Which grammar rules does {x} have? /
        What does the alphabet of {x} look like? / Answer me in {x} from now on. / How do I ask for the bill in {x}? /
        Which course for {x} is best? / Say something in {x}. / How many cases does {x} have? /
        How do you write the word love in {x}? / Is {x} related to {y}?""",
    ),
)

TECHNOLOGY = (
    category(
        THING,
        """a computer / the internet / a fridge / a microwave / the telephone / a car engine / a satellite /
        a battery / a solar panel / radar / a television / an aeroplane / a submarine / a rocket / a camera /
        the steam engine / a printer / a 3D printer / a wind turbine / GPS / a pacemaker / a bicycle /
        a washing machine / an electric car""",
        """How do I repair {x}? / How much does {x} cost? / Which is the best model of {x}? / How do I clean {x}? /
        How much power does {x} need? / What is inside {x}? / Who built the first version of {x}? /
        When was {x} first used? / What should I look for when I buy {x}? / How fast is {x}? / How do you build {x}? /
        What did people do before {x}? / How heavy is {x}? / How long does {x} last? / What are the parts of {x}? /
        How did {x} change the world? / Can I build {x} at home? / How loud is {x}?""",
    ),
    category(
        THING,
        """a compiler / recursion / a linked list / machine learning / a neural network / blockchain / a hash table /
        encryption / a deadlock / an operating system / cloud computing / a binary tree / TCP /
        object-oriented programming / Big O / a pointer / garbage collection / a transformer / dynamic programming /
        a firewall / quicksort / a regular expression / an API gateway / a microservice / functional programming /
        DNS""",
        """How do I implement {x}? / What is {x} in computer science? / Show me an example of {x}. /
        When should I use {x}? / What are the alternatives to {x}? / Why would I use {x}? / Implement {x} in C. /
        Write {x} in Java. / Which languages support {x}? / I have an interview about {x}. Ask me questions. /
        How do I debug {x}? / What is the complexity of {x}? / What are the problems with {x}? /
        What is the best way to learn {x}? / Is {x} still used? / Give me code for {x} in C++. / Who uses {x}? /
        How is {x} implemented? / When should I avoid {x}?""",
    ),
    category(
        THING,
        """React / Kubernetes / Django / TensorFlow / PyTorch / Excel / Photoshop / Git / Linux / Windows / Android /
        Blender / WordPress / Node.js / Terraform / Jenkins / Unity / AutoCAD / Spring Boot / Angular / an iPhone /
        PowerPoint / Vim / Outlook / Jupyter / Slack / Zoom""",
        """How do I install {x}? / How do I update {x}? / {x} keeps crashing. What can I do? / What is new in {x}? /
        How do I uninstall {x}? / Is {x} free? / Which version of {x} should I use? / How do I learn {x}? /
        How do I start with {x}? / What is the best alternative to {x}? / How do I reset {x}? /
        How do I configure {x}? / Where do I find the settings in {x}? / Which is better, {x} or {y}? /
        I get an error in {x}. / Write a tutorial for {x}. / What does {x} cost? / {x} does not start. /
        What are the shortcuts in {x}? / How do I make {x} faster? / My {x} is slow.""",
    ),
    category(
        THING,
        """monopoly / poker / Minecraft / tic-tac-toe / sudoku / Tetris / bridge / backgammon / Super Mario /
        Scrabble / Pokémon / solitaire / blackjack / Zelda / hangman / Fortnite / checkers / dominoes / Pac-Man /
        rock paper scissors / twenty questions""",
        """How do you play {x}? / Play {x} with me. / What are the rules of {x}? / How do I win at {x}? /
        What is the best strategy in {x}? / Let's play {x}. / Who invented {x}? / How many players can play {x}? /
        Can we play {x}? / Give me cheats for {x}. / What is the best opening in {x}? / Is {x} for children? /
        Start a game of {x}. / How long does a game of {x} take? / I want to play {x}. / When did {x} come out? /
        Can a computer win at {x}?""",
    ),
    category(
        THING,
        """climate change / recycling / nuclear power / the ozone layer / overpopulation / air pollution /
        solar energy / deforestation / wind power / plastic waste / fracking / global warming /
        the greenhouse effect / organic farming / acid rain / fossil fuel / sea level rise / hydropower / food waste /
        carbon trading""",
        """What can I do about {x}? / How bad is {x}? / What are the effects of {x}? / Is {x} a myth? /
        How does {x} affect animals? / Who is responsible for {x}? / What is being done about {x}? /
        Is {x} getting worse? / How do we stop {x}? / Which countries have the most {x}? / How can I help with {x}? /
        What do scientists say about {x}? / Write a speech about {x}. / How much does {x} cost us? /
        What will {x} do to the climate? / Debate {x} with me. / Is it too late to do something about {x}?""",
    ),
    category(
        MANY,
        """sports cars / motorcycles / trains / helicopters / drones / electric scooters / buses / sailing boats /
        trucks / hot air balloons / tractors / lorries / cruise ships / trams / jet engines / caravans /
        fire engines / ferries / used cars / bicycles""",
        """How fast are {x}? / How do I drive {x}? / Do I need a licence for {x}? / How noisy are {x}? /
        How do {x} stop? / How much fuel do {x} use? / Who builds the best {x}? / Where can I rent {x}? /
        When were {x} invented? / What are the fastest {x} in the world? / Where are {x} made? /
        Where do I park {x}? / Which {x} should I buy? / How safe are {x}? / How do I repair {x}? /
        Are there electric {x}? / How many {x} are sold every year?""",
    ),
)

WORLD = HISTORY_AND_PLACES + SCIENCE + CULTURE + TECHNOLOGY
