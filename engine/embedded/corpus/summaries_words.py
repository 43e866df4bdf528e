"""The kinds of texts that are summarised: the wordings of their facts, the form of their summary, and filler.

In `Kind.facts` a blank line parts one fact from the next, and every line of a fact is one wording of it.
"""

from __future__ import annotations

from dataclasses import dataclass

NEUTRAL = """
That is all for now.
More (on this|about it) will follow (soon|later).
Thank you for reading.
A few small things may still change.
Many people have asked (about it|for it|about this).
Everything else stays as it is.
{other} wrote this text.
There is nothing else to report.
Last year (it|everything) was (quite |very |)different.
{other} (checked|has checked|read) everything once more.
You can find more on page {n}.
Some will be pleased, others (less so|not so much).
If in doubt, ask {other}.
It is hard to say more at (this point|the moment).
No other changes are planned.
It was {n} weeks ago that we first heard of it.
Please pass this on.
(Nobody|No one) was surprised.
{other} asked us to write this down.
"""

WORK = """
Nobody had (any |)further questions.
The coffee machine is (still|again) waiting for a repair.
Thanks to everyone who helped(| this week).
More details (are|can be found) in the shared folder.
The mood was (good|calm|friendly) on the whole.
As always, comments are welcome.
{other} was on holiday and sends (best wishes|greetings).
A (longer|full) report will follow (later|soon).
It was a (busy|quiet|long) week for all of us.
The old files stay where they are for now.
{other} took the notes.
Some smaller points were left for another time.
A few people (joined|listened in) by phone.
Everything else is going (well|as planned).
Nothing else has changed since last time.
There are {n} (open|other) tickets on the board, none of them urgent.
The printer on floor {n} works again.
We will keep you (informed|up to date).
"""

PUBLIC = """
Many people have asked about this (lately|in the last weeks).
The (car park|parking area) behind the building is free.
{other}, who lives nearby, was (pleased|happy) to hear it.
Bus {n} stops right in front of the door.
Dogs are (welcome|allowed) on a lead.
The small cafe next door is open as usual.
Children are (very |)welcome.
There was no comment from the neighbours.
It is not the first time that (such a thing has|this has) happened.
The local radio will have more (on this|about it) (tonight|tomorrow).
Old photos can be seen in the entrance hall.
A few volunteers are still needed.
{other} said that it was about time.
Everyone is (in good spirits|looking forward to it).
We (thank|are grateful to) all who helped.
It had been quiet for {n} weeks before that.
Some had hoped for a little more.
Flowers were handed out at the end.
"""

PRIVATE = """
The (sky|morning) was grey at first.
I (slept|had slept) very well.
My shoes are (still|finally) (wet|dry).
We laughed a lot(| on the way).
It was a little colder than (we thought|last year).
I took {n} photos and kept only a few.
{other} sent me a (kind|long|funny) message.
A cat followed us for a while.
We had (far |)too many bags with us.
The radio played old songs all day.
I must not forget to write to {other}.
A good cup of tea made up for everything.
The neighbour's dog barked all morning.
Nobody was in a hurry.
It is always nice to get out of the house.
"""


@dataclass(frozen=True)
class Kind:
    """A kind of text.

    nouns    what a request may call it; titles  headings that it may have.
    facts    wordings of its facts; answer  the summary that holds them all; fillers  sentences that do not matter.
    common   further fillers, shared with other kinds.
    """

    name: str
    nouns: tuple[str, ...]
    titles: tuple[str, ...]
    facts: str
    answer: str
    fillers: str
    common: str


