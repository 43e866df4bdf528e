"""Words and sentences that fill the near misses of `notice_nearby`."""

from __future__ import annotations

from engine.embedded.corpus.manner import items

LANGUAGES = items(
    """French / Spanish / Italian / Japanese / Chinese / Russian / Polish / Dutch / Portuguese / Turkish / Arabic /
    Latin / Swedish / Greek / Korean / Hindi / Danish / Czech / Finnish / Norwegian / Hungarian / Ukrainian /
    Romanian / Hebrew / Irish / Esperanto / Vietnamese / Thai / Croatian / Welsh"""
)

SUBJECTS = items(
    """The old man / My sister / Our neighbour / A small dog / The teacher / The doctor / A young woman / My brother /
    The cat / The children / Her father / His mother / The king / A farmer / The baker / My friend / The captain /
    A little girl / The boy / The new student / My uncle / An old lady / The postman / A tall man / The nurse /
    The driver / The painter / A stranger / The waiter / My grandmother / The thief / The singer / Their son /
    Our cook / The tired horse / The black bird / A fox / The big bear / The white rabbit / The manager / A customer /
    The whole family"""
)

PREDICATES = items(
    """lost the key in the park / went home early / bought a red car / found an old coin / ate the whole cake /
    slept in the garden / walked to the river / came back on Monday / opened the green door / saw a ship on the sea /
    wanted a cup of tea / broke the window / forgot the umbrella / sold the house / cleaned the kitchen /
    drank cold water / painted a tree / waited for the bus / called at noon / lived near the station /
    made soup for dinner / read a long letter / played with the ball / ran through the forest / looked for a job /
    helped a friend / paid the bill / travelled to the sea / closed the shop at six / brought flowers /
    told nobody about it / learned to swim / sat under the bridge / took the last train / laughed very loud /
    worked until midnight / met a doctor / wrote three pages / moved to a small town / missed the train /
    had two brown dogs / gave away the money / saw the moon / cooked rice and fish / rode a bicycle to work /
    was very happy / sent a parcel to the office / asked for the way / stayed in bed / liked the new school /
    carried a heavy bag / built a house of stone / kept the secret / left without a word /
    found the book on the table / fell into the water / won the first prize / needed a new coat / grew tomatoes /
    told the truth / heard a strange noise / visited a museum / did not know the answer / never came back /
    went to bed late / wore a blue hat"""
)

GERMAN_SUBJECTS = items(
    """Der Hund / Die Katze / Das Kind / Der Mann / Die Frau / Mein Bruder / Meine Schwester / Der Lehrer /
    Die Ärztin / Der Junge / Das Mädchen / Unser Nachbar / Der Vogel / Ein Freund / Meine Mutter / Der König /
    Die Großmutter / Der Bäcker / Die Lehrerin / Mein Vater / Das Pferd / Der kleine Bär / Die alte Frau /
    Der junge Mann / Ihr Sohn / Seine Tochter"""
)

GERMAN_VERBS = items(
    """schläft im Garten / trinkt Wasser / isst einen Apfel / liest ein Buch / geht nach Hause / kommt morgen /
    hat einen roten Ball / wohnt in Berlin / arbeitet heute nicht / spielt im Park / sucht den Schlüssel /
    ist sehr müde / kauft ein Auto / findet eine Münze / schreibt einen Brief / kocht die Suppe / wartet auf den Bus /
    singt ein Lied / läuft zum Fluss / sieht den Mond / öffnet die Tür / ist nicht hier / hat keine Zeit /
    liebt die Musik / bringt das Brot / fährt mit dem Zug / lacht sehr laut / mag keinen Kaffee / möchte schlafen /
    lernt Englisch"""
)

PROGRAMMING_LANGUAGES = items(
    """Java / JavaScript / C / C++ / Rust / Go / Ruby / PHP / Haskell / Kotlin / Swift / R / Perl / TypeScript /
    Bash / Scala / Lua / C# / COBOL / Fortran / Lisp / Julia / Prolog / Assembly / MATLAB / Visual Basic / Erlang /
    Pascal"""
)

TASKS = items(
    """adds two numbers / reverses a string / returns the largest number of a list / counts the vowels in a word /
    checks whether a number is even / sorts a list / multiplies all numbers of a list / removes spaces from a text /
    counts the words in a text / returns the sum of a list / doubles a number / finds the longest word /
    checks for a palindrome / computes the factorial / prints hello world / returns the first element of a list /
    joins two lists / removes duplicates / computes the average / converts text to upper case /
    returns the length of a string / checks whether a number is prime / finds the smallest number /
    counts from one to ten / subtracts two numbers / squares every number / returns the last letter of a word /
    checks whether a list is empty / prints the Fibonacci numbers / swaps two values / filters the odd numbers /
    repeats a word three times"""
)

PROGRAMS = items(
    """scrapes a website / sends an email every day / downloads all images of a page / plays chess /
    tracks my expenses / recognises faces / controls my lights / translates speech / reads a PDF / records my screen /
    trains a neural network / talks to a database / shows the weather / resizes images / serves a web page /
    plays music / draws a chart / books tickets / reads my emails / checks stock prices / plays tic-tac-toe /
    edits videos / posts on Twitter / backs up my files / renames all my photos / finds cheap flights /
    counts calories / plots data from a CSV file / runs in the browser / connects to Bluetooth / trades shares /
    reminds me to drink / parses log files / blocks advertisements / monitors a server"""
)

