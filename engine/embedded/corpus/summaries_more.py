"""Further wordings of the facts of `summaries_words`, and further fillers, all for training alone.

Many fillers are about things of the same sort as a fact; their slots get values that are none of the text's facts.
"""

from __future__ import annotations

import re

from engine.embedded.corpus.summaries_further import FURTHER
from engine.embedded.corpus.summaries_words import KINDS, Kind
from engine.embedded.corpus.wordings import wordings

MORE: dict[str, str] = {
    "meeting": """
Meeting of the {team} team, {day}, {room}.
Team: {team}. Day: {day}. Place: {room}.
{room} was full on {day}, when the {team} team met there.
It was in {room} that the {team} team came together on {day}.
When the {team} team met in {room} on {day}, (nearly everybody|almost everyone) was there.
{day} was meeting day for the {team} team, this time in {room}.
The {team} team had its meeting on {day}; the place was {room}.
For its meeting on {day}, the {team} team had chosen {room}.
Present in {room} on {day}: the {team} team with a few guests.
The {team} team used {room} for its meeting on {day}.
In {room} there was a lot to talk about when the {team} team got together on {day}.
As the usual place was not free, the {team} team's meeting on {day} was in {room}.

Decision: {decision}.
What was decided? To {decision}.
To {decision} is what the team settled on in the end.
The outcome is clear: the team wants to {decision}.
In the end nobody was against the plan to {decision}, so that is settled.
After hearing both sides, the group voted to {decision}.
The plan to {decision} was accepted (by the team|without a vote).
The proposal to {decision} found a clear majority.
The team has made up its mind: it will {decision}.
Some had doubts, but it is now official that the team will {decision}.
The result of a long talk is that the team is going to {decision}.
To everyone's relief, a majority chose to {decision}, which had been an open question for weeks.

Lead for {task}: {person}.
Who leads {task}? {person} does.
{task} will be led by {person}.
Responsible for {task}: {person}.
{task}, which nobody wanted at first, is now in the hands of {person}.
Since (no one|nobody) else had time, {person} is taking the lead in {task}.
The job of leading {task} was given to {person}.
{person}, who knows the subject well, will be responsible for {task}.
To get {task} going, the team made {person} the leader.
{person} is now at the head of {task}.
Anyone with ideas for {task} should turn to {person}, the new head of it.
There were other names on the list, but {task} will be in the care of {person}.

Next meeting: {date}.
{date} is the date of the next meeting.
When do we meet again? On {date}.
The team comes together again on {date}.
Anything left open will be discussed at the next meeting on {date}.
On {date} the team gathers again, as usual.
We will see each other again on {date}.
The follow-up meeting has been set for {date}.
{date} was picked for the next meeting, as most people are free then.
There will be no meeting before {date}, when the team meets again.
Everyone should be back at the table on {date} for another meeting.
Looking at the calendar, we chose {date} as the day of our next meeting.
""",
    "incident": """
{day}, {clock}: the {machine} in {place} {failed}.
Time: {day}, {clock}. Event: the {machine} in {place} {failed}.
In {place} the {machine} {failed} on {day}, (exactly |just |)at {clock}.
{day} began quietly, but at {clock} the {machine} in {place} {failed}.
Staff in {place} called us on {day} at {clock} because the {machine} {failed}.
What happened? At {clock} on {day} the {machine} {failed} in {place}.
We had trouble in {place} on {day}: the {machine} {failed} at {clock}.
Place: {place}. Time: {clock} on {day}. The {machine} {failed}.
Without any warning, the {machine} in {place} {failed} on {day} at {clock}.
The {machine} {failed} at {clock} on {day}. It stands in {place}.
{place} was the scene: on {day} at {clock} the {machine} there {failed}.
{day} was a bad day for {place}, where the {machine} {failed} at {clock}.

Cause: {cause}.
{cause} was to blame.
{cause} is what caused (the failure|the trouble).
Why did it happen? Because of {cause}.
Behind the failure was {cause}.
The root of the trouble was {cause}, as some had feared.
The fault was traced to {cause}.
After some searching we know why: it was {cause}.
The search for the cause led to {cause} and nothing else.
Some thought of a bad joke at first, but {cause} was the real reason.
{cause} explains (the failure|the whole thing|what happened).
All it took to start this trouble was {cause}.

Repaired by {person} after {minutes}.
Repair: {person}. Time needed: {minutes}.
{minutes} later {person} had solved the problem.
{minutes} went by before {person} got it running again.
{minutes} of work were enough for {person} to repair it.
{person} worked on it for {minutes}, and then it ran again.
Who repaired it? {person}, in {minutes}.
{person}, (our|the) technician on duty, fixed the fault within {minutes}.
For {minutes} nothing moved, then {person} had finished the repair.
It was back in use after {minutes} because {person} repaired it (so quickly|on the spot).
We owe it to {person} that the fault was gone after {minutes}.
The repair time was {minutes}, and the work was done by {person}.

Affected: {customers}.
{customers} noticed the failure.
{customers} had to do without service (meanwhile|for a while).
How many people felt it? {customers}.
The number of complaints was small, although {customers} were hit.
For {customers} this meant waiting.
We could not serve {customers} because of it.
Hit by the failure: {customers}, most of them from the area.
According to our list, it concerned {customers}.
The effects were felt by {customers} in the area.
{customers} have received a letter of apology, because they were affected.
When we look at the damage, we count {customers} who were affected.
""",
    "news": """
New in {town}: {building} in {street}.
Town: {town}. Plan: {building} in {street}.
{street} in {town} is where {building} will be built.
{building} is coming to {street} in {town}.
{building} will soon stand in {street}, and all of {town} is talking about it.
Good news for {town}: {building} is being built in {street}.
People have long wanted {building}, and now {town} gets it in {street}.
What is going on in {street}? {town} is putting up {building} there.
{town} has chosen {street} as the place for {building}.
Whoever walks down {street} in {town} will soon see {building} there.
In {town}, plans for {building} in {street} have been approved.
Building has begun in {street}, where {town} will have {building}.

Cost: {cost}.
{cost} is the price (of it all|of the work).
What does it cost? {cost}.
{cost} will be spent on it.
The town expects to spend {cost}.
Experts say that the costs will be {cost}, which is less than feared.
Taxpayers will have to find {cost} for it.
The budget for the work is {cost}.
All of the {cost} that it costs will come from the town's savings.
No more than {cost} may be spent on the building.
{cost}: that is how much the town has to pay.
After much debate, the council agreed to costs of {cost}.

Opening day: {date}. Mayor: {person}.
{date} is the day on which mayor {person} opens the doors.
The ribbon will be cut on {date} by {person}, the mayor.
{person}, mayor of the town, wants to open it on {date}.
When does it open? On {date}, if you ask mayor {person}.
Mayor {person} has invited everyone to the opening on {date}.
If all goes well, mayor {person} can cut the ribbon on {date}.
The mayor, {person}, will give the opening speech on {date}.
{date} is marked in red in the calendar of mayor {person}: it is the day of the opening.
The first visitors may come in on {date}, when mayor {person} opens it.
Until mayor {person} opens it on {date}, people need some patience.
Flags will be flying on {date}, because mayor {person} is going to open it then.
""",
    "weather": """
{town}, {day}: {sky}.
Weather for {town} on {day}: {sky}.
{sky} will reach {town} on {day}.
{sky} will be the main topic in {town} on {day}.
What will {day} be like in {town}? There will be {sky}.
Anyone in {town} on {day} should be prepared for {sky}.
In {town} there is no way around {sky} on {day}.
The people of {town} wake up to {sky} on {day}.
A change is coming for {town}: {sky} on {day}.
On {day} the weather map shows {sky} over {town}.
{day} will not be nice in {town}, with {sky} nearly everywhere.
Our weather station in {town} sees {sky} coming on {day}.

Temperature: {degrees}.
{degrees} is the most we can hope for.
{degrees} can be reached (after lunch|at best|during the day).
How warm will it get? {degrees}.
The air warms to {degrees} during the day.
It does not get warmer than {degrees}.
With a bit of luck we get {degrees}.
In the shade we will measure {degrees}.
Do not expect more than {degrees}.
The warmest hour of the day brings {degrees}.
After a cool start, the temperature climbs to {degrees}.
At {degrees}, it feels much like the days before.

Wind: {wind}.
{wind} is (also |)part of the forecast.
{wind} will blow (all day|until evening).
What about the wind? We get {wind}.
Hold on to your hat, because {wind} is on its way.
Sailors can look forward to {wind}.
Trees and flags will move in {wind}.
Besides, {wind} will be felt (near the coast|on the hills|everywhere).
It is accompanied by {wind}.
Windows should stay shut, as {wind} is forecast.
People out on a walk will notice {wind}.
From early morning {wind} sweeps over the land.

Outlook: {outlook} on {day2}.
{day2} will be better, with {outlook}.
{outlook} returns on {day2} at the latest.
{outlook} is not far away: it comes on {day2}.
When does it get better? On {day2}, with {outlook}.
We have to wait until {day2}, then we get {outlook}.
From {day2} on, {outlook} is back.
After that things improve, and {day2} has {outlook} for us.
For {day2}, the experts promise {outlook}.
Those who like {outlook} will be happy on {day2}.
Then comes {day2}, and {outlook} returns to our part of the country.
{outlook} will be here by {day2}, so plan your trips for then.
""",
    "product": """
New from {company}: {product}.
Maker: {company}. Product: {product}.
{product} is the latest product of {company}.
{product} is now made by {company}.
What is new at {company}? The firm is bringing out {product}.
{company} has come up with {product}.
{company}, known for good ideas, is launching {product}.
After years of work, {company} can finally show {product}.
Visitors at the fair were the first to see {product}, made by {company}.
The engineers at {company} have built {product}.
Fans of {company} have waited for this: {product}.
People at {company} are proud of their new product, {product}.

Main feature: it {feature}.
What can it do? It {feature}.
It is the first of its kind that {feature}.
The trick is that it {feature}.
Everyone is surprised that it {feature}.
The inventors are proud that it {feature}.
You may not believe it, but it {feature}.
Many customers had asked for a model that {feature}, and here it is.
The clever thing {feature}, which is rare.
Thanks to new technology, it {feature}.
It {feature}, and that makes it different from all others.
People will love it, (just |)because it {feature}.

Price: {euros}.
Price - {euros}.
{euros} is the price.
{euros} is all it costs.
How much is it? {euros}.
The price tag says {euros}.
Whoever wants one needs {euros}.
With a price of {euros}, it is cheaper than most.
Customers will have to spend {euros} if they want one.
The firm wants {euros} for one.
You can expect to pay {euros}, tax included.
At {euros} it is no bargain, but it is good value.

Start of sales: {date}.
{date} is the first day of sale.
{date} is when it goes on sale.
When can you buy it? From {date}.
Nobody can buy it before {date}, the first day of sale.
Customers must wait until {date} before they can buy one.
Shops begin to sell it on {date}.
As of {date}, customers can buy it (anywhere|in any good shop|online).
The makers have chosen {date} for the start of sales.
Sales will not start until {date}, although many have asked for it.
Mark {date} in your calendar: that is when sales begin.
Until {date} you can only look at it, then it goes on sale.
""",
    "travel": """
{town}, {day}. We came here {transport}.
{day}: arrival in {town} {transport}.
{transport} we came all the way to {town}, where we arrived on {day}.
{transport}, that is how we got to {town} on {day}.
Our journey {transport} ended in {town} on {day}.
How did we get to {town} on {day}? We came {transport}.
{day} was the day we got to {town} {transport}.
The journey {transport} was tiring, but on {day} we were in {town}.
We have been in {town} since {day}; we came {transport}.
{town} greeted us with a smile on {day}, when we arrived {transport}.
The way to {town} was long {transport}, but we made it on {day}.
Everybody told us to go to {town} {transport}, so we did, and on {day} we arrived.

Sightseeing with {person}: {sight}.
{sight} was worth the walk that we took with {person}.
{sight} was shown to us by {person}.
Who knew the way to {sight}? {person} did, so we all went there.
{person}, who grew up here, walked with us to {sight}.
{person} was our guide when we looked at {sight}.
Thanks to {person} we got to see {sight}.
We looked at {sight} for a long time, and {person} was with us.
We met {person} in the morning and had a look at {sight}.
The tour with {person} led us to {sight}.
{person} and the rest of us spent hours at {sight}.
Nobody should leave without seeing {sight}, said {person}, and came with us.

Food of the day: {food}.
{food} for dinner: I could eat that every day.
{food} tasted best of all.
What did we eat? A big plate of {food}.
The cook gave us {food}.
My plate was full of {food}.
On the market square they served us {food}.
The waiter brought {food}, and we ate every bit.
We could not get enough of {food}.
We were hungry and ordered {food}.
Of all the local dishes we chose {food}.
Dinner was simple: {food} (and a glass of water|and nothing else).

Length of stay: {nights}.
{nights} is how long we stay.
{nights} will pass before we go home.
How long do we stay? {nights}.
After {nights} we have to move on.
We want to spend {nights} in this place.
We sleep here for {nights} before we travel on.
A stay of {nights} is planned.
There is enough to see for the {nights} of our stay.
We planned a short stop, but now it will be {nights}.
Our stay will last {nights}, if the weather holds.
It would be a pity to leave sooner, so we stay {nights}.
""",
    "project": """
Progress on {project}: {percent}.
{percent} of {project} is behind us.
How far is {project}? It is {percent} finished.
{project} has reached the mark of {percent}.
{project}, which started late, is already {percent} complete.
{project} now stands at {percent}.
The team has (now |)completed {percent} of {project}.
When it comes to {project}, {percent} of the work has been done.
Those who ask about {project} hear that {percent} is ready.
Since the last report, {project} has moved up to {percent}.
{percent} is the part of {project} that we have finished.
A look at {project} shows {percent} of the tasks as done.

Main problem: {problem}.
{problem} is our main problem.
{problem} slows us down (more than anything else|most of all).
{problem} is the headache of the whole team right now.
Difficulty number one: {problem}.
What is the main problem? It is {problem}.
As we feared last month, the main problem is {problem}.
Our greatest worry is {problem}.
Most of our trouble is caused by {problem}.
We lose time mainly because of {problem}.
Everything else runs well, but {problem} is a real problem.
The greatest difficulty lies in {problem}, which nobody can change quickly.

In charge: {person}.
Project manager: {person}.
Who is in charge? {person}.
{person} is responsible for everything.
{person} is the one who decides.
{person} is the boss of the whole thing.
Responsible for the work is {person}, as before.
The lead lies with {person}, who came to us last year.
We report to {person}, the head of the project.
Since spring, {person} has been in charge.
Whatever needs to be decided goes to {person}, our project manager.
The team works well under {person}, who is at its head.

Deadline: {date}.
End of work: {date}.
{date} is the deadline.
{date} will be the last day of the work.
{date} at the latest, everything must be done.
When will it be finished? On {date}.
We have until {date} to finish everything.
Work will go on until {date} and then stop.
The contract says that we finish on {date}.
We are working towards {date}, when all has to be complete.
Our customers have been promised the end result for {date}.
If nothing goes wrong, the last task will be closed on {date}.
""",
    "sports": """
{day}: {club} win {score} against {rival}.
Winner: {club}. Loser: {rival}. Score: {score}. Day: {day}.
{rival} lost {score} to {club} on {day}.
{rival} had no chance on {day} and lost {score} against {club}.
{day} was a good day for {club}, who beat {rival} {score}.
{day} ended badly for {rival}: {club} won {score}.
With a {score} victory over {rival}, {club} made their fans happy on {day}.
{club} celebrated a {score} win on {day}; {rival} went home with nothing.
Who won on {day}? {club} did, {score} against {rival}.
{score} was the result when {club} defeated {rival} on {day}.
Nobody gave {club} a chance on {day}, but they defeated {rival} {score}.
In the derby on {day}, {rival} had to accept a {score} defeat against {club}.

Winning goal: {person}.
{person} decided the game (with a late goal|with a shot from far out).
Who scored the winning goal? {person}.
The goal that decided the match was scored by {person}.
The decisive goal was the work of {person}.
In the end a goal by {person} won the game.
{person}, (the captain|a defender|just back from injury), got the winning goal.
All cheered when {person} hit the winning goal.
Without the goal by {person} there would have been no victory.
Fans sang the name of {person}, the scorer of the winning goal.
After a long wait {person} put the ball in the net to win the game.
Others missed their chances, but {person} scored the goal that made the difference.

Attendance: {spectators}.
{spectators} saw the game.
{spectators} had bought a ticket.
{spectators} filled the stands.
How many came? {spectators}.
Around the pitch stood {spectators}.
Despite the rain, {spectators} had come.
The winners were cheered on by {spectators}.
Tickets were sold to {spectators}, more than last time.
For {spectators} it was an exciting game.
The crowd of {spectators} enjoyed every minute.
It was loud, as {spectators} had come to watch.

Next match: {date}.
{date} is the day of the next match.
When do they play again? On {date}.
The team is back on the pitch on {date}.
Until {date} the players can rest, then comes the next match.
Their next game was moved to {date}.
Another opponent is waiting on {date}, the day of the next match.
Fans can buy tickets for the next match, which is on {date}.
There are no more games before {date}, when they play again.
The season continues on {date} with the next match.
The next chance to win comes on {date}.
The players must be fit again for {date}, the day of the next game.
""",
    "delivery": """
{order}: {goods}.
Contents of your {order}: {goods}.
{goods}, that is what you wanted with your {order}.
Your {order} is on the road. Contents: {goods}.
You asked us for {goods}, which we noted as {order}.
In the box for your {order} you will find {goods}.
A parcel with {goods} is coming, as you wished in {order}.
{order} is finished: we have put {goods} in a big box for you.
Your {order} was for {goods}, and all of it is in the van.
The van with {goods} has set off, so your {order} will reach you soon.
Do you remember your {order}? We are sending you {goods}.
Our driver has {goods} from your {order} in the van.

Delivery time: {day}, {window}.
{day} {window}: that is when it arrives.
{day} is the day, and it comes {window}.
{window} on {day}, somebody should be at home.
When does it come? On {day} {window}.
On {day}, {window}, the bell will ring.
Expect us {window} on {day}.
Look out for our van on {day} {window}.
If the traffic allows, it reaches you on {day} {window}.
We have planned your street for {day} {window}.
You do not have to wait all day: it comes on {day} {window}.
Is {day} all right? We come {window}.

Driver: {person}.
Who brings it? {person} does.
{person} drives the van.
{person}, who knows your street well, brings the parcel.
At the wheel is {person}.
The van is driven by {person}.
Look out for {person}, who has your parcel.
You will get it from the hands of {person}.
Please be kind to {person}, who carries it to your door.
This time it is {person} who comes to you with the parcel.
Your parcel travels with {person}, our driver.
A colleague called {person} will hand it to you.

Place to leave it: {spot}.
{spot}, that is where the parcel goes if nobody is in.
Where do we leave it? We put it {spot}.
The driver will put it {spot} if you do not open.
If the bell is not answered, it will wait for you {spot}.
In case you are away, look for it {spot}.
Nobody there? Then we leave it {spot}.
The parcel may stay {spot} when you are not there.
Our driver knows that it has to be left {spot}.
Your wish was noted: the box stays {spot}.
We do not take it back, but leave it {spot} for you.
Do not worry if you have to go out, as we will leave it {spot}.
""",
    "school": """
Event: {event}. Place: {school}. Date: {date}.
{date} is a big day for {school}, with {event} for everyone.
{school} is getting ready for {event} on {date}.
What is on at {school} on {date}? We have planned {event}.
{event} is planned for {date}, and {school} hopes for many guests.
{event} is what {school} has in store for {date}.
Keep {date} free, because {school} will have {event}.
The pupils of {school} look forward to {event} on {date}.
On {date} the whole of {school} takes part in {event}.
The calendar of {school} shows {event} on {date}.
Everyone at {school} is talking about {event}, which is on {date}.
We at {school} would love to see you at {event} on {date}.

Time: {clock}. Place: {room}.
{room} is the place and {clock} the time to be there.
{clock} in {room}: that is when and where it begins.
When and where? At {clock} in {room}.
Please be in {room} at {clock}.
Guests are expected in {room} at {clock}.
{room} will be ready for you at {clock}, when it begins.
Everybody should be in {room} at {clock}, when we start.
The way leads to {room}, where we begin at {clock}.
We welcome you at {clock}, not in the yard but in {room}.
It all happens in {room}, and {clock} is the time to come.
Take a seat in {room}, because we start at {clock} sharp.

Organiser: {person}.
Organisation: {person}.
Who organises it? {person}.
{person} is the one who organises all this.
{person} is responsible for the organisation.
{person}, who teaches at our school, has taken on the organisation.
The organisation is in the hands of {person}.
The idea came from a pupil, but it is {person} who organises it.
As in other years, {person} takes care of the organisation.
A big thank you goes to {person}, who organises everything.
Many hands help, and {person} leads the preparations.
We could not do it without {person}, who plans the whole event.

To bring: {thing}.
For each child: {thing}.
{thing} should be in every bag.
{thing} must not be forgotten.
What do children have to bring? Only {thing}.
Nothing is needed but {thing} for each child.
Pack {thing} for your child.
We ask every child to bring {thing} (along|from home).
Have {thing} ready for your child on that day.
It will be no fun for a child without {thing}.
We take care of the rest, but {thing} must come from home.
The teachers would like every pupil to have {thing}.
""",
    "library": """
{library} library: closed from {date}. Reason: {works}.
Closing day: {date}. Reason: {works} at the {library} library.
{date} is the day when the {library} library closes, because of {works}.
{works} will force the {library} library to close on {date}.
Why does the {library} library close on {date}? Because of {works}.
Readers find the {library} library shut from {date}; the reason is {works}.
As there will be {works}, we close the {library} library on {date}.
On {date} we lock the doors of the {library} library; the cause is {works}.
With {works} to deal with, the {library} library shuts on {date}.
There is a reason why the {library} library closes on {date}: {works}.
The {library} library says goodbye to its readers on {date} for a while, due to {works}.
Nobody can get into the {library} library from {date}, all because of {works}.

Reopening: {date2}.
{date2} is the day on which we reopen.
When do we open again? On {date2}.
We will be back on {date2}.
The break ends on {date2}, when the doors open.
You will have to do without us until {date2}.
You can borrow books again from {date2}.
Normal opening hours start again on {date2}.
On {date2} we are there for you again.
We hope to welcome you back on {date2}.
After the break, readers can come in again from {date2}.
The lights go on again on {date2}, and everything is as before.

Returns: {spot}.
Where to return books: {spot}.
{spot}, that is where books go back.
Where do books go? They can be left {spot}.
Books that are due should be left {spot}.
You have finished a book? Leave it {spot}.
Borrowed books may be handed in {spot}.
Anything you have borrowed can be given back {spot}.
You need not keep your books at home: leave them {spot}.
Leave your borrowed books {spot} and we will do the rest.
We take books back {spot}.
To give a book back, just leave it {spot}.
""",
    "recipe": """
{dish} for {people}.
Dish: {dish}. Serves: {people}.
What are we cooking? Today it is {dish} for {people}.
{people} can eat their fill of {dish}.
{people} are coming? Then make {dish}.
If {people} are coming to dinner, try {dish}.
How do you make {dish} for {people}? Read on.
The amounts below make {dish} for {people}.
I often cook {dish}, and this is enough for {people}.
To feed {people}, you can make {dish}.
Let me tell you how to prepare {dish} for {people}.
My guests love {dish}, so I wrote this down for {people}.

Ingredients: {ingredient} and {ingredient2}. Mix them (well|by hand).
{ingredient} and {ingredient2} are mixed first.
{ingredient} must be mixed with {ingredient2}.
{ingredient} in a bowl, {ingredient2} on top, then mix.
Add {ingredient2} to {ingredient} and mix (well|everything).
What do you mix? Take {ingredient} and {ingredient2}.
The mixture is made of {ingredient} and {ingredient2}.
You begin by mixing {ingredient} with {ingredient2}.
Weigh {ingredient}, then mix in {ingredient2}.
Get out {ingredient} and {ingredient2} and mix everything.
Stir {ingredient2} into {ingredient} (little by little|with a spoon).
Let the children mix {ingredient} with {ingredient2}.

Oven: {oven}. Time: {minutes}.
Baking time: {minutes} at {oven}.
{oven} and {minutes}: that is how it is baked.
{minutes} at {oven} will be enough to bake it.
How long does it bake? {minutes}, at {oven}.
At {oven} it is done after {minutes}.
After {minutes} at {oven} it is ready.
Heat the oven to {oven}; it will be baked after {minutes}.
While it bakes at {oven} for {minutes}, you can rest.
Give it {minutes} at {oven}, and it will be brown and crisp.
You can take it out after {minutes} if the oven is at {oven}.
The oven should be at {oven}, and the baking takes {minutes}.

On the side: {side}.
To serve: {side}.
{side} should be on the table too.
{side} can be served with it, and nothing else is needed.
What goes with it? We like {side}.
It comes to the table with {side}.
Before it is served, add {side}.
It tastes best with {side}.
I would never eat it without {side}.
At the end, put some {side} next to it.
With {side} it is perfect.
Most people enjoy it with {side}.
""",
    "quarter": """
{company}: sales of {money} in {quarter}.
Sales of {company} in {quarter}: {money}.
{quarter} brought {company} sales of {money}.
{quarter} was a busy time for {company}, with sales of {money}.
{money} in sales: this is what {company} achieved in {quarter}.
Sales worth {money} were made by {company} in {quarter}.
How much did {company} sell in {quarter}? The answer is {money}.
Customers spent {money} at {company} in {quarter}.
The books of {company} show sales of {money} for {quarter}.
{company} took in {money} from sales during {quarter}.
As {company} told the press, sales in {quarter} reached {money}.
When {quarter} was over, {company} had made sales of {money}.

Compared to the year before: {change}.
Change from last year: {change}.
{change} than in the same months of last year.
{change} than a year ago: that is the result.
How does that compare with a year ago? It is {change}.
In a comparison with last year, this is {change}.
If you look back a year, sales are {change} today.
Sales turned out {change} than a year earlier.
Nobody expected the result to be {change} than in the year before.
Seen next to last year, the result is {change}.
It was not like last year: sales were {change} this time.
The total has moved since last year: it is now {change}.

Reason: {reason}.
Main reason - {reason}.
{reason} made the difference.
{reason} led to this (result|figure).
Why is that so? Because of {reason}.
The result was caused by {reason}.
The explanation is simple: {reason}.
It was {reason} that brought about this result.
The firm owes this to {reason}.
Without {reason}, the result would have looked different.
Many things play a part, but above all {reason}.
What lies behind it? The board points to {reason}.

Next step: {plan}.
To {plan} is the next goal.
To {plan}: that is the plan for the coming months.
What comes next? The company is going to {plan}.
Looking ahead, the firm intends to {plan}.
The management has made up its mind to {plan}.
The plan for the future is to {plan}.
Its plan to {plan} was welcomed (by the staff|by investors|by many).
Despite some doubts, the board wants to {plan}.
The head of the company announced that it is going to {plan}.
The decision to {plan} has already been taken.
Shareholders were told that it will {plan} soon.
""",
    "museum": """
Tour of the {museum} museum: {clock}.
{clock} is the starting time of the tour of the {museum} museum.
When does the tour of the {museum} museum start? At {clock}.
Be there at {clock} if you want to join the tour of the {museum} museum.
The {museum} museum invites you to a tour at {clock}.
If you come to the {museum} museum at {clock}, you can join the tour.
At the {museum} museum, the group for the tour sets off at {clock}.
Do you want to see the {museum} museum? The tour starts at {clock}.
Guests who wish to tour the {museum} museum should be there at {clock}.
The walk through the {museum} museum begins at {clock}.
The {museum} museum can be seen on a tour, which leaves at {clock}.
Set your watch: at {clock} we tour the {museum} museum.

Guide: {person}.
Tour guide - {person}.
Who leads the tour? {person}.
{person} takes you round.
{person}, who knows every room, leads the tour.
You follow {person} from room to room.
With {person} as guide, nobody gets bored.
At the front walks {person}, the guide.
The tour is in the hands of {person}.
It is {person} who shows the visitors round.
The tour is given by {person}, who has worked here for years.
Your questions on the way will be answered by {person}, the guide.

Highlight: {exhibit}.
The star of the house: {exhibit}.
{exhibit} is the highlight.
{exhibit} is what everyone wants to see.
What is the highlight? It is {exhibit}.
Nothing here is as famous as {exhibit}.
Of all the things on show, {exhibit} is the most popular.
People travel far to see {exhibit}, our greatest treasure.
Many like the old letters, but the real highlight is {exhibit}.
{exhibit} is the pride of the museum.
Cameras come out in front of {exhibit}, the star of the collection.
The best comes last: {exhibit}.

Length: {minutes}. Price: {euros}.
Ticket: {euros}. Time: {minutes}.
{minutes} for {euros}: that is what you get.
{euros} is the price of a ticket, and {minutes} is the length of the walk.
{euros} buys you a tour of {minutes}.
How long is it, and what does it cost? {minutes} and {euros}.
After {minutes} it is over, and you will have paid {euros}.
Tickets are sold for {euros}, and you should have {minutes} to spare.
We charge {euros} for a round that lasts {minutes}.
With {minutes} of time and {euros} in your pocket you can join.
Each visitor pays {euros} and is busy for {minutes}.
Some find {minutes} too long and {euros} too much, but it is worth it.
""",
    "lost": """
Found: {item}. Where: {place}. When: {day}.
Found on {day} in {place}: {item}.
{item} was lying in {place} on {day}.
{item} turned up in {place} on {day}.
{item} has been waiting for its owner since it was found in {place} on {day}.
{place} is where {item} lay when we looked round on {day}.
{day} was the day when {item} was found in {place}.
Did you lose {item}? It was found in {place} on {day}.
While cleaning {place} on {day}, we came across {item}.
The cleaning team handed in {item} that they found in {place} on {day}.
On {day}, someone must have forgotten {item} in {place}, where we found it.
If you were in {place} on {day}, {item} that we found there may be yours.

Kept by {person} {spot}.
Keeper: {person}. Where: {spot}.
{person} is looking after it {spot}.
Where is it now? {person} has it safe {spot}.
Who has it? {person} does, {spot}.
{spot} you will find {person}, who has it.
For safety, {person} keeps it {spot}.
The finder gave it to {person}, and it is kept {spot}.
Safe and dry {spot}: that is where {person} keeps it.
Turn to {person}, who is holding on to it {spot}.
It was placed in the care of {person} {spot}.
If it is yours, speak to {person}, who looks after it {spot}.

Kept until: {date}.
Last day to collect it: {date}.
{date} is the last day on which you can get it.
How long do we keep it? Until {date}.
Until {date} it stays with us.
It waits for its owner until {date}.
If nobody comes by {date}, it will be given to charity.
You have until {date} to come for it.
The rules say that we store it until {date}.
From today until {date} it can be claimed.
By {date} at the latest it must be picked up.
We will hold on to it until {date} and not a day longer.

To bring: {proof}.
Needed: {proof}.
{proof} is needed as proof.
{proof} must be shown by the owner.
What must the owner bring? Just {proof}.
Without {proof} we cannot hand it over.
Remember to take {proof} along.
We only give it to someone who shows {proof}.
So that it goes to the right person, we ask to see {proof}.
Anyone could say that it is theirs, so {proof} has to be shown.
An owner who comes with {proof} gets it at once.
If you say that it is yours, show us {proof}.
""",
    "email": """
From: {person}, {company}.
Sender: {person}. Company: {company}.
{person} is my name, and {company} is my employer.
{company} is the firm I work for, and my name is {person}.
Who is writing? I am called {person} and work at {company}.
Let me introduce myself: {person}, {company}.
I, {person}, write to you for {company}.
Greetings from {company}! My name is {person}.
This message comes from {person} at {company}.
You know {company}; I am the new person there, {person}.
I have been working for {company} for years, and my name is {person}.
A colleague gave me your address. I am {person}, employed at {company}.

Needed by {date}: {request}.
What we need: {request}. When: by {date}.
{request} should be here by {date}.
{request} must reach us by {date}.
{date} is the day by which we need {request}.
Can we have {request} by {date}?
My boss wants to see {request} by {date}.
On {date} at the latest we have to have {request}.
We are still waiting for {request}; {date} would be the last possible day.
We still lack {request}, and our deadline is {date}.
It is urgent: {request} must be on my desk by {date}.
Do you think that you could let us have {request} by {date}?

Reason: {occasion}.
{occasion} is the reason (for this|for my request|for this mail).
{occasion} makes this necessary.
{occasion} leaves us no choice.
Why do we ask? Because of {occasion}.
You may wonder why: it is because of {occasion}.
My request has to do with {occasion}.
It all has to do with {occasion}, which keeps us (very |)busy.
We have {occasion} to think of, that is why I ask.
Our hurry is due to {occasion}.
There is a good reason for the rush, namely {occasion}.
You have surely heard of {occasion}, which is why we are asking.

Phone: {extension}.
Telephone - {extension}.
{extension} is my number.
{extension} is the best way to reach me.
How can you reach me? On {extension}.
Just dial {extension} to speak to me.
Ring me on {extension} (any time|whenever you like).
I pick up the phone on {extension} every day.
If you would rather talk, dial {extension}.
It may be quicker to phone me: {extension}.
Calls to {extension} come straight to my desk.
You will get me on {extension} at almost any hour.
""",
    "maintenance": """
Out of service: {service}, {date}, {window}.
System: {service}. Down on: {date} {window}.
{date} {window}: the {service} is (off|down).
{window} on {date}, the {service} is not available.
When is the {service} down? On {date} {window}.
There will be no {service} on {date} {window}.
The {service} takes a break on {date} {window}.
You will have to do without the {service} on {date} {window}.
Do not try to use the {service} on {date} {window}, because it will not work.
The {service} cannot be used {window} on {date}.
Plan your day without the {service} on {date} {window}.
On {date} we take the {service} off the network {window}.

Purpose: to {work}.
Planned work: {work}.
To {work} is the purpose of all this.
To {work}, we need this break.
Why? Because we want to {work}.
What are we going to do? We will {work}.
The break gives us a chance to {work}.
Our experts have been asked to {work}.
We cannot wait any longer and must {work}.
It would be risky not to {work}, so we do it now.
In order to {work}, the technicians need some quiet hours.
After many complaints, we have decided to {work}.

Effect: {effect}.
{effect} in the meantime.
{effect} as long as the work goes on.
What does it mean for you? In the meantime {effect}.
You will notice that {effect}.
As a result, {effect}.
In those hours {effect}.
It cannot be helped that {effect}.
Users should know that {effect} for the time being.
We are sorry to say that {effect} until the work is over.
Everything else runs, but {effect}.
Because of the work, {effect}.

Contact: {person}, {extension}.
Questions? Call {person}, {extension}.
{extension} is where {person} answers your calls.
{extension} is the number of {person}, who can help.
Who can help? {person}, on {extension}.
{person} is there for you on {extension}.
{person} has all the answers; just dial {extension}.
{person}, who knows all the details, can be asked on {extension}.
In case of doubt, get in touch with {person} on {extension}.
Anyone with a question can ring {person} on {extension}.
Do not write a mail, but speak to {person} on {extension}.
Calls to {extension} go to {person}, who can tell you more.
""",
}

