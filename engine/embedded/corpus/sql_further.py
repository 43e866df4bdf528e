"""Wordings of questions about tables beside those of `sql_words`, for training alone."""

from __future__ import annotations

from engine.embedded.corpus.manner import items

CLAUSES = {
    "=": items("""
        {c} is set to {v} / {c} matches {v} / {c} reads {v} / {c} happens to be {v} / {c} was given as {v} /
        {c} is the same as {v} / {c} agrees with {v} / {c} is just {v}
    """),
    "<>": items("""
        {c} is other than {v} / {c} differs from {v} / {c} isn't {v} / {c} is unlike {v} / {c} is not the same as {v}
    """),
    ">": items("""
        {c} is in excess of {v} / {c} is beyond {v} / {c} tops {v} / {c} goes over {v} / {c} lies above {v} /
        {c} surpasses {v}
    """),
    "<": items("""
        {c} falls short of {v} / {c} stays under {v} / {c} lies below {v} / {c} is short of {v} / {c} remains below {v}
    """),
    ">=": items("""
        {c} is a minimum of {v} / {c} reaches {v} / {c} is {v} and up / {c} is not under {v} / {c} is not below {v} /
        {c} is {v} at the least
    """),
    "<=": items("""
        {c} is a maximum of {v} / {c} is up to {v} / {c} is not over {v} / {c} is not above {v} / {c} is {v} at the most
    """),
    "after": items("""
        {c} follows {v} / {c} dates from after {v} / {c} falls after {v} / {c} is more recent than {v} /
        {c} is newer than {v}
    """),
    "before": items("""
        {c} precedes {v} / {c} is prior to {v} / {c} dates from before {v} / {c} falls before {v} /
        {c} is less recent than {v}
    """),
    "between": items("""
        {c} falls between {v} and {w} / {c} is within {v} and {w} / {c} goes from {v} to {w} / {c} is {v} to {w} /
        {c} is no less than {v} and no more than {w}
    """),
    "prefix": items("""
        {c} opens with {v} / {c} has {v} in front / {c} starts off with {v} / {c} is beginning with {v} /
        {c} has {v} as its start
    """),
    "suffix": items("""
        {c} finishes with {v} / {c} closes with {v} / {c} has {v} as its end / {c} finishes in {v} / {c} stops with {v}
    """),
    "contains": items("""
        {c} has {v} inside / {c} holds {v} / {c} shows {v} anywhere / {c} has {v} within it / {c} is containing {v}
    """),
}

NOUNS = {
    "=": items("""
        {c} set to {v} / {v} for {c} / {c} being {v} / {c} reading {v} / {v} as the {c} / {v} for the {c} /
        {c} given as {v} / a {c} of {v}
    """),
    ">": items("""
        {c} exceeding {v} / {c} in excess of {v} / {c} beyond {v} / over {v} {c} / a {c} above {v} / {c} past {v}
    """),
    "<": items("""
        {c} short of {v} / under {v} {c} / a {c} below {v} / a {c} under {v} / fewer than {v} {c}
    """),
    ">=": items("""
        a minimum {c} of {v} / {c} starting at {v} / {c} of {v} and up / {c} no less than {v} / a {c} of at least {v}
    """),
    "<=": items("""
        a maximum {c} of {v} / {c} up to {v} / {c} no more than {v} / {c} of {v} at the most / a {c} of at most {v}
    """),
}

ASCENDING = items("""
    arranged by {c} / by rising {c} / by increasing {c} / smallest {c} first / starting with the lowest {c} /
    with the lowest {c} at the top / the lowest {c} first / from the lowest to the highest {c} / put in order by {c} /
    ranked from low to high by {c}
""")
DESCENDING = items("""
    by falling {c} / by decreasing {c} / largest {c} first / starting with the highest {c} /
    with the highest {c} at the top / the highest {c} first / from the highest to the lowest {c} /
    arranged by {c} from high to low / ranked from high to low by {c} / sorted by {c}, largest first
""")