ERRORS = items(
    """a segmentation fault / "too many open files" / a NullPointerException / "undefined is not a function" /
    "index out of range" / a stack overflow / "permission denied" / "connection refused" / a KeyError /
    "module not found" / "CUDA out of memory" / a syntax error / "cannot read property of undefined" /
    "command not found" / a memory leak / a deadlock / a type error / error 404 / "no such file or directory" /
    an infinite loop / "invalid syntax" / a race condition / exit code 137 / a 500 error / "unexpected token" /
    an import error / "access denied" / a blue screen / "division by zero" / a merge conflict /
    "certificate has expired" / a timeout / "broken pipe" / "disk full" / an indentation error"""
)

SQL_TOPICS = items(
    """a JOIN / an INNER JOIN / a LEFT JOIN / GROUP BY / HAVING / an index / a primary key / a foreign key /
    a transaction / a view / a stored procedure / a trigger / normalisation / UNION / a subquery / a window function /
    DISTINCT / an OUTER JOIN / a cursor / a CROSS JOIN / ACID / a database schema / a query plan /
    a deadlock in a database / a materialized view / UNION ALL / TRUNCATE"""
)

TABLES = items(
    """orders / users / products / employees / books / songs / students / cars / flights / rooms / tickets / movies /
    recipes / invoices / animals / cities / players / devices / events / machines / patients / courses / sensors /
    shops / letters"""
)

COLUMNS = items(
    """id / name / price / date / status / city / age / title / amount / email / country / year / weight / colour /
    rating / stock / phone / category / score / speed / owner / length / start / grade / height / salary / author /
    room / day / total"""
)

WORKS = items(
    """the French Revolution / the Bible / my last email / the news of today / the book I am reading / chapter three /
    the Odyssey / the latest Star Wars film / the history of Rome / our last meeting / Macbeth /
    the Second World War / the attached file / the life of Mozart / the rules of cricket / my document /
    the paper on transformers / War and Peace / today's newspaper / the constitution / this link / the report /
    the first Harry Potter book / the meeting notes / the theory of evolution / the plot of Titanic /
    yesterday's match / the president's speech / the article on my screen / the Cold War / Don Quixote /
    the film Casablanca / this video / the Middle Ages / my homework / the plot of Faust / the PDF / the user manual /
    Moby Dick / the novel Dracula / the latest news / the third chapter of my book / the website / Animal Farm /
    the story of Odysseus / the story of Romeo and Juliet / the last episode / the discussion on Brexit /
    the poem The Raven / the Ten Commandments"""
)

FIELDS = items(
    """name / date / city / price / age / colour / place / person / time / number / subject / verb / object / event"""
)

FORMATS = items(
    """XML / YAML / CSV / a table / a Markdown table / HTML / TOML / an Excel sheet / LaTeX / a bar chart /
    a list of bullet points / an INI file / a mind map / Morse code / a timeline / a tree diagram"""
)

CITIES = items(
    """Paris / London / Berlin / Rome / New York / Tokyo / Madrid / Vienna / Hamburg / Lisbon / Oslo / Cairo /
    Sydney / Boston / Munich / Dublin / Zurich / Helsinki / Seattle / Lima / Delhi / Seoul / Bangkok / Miami /
    Naples / Leeds / Lyon / Denver"""
)

FORMS = items(
    """poem / haiku / song / limerick / joke / riddle / sonnet / rap / speech / letter / blog post / tweet /
    dialogue / rhyme / press release / review / screenplay / proverb / newspaper article / love letter / lecture /
    quiz / ballad / slogan / diary entry / sermon / report / film script / podcast / crossword"""
)

THEMES = items(
    """a small bear / the sea / autumn / my cat / love / the moon / a brave knight / winter / coffee / a lost key /
    friendship / rain / a dragon / my grandmother / the city at night / a robot / Monday mornings / a little bird /
    the stars / summer / a lonely whale / chocolate / football / a clever fox / spring / old age / a dog and a cat /
    the forest / freedom / a train / a rabbit / school / a mouse / my boss / the wind / a princess / a pirate /
    peace / a tiny house / the mountains / snow / computers / an owl / a farmer / hope / a ship / time / a cow /
    music / a king"""
)

SOFTWARE = items(
    """nginx / PostgreSQL / Docker / vLLM / Ollama / Redis / MySQL / llama.cpp / Apache / MongoDB / Jupyter /
    Elasticsearch / SSH / Grafana / RabbitMQ / Flask / Kafka / Tomcat / Minecraft / GitLab / PyTorch / LM Studio /
    TensorRT / Triton / SGLang / Nextcloud / Home Assistant / FFmpeg / Postfix / Memcached / Cassandra / Plex /
    OpenVPN / Samba / Firefox / Chrome / WhatsApp / Skype / Teams / Steam / LangChain / transformers / Ubuntu /
    Debian"""
)