KINDS = (
    Kind(
        "meeting",
        ("these meeting notes", "these notes", "these minutes", "the meeting"),
        ("Meeting notes", "Minutes", "Notes from the meeting"),
        """
The {team} team met on {day} in {room}.
On {day} the {team} team (met|sat down|came together) in {room}.
These are the notes of the {team} team's meeting on {day}, held in {room}.
The (weekly |regular |monthly |)meeting of the {team} team was held on {day} in {room}.
We held the {team} team meeting in {room} on {day}.
The meeting of the {team} team took place in {room} on {day}.
Everyone in the {team} team gathered in {room} on {day}.
Last {day} in {room}, the {team} team met.

The team decided to {decision}.
It was decided to {decision}.
(After a short|After some|After a long) discussion, the decision was to {decision}.
All agreed to {decision}.
The main result is the decision to {decision}.
There was a vote, and the team will {decision}.
Everybody was in favour, so we are going to {decision}.
The most important point: we agreed to {decision}.

{person} (will lead|leads|is going to lead) {task}.
It was agreed that {person} leads {task}.
The team chose {person} to lead {task}.
{person} was asked to lead {task} and agreed.
From now on {task} is led by {person}.
The lead for {task} goes to {person}.
{person} has taken over {task} and will lead it.
As for {task}, {person} will be in the lead.

The next meeting is on {date}.
We meet again on {date}.
The team will meet again on {date}.
The next meeting will (be held|take place) on {date}.
The date of the next meeting is {date}.
Please note {date} for the next meeting.
Until the next meeting on {date}, the plan stays as it is.
Everyone should keep {date} free for the next meeting.
""",
        "The {team} team met on {day} in {room} and decided to {decision}; {person} leads {task}, and the next meeting"
        " is on {date}.",
        """
{other} (could not come|was ill|arrived late).
The notes of the last meeting were accepted(| without changes).
{other} showed some slides about last month.
There was cake, because it was {other}'s birthday.
The room was a bit (cold|warm|small).
The meeting took a little less than {n} minutes.
{other} asked about the summer party.
The projector needed some time to start.
A question about holidays was put off.
The budget was mentioned only briefly.
""",
        WORK,
    ),
    Kind(
        "incident",
        ("this incident report", "this report", "the incident"),
        ("Incident report", "Report", "What happened"),
        """
The {machine} in {place} {failed} at {clock} on {day}.
At {clock} on {day}, the {machine} in {place} {failed}.
On {day} at {clock} the {machine} in {place} {failed}.
It was {clock} on {day} when the {machine} in {place} {failed}.
The {machine}, which stands in {place}, {failed} on {day} at {clock}.
We report that the {machine} in {place} {failed} on {day} at {clock}.
An alarm came in at {clock} on {day}: the {machine} in {place} {failed}.
The {machine} {failed} in {place}; this was on {day} at {clock}.

The cause was {cause}.
The reason for this was {cause}.
A first check found {cause}.
It turned out that the cause was {cause}.
(All of this|The trouble|The failure) was caused by {cause}.
We found {cause} to be the cause.
The experts blame {cause}.
As far as we know, {cause} led to the failure.

{person} repaired it after {minutes}.
After {minutes}, {person} had it repaired.
{person} had it working again after {minutes}.
It took {minutes} until {person} had repaired it.
Thanks to {person}, it was running again after {minutes}.
The repair was done by {person} and took {minutes}.
{person} came at once and needed {minutes} for the repair.
It was out for {minutes}, then {person} had fixed it.

{customers} were affected.
In all, {customers} were affected.
(About|Some|Around) {customers} felt the effects.
The failure affected {customers}.
The number of people affected is known: {customers}.
This was a problem for {customers}.
We had to say sorry to {customers}.
It left {customers} without service.
""",
        "The {machine} in {place} {failed} at {clock} on {day} because of {cause}; {person} repaired it after"
        " {minutes}, and {customers} were affected.",
        """
Nobody was hurt.
The fire service was not needed.
{other} was the first to notice it.
The backup worked as it should.
A similar thing happened {n} months ago.
The insurance has been told.
New parts have been ordered, just in case.
The log files have been saved.
{other} wrote down everything on a sheet of paper.
The night shift did a good job.
The alarm bell was very loud.
The door had been locked all night.
""",
        WORK,
    ),
    Kind(
        "news",
        ("this news item", "this article", "this news story", "the news"),
        ("Local news", "News from the town", "In brief"),
        """
{town} (gets|is getting|will get) {building} in {street}.
The town of {town} (gets|is getting|will get) {building} in {street}.
In {street}, the town of {town} is building {building}.
The council of {town} has decided to build {building} in {street}.
There will be {building} in {street}, the council of {town} has decided.
The people of {town} can look forward to {building} in {street}.
Workers in {town} have begun to build {building} in {street}.
It is settled now: {town} gets {building}, and it will stand in {street}.

It will cost {cost}.
The cost is (put at|set at) {cost}.
The town pays {cost} for it.
The whole project costs {cost}.
With {cost}, it is not cheap.
The price for the whole project is {cost}.
A sum of {cost} has been set aside for it.
The bill comes to {cost}.

Mayor {person} will open it on {date}.
On {date} it will be opened by mayor {person}.
The opening is on {date}, says mayor {person}.
It opens on {date}, mayor {person} said.
According to mayor {person}, the doors open on {date}.
Mayor {person} has named {date} as the day of the opening.
"We open on {date}," said {person}, the mayor.
{person}, the mayor, promised that it will open on {date}.
""",
        "{town} gets {building} in {street} for {cost}; mayor {person} opens it on {date}.",
        """
The old building there was pulled down {n} years ago.
The plans can be seen in the town hall.
Some neighbours fear the noise.
{other} from the school called it good news.
Trees will be planted (around it|along the road).
The town had talked about it for years.
A few parking spaces will be lost.
The vote in the council was close.
The architect comes from the region.
{other} would have liked a bigger one.
Traffic will be led around the site for a while.
There were {n} other ideas on the table.
""",
        PUBLIC,
    ),
    Kind(
        "weather",
        ("this weather report", "this forecast", "the weather report"),
        ("Weather", "The weather", "Forecast"),
        """
{day} brings {sky} to {town}.
On {day} there will be {sky} in {town}.
In {town}, {day} will be a day of {sky}.
{town} (gets|is going to get|can expect) {sky} on {day}.
Expect {sky} in {town} on {day}.
The forecast for {town} on {day} is {sky}.
People in {town} will see {sky} on {day}.
For {day} the weather service announces {sky} in {town}.

The temperature (reaches|rises to|will be) {degrees}.
Temperatures reach {degrees} (at most|in the afternoon|by noon).
It will be {degrees} (at most|in the afternoon|by noon).
The highest temperature is {degrees}.
The thermometer shows {degrees}.
(At noon|In the afternoon) we will have {degrees}.
Highs are around {degrees}.
It warms up to {degrees}, not more.

There will be {wind}.
Expect {wind}(| all day).
Add to this {wind}.
With it comes {wind}.
We will also have {wind}.
It comes with {wind}.
Cyclists should be ready for {wind}.
All day long there is {wind}.

{outlook} is expected on {day2}.
On {day2} we can expect {outlook}.
There will be {outlook} on {day2}.
By {day2} we will have {outlook} again.
It gets better after that, with {outlook} on {day2}.
Look forward to {outlook} on {day2}.
The good news is {outlook} on {day2}.
Only {day2} will bring {outlook}.
""",
        "{town} gets {sky} on {day} with {degrees} and {wind}; {outlook} is expected on {day2}.",
        """
Take (an umbrella|a warm jacket) with you.
The roads may be slippery in places.
Farmers will be (pleased|glad).
The nights stay (cool|mild|clear).
The sun rises at {hour}.
This is normal for the season.
It was {n} years ago that we had such a month.
Boats should stay in the harbour.
At night the stars may be seen.
The river is a little higher than usual.
Gardens need no extra water.
{other} from the weather station is not worried.
The hills may look different.
""",
        NEUTRAL,
    ),
    Kind(
        "product",
        ("this announcement", "this product announcement", "this press release"),
        ("Press release", "New product", "Announcement"),
        """
{company} presents {product}.
{company} has (announced|shown|presented) {product}.
Today {company} (announced|presents) {product}.
The (company|firm|maker) {company} presents {product}.
There is news from {company}, which has announced {product}.
With pride, {company} announces {product}.
At the trade fair {company} showed {product}.
The newest idea of {company} is {product}.

It {feature}.
The new model {feature}.
What makes it special is that it {feature}.
Best of all, it {feature}.
Buyers will like that it {feature}.
Unlike older models, it {feature}.
Tests have shown that it {feature}.
The makers promise that it {feature}.

It costs {euros}.
The price is {euros}.
It sells for {euros}.
Buyers pay {euros} for it.
For {euros} it can be yours.
The price has been set at {euros}.
It comes at a price of {euros}.
Shops will ask {euros} for it.

It is on sale from {date}.
Sales (begin|start) on {date}.
It can be bought from {date}.
It will be in the shops from {date}.
The first ones will be sold on {date}.
From {date} it will be on sale.
Shops will have it on {date}.
The sale opens on {date}.
""",
        "{company} presents {product} that {feature}; it costs {euros} and is on sale from {date}.",
        """
It comes in {n} colours.
A bag is part of the package.
The design is by {other}.
The manual is short and clear.
The box is made of paper only.
Spare parts will be sold for ten years.
It is not the first product of its sort.
The team worked on it for {n} months.
{other}, who tried it, was impressed.
There is a guarantee of {n} years.
Old models will be taken back.
Orders can be placed by phone too.
""",
        NEUTRAL,
    ),
    Kind(
        "travel",
        ("this travel diary", "this diary entry", "this diary page", "this travel note"),
        ("Travel diary", "Dear diary,", "On the road"),
        """
On {day} we (reached|arrived in|came to) {town} {transport}.
We (reached|arrived in|came to) {town} {transport} on {day}.
It was {day} when we (reached|came to) {town} {transport}.
We travelled {transport} and reached {town} on {day}.
We went to {town} {transport} and arrived on {day}.
After a long trip {transport}, we came to {town} on {day}.
{town} at last: we got here {transport} on {day}.
On {day}, {transport}, we finally arrived in {town}.

We saw {sight} with {person}.
With {person} we (saw|visited|went to) {sight}.
{person} showed us {sight}.
Together with {person}, we went to see {sight}.
Our friend {person} took us to {sight}.
{person} came along when we visited {sight}.
In the afternoon {person} and I saw {sight}.
I will not forget {sight}, which {person} showed us.

We ate {food}.
For dinner we (had|ate) {food}.
The best meal was {food}.
In a small place by the road we ate {food}.
We tried {food} and loved it.
I had {food} for the first time.
Everyone here eats {food}, and so did we.
There was {food} to eat.

We stay (here |)for {nights}.
We are staying for {nights}.
We will be here for {nights}.
We have booked a room for {nights}.
Our hotel is paid for {nights}.
The plan is to stay for {nights}.
We have {nights} here.
The room is ours for {nights}.
""",
        "The writer came to {town} {transport} on {day}, saw {sight} with {person}, ate {food} and stays for {nights}.",
        """
The streets are narrow and full of flowers.
People are very friendly here.
The hotel has {n} floors and no lift.
Somebody played the accordion until late.
I bought {n} postcards.
The sea was calm and green.
The bed is hard, but clean.
A boy sold us a map.
It smells of bread everywhere.
The bells ring every hour.
I learned a few words of the language.
Tomorrow I want to sleep late.
""",
        PRIVATE,
    ),
    Kind(
        "project",
        ("this status report", "this project status", "this update", "this project update"),
        ("Project status", "Status report", "Weekly update"),
        """
{project} is {percent} (done|complete|finished).
So far, {project} is {percent} (done|complete|finished).
The work on {project} is {percent} complete.
We can report that {project} is now {percent} done.
As of this week, {percent} of {project} is done.
We have finished {percent} of {project}.
The status of {project}: {percent} complete.
With {percent} done, {project} is moving on.

The main problem is {problem}.
Our main problem is (still |now |){problem}.
What worries us most is {problem}.
The biggest problem at the moment is {problem}.
We are held up by {problem}.
There is one big problem, {problem}.
The work suffers from {problem}.
It would go faster if it were not for {problem}.

{person} is in charge.
{person} is (now |)in charge of the work.
The work is in the hands of {person}.
The person in charge is {person}.
{person} (runs|leads) the work.
Questions go to {person}, who is in charge.
We have put {person} in charge.
All of it is led by {person}.

The work ends on {date}.
The work is to be finished on {date}.
We (plan|want) to finish on {date}.
The planned end of the work is {date}.
Our deadline is {date}.
Everything has to be ready on {date}.
The customer expects the result on {date}.
The end date is {date}.
""",
        "{project} is {percent} done; the main problem is {problem}, {person} is in charge, and the work ends on"
        " {date}.",
        """
Two tests failed and were repeated.
The customer has seen a first version.
{other} has joined the team.
The plan was updated {n} days ago.
We found and fixed {n} bugs.
The budget is under control.
Training for new users has begun.
{other} wrote most of the manual.
The new office is a great help.
The risks are listed on page {n}.
Feedback has been good.
The next release has no name yet.
""",
        WORK,
    ),
    Kind(
        "sports",
        ("this sports report", "this match report", "the match"),
        ("Sport", "Match report", "Sports news"),
        """
{club} beat {rival} {score} on {day}.
On {day} {club} beat {rival} {score}.
{club} won {score} against {rival} on {day}.
On {day} {club} won against {rival} by {score}.
A {score} win: {club} beat {rival} on {day}.
{club} were too strong for {rival} on {day} and won {score}.
The fans of {club} are happy after the {score} win over {rival} on {day}.
On {day} {rival} were beaten {score} by {club}.

{person} scored the winning goal.
The winning goal came from {person}.
The winning goal was scored by {person}.
It was {person} who scored the winning goal.
{person} became the hero with the winning goal.
Late in the game {person} scored the winning goal.
A fine shot by {person} was the winning goal.
{person} made the difference with the winning goal.

{spectators} (watched|came|were there).
The game was seen by {spectators}.
There were {spectators} in the ground.
The match was played in front of {spectators}.
In the stands were {spectators}.
It drew {spectators} to the ground.
All {spectators} stayed until the end.
The club counted {spectators}.

The next match is on {date}.
They play again on {date}.
The next game is on {date}.
The next match will be played on {date}.
The team's next match takes place on {date}.
On {date} they have to play again.
There is time to rest until the next match on {date}.
The next date is {date}.
""",
        "{club} beat {rival} {score} on {day}; {person} scored the winning goal in front of {spectators}, and the next"
        " match is on {date}.",
        """
It rained during the first half.
The referee had little to do.
{other} hit the post after {n} minutes.
The grass was in poor shape.
The coach made {n} changes at half-time.
There were {n} yellow cards.
{other} is still injured.
The goalkeeper had a good day.
The second half was better than the first.
The fans sang all the time.
{other} played for the first time this year.
A penalty was missed.
""",
        PUBLIC,
    ),
    Kind(
        "delivery",
        ("this delivery notice", "this message", "this notice"),
        ("Delivery notice", "Your delivery", "News about your parcel"),
        """
Your {order} with {goods} is on its way.
Good news: your {order} with {goods} has left our (store|warehouse).
We have sent your {order} with {goods}.
Your {order} with {goods} has been (sent|packed|handed over).
Thank you for your {order} with {goods}.
This is about your {order} with {goods}.
The parcel for your {order} contains {goods}.
Today we (packed|sent) {goods} for your {order}.

It arrives on {day} {window}.
It will arrive on {day} {window}.
Please be at home on {day} {window}.
The parcel will be with you on {day} {window}.
You can expect it on {day} {window}.
We deliver on {day} {window}.
Our van comes to your street on {day} {window}.
The delivery is planned for {day} {window}.

{person} (delivers|will deliver|brings) it.
Your driver is {person}.
The driver's name is {person}.
It will be delivered by {person}.
{person} is the driver who brings it.
{person} will ring at your door.
Our driver {person} brings it to you.
On this tour the driver is {person}.

It will be left {spot} if nobody is at home.
If nobody is at home, it will be left {spot}.
If you are out, we leave it {spot}.
When nobody opens, the parcel will be left {spot}.
As you asked, it will be left {spot}.
You asked us to leave it {spot}.
The parcel can be left {spot}.
Should you be away, you will find it {spot}.
""",
        "Your {order} with {goods} arrives on {day} {window}; {person} delivers it, and it will be left {spot}.",
        """
The parcel weighs {n} kilos.
Please keep the box in case you want to return something.
You can follow the van on our website.
Our hotline is open until {hour}.
The bill is in the box.
No signature is needed.
Please tie up your dog.
The box is marked as fragile.
Your points have been added to your account.
We are sorry for the wait.
{other} from our service team is glad to help.
The return label lies on top.
""",
        NEUTRAL,
    ),
    Kind(
        "school",
        ("this letter", "this school letter", "this invitation", "this school notice"),
        ("Dear parents,", "School news", "Letter to parents"),
        """
{school} (holds|will hold|is holding) {event} on {date}.
On {date} {school} (holds|will hold) {event}.
{school} invites you to {event} on {date}.
There will be {event} at {school} on {date}.
On {date} there is {event} at {school}.
All are invited to {event} at {school} on {date}.
This year {school} has planned {event} for {date}.
Please note {date}, when {school} holds {event}.

It (starts|begins) at {clock} in {room}.
The start is at {clock} in {room}.
We meet at {clock} in {room}.
It will start at {clock} in {room}.
At {clock} we begin in {room}.
The doors open in {room} at {clock}.
Come to {room} at {clock}.
Everything starts in {room} at {clock}.

{person} organises it.
It is organised by {person}.
{person} has organised everything.
The event is organised by {person}.
{person} (plans|prepares) it with some helpers.
If you have questions, ask {person}, who organises it.
The plan was made by {person}.
This time {person} is the organiser.

Children (bring|should bring|need) {thing}.
Every child should bring {thing}.
Please give your child {thing}.
Each child needs to bring {thing}.
Do not forget {thing} for your child.
All pupils are asked to bring {thing}.
Your child will need {thing}.
Please make sure that your child has {thing}.
""",
        "{school} holds {event} on {date} at {clock} in {room}; {person} organises it, and children bring {thing}.",
        """
The choir will sing {n} songs.
Parents may take photos.
Grandparents are welcome too.
The classes have worked hard for it.
Drinks and cake will be sold.
Class {n} has painted the posters.
The sports hall stays closed.
The caretaker opens the gate early.
{other} will say a few words.
A small gift is waiting for every class.
Lessons end as usual.
Last year it was great fun.
""",
        PUBLIC,
    ),
    Kind(
        "library",
        ("this library notice", "this notice", "the notice"),
        ("Notice", "From the library", "To all readers"),
        """
The {library} library closes on {date} because of {works}.
Because of {works}, the {library} library closes on {date}.
On {date} the {library} library closes because of {works}.
The {library} library will be closed from {date} because of {works}.
From {date} the {library} library will be closed because of {works}.
There will be {works} at the {library} library, which closes on {date}.
Readers of the {library} library should know that it closes on {date} because of {works}.
Due to {works}, the doors of the {library} library close on {date}.

It opens again on {date2}.
We open again on {date2}.
The doors open again on {date2}.
It will open again on {date2}.
On {date2} it opens again.
We look forward to seeing you again on {date2}.
The first day after the break is {date2}.
From {date2} everything is open again.

Books can be returned {spot}.
Meanwhile, books can be returned {spot}.
You can return books {spot}.
During this time, books can be returned {spot}.
Please return your books {spot}.
If you want to return a book, do so {spot}.
Readers may return books {spot}.
Returns are taken {spot}.
""",
        "The {library} library closes on {date} because of {works} and opens again on {date2}; books can be returned"
        " {spot}.",
        """
There will be no late fees.
The reading group meets at {other}'s house.
All e-books can be used as before.
You may borrow up to {n} books before that.
The children's corner gets a new carpet.
{other} answers the phone in the mornings.
The book sale was a success.
The film night has been moved.
Old newspapers are kept in the cellar.
New library cards can be made online.
We have bought {n} new novels.
The lift works again.
""",
        PUBLIC,
    ),
    Kind(
        "recipe",
        ("this recipe", "these instructions", "the recipe"),
        ("Recipe", "From my kitchen", "Sunday cooking"),
        """
This is how (I|we|you) make {dish} for {people}.
Here is a recipe for {dish} for {people}.
Today we make {dish} for {people}.
With this recipe you make {dish} for {people}.
You want to make {dish} for {people}?
My grandmother made {dish} for {people} like this.
It is easy to make {dish} for {people}.
The dish is {dish}, enough for {people}.

Mix {ingredient} with {ingredient2}.
First, mix {ingredient} with {ingredient2}.
Take {ingredient} and mix it with {ingredient2}.
In a (large |big |)bowl, mix {ingredient} with {ingredient2}.
Put {ingredient} in a bowl and mix in {ingredient2}.
You need {ingredient}, mixed with {ingredient2}.
Slowly mix {ingredient} and {ingredient2}.
Start with {ingredient} and add {ingredient2}.

Bake it at {oven} for {minutes}.
Bake (everything|the whole thing) at {oven} for {minutes}.
It is baked at {oven} for {minutes}.
Then bake it for {minutes} at {oven}.
It goes into the oven at {oven} for {minutes}.
Set the oven to {oven} and bake it for {minutes}.
It needs {minutes} in the oven at {oven}.
Leave it in the oven for {minutes} at {oven}.

Serve it with {side}.
It is best served with {side}.
We serve it with {side}.
Serve it (warm |hot |)with {side}.
Put {side} on the table with it.
It goes well with {side}.
Eat it with {side}.
Add {side} when you serve it.
""",
        "To make {dish} for {people}, mix {ingredient} with {ingredient2}, bake it at {oven} for {minutes} and serve"
        " it with {side}.",
        """
Wash your hands before you begin.
A wooden spoon works best.
The kitchen will smell wonderful.
Do not open the oven door too early.
You can prepare it the day before.
{other} likes it with more pepper.
A pinch of salt is always good.
Use a tin of {n} centimetres.
Children love it.
It also tastes good cold.
Let it rest for a moment.
Clean the bowl at once, it saves work.
{other} gave me this recipe.
A blue cloth keeps it warm.
""",
        NEUTRAL,
    ),
    Kind(
        "quarter",
        ("this quarterly note", "this company note", "this business report", "this report"),
        ("Quarterly note", "To our shareholders", "Business news"),
        """
{company} had sales of {money} in {quarter}.
In {quarter}, {company} had sales of {money}.
{company} reports sales of {money} for {quarter}.
In {quarter} the sales of {company} were {money}.
For {quarter}, {company} can report sales of {money}.
The sales of {company} came to {money} in {quarter}.
With sales of {money}, {company} closes {quarter}.
{company} sold goods for {money} in {quarter}.

That is {change} than a year ago.
Sales were {change} than (a year ago|in the year before).
This was {change} than a year ago.
The figure is {change} than a year ago.
Compared with last year, the figure is {change}.
A year ago things looked different: sales are now {change}.
Measured against the year before, sales were {change}.
They are {change} than twelve months ago.

The reason is {reason}.
The (main |)reason was {reason}.
This comes from {reason}.
This was because of {reason}.
The firm explains this with {reason}.
It is due to {reason}.
Behind the figure stands {reason}.
The board sees {reason} as the reason.

The company plans to {plan}.
It plans to {plan}.
The next step is to {plan}.
Now the company (plans|wants) to {plan}.
The board has decided to {plan}.
In the coming months it will {plan}.
There are plans to {plan}.
The firm is going to {plan}.
""",
        "{company} had sales of {money} in {quarter}, {change} than a year ago, because of {reason}; it plans to"
        " {plan}.",
        """
The number of staff stayed the same.
Taxes were lower than expected.
{other} remains head of the board.
The share price hardly moved.
The meeting of shareholders is in spring.
Costs for energy were stable.
There are {n} branches in all.
The dividend will be discussed later.
{other} thanked all staff.
The warehouse is nearly full.
One branch was painted.
The figures have been checked by experts.
""",
        NEUTRAL,
    ),
    Kind(
        "museum",
        ("this tour note", "this text about the tour", "this museum tour", "this museum page"),
        ("Guided tour", "Museum tour", "Visit us"),
        """
The tour of the {museum} museum starts at {clock}.
Our tour of the {museum} museum starts at {clock}.
At {clock} the tour of the {museum} museum begins.
A tour of the {museum} museum starts at {clock}(| every day).
You can join the tour of the {museum} museum at {clock}.
Visitors of the {museum} museum meet for the tour at {clock}.
Come at {clock} for the tour of the {museum} museum.
The {museum} museum offers a tour that begins at {clock}.

It is led by {person}.
{person} leads the group.
{person} leads it.
The group is led by {person}.
Your guide is {person}.
The guide's name is {person}.
{person} will be your guide.
{person} guides the group through the house.

The highlight is {exhibit}.
Its highlight is {exhibit}.
Everyone waits for the highlight, {exhibit}.
The highlight of the tour is {exhibit}.
The most famous piece is {exhibit}.
Most visitors come for {exhibit}.
Do not miss {exhibit}, the highlight.
As the highlight you will see {exhibit}.

It takes {minutes} and costs {euros}.
The tour takes {minutes} and costs {euros}.
It lasts {minutes} and costs {euros}.
The tour takes {minutes}, and the price is {euros}.
Plan {minutes} for it and bring {euros}.
A ticket costs {euros}, and the walk takes {minutes}.
For {euros} you get a tour of {minutes}.
You pay {euros} for a walk of {minutes}.
""",
        "The tour of the {museum} museum starts at {clock}, is led by {person}, takes {minutes} and costs {euros}; its"
        " highlight is {exhibit}.",
        """
Bags have to be left at the entrance.
Photos are allowed without flash.
The rooms are a bit cool.
There are {n} rooms in all.
The shop sells cards and books.
The house was built by {other}.
Please do not touch anything.
There is a lift for wheelchairs.
Audio guides come in {n} languages.
The garden is worth a look too.
Small groups are best.
The roof was repaired last year.
""",
        PUBLIC,
    ),
    Kind(
        "lost",
        ("this note", "this lost-and-found note", "this notice"),
        ("Lost and found", "Found", "Who has lost this?"),
        """
On {day} {item} was found in {place}.
Somebody found {item} in {place} on {day}.
We found {item} in {place} on {day}.
In {place}, {item} was found on {day}.
On {day} a visitor found {item} in {place}.
Who has lost {item} in {place} on {day}?
Left behind in {place} on {day}: {item}.
Since {day} we have {item} that lay in {place}.

{person} keeps it {spot}.
{person} has it {spot}.
It is kept by {person} {spot}.
It is now with {person}, who keeps it {spot}.
{person} is keeping it safe {spot}.
You can get it from {person} {spot}.
Ask for {person} {spot} to get it back.
It was handed to {person}, who keeps it {spot}.

It can be (collected|picked up|fetched) until {date}.
Please (collect|fetch) it by {date}, because it is only kept until {date}.
It will be kept until {date}.
The owner can collect it until {date}.
You can fetch it until {date}.
We keep it until {date}, no longer.
After {date} it will be given away, so it is kept until {date}.
There is time to collect it until {date}.

The owner must bring {proof}.
Please bring {proof} when you come.
To get it back, you must bring {proof}.
The owner has to bring {proof}.
Do not forget to bring {proof}.
As proof we ask the owner for {proof}.
You will need {proof}.
Nobody gets it without {proof}.
""",
        "On {day} {item} was found in {place}; {person} keeps it {spot} until {date}, and the owner must bring"
        " {proof}.",
        """
It is a little wet.
{other} saw it first.
It does not look very old.
We have asked everyone in the building.
There was also a single glove.
Last month we had {n} such things.
Perhaps it belongs to a tourist.
The finder does not want a reward.
It lay under a chair.
It may be a present, who knows.
A small sticker is on the back.
""",
        PUBLIC,
    ),
    Kind(
        "email",
        ("this email", "this mail", "this message"),
        ("Hello,", "Dear team,", "Dear all,"),
        """
My name is {person} and I (work for|am writing for|write on behalf of) {company}.
I am {person} from {company}.
This is {person} from {company}.
{person} here, from {company}.
I am writing to you from {company}; my name is {person}.
We have not met yet: I am {person} from {company}.
You may remember me, {person} from {company}.
As {person} from {company} I often work with your team.

We need {request} by {date}.
I need {request} by {date}.
Could you send us {request} by {date}?
Please send (me|us) {request} by {date}.
I am writing because we need {request} by {date}.
By {date} we must have {request}.
It would be great to get {request} by {date}.
Would it be possible to have {request} by {date}?

The reason is {occasion}.
We ask because of {occasion}.
It is for {occasion}.
We need it because of {occasion}.
The background is {occasion}.
All this is because of {occasion}.
As you know, there is {occasion}.
I would not ask if there were not {occasion}.

You can reach me on {extension}.
I can be reached on {extension}.
My number is {extension}.
If anything is unclear, you can reach me on {extension}.
Call me on {extension} if you like.
For questions, please use {extension}.
The best way to reach me is {extension}.
I am always there on {extension}.
""",
        "{person} from {company} needs {request} by {date} because of {occasion} and can be reached on {extension}.",
        """
I hope you are well.
Thank you for your help last time.
It was nice to see {other} at the fair.
Sorry for the short notice.
The weather here is terrible at the moment.
A simple file is enough.
{other} told me that you are very quick.
We moved to floor {n} last month.
Please excuse any typing mistakes.
There is no need to print anything.
I am in the office until {hour} most days.
I look forward to your answer.
""",
        NEUTRAL,
    ),
    Kind(
        "maintenance",
        ("this maintenance notice", "this message", "this announcement"),
        ("Maintenance", "To all users", "Planned work"),
        """
The {service} is down on {date} {window}.
On {date} {window}, the {service} (is|will be) down.
The {service} will be (down|off|out of use) on {date} {window}.
Please note that the {service} will be down on {date} {window}.
We have to stop the {service} on {date} {window}.
We will switch off the {service} on {date} {window}.
Nobody can use the {service} on {date} {window}.
There is planned work on the {service} on {date} {window}.

We have to {work}.
The reason is that we must {work}.
We use the time to {work}.
This is needed to {work}.
Our technicians will {work}.
We do this to {work}.
The aim is to {work}.
It is high time to {work}.

Meanwhile {effect}.
During this time {effect}.
Until we are done, {effect}.
This means that {effect}.
Please be aware that {effect}.
While we work, {effect}.
As long as it lasts, {effect}.
Sadly, {effect} while this goes on.

{person} answers questions on {extension}.
If you have questions, call {person} on {extension}.
Questions can be put to {person} on {extension}.
{person} will answer questions on {extension}.
Please call {person} on {extension} with any questions.
Our contact is {person} on {extension}.
For help, {person} can be reached on {extension}.
You reach {person} on {extension} if something goes wrong.
""",
        "The {service} is down on {date} {window} to {work}; meanwhile {effect}, and {person} answers questions on"
        " {extension}.",
        """
Please save your work in good time.
We have tested everything twice.
No data will be lost.
{other} has approved the plan.
The last such stop was {n} months ago.
We chose a time when few people work.
You do not have to do anything.
A banner will remind you.
It may be a little slow at first.
We are sorry for the trouble.
Other systems are not touched.
A message will tell you when we are done.
""",
        WORK,
    ),
)