ALL = items("""
    Let me see all {t}{where}{order}. / Print all {t}{where}{order}. / Give me the full list of {t}{where}{order}. /
    I would like to have all {t}{where}{order}. / Query all {t}{where}{order}. / Pull all rows of {t}{where}{order}. /
    Look up all {t}{where}{order}. / Which rows of {t} are there{where}{order}? / Output all {t}{where}{order}. /
    Could you list all {t}{where}{order}? / Every row in {t}{where}{order}. / Read all of {t}{where}{order}. /
    Retrieve all {t}{where}{order}. / Provide every record of {t}{where}{order}.
""")

LIST = items("""
    Let me see the {cols} of the {t}{where}{order}. / Give me a list of the {cols} of all {t}{where}{order}. /
    I would like the {cols} of every row in {t}{where}{order}. / Print the {cols} of all {t}{where}{order}. /
    Pull the {cols} from {t}{where}{order}. / Output {cols} for each of the {t}{where}{order}. /
    Could you list the {cols} of the {t}{where}{order}? / Provide the {cols} of all {t}{where}{order}. /
    Look up the {cols} of all {t}{where}{order}. / Please give the {cols} of each row in {t}{where}{order}. /
    Retrieve the {cols} of all {t}{where}{order}. / Query the {cols} of {t}{where}{order}. /
    I am interested in the {cols} of the {t}{where}{order}. / Just the {cols} of all {t}{where}{order}. /
    Of all the {t}, show the {cols}{where}{order}. / Let me have {cols} for the {t}{where}{order}. /
    Read {cols} from {t}{where}{order}. / Show what the {cols} of all {t} are{where}{order}.
""")

COUNT = items("""
    Tell me how many {t} there are{where}. / Show how many {t} there are{where}. / How many {t} can you find{where}? /
    How large is the number of {t}{where}? / Give the total number of {t}{where}. / How many entries of {t}{where}? /
    How many records are in {t}{where}? / Count up the {t}{where}. / Return the number of rows in {t}{where}. /
    The number of {t}{where}, please. / Please count the {t}{where}. / What number of {t} do we have{where}?
""")

COUNT_DISTINCT = items("""
    Count the unique {c} values of {t}{where}. / Tell me how many different {c} values {t} has{where}. /
    How many {c} values are there in {t} without duplicates{where}? / Give me the number of different {c} values of
    {t}{where}. / How many kinds of {c} do the {t} have{where}? / Find the count of distinct {c} in {t}{where}.
""")

AGGREGATE = items("""
    Let me know the {f} of the {t}{where}. / Work out the {f} of all {t}{where}. / What would be the {f} of
    {t}{where}? / Determine the {f} of the {t}{where}. / Look up the {f} in {t}{where}. / How large is the {f} of all
    {t}{where}? / The {f} of the {t}{where}, please. / Of all {t}, what is the {f}{where}? / Give the {f} for
    {t}{where}. / Can you find the {f} of all {t}{where}?
""")

GROUP = items("""
    Per {g}, give the {f} of {t}{where}. / By {g}, what is the {f} of {t}{where}? / Grouped by {g}, show the {f} of
    {t}{where}. / Give the {f} of {t} within each {g}{where}. / Tell me the {f} of {t} for every {g}{where}. /
    Break down the {f} of {t} by {g}{where}. / For every {g} give me the {f} of {t}{where}. / List each {g} with the
    {f} of its {t}{where}. / Compute the {f} of {t} within each {g}{where}. / Each {g} with its {f} of {t}{where}. /
    By {g}, list the {f} of the {t}{where}. / What {f} of {t} does each {g} have{where}? / Split by {g}, what is the
    {f} of {t}{where}? / Work out the {f} of {t} for each {g}{where}.
""")