MORE_FILLERS: dict[str, str] = {
    "meeting": """
The last meeting was on {date}.
{person} would have liked to {decision}, but found no support.
An idea of the {team} team was mentioned only briefly.
The meeting before was held in {room}, which was too small.
{person} had led the group last year and now has other duties.
The minutes of {day} last week were read out by {person}.
""",
    "incident": """
At first {person} tried to help, but without success.
Somebody spoke of {cause}, but that was wrong.
Last year a similar repair took {minutes}.
In spring, {customers} had complained about the noise.
The {machine} next door was not damaged.
{person} had checked everything on {day} of the week before.
""",
    "news": """
A first plan for {cost} was dropped.
{person}, the former mayor, had always been against it.
There was not enough room for it in {street}.
Others had asked for {building} instead.
The neighbouring town of {town} has had one for years.
Opening it on {date}, as first planned, is not possible.
""",
    "weather": """
The water in the lake is at {degrees}.
A year ago it was {degrees} at this time.
Yesterday there was still {wind}.
Last week people in {town} had {sky}.
{person} from the weather station wrote this forecast.
The next forecast comes out on {day} morning.
""",
    "product": """
The old model cost {euros}.
A similar idea by {company} failed last year.
Work on it began on {date} last year.
A matching bag costs {euros} extra.
Some of the parts come from {company}.
The maker is already thinking about {product} for next year.
""",
    "travel": """
Next time we would like to go to {town}.
There was no time for {sight}.
{person} could not come with us this time.
Last year our holiday was only half as good, and we had {nights} of rain.
The people at the next table were talking about {food}.
My sister prefers to travel {transport}.
""",
    "project": """
The plan for this week had been {percent}.
Last year we still had to fight with {problem}, but that is over.
{person} had led the work before and has left the company.
The work began on {date} last year.
We will write about {project} in another report.
{person} looks after the money.
""",
    "sports": """
The last game between the two teams ended {score}.
{club} did not play this week.
{person} hit the bar before half-time.
The game a year ago was seen by {spectators}.
{person}, the hero of last week, sat on the bench.
The game on {date} had been called off.
""",
    "delivery": """
Your older {order} has been paid in full.
Other customers have also bought {goods}.
Delivery on {day}, as first planned, is not possible.
{person} packed the parcel.
Our shop in town is open {window}.
Please do not put empty boxes {spot}.
""",
    "school": """
{person}, the head teacher, will be there too.
There is no need for {thing} any more.
The door of {room} will be locked.
The cleaners come at {clock}.
Last year it was on {date}.
Our neighbours from {school} had {event} a year ago.
""",
    "library": """
The {library} library stays open all the time.
Last year there was a short break because of {works}.
The last book sale was on {date}.
The talk on {date} has been cancelled.
Bicycles can be left {spot}.
The newspapers of the day lie {spot}.
""",
    "recipe": """
{dish} can be made in the same way.
Let it cool for {minutes} before you cut it.
Last time I cooked for {people}, which was a lot of work.
Some people take {ingredient2} instead, but I do not.
My neighbour once tried it with {side}, but we did not like it.
For bread, the oven would need {oven}.
""",
    "quarter": """
{company}, a rival, will publish its figures later.
Old debts of {money} were paid back.
A report on {quarter} came out earlier.
The number of visitors to the website was {change} than planned.
An old plan to {plan} was given up.
Some had been afraid of {reason}, but that did not matter.
""",
    "museum": """
The museum closes at {clock}.
The film in the cellar lasts {minutes}.
A book about the house costs {euros}.
{person} runs the museum shop.
Another famous piece, {exhibit}, is not on show at present.
Our neighbour, the {museum} museum, is only a few steps away.
""",
    "lost": """
{item} from last month has already been collected.
The finder was {person}.
The office is closed on {date}.
Last time someone came with {proof}, but it was of no use.
Bicycles are kept {spot}.
Nothing was found in {place} this time.
""",
    "email": """
My colleague {person} sends best wishes.
We already have {request}, thank you.
I will be on holiday from {date}.
We also work with {company}.
Please do not use {extension} any more, as nobody is there.
Last time it was about {occasion}, if you remember.
""",
    "maintenance": """
The {service} is not affected.
{person} worked out the plan.
The last break was on {date}.
Last time we had to {work}.
The old number, {extension}, is no longer in use.
The help desk is open {window} every day.
""",
}


def parted(facts: str) -> list[list[str]]:
    """The wordings of each fact of a text in the form of `Kind.facts`."""
    return [fact.split("\n") for fact in facts.strip().split("\n\n")]


def slots(wording: str) -> set[str]:
    return set(re.findall(r"{(\w+)}", wording))


def further(kind: Kind) -> list[list[str]]:
    """The wordings in `MORE`, `FURTHER` and the text files of each fact of `kind`. A ValueError if they are not about
    the same values."""
    facts = parted(kind.facts)
    more = [
        [*some, *others, *wordings(f"summaries.{kind.name}.{number}")]
        for number, (some, others) in enumerate(zip(parted(MORE[kind.name]), FURTHER[kind.name], strict=True))
    ]
    if len(facts) != len(more):
        raise ValueError(f"{kind.name} has {len(facts)} facts, but further wordings for {len(more)}")
    for (wording, *_), others in zip(facts, more, strict=True):
        if wrong := [other for other in others if slots(other) != slots(wording)]:
            raise ValueError(f"of other slots than {wording!r}: {wrong}")
    return more


if {kind.name for kind in KINDS} != set(MORE) or set(MORE) != set(MORE_FILLERS):
    raise ValueError("further wordings and fillers are needed for each kind")