PLACES = """Harbour Mill River Bridge Garden Station Castle Forest Hill Lake Market Church Meadow Orchard Tower Valley
Summit Coast Canal Quarry Abbey Maple Willow Cedar Falcon Heron Otter Badger Swan Raven Amber Copper Silver Granite
Marble North South East West Central Upper Lower"""
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
MONTHS = "January February March April May June July August September October November December"

# Slots that are a number and a unit: the range and what follows the number.
UNITS = {
    "minutes": (10, 95, " minutes"),
    "customers": (12, 900, " customers"),
    "degrees": (2, 34, " degrees"),
    "oven": (15, 23, "0 degrees"),
    "percent": (5, 95, " percent"),
    "nights": (2, 14, " nights"),
    "people": (2, 12, " people"),
    "spectators": (80, 9000, " spectators"),
    "euros": (4, 990, " euros"),
}

# Slots that are one of a few wordings; `(a|b)` in them is expanded.
POOLS = {
    "room": """room {n}|hall {n}|the (large|small|green|blue|red|old) (room|hall)|the (cellar|canteen|gym|lobby)
the (town hall|meeting room|reading room|music room)""",
    "place": """the (north|south|east|west|old|new|main) (hall|wing|building|station|store)|room {n}|hall {n}
the (cellar|kitchen|car park|garden|library|bakery|lobby|workshop|town hall|canteen)""",
    "decision": """(buy|order|sell|rent|test) (two|three|four|five|six) (new |used |)(printers|desks|vans|laptops|pumps)
(move|cut|raise|check) the (budget|stock|prices|rent)|hire (two|three|four) (drivers|cooks|clerks|painters)
(open|close|move|paint) the (office|shop|warehouse|cellar|website)|(start|stop|delay) the (trial|sale|course|survey)
(change|keep|extend) the (opening hours|supplier|contract|logo|format)""",
    "task": """the (new|annual|second|first) (plan|survey|trial|budget|report|training)
the (move|search|test|sale|review|tender)
the (garden|website|safety|hiring|travel|storage) (project|group|plan|review)""",
    "machine": """(main|old|new|second|small) (pump|lift|boiler|server|printer|press|oven|engine|crane)
(mail|web|print|backup|payment) server|(cooling|heating|alarm|door) system|conveyor belt|water tank""",
    "failed": """lost power|ran too hot|began to leak|broke down|stopped working|caught fire|jammed|froze|shut down
began to shake|ran dry""",
    "cause": """a (worn|loose|broken|burnt|torn|cut) (cable|belt|switch|seal|fuse|pipe|valve)
a (full|faulty|slow) (disk|filter|tank|sensor)|a (wrong|missing|new) (setting|update|password|part)
a (storm|power cut|short circuit|flood)""",
    "building": """a (new|small|large|modern) (library|school|museum|theatre|swimming pool|sports hall|park|playground)
a (new|small|large|covered) (market|bridge|car park|clinic|cinema|ice rink|bus station|fire station)""",
    "sky": """(heavy|light|steady|cold) (rain|snow|showers)|(thick|light|morning) fog|(dark|low|grey) clouds
(strong|short|loud) thunderstorms|(hail|sleet|drizzle|frost)""",
    "outlook": "(warm|bright|lasting|plenty of|some) sunshine|(dry|mild|fine|clear|calm|warmer) weather|blue sky",
    "wind": "(strong|light|cold|fresh|stormy|warm) wind from the (north|south|east|west|north-east|south-west)",
    "product": """a (folding|silent|solar|smart|tiny|wireless|heated) (lamp|bike|chair|kettle|radio|tent|fan|speaker)
a (new|light|cheap|small|waterproof) (camera|phone|watch|drill|backpack|helmet|scooter|keyboard)""",
    "feature": """(runs|works|lasts) for {n} hours on one charge|(folds|packs) flat|weighs (only|less than) {n}0 grams
(fits into any (pocket|bag)|needs no (cable|battery|tools)|makes no noise|glows in the dark)
can be (used|charged|repaired|cleaned) (anywhere|by anyone|under water|in minutes)|switches itself off""",
    "transport": """by (night |slow |early |)(train|bus|ferry|boat|car|bike|taxi|tram)|on (foot|horseback|skis)
on (an old|a borrowed|a rented|a small) (bicycle|motorbike|scooter|raft)
in (an old|a borrowed|a rented|a small) (car|van|truck|jeep)""",
    "sight": """the (old|ruined|white|famous|round) (lighthouse|castle|tower|temple|church|bridge|palace|mill)
the (deep|blue|long|hidden) (lake|cave|valley|waterfall|canyon)|the (fish|flower|night) market""",
    "food": """(fried|grilled|smoked|spicy) (fish|chicken|beans|mushrooms|cheese)
(tomato|onion|bean|fish|lemon) (soup|pie|stew)
(rice|noodles|dumplings|pancakes) with (plums|cabbage|butter|nuts)""",
    "problem": """a (late|lost|wrong) (delivery|order) of (parts|steel|cables|chips|paint)
the (lack|price) of (steel|staff|space|test data|tools)
a (slow|broken|noisy) (database|machine|network|crane|sensor)|the (bad weather|missing permit|old software)""",
    "window": "between {h} and {k} o'clock|from {h} to {k} o'clock|between {h}:00 and {k}:30|from {h}:30 to {k}:00",
    "goods": """(two|three|four|five|six) (garden|office|folding|wooden) (chairs|tables|lamps|benches|boxes)
a (blue|red|green|grey|black) (sofa|carpet|coat|bicycle|suitcase)
(two|three|ten) (books|plates|pillows|towels|bulbs)""",
    "spot": """at the (side|back|front|garden) (door|gate)|at the (front desk|bakery|town hall|bus station|gatehouse)
in the (garage|shed|entrance hall|cafe|corner shop)|with the (neighbour|caretaker|porter|baker)""",
    "event": """a (science|book|sports|summer|spring|music|film) (fair|day|festival|evening)
a (school|class|charity) (concert|play|run|picnic|breakfast)""",
    "thing": """a (packed lunch|water bottle|warm jacket|sun hat|pencil|towel|rain coat|cup|notebook|torch)
(sports shoes|swimming things|warm socks|old clothes)""",
    "works": """(new|broken) (lights|windows|shelves|pipes|heating|floors|doors)
(building|painting|repair|cleaning) work
a (stocktaking|move|flood|training course|roof repair)""",
    "dish": """(apple|plum|cherry|onion|leek|potato|cheese|nut|lemon|carrot) (cake|pie|bread|tart|gratin)
(stuffed|baked) (peppers|tomatoes|apples|potatoes)""",
    "ingredient": "{n}0 g of (flour|oats|rice|semolina|ground nuts|potatoes|breadcrumbs|grated cheese)",
    "ingredient2": "(two|three|four|five|six) (eggs|apples|onions|plums|carrots|lemons|spoons of oil|cups of milk)",
    "side": "(fresh|green|warm|cold) (cream|salad|herbs|bread|sauce|yoghurt|berries|peas)|(ice cream|vanilla sauce)",
    "quarter": "the (first|second|third|fourth|last) quarter",
    "change": "{n} percent (higher|lower|more|less)",
    "cost": "{n},000 euros|{n}0,000 euros|{h}.{n} million euros|{n} million euros",
    "money": "{h}.{n} million euros|{n} million euros|{n}0,000 euros|{h}00,000 euros",
    "reason": """(strong|weak|growing|falling) demand for (pumps|lamps|tyres|toys|paper|coffee|bikes|tools)
(high|low|rising|falling) prices for (steel|oil|wood|energy|copper|grain)|a (long|mild|hard) (winter|strike|summer)""",
    "plan": """(open|close|build|sell) (two|three|four|five) (shops|plants|branches|stores|offices)
(hire|train) {n}0 (people|drivers|engineers|clerks)|(cut|raise|freeze) (prices|costs|wages)
enter the (French|Polish|Indian|Danish|Spanish) market""",
    "exhibit": """a (golden|silver|stone|glass|wooden) (mask|crown|ship|clock|throne|horse|bell)
the (oldest|largest|smallest) (map|engine|piano|telescope|book) in the country|a (whale|dinosaur|bear) skeleton""",
    "item": """a (brown|black|red|green|small|leather|silver) (wallet|umbrella|bag|scarf|watch|ring|key|phone|hat)
a pair of (brown|black|red|blue|new) (gloves|glasses|boots|skates)""",
    "proof": "a (photo|receipt|passport|library card|bank card|student card|second key|written note|bill|letter)",
    "request": """the (new|signed|final|missing|corrected) (contract|price list|drawings|invoice|report|plan|photos)
(two|three|five|ten) (samples|copies|brochures|test reports|spare keys)""",
    "occasion": """a (trade fair|board meeting|tax audit|new customer|site visit|broken machine|change of law)
the (move|trial|opening|audit|tender|annual report) in (spring|summer|autumn|winter|our town)""",
    "service": """(mail|web|print|backup|booking|payroll|phone|chat) (server|service|system)
(customer|stock|staff|order) database""",
    "work": """(install|replace|check|clean) the (disks|cables|fans|batteries|switches|backups)
(move|update|repair) the (database|network|software|firewall|server room)""",
    "effect": """no (mail|orders|files|messages) can be (sent|read|printed|saved)
(logins|searches|bookings|payments|reports) (are not possible|will fail|are blocked)|the website is (slow|read-only)""",
    "project": "the {place} (project|website|app|bridge|tunnel|database|survey|robot)",
    "club": "{place} (Rovers|United|Stars|Wanderers|Athletic|Lions|Tigers)",
    "school": "{place} (School|Primary School|High School)",
    "street": "{place} (Street|Road|Lane|Square)",
}