GROUP_COUNT = items("""
    Show how many {t} there are in each {g}{where}. / Give me the {t} count by {g}{where}. / Break down the number of
    {t} by {g}{where}. / For each {g}, give the count of {t}{where}. / Per {g} list how many {t} there are{where}. /
    Per {g} give the number of {t}{where}. / By {g}, count the {t}{where}. / Tell me for each {g} how many {t} there
    are{where}. / Grouped by {g}, how many {t} are there{where}? / Count the {t} within each {g}{where}. / How often
    does each {g} occur in {t}{where}? / List every {g} with its count of {t}{where}. / Each {g} with its number of
    {t}{where}. / For every {g} list the {t} count{where}. / Split the {t} by {g} and count each{where}. / Work out
    the number of {t} in every {g}{where}. / How many {t} does each {g} have{where}?
""")

DISTINCT = items("""
    Tell me the different {c} values of {t}{where}. / Which unique {c} values do the {t} have{where}? / Each different
    {c} of {t}{where}. / Give me every {c} of {t} once{where}. / Print the distinct {c} of {t}{where}. / What different
    {c} values can be found in {t}{where}? / List every different {c} in {t}{where}. / Show the {c} of {t} with no
    duplicates{where}. / All distinct {c} values in {t}{where}. / Return the unique {c} of all {t}{where}.
""")

RANKED = items("""
    Sort by {c} and give {head}the {top} {n} {t}{where}. / By {c}, what are {head}the {top} {n} {t}{where}? /
    Ranked by {c}, show {head}the {top} {n} {t}{where}. / Show {head}the {top} {n} {t} in terms of {c}{where}. /
    List {head}the {top} {n} {t} (according to|judged by|measured by|when ranked by|going by) {c}{where}. /
    Get {head}the {top} {n} {t} for {c}{where}. / Find {head}the {top} {n} {t} (ordered|sorted) by {c}{where}. /
    Show {head}the {n} {t} whose {c} is {most}{where}. / Which are {head}the {top} {n} {t} by {c}{where}? /
    Can you give me {head}the {n} {t} with the {most} {c}{where}? / Tell me {head}the {top} {n} {t} on {c}{where}. /
    Show {head}the {n} {most} {t} by {c}{where}. / What are {head}the {n} {most} {t} (by|in terms of) {c}{where}? /
    With respect to {c}, list {head}the {top} {n} {t}{where}. / Find {head}those {n} {t} with the {most} {c}{where}. /
    Let me see {head}the {top} {n} {t} with regard to {c}{where}. / Return {head}the {top} {n} {t} as to {c}{where}. /
    Display {head}the {n} {t} of {most} {c}{where}. / Look up {head}the {n} {t} which have the {most} {c}{where}. /
    As far as {c} is concerned, show {head}the {top} {n} {t}{where}. / {head}the {top} {n} {t} by {c}{where} /
    Please list {head}the {top} {n} {t} ranked by their {c}{where}. / Get me {head}the {n} {t} (ranking {top} in|at the
    {top} for) {c}{where}. / Pick {head}the {n} {t} {most} in
    {c}{where}. / I want to know {head}the {n} {t} that are {most} in {c}{where}.
""")

FIRST = items("""
    Give me {head}{n} rows of {t}{where}. / I need {head}only the first {n} {t}{where}. / Return {head}the first {n}
    records of {t}{where}. / Show {head}no more than {n} {t}{where}. / What are {head}the first {n} {t}{where}? / Find
    {head}{n} of the {t}{where}. / Fetch {head}up to {n} {t}{where}. / Select {head}the first {n} entries of
    {t}{where}. / Print {head}just {n} {t}{where}. / Let me see {head}any {n} {t}{where}.
""")

JOIN = items("""
    Let me see {cols}{where}{order}. / Look up {cols}{where}{order}. / Print {cols} side by side{where}{order}. / Bring
    {a} and {b} together and list {cols}{where}{order}. / With {a} joined to {b}, show {cols}{where}{order}. / Give me
    {cols} for every one of the {a}{where}{order}. / Use {a} and {b} to show {cols}{where}{order}. / Retrieve {cols}
    from both tables{where}{order}. / Tell me {cols} of each row of {a}{where}{order}. / From {a} and {b} get
    {cols}{where}{order}.
""")
