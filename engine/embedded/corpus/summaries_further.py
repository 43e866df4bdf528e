"""Wordings of the facts of `summaries_words` beside those of `summaries_more`, for training alone."""

from __future__ import annotations

from engine.embedded.corpus.manner import items

FURTHER: dict[str, tuple[tuple[str, ...], ...]] = {
    "meeting": (
        items("""
            According to the minutes, {room} was where the {team} team sat together on {day}. / Our colleagues from
            the {team} team spent (most of |half of |){day} in {room}, as a meeting had been called. / {room} had been
            booked by the {team} team, whose meeting fell on {day}. / There was a meeting on {day}: the {team} team
            had invited everyone to {room}. / Which team met on {day}? It was the {team} team, and {room} was the
            place. / Where was the {team} team on {day}? Its members were sitting in {room}, for a meeting. / It was
            on {day} that {room} saw the {team} team at work around one table. / Chairs had to be carried into {room}
            on {day}, so many people came to the meeting of the {team} team. / In short: {day}, {room}, a meeting, and
            the {team} team (as good as |almost |)complete. / "See you in {room} on {day}," the {team} team had been
            told, and so the meeting began on time there. / Minutes of {day}, written in {room} for the {team} team. /
            Room used: {room}. Meeting day: {day}. Group: the {team} team. / Other groups met elsewhere, while {room}
            was kept for the {team} team on {day}. / The weekly round of the {team} team, normally held online,
            brought people to {room} on {day}. / Those who belong to the {team} team were asked to come to {room} for
            a meeting on {day}. / Members of the {team} team walked over to {room} on {day} in order to hold their
            meeting. / A meeting was held on {day}, with {room} as the place and the {team} team around the table. /
            Coffee was served in {room} on {day} while the {team} team went through its list of topics.
        """),
        items("""
            "Let us {decision}," said the chair, and that is what was decided. / All hands went up for the proposal to
            {decision}. / What the team is going to do is clear now: {decision}. / Instead of waiting another year,
            the team chose to {decision}. / There is a decision at last, namely to {decision}. / Of the three options
            on the table, the one to {decision} won (by a wide margin|by one vote|easily). / Nothing else was decided
            that day except to {decision}. / A decision was reached to {decision}, with two votes against it. / It
            took an hour to agree, but we now have a decision to {decision}. / Should we wait or {decision}? The
            answer of the team was to do it (now|soon|at once). / We talked about many things, and one thing was
            decided: to {decision}. / The minutes record a decision to {decision}. / Agreed by all: {decision}. / Vote
            of the day: {decision}, yes or no? Yes. / By the end of the meeting the choice had been made to
            {decision}. / As a first step, so the decision says, the team is to {decision}. / That we should
            {decision} was the view of nearly all, and so it was agreed. / Once the figures were on the table, it did
            not take long until the team decided to {decision}.
        """),
        items("""
            With {person} at the top, {task} is in safe hands. / It is {person} who was asked to lead {task}. / Leader
            of {task}: {person}, as agreed. / {task} has a new leader, and the name is {person}. / Asked who could
            lead {task}, the team named {person}. / "I will do it," said {person}, and so became the leader of {task}.
            / "Who takes {task}?" was the question, and {person} put up a hand. / Nobody is better suited to lead
            {task} than {person}, the team thinks. / The leadership of {task} passes to {person}. / {person} accepted
            the offer to lead {task}. / For {task} we needed somebody to take the lead, and we found {person}. / In
            future {person} will look after {task} and report on it. / {task} now lies with {person}, who has led such
            things before. / When {task} begins, the one in the lead will be {person}. / By the wish of all, {person}
            was put in charge of {task}. / Several people help with {task}, but only {person} leads it. / On the list
            of jobs we find {task} and, behind it, {person} as the leader. / {person} was (thanked for being|praised
            for being|found) ready to lead {task}.
        """),
        items("""
            Come back on {date}, because that is when we meet next. / Date to remember: {date}, our next meeting. / It
            will be {date} before the team meets again. / In the calendar you will find the next meeting under {date}.
            / "Until {date}, then," said the chair at the end, as that is our next meeting. / There is one more date
            to write down, {date}, for the meeting that follows this one. / The round after this one was planned for
            {date}. / Nobody had anything against {date} as the day of the next meeting. / With the next meeting set
            for {date}, there is enough time to prepare. / Whoever has new topics can bring them along on {date}, when
            the next meeting takes place. / Then, on {date}, it will be time to meet again. / We go on with the open
            points at our next meeting, {date}. / A second meeting on the same matters was called for {date}. / All
            reports must be ready for {date}, because that is the day of our next meeting. / Is {date} too soon for
            another meeting? The team thinks not, so it stays at that. / {date} suits all of us, so that is when we
            meet again. / The next time we meet will be {date}. / The meeting was closed, and the next one announced
            for {date}.
        """),
    ),
    "incident": (
        items("""
            According to the log, {place} had a problem on {day}: at {clock} the {machine} {failed}. / It
            was in {place} that the {machine} {failed}, and the clock showed {clock} on {day}. / The log
            entry of {day} reads: "{clock}, {machine} in {place} {failed}." / {place} called for help on
            {day}, since the {machine} there {failed} at {clock}. / On the {day} shift, {clock}, nobody in
            {place} was prepared for it: the {machine} {failed}. / The {machine} that we run in {place}
            {failed}, to be exact on {day} at {clock}. / Around the coffee corner in {place} all was calm
            until {clock} on {day}, when the {machine} {failed}. / Which machine was it? The {machine} in
            {place}, which {failed} on {day} at {clock}. / When did it happen? On {day} at {clock}, in
            {place}, the {machine} {failed}. / Machine: {machine}. Site: {place}. Date: {day}. Hour:
            {clock}. It {failed}. / "The {machine} {failed}," we heard from {place} at {clock} on {day}. /
            Of all the machines in {place}, it was the {machine} that {failed} on {day}, at {clock}. / This
            report is about the {machine}, which {failed} in {place} at {clock} on {day}. / At {clock}
            somebody in {place} noticed, on {day}, that the {machine} {failed}. / There was bad luck in
            {place} at {clock}, as the {machine} {failed} on that {day}. / The week had gone well for
            {place}, but on {day}, at {clock}, its {machine} {failed}. / {clock} was the time and {day} the
            day on which the {machine} {failed} in {place}.
        """),
        items("""
            It happened because of {cause}. / "It was {cause}," the expert told us. / It all goes back to {cause}. /
            What caused it? Our people found {cause}. / Without {cause}, nothing would have happened. / There is no
            doubt about the cause, {cause}. / The culprit was found quickly: {cause}. / It was not the fault of anyone
            on duty but of {cause}. / As the cause, the report names {cause}. / If there had not been {cause}, we
            would have had a quiet day. / After opening the cover, they saw the cause at once: {cause}. / We first
            suspected something else, yet {cause} turned out to be the cause. / Everything points to {cause} as the
            origin of the failure. / The failure can be explained by {cause}. / Such things come from {cause}, and so
            it was in this case. / {cause}, nothing more, was the reason. / The trigger was {cause}, according to the
            log. / Somebody had to find the cause, and what they found was {cause}.
        """),
        items("""
            It was {person} who repaired it, and {minutes} were all the time needed. / The repair lasted {minutes},
            thanks to the skill of {person}. / There was no quick way, but {person} got the repair done in {minutes}.
            / Give {person} a tool box and {minutes}, and the thing is repaired, as we saw. / It stood still for
            {minutes} before being repaired by {person}. / {minutes} of repair work by {person} put an end to the
            trouble. / We called {person}, and {minutes} later it was fixed. / How long did the repair take {person}?
            {minutes}. / "Done," said {person} after {minutes}, and it ran again. / Technician: {person}. Out of use
            for: {minutes}. / According to the log, {person} closed the case as repaired after {minutes}. / The job of
            repairing it fell to {person}, who was through with it after {minutes}. / Luckily {person} was near, and
            so it only took {minutes} to repair. / Time lost until the repair by {person} was finished: {minutes}. /
            Nobody else knew what to do, but {person} repaired it, and only {minutes} had passed. / In less time than
            we had feared, namely {minutes}, {person} repaired the damage. / With new parts in hand, {person} set to
            work and finished the repair after {minutes}. / Had {person} not come, it would have been longer than the
            {minutes} that the repair took.
        """),
        items("""
            It affected {customers}. / Among those who called us were many of the {customers} who were affected. /
            "What about us?" asked {customers}, all of them affected. / We counted the cases, and {customers} were
            affected. / The list of those affected is long: {customers}. / There were {customers} on whom it had an
            effect. / How big was the effect? It reached {customers}. / In the meantime, {customers} waited for things
            to work again. / To {customers} we could offer nothing while it lasted. / No one was hurt, but {customers}
            felt the failure. / The failure was felt by no more than {customers}. / Of all our clients, {customers}
            suffered from it. / As a consequence, {customers} could not be served (in time|as usual). / Service was
            cut for {customers} until the end of the repair. / A total of {customers} had to be patient. / Our
            apologies go to {customers}, whom this failure affected. / Those who suffered were {customers}, as far as
            we can tell. / When we added up the numbers, we got to {customers} touched by the failure.
        """),
    ),
    "news": (
        items("""
            At the last meeting of the council, {town} voted for {building}, to be built in {street}. / It is
            {building} that {town} has decided to build in {street}. / It is in {street} that {town} wants to put
            {building}. / "We want {building} in {street}," people in {town} said for years, and now they get it. /
            Council of {town} says yes: {building} for {street}. / Where will {building} stand? In {street}, says the
            council of {town}. / What does {town} get? It gets {building}, and the place for it is {street}. / The
            empty piece of land in {street} will be used for {building}, as {town} has announced. / Those who live in
            {street} will have new neighbours, as {town} plans {building} there. / Site: {street}. What is built:
            {building}. Who builds it: the town of {town}. / Until now there was nothing like it in {town}, but soon
            {building} can be found in {street}. / Children and parents in {town} are happy about {building}, which is
            planned for {street}. / With {building} in {street}, life in {town} will change. / An old dream of {town}
            comes true in {street}: {building}. / Other places can only dream of it, but {town} will have {building}
            in {street}. / According to our reporter in {town}, {street} will be the home of {building}. / {street}
            will be closed to cars for a time, because {town} builds {building} there. / A sign in {street} tells the
            people of {town} that {building} is on its way.
        """),
        items("""
            It comes at a cost of {cost}. / "It will cost us {cost}," we heard from the council. / Is {cost} too much?
            The council thinks that this price is fair. / The town has put {cost} aside to pay for it. / How high is
            the bill? It is {cost}. / There is a price to pay, which is {cost}. / Of the money in this year's budget,
            {cost} goes into it. / At {cost}, it is one of the most expensive things that the town has ever built. /
            For the money, {cost}, you could build a lot of homes, some say. / To pay the {cost} that it costs, the
            town must save elsewhere. / Total costs: {cost}. / Money needed - {cost}. / The builders ask for {cost},
            and the town will pay. / All in all, including the street lights, it costs {cost}. / Nobody knows for
            sure, but {cost} is the cost that the plan gives. / A year ago the figure was different; today we hear
            that it costs {cost}. / That the town will spend {cost} on it has made some people angry. / The offer that
            won was for {cost}, and this is what will be paid.
        """),
        items("""
            It will be mayor {person} who opens it, and {date} is the day. / It is on {date} that mayor {person} will
            open it. / "Come on {date}, and I will open it for you," mayor {person} told the crowd. / {person}, who
            has been mayor for years, will hold the keys when it opens on {date}. / Opened by: mayor {person}. Opened
            on: {date}. / Who opens it, and when? Mayor {person}, on {date}. / There will be music and cake when mayor
            {person} opens it on {date}. / Mayor {person} keeps {date} free for the opening. / The opening by mayor
            {person} has been planned for {date}. / On {date} everyone may come and see how mayor {person} opens it. /
            To open it on {date} is the wish of mayor {person}. / Guests from all over the region will come on {date},
            when it is opened by mayor {person}. / In front of the press, mayor {person} announced the opening for
            {date}. / If the work goes as planned, it opens on {date}, and mayor {person} will speak. / As mayor,
            {person} has the honour of opening it on {date}. / No date before {date} was possible for the opening,
            mayor {person} explained. / The honour of opening it goes to mayor {person}, who will do so on {date}. /
            Between now and {date}, the day when mayor {person} opens it, much has to be done.
        """),
    ),
    "weather": (
        items("""
            Take a coat if you go to {town} on {day}, since {sky} will be there. / It is {town} that gets {sky} on
            {day}. / It will be {sky} that greets {town} on {day}. / "{town} gets {sky} on {day}," the weather service
            says. / What does {town} get on {day}? The answer is {sky}. / Who gets {sky} on {day}? {town} does. / We
            find {sky} in the forecast for {town}, and the day is {day}. / {day} in {town}: a day with {sky}. / Place:
            {town}. Day: {day}. Sky: {sky}. / According to the forecast, {day} means {sky} for {town}. / {sky} will
            cover {town} for most of {day}. / {sky} will move in from the coast and hang over {town} on {day}. / In
            and around {town}, the sky shows {sky} on {day}. / The week has been fine in {town}, yet {day} comes with
            {sky}. / Hardly anyone in {town} will like {day}, as it has {sky} in store. / On {day}, so the experts
            say, {town} has to live with {sky}. / Compared with other towns, {town} is unlucky on {day}, when it gets
            {sky}. / Those who wake up in {town} on {day} and look out of the window will find {sky}.
        """),
        items("""
            {degrees} in the afternoon is what our computer says. / "{degrees} and not one more," says the weather
            man. / Warmest value of the day: {degrees}. / We will see {degrees} on the thermometer. / The highest
            temperature of the day is {degrees}. / How cold or warm is it? You can expect {degrees}. / There will be
            temperatures of {degrees}. / As for the temperature, we reach {degrees}. / It is going to be {degrees},
            which is normal for the season. / The day will be {degrees} warm. / For this time of year, {degrees} is
            quite normal, and that is what we get. / The sun will only manage {degrees}. / By the early afternoon,
            {degrees} should be reached. / If you like {degrees}, this is your day. / Between breakfast and lunch it
            warms up, until {degrees} is the temperature. / No heat and no cold: we get {degrees}. / Measured two
            metres above the ground, it will be {degrees}. / Dress for a temperature of {degrees}.
        """),
        items("""
            Not only the clouds but also {wind} will be noticed. / It is {wind} that makes the day less pleasant. /
            "Watch out for {wind}," the coast guard says. / How does the wind blow? As {wind}. / There is also {wind}
            to think of. / A further part of the forecast: {wind}. / On the water you will meet {wind}. / In addition,
            we get {wind}. / Hats will fly, as there is going to be {wind}. / Those who ride a bike will feel {wind}.
            / Leaves will be blown about by {wind}. / On top of this, {wind} is coming. / For birds and sailors, there
            will be {wind}. / Even in the valleys {wind} can be felt. / As far as the wind is concerned, the day has
            {wind}. / The flag in front of our station already shows that {wind} is coming. / Together with this, the
            experts speak of {wind}. / Doors may slam because of {wind}.
        """),
        items("""
            It will be {day2} before we get {outlook}. / It is on {day2} that {outlook} comes back. / "Wait for
            {day2}," say the experts, "and you will have {outlook}." / The day to look forward to is {day2}, with
            {outlook}. / What can we hope for on {day2}? For {outlook}. / Next on the list: {day2}, with {outlook}. /
            A look ahead shows {outlook} for us when {day2} is here. / By {day2} the worst is over, and {outlook} can
            be expected. / If you want {outlook}, you have to be patient until {day2}. / A change for the better comes
            on {day2}, when there is {outlook}. / The rest of the week looks good, as {outlook} arrives on {day2}. /
            We are promised {outlook}, and {day2} is the day. / Then the wind turns, so {day2} has {outlook}. /
            Gardeners will be glad about {day2}, because it brings {outlook}. / All signs point to {outlook} when
            {day2} comes. / Not tomorrow but on {day2}, people will get {outlook}. / Later on, namely on {day2}, we
            see {outlook} on our maps. / Following this, {outlook} takes over on {day2}.
        """),
    ),
    "product": (
        items("""
            It is {company} that has made {product}. / It is {product} that {company} wants to win new customers with.
            / What has {company} been working on? On {product}. / Which firm makes {product}? The answer is {company}.
            / "We have built {product}," says the head of {company}. / There is something new to buy: {product}, made
            by {company}. / Product of the month: {product}. Made by: {company}. / Behind {product} stands {company}.
            / {product} comes from {company}, as the press was told. / The name {company} now also stands for
            {product}. / In the shops you will soon see {product}, a new idea of {company}. / To the surprise of the
            press, {company} unveiled {product}. / {product} was shown to the public by {company}. / A small team at
            {company} had the idea for {product}. / Not a film but {product} was what {company} had to show. / For the
            first time in its history, {company} brings out {product}. / {company} wants to surprise the market, and
            it does so with {product}. / Among the new things at the fair was {product}, which {company} presented.
        """),
        items("""
            The new thing about it: it {feature}. / Ask the makers, and they will tell you that it {feature}. / There
            is one big plus, namely that it {feature}. / "It {feature}," the engineers say with pride. / Why buy one?
            Because it {feature}. / Is it any good? Well, it {feature}. / Here at last is something that {feature}. /
            We tested it ourselves and can say that it really {feature}. / In the words of the makers, it {feature}. /
            The feature that matters most is that it {feature}. / Others do not do it, but this one {feature}. / That
            it {feature} is its greatest strength. / As the leaflet says, it {feature}. / With its new design, it
            {feature}. / Advantage: it {feature}. / It was made in such a way that it {feature}. / Engineers took care
            that it {feature}. / If you ask what is so good about it, the answer is that it {feature}.
        """),
        items("""
            There is a price to pay, and it is {euros}. / It is yours for no more than {euros}. / "Only {euros}," say
            the ads. / Cost: {euros} each. / Buyers pay {euros} for one. / What do you have to pay? You pay {euros}. /
            Is {euros} too much for it? That is the price. / One of them costs {euros}. / The makers ask for {euros},
            tax and all. / In the shop, you have to put {euros} on the counter. / Put {euros} aside if you want to buy
            it. / Although some had guessed a higher price, it costs {euros}. / Compared with similar things, {euros}
            is a low price. / Whether you buy it online or in a shop, it costs {euros}. / In the price list it stands
            with {euros}. / Nobody has to pay more than {euros} for one. / A price of {euros} was announced. / You get
            it for {euros}, with a bag on top.
        """),
        items("""
            Until {date} nobody can buy it. / It is {date} when the first shops will sell it. / "On sale from {date},"
            the sign in the window says. / When do sales start? The date is {date}. / There is a date for the start of
            sales, {date}. / Sale begins: {date}. / In shops from {date}. / The first customers can take one home on
            {date}. / You can order now, but you can only buy it from {date}. / Some shops wanted to sell it sooner,
            but sales begin on {date}. / Between today and {date}, when sales start, the makers will build thousands
            of them. / The wait is over on {date}, when it goes on sale. / The start of sales was fixed for {date}. /
            If you want to be among the first buyers, be at the shop on {date}. / Selling starts on {date}, not
            earlier. / It reaches the shops on {date}. / From {date} on, anyone who wants one can get one. / Expect
            long queues on {date}, because it is the first day of sale.
        """),
    ),
    "travel": (
        items("""
            Today is {day}, and we are in {town}, to which we travelled {transport}. / It was {transport} that we
            reached {town} on {day}. / It was to {town} that we travelled {transport}, and we got there on {day}. /
            "{town}!" I cried on {day}, when we finally got there {transport}. / Where are we? In {town}, since {day},
            after a trip {transport}. / Dear all, I write from {town}: we came {transport}, and it was {day} when we
            got here. / On {day} we saw the roofs of {town} for the first time, tired from travelling {transport}. /
            Place: {town}. Arrived: {day}. How we travelled: {transport}. / Arriving in {town} {transport} is fun, as
            we found out on {day}. / We wanted to see {town}, so we set out {transport} and got there on {day}. / By
            the evening of {day}, our trip {transport} was over and we stood in {town}. / Travelling {transport} took
            us a long time, but {town} was reached on {day}. / On {day} a sign told us that we were in {town}, where
            we had come {transport}. / A year ago we only dreamt of {town}; on {day} we got there, {transport}. /
            Nobody believed that we could get to {town} {transport}, yet we did it on {day}. / The street to {town}
            was full on {day}, but we came {transport} and got in. / There are many ways to {town}; ours was
            {transport}, and we were there on {day}. / Since {day} our address has been {town}, and getting here
            {transport} was easy.
        """),
        items("""
            It was {person} who wanted us to see {sight}. / It was {sight} that {person} and we went to see. / "You
            have to see {sight}," {person} had told us, so we went there together. / What did we see with {person}? We
            saw {sight}. / With whom did we go to {sight}? With {person}. / My camera is full of pictures of {sight}
            and of {person}, who was with us there. / {sight} lay in front of us, and {person} stood next to me. / We
            had planned to sleep, but {person} made us go and see {sight}. / {person} and I stood in front of {sight}
            and said nothing for a while. / In the company of {person}, we saw {sight}. / Together with {person} we
            climbed a hill, from which we could see {sight}. / Before lunch, {person} came to our hotel, and we went
            to look at {sight}. / Seen today: {sight}. Seen with: {person}. / At {sight} we took a photo with
            {person}. / There was time for a walk with {person} and for {sight}. / The most beautiful thing so far is
            {sight}, which we saw with {person}. / The guide book says little about {sight}, but {person} knew a lot
            about it as we stood there. / {person} had never seen {sight} before and came along with us.
        """),
        items("""
            It was {food} that we had for dinner. / "{food}, please," I told the waiter, and we were not disappointed.
            / The menu was long, but we took {food}. / What was on our plates? It was {food}. / Have you ever tried
            {food}? We ate it for dinner. / Eaten today: {food}. / In a little place near the harbour we ate {food}. /
            For lunch there was {food}, which we liked a lot. / They cook {food} here, so that is what we ate. / A pot
            of {food} was put on our table, and soon it was empty. / Eating {food} in the sun was a joy. / The smell
            of {food} made us hungry, so we sat down and ate it. / We had never eaten {food} before. / Nothing fills
            you up like {food}, so we ate that. / There was no cake left, they said, but we got {food}, and it was
            fine. / While others had bread, we ate {food}. / Our first meal here was {food}. / I asked the cook how to
            make {food}, after we had eaten two plates of it.
        """),
        items("""
            It is {nights} that we will spend here. / "{nights}," I said when the man at the hotel asked how long we
            would stay. / There are {nights} to go before we travel home. / For the next {nights}, this is our home. /
            We have booked {nights} at a small hotel. / Nights booked: {nights}. / Staying for {nights} is not much,
            but we have no more time. / Is it enough to stay for {nights}? We think so. / In all, we stay {nights}. /
            Our stay: {nights}, no more. / We paid for {nights} when we arrived. / Only after {nights} will we pack
            our bags again. / The bed is good, and we will sleep in it for {nights}. / The length of our stay is
            {nights}. / It is so nice that we will not leave before {nights} are over. / Others leave after a day,
            while we stay for {nights}. / The hotel has a room for us for {nights}. / We told our neighbours that we
            would be away and stay here for {nights}.
        """),
    ),
    "project": (
        items("""
            According to the latest count, {percent} of {project} has been finished. / It is {percent} that we have
            reached with {project}. / {project} is not ready yet, but {percent} of it is. / "{percent} of {project} is
            done," I can report today. / How much of {project} is done? The figure is {percent}. / Status: {project},
            {percent} done. / Project: {project}. Finished so far: {percent}. / There is progress with {project},
            {percent} of which is complete. / Of all the work on {project}, {percent} is behind us. / For {project} we
            can report that {percent} is finished. / A year ago there was only a plan for {project}, and now {percent}
            of it is done. / With {project} we have come as far as {percent}. / On our chart, {project} has a green
            bar that stands at {percent}. / The good news about {project} is that {percent} has been completed. / It
            took a lot of work to bring {project} to {percent}. / At the moment, {project} can be called {percent}
            finished. / If you divide {project} into a hundred parts, we have done {percent}. / We call {project} a
            success so far, with {percent} of the work done.
        """),
        items("""
            The largest of our worries these days is {problem}. / It is {problem} that gives us most trouble. / "Our
            main problem? It is {problem}," says everyone you ask. / What holds us up? Mostly {problem}. / If we had a
            free wish, we would get rid of {problem}, our main problem. / On the list of problems, {problem} comes
            first. / No other problem is as big as {problem}. / There are small problems too, but the big one is
            {problem}. / Problem: {problem}. / Trouble spot - {problem}. / The thing that troubles us most is
            {problem}. / We could be faster, but {problem} keeps us back. / Much time has been lost through {problem},
            which is our main problem. / Because of {problem}, more than for any other reason, we are slow. / Our main
            problem has a name: {problem}. / The team has learnt to live with many things, but not with {problem}. /
            As the main problem, we have to name {problem}. / Ask anyone in the team about problems, and you will hear
            of {problem} first.
        """),
        items("""
            It is {person} who is in charge. / "{person} is in charge here," you will be told if you ask. / The person
            in charge is called {person}. / If something has to be signed, it goes to {person}, who is in charge. /
            Name of the person in charge: {person}. / Head of project - {person}. / Who has the last word? {person}
            has, being in charge. / Nobody but {person} is in charge. / With {person} in charge, the team feels safe.
            / In charge of everything you find {person}. / There is one person in charge, namely {person}. / Being in
            charge, {person} has a lot to do. / The team is led by {person}, in whom we trust. / We were looking for a
            leader, and {person} took the job. / Everything is run from the desk of {person}, who is in charge. / Our
            people do what {person} says, as the one in charge. / Others come and go, but the one who leads the work
            is {person}. / The job of running all this was given to {person}.
        """),
        items("""
            It is {date} when the work ends. / "By {date} we are done," we told the customer. / There is still time
            before {date}, when the work has to be finished. / The work, according to the plan, ends on {date}. / When
            does the work end? The plan says {date}. / Time left for the work: until {date}. / Finish - {date}. / On
            {date} the tools go back into the box, because the work ends then. / If the plan holds, {date} is when we
            finish. / We will be finished on {date}. / No work is planned after {date}, when all must be ready. / The
            end of the work is planned for {date}. / Our plan has a last line, and it says: {date}, everything
            finished. / Another week would be nice, but the work must end on {date}. / The customer gave us time until
            {date} to complete the work. / All tasks have to be closed when {date} comes. / Before the work ends on
            {date}, there is much to do. / The day on which we finish is {date}.
        """),
    ),
    "sports": (
        items("""
            It was {club} who went home happy on {day}, as {rival} were beaten {score}. / It was {rival} who had to
            bow to {club} on {day}, and the score was {score}. / {rival} came with high hopes on {day}, but after
            ninety minutes {club} had won {score}. / {rival} on {day}: a {score} loss, with {club} as the winners. /
            {rival} left the pitch on {day} with heads down, since {club} had outplayed them {score}. / Too weak were
            {rival} for {club}, who took the game {score} on {day}. / The match of {day} had a clear winner in {club},
            with {rival} losing {score}. / "{score}!" shouted the fans of {club} on {day}, after {rival} had been
            defeated. / How did {club} play against {rival} on {day}? They won {score}. / Against {rival}, the team of
            {club} won {score}, and it all happened on {day}. / Three points went to {club} on {day}; {rival} got
            nothing out of a game that ended {score}. / The points stayed with {club}, because {rival} went down
            {score} on {day}. / Home fans saw {rival} play well on {day}, yet the {score} win belonged to {club}. /
            Final result of {day}, {score}: {club} first, {rival} second. / The duel between {rival} and {club} on
            {day} was won by the latter, {score}. / Neither rain nor {rival} could stop {club} on {day}, and so they
            won {score}. / On {day}, {score} was the final score of a match which {club} won and {rival} lost. /
            Revenge for {club}: they sent {rival} home {score} on {day}. / A defeat for {rival}: they lost on {day},
            {score}, to a strong side from {club}. / In a match full of chances, {club} had the better of {rival} on
            {day} and left with a {score} win.
        """),
        items("""
            It was {person} whose shot won the game. / It was {person} who got the winning goal. / Goal of the day,
            and the winner: {person}. / Hero of the match: {person}, with the winning goal. / "I just closed my eyes
            and hit it," said {person}, who had scored the winning goal. / Whose goal won the game? It was that of
            {person}. / A pass, a turn, a shot: {person} had the winning goal. / The goal that gave them the win
            carried the name of {person}. / There was one goal that decided it all, and it came off the foot of
            {person}. / Asked about the winning goal, {person} only smiled and thanked the team. / The keeper could do
            nothing when {person} scored the goal that won the match. / From the penalty spot, {person} shot the
            winning goal. / Until {person} scored the winning goal, it was an open game. / By scoring the goal that
            won it, {person} made up for an early mistake. / When the ball came to {person}, it was clear what would
            happen: the winning goal. / As so often this season, the winning goal was one for {person}. / With the
            head, {person} put in the goal that won the game. / Somebody had to score the winning goal, and {person}
            did. / All goals were nice, but the one that won the game was scored by {person}.
        """),
        items("""
            Never before had there been so many people in the ground: {spectators}. / It was {spectators} that filled
            the ground. / "Thank you, all {spectators}," a voice said at the end of the game. / How full was it? The
            club speaks of {spectators}. / In front of {spectators}, the game was fun to watch. / Before a crowd of
            {spectators}, the teams showed what they can do. / There were seats for all of the {spectators} who came.
            / Present at the game: {spectators}. / Spectator count - {spectators}. / Songs were sung by {spectators}.
            / The noise was made by {spectators}. / The number of people in the stands was given as {spectators}. /
            Because the sun was out, {spectators} came to see the game. / When the whistle blew, {spectators} stood up
            and clapped. / The gates had to be closed after {spectators} had come in. / According to the club,
            {spectators} were present. / Half an hour before the start, {spectators} were already in their seats. /
            Few games are seen by as many people as this one, which had {spectators}. / The players thanked the
            {spectators} who had come.
        """),
        items("""
            It will be {date} before the team plays again. / It is on {date} that they play their next match. / "We
            must be ready for {date}," the coach said about the next match. / After this one, there is a match on
            {date}. / Date of the next game: {date}. / Coming up: a match on {date}. / The coach already thinks of
            {date}, when the next match has to be played. / Tickets for {date}, the day of the next match, are on sale
            now. / Is there another match soon? Yes, on {date}. / There is a rest until {date}, when a new match
            begins. / If you missed this game, come to the next one on {date}. / The next time the team runs out is on
            {date}. / The team can train in peace, because the next match is not until {date}. / As the plan of the
            league shows, the next match comes on {date}. / The bus to the next match leaves on {date}, the day on
            which they play. / They will be seen in action again on {date}. / Next in the calendar is a game on
            {date}. / Fans already talk about {date}, when the next game is played.
        """),
    ),
    "delivery": (
        items("""
            It is your {order} that we write about, and {goods} is what you will get. / We have good news about
            {goods}: your {order} is packed and on its way. / {goods}, packed with care: this is your {order}. / You
            were waiting for {goods}, and now we have sent it all as your {order}. / Number on the box: {order}. In
            the box: {goods}. / What is in your {order}? It is made up of {goods}. / What about {goods}, the things
            you ordered? Your {order} is coming. / In your {order} you asked for {goods}, and our driver has
            everything now. / "Please send me {goods}," you wrote, so we opened {order} for you. / There is a parcel
            for you: it holds {goods} and belongs to your {order}. / According to our list, your {order} consists of
            {goods}. / With your {order} you chose {goods}, which is what we are sending. / Everything is in the box,
            that is, {goods}, just as your {order} says. / Our team in the store looked for {goods} and got your
            {order} ready. / We have checked your {order}: it has {goods} in it, as it should. / On the road for you
            we have {goods}; this belongs to your {order}. / For {goods}, the content of your {order}, we needed a
            strong box. / You paid for {goods} last week, and your {order} is on the road today.
        """),
        items("""
            It is on {day} that we come, {window}. / It will be {day} when it gets to you, {window}. / "{day},
            {window}," says the plan of our driver, so please be in. / At what time? {window}, and the day is {day}. /
            Which day? It is {day}, and our van comes {window}. / Your delivery day is {day}; we will be with you
            {window}. / Van: {day}, {window}. / There will be a knock at your door on {day} {window}. / Keep {day}
            free for us, because we deliver {window}. / Somebody must be in on {day}, as the van is due {window}. /
            Please do not go out on {day} {window}, when we want to deliver. / On {day} we drive through your part of
            town and reach you {window}. / The plan says {day}, and more exactly, {window}. / All being well, {day} is
            when you get it, {window}. / We cannot tell you the minute, but it will be {window} on {day}. / The time
            of the delivery is {window}, and {day} is the date. / No later than {day}, and {window}, it will be yours.
            / We have chosen {day} for you; our van stops at your house {window}.
        """),
        items("""
            It is {person} who delivers it. / "Hello, I am {person}," you will hear from your driver. / There will be
            a driver at your door, {person}. / Name of the driver: {person}. / Delivered by: {person}. / Who is the
            driver? It is {person}. / We have given the parcel to {person}, who drives to your street. / You may know
            {person}, the driver of our van. / From {person} you will get the parcel. / Delivery is the job of
            {person}. / If a van stops, it will be {person}, who delivers your parcel. / The one who rings your bell
            with the parcel will be {person}. / Our best driver, {person}, brings it. / {person} has been driving for
            us for years and now comes to you. / The person at your door with the parcel is {person}. / As your usual
            driver is on holiday, {person} comes with the parcel. / The box is heavy, but {person} will carry it to
            your door. / The delivery will be made by {person}.
        """),
        items("""
            It is {spot} that we leave it when you are away. / "Leave it {spot}," you wrote, and so we will. / {spot}
            is the place that you chose for the parcel. / What if nobody is in? It is then left {spot}. / There is a
            safe place for it {spot}, if you are not in. / Nobody at home: {spot}. / Parcel to be left - {spot}. /
            When no one opens, the box goes to its place {spot}. / Our driver will look for a dry place {spot} and
            leave it there. / You agreed that the parcel waits {spot} in such a case. / As noted on your order form,
            it should be left {spot}. / On your wish, our driver leaves it {spot}. / Should the door stay shut, the
            parcel is left {spot}. / So that it does not get wet, it will be left {spot}. / Unless you open the door,
            it will be left {spot}. / After ringing twice, the driver will leave the parcel {spot}. / A card in your
            letter box will tell you that it was left {spot}. / Even if you are asleep, you will get it, since we
            leave it {spot}.
        """),
    ),
    "school": (
        items("""
            It is {event} that {school} holds on {date}. / It is {school} that invites you to {event}, and the date is
            {date}. / "Will you come to {event}?" the children of {school} ask, and they mean {date}. / When is
            {event} at {school}? It is on {date}. / What happens on {date}? There is {event} at {school}. / Who holds
            {event} this year? It is {school}, on {date}. / Once a year {school} has {event}, this time on {date}. /
            Parents whose children go to {school} should know about {event} on {date}. / Dear parents, {event} is
            coming to {school}, and we chose {date} for it. / Date: {date}. What: {event}. Who: {school}. / According
            to the plan for this year, {event} takes place at {school} on {date}. / With {event}, {school} opens its
            doors to all on {date}. / Lessons end early on {date}, since {school} has planned {event}. / At {school},
            the date of {event} has been fixed: {date}. / There is no school on {date} in the usual way, for {school}
            will have {event}. / A poster in the hall of {school} tells of {event} on {date}. / Neighbours of {school}
            may hear some noise on {date}, when there is {event}. / After weeks of work, {school} is ready to hold
            {event} on {date}.
        """),
        items("""
            It is in {room} that we begin, at {clock}. / It is {clock} when it starts, and {room} is where to go. /
            "{clock}, {room}," says the ticket. / Where does it start? In {room}, and the hour is {clock}. / When does
            it start? It starts at {clock}, and we use {room}. / There will be music in {room} from {clock}, when we
            begin. / Room: {room}. Start: {clock}. / By {clock} all should be seated in {room}. / Find your way to
            {room} before {clock}, as that is the start. / Not before {clock} can you get into {room}, where it
            starts. / The first song will be heard at {clock} in {room}. / The start has been fixed for {clock}, and
            all guests go to {room}. / From {clock}, {room} is open for everyone who wants to take part. / If you come
            to {room} at {clock}, you will not miss anything. / As it may rain, we use {room}, and we begin at
            {clock}. / When the clock shows {clock}, we start in {room}. / We have got {room} for ourselves and begin
            there at {clock}. / Please be on time: it is {clock} in {room}.
        """),
        items("""
            It is {person} who has organised it. / "I like to organise things," says {person}, who does it this year.
            / There is one person who organises all this, {person}. / By whom is it organised? By {person}. /
            Organised by: {person}. / Person who plans it - {person}. / The organiser this year is called {person}. /
            For the organisation we could win {person}. / To organise it was the wish of {person}. / Nobody organises
            such things better than {person}. / Thanks to {person}, everything has been organised well. / If it is a
            success, we owe it to {person} as the organiser. / Weeks ago {person} began to organise everything. /
            Others help with the tables, but {person} is the organiser. / You want to help? Then talk to {person}, the
            organiser. / Our head asked {person} to organise it. / With lists and phone calls, {person} organises the
            day. / The one who organises it, {person}, is glad about any help.
        """),
        items("""
            It is {thing} that your child should have. / "Do I have to bring something?" Yes, {thing}. / There is one
            thing that every child needs: {thing}. / What should be in the school bag? Please put in {thing}. / What
            to bring: {thing}. / Needed by each pupil - {thing}. / With {thing} in the bag, your child is ready. /
            Without {thing}, a child cannot take part. / Leave toys at home, but bring {thing}. / The only thing that
            we ask children to bring is {thing}. / Before you leave the house, check that your child has got {thing}.
            / Because we do not have enough, each child has to bring {thing}. / Parents, please think of {thing} for
            your children. / Pupils come with {thing}, please. / As the school cannot pay for everything, every pupil
            brings {thing}. / On the list of things to bring is {thing}. / Look for {thing} in time, since your child
            has to bring that. / One request to all children: bring {thing}.
        """),
    ),
    "library": (
        items("""
            It is because of {works} that the {library} library closes on {date}. / It is on {date} that {works} will
            make the {library} library close. / It is the {library} library that closes on {date}, and {works} is why.
            / "{works}," says the sign at the {library} library, which closes on {date}. / What stops you from reading
            in the {library} library from {date}? The cause is {works}. / Which library closes on {date}? It is the
            {library} library, due to {works}. / When does the {library} library close for {works}? On {date}. / There
            is to be a break at the {library} library, starting on {date}, because of {works}. / Place: {library}
            library. Closed as of: {date}. Cause: {works}. / Because it has to deal with {works}, the {library}
            library must close, namely on {date}. / {works} cannot wait any longer, so the {library} library closes on
            {date}. / Friends of the {library} library have to be strong: with {works} coming up, it closes on {date}.
            / For the {library} library, {date} is the start of a break that {works} made necessary. / On {date} the
            staff of the {library} library will put up a sign, "Closed because of {works}." / According to the town,
            the reason for closing the {library} library on {date} is {works}. / If you want a book from the {library}
            library, get it before {date}, as it then closes for {works}. / Nobody likes it, but {works} must lead to
            the closing of the {library} library on {date}. / A closed door is what you find at the {library} library
            from {date}, the cause being {works}.
        """),
        items("""
            It is on {date2} that we open our doors again. / It will be {date2} before we are open again. / "See you
            on {date2}," says the sign, because we open again then. / When will it be open again? From {date2}. /
            There is no way in before {date2}, when we open again. / End of the break: {date2}. / First day open -
            {date2}. / On {date2} the first reader may come in again. / After that we need some time, and we open
            again on {date2}. / If all goes to plan, we open again on {date2}. / The staff will be glad to open again
            on {date2}. / Your card will work again on {date2}, the day when we open. / To read in peace, you must
            wait until {date2}, when it opens again. / The new opening date is {date2}. / Everything ends well on
            {date2}, when it opens again. / We celebrate the opening on {date2} after the break. / Closed now, open
            again on {date2}. / Once it is {date2}, you can come in again.
        """),
        items("""
            It is {spot} that you can hand in your books. / "Books go back {spot}," our staff will tell you. / There
            is a box for your books {spot}. / What to do with books that you have read? Return them {spot}. / Books
            back: {spot}. / Place for returns - {spot}. / If a book is due, you can bring it back {spot}. / While we
            are closed, bring books back {spot}. / You will find the box for returned books {spot}. / Our books are
            taken in {spot}. / For books that have to go back, there is a shelf {spot}. / No fees will be asked if you
            hand in your books {spot}. / Nobody has to wait with the return of books, which can be left {spot}. / As
            before, books may be put in the box {spot}. / The return of books is possible {spot}. / A friendly person
            will take your books {spot}. / Even at night your books can go back {spot}. / Although the doors are shut,
            you can hand in books {spot}.
        """),
    ),
    "recipe": (
        items("""
            It is {dish} that we make, and it will feed {people}. / It is for {people} that we cook {dish} today. /
            "Can you make {dish} for {people}?" my friend asked me, and this is how I did it. / For how many do we
            make {dish}? For {people}. / There will be enough {dish} for {people}. / For {people}: {dish}. / Number of
            guests: {people}. What they eat: {dish}. / Quickly made and enough for {people}: {dish}. / With {people}
            at the table, I like to make {dish}. / From my aunt I have this way of making {dish} for {people}. / A pan
            of {dish} will do for {people}. / When {people} sit at our table, there is always {dish}. / In my old book
            I found {dish}, with amounts for {people}. / Anyone can make {dish} for {people}, so can you. / If you
            have {people} to feed, nothing is better than {dish}. / One of my favourite recipes is the one for {dish},
            which serves {people}. / This page tells you how to make {dish}, in an amount for {people}. / Last Sunday
            I made {dish}, which filled {people}.
        """),
        items("""
            It is {ingredient} that you mix with {ingredient2}. / It all begins with {ingredient}, to which you add
            {ingredient2}. / "Mix {ingredient} with {ingredient2}," my grandmother used to say. / What goes into the
            bowl? First {ingredient}, then {ingredient2}, and you mix them. / There must be {ingredient} in the bowl
            before you mix in {ingredient2}. / Bowl: {ingredient}. Add: {ingredient2}. Then mix. / Mix: {ingredient},
            {ingredient2}. / With {ingredient2} on the table and {ingredient} in the bowl, you can start to mix. / To
            {ingredient}, add {ingredient2}, then mix. / Once {ingredient} is in the bowl, {ingredient2} can follow,
            and you mix it all. / From {ingredient} and {ingredient2}, mixed with a fork, you make the base. / Using a
            big spoon, mix {ingredient} well with {ingredient2}. / All you need is {ingredient}, which you mix with
            {ingredient2}. / After washing your hands, take {ingredient} as well as {ingredient2} and mix them. /
            Before anything else, {ingredient2} must be mixed into {ingredient}. / We have {ingredient} here, and we
            mix it with {ingredient2}. / Tip {ingredient} into a bowl, where it is mixed with {ingredient2}. / The
            base is a mix of {ingredient} and {ingredient2}.
        """),
        items("""
            It is {minutes} that it must bake, at {oven}. / It is at {oven} that it bakes, for {minutes}. / "{oven},
            {minutes}," my mother wrote, and that is how I bake it. / How hot, and how long? The oven is at {oven},
            and it takes {minutes}. / There it stays to bake for {minutes}, with the oven set to {oven}. / Heat:
            {oven}. Baking: {minutes}. / Time on the oven clock, {minutes}; heat on its dial, {oven}. / Set a clock to
            {minutes} while it bakes at {oven}. / Wait until the oven has reached {oven}, then bake it for {minutes}.
            / It will be crisp on top if you bake it at {oven} and wait {minutes}. / A temperature of {oven} is right,
            and {minutes} is the time it bakes. / For {minutes} it must stay in the oven, where it should be {oven}. /
            Baking takes {minutes} if you keep to {oven}. / In an oven of {oven}, let it bake for {minutes}. / No more
            than {minutes} of baking are needed, at {oven}. / You bake it, and this means {minutes} at {oven}. / When
            the oven shows {oven}, put it in and take it out {minutes} later. / The oven does the work now: {minutes},
            at {oven}.
        """),
        items("""
            It is {side} that we serve with it. / "With {side}, please," my guests say when I serve it. / There should
            be {side} to go with it. / What do we serve with it? It is {side}. / Served with: {side}. / To go with it
            - {side}. / On each plate, there should be {side} next to it. / Guests love it when {side} is served with
            it. / Nothing goes better with it than {side}. / If you have {side} in the house, serve that with it. / In
            our house, {side} comes with it. / Hot from the oven, it is eaten with {side}. / While it cools, get
            {side} ready to serve with it. / Some eat it alone, but we serve {side} with it. / For serving, you need
            {side}. / A bowl of {side} stands next to it on our table. / To make it a meal, serve {side} as well. / My
            tip is to serve {side} along with it.
        """),
    ),
    "quarter": (
        items("""
            It is {money} that {company} made in sales in {quarter}. / It was in {quarter} that {company} reached
            sales of {money}. / "Our sales were {money} in {quarter}," says the head of {company}. / What were the
            sales of {company} in {quarter}? They were {money}. / Which firm sold so much, {money}, in {quarter}? The
            firm is {company}. / There were sales of {money} at {company} in {quarter}. / According to its report,
            {company} sold goods worth {money} in {quarter}. / Firm: {company}. Period: {quarter}. Sales: {money}. /
            Period of the report: {quarter}. Money made by {company} from sales: {money}. / The figure for {quarter}
            is {money}, and it stands for the sales of {company}. / For {company}, {quarter} ended with {money} in
            sales. / From its shops, {company} got sales of {money} in {quarter}. / In the report of {company} you
            find {money} as the sales of {quarter}. / Sales at {company} stood at {money} when {quarter} ended. /
            {money} is the number of the day: so high were the sales of {company} in {quarter}. / {company} can look
            back on {quarter}, which brought in {money} from sales. / Over the months of {quarter}, sales of {money}
            were made at {company}. / A total of {money} went through the tills of {company} in {quarter}.
        """),
        items("""
            It is {change} than what we saw a year ago. / It was {change} than it had been a year ago. / "That is
            {change} than last year," the board said. / How have sales moved in a year? They are {change}. / There is
            a change, as sales are {change} than a year ago. / Compared to a year ago, {change}. / A year later -
            {change}. / In the same months of last year the number was not the same, as it is now {change}. / With
            this, sales are {change} than they were a year ago. / Last year is a good measure, and next to it sales
            are {change}. / According to the books, that makes it {change} than one year before. / Put the two years
            side by side, and the new figure is {change}. / Twelve months have changed things: the figure is {change}.
            / The board had to compare, and it found sales {change} than in the past year. / When set against last
            year, it is {change}. / The firm has worked it out: {change} than in the year before. / From one year to
            the next, sales became {change}. / To put it in numbers, they were {change} than a year ago.
        """),
        items("""
            It is {reason} that lies behind this. / "It is all because of {reason}," the head of the firm said. /
            There was one main reason, {reason}. / What was the reason? It was {reason}. / The cause of it: {reason}.
            / Reason given - {reason}. / As the reason, the report gives {reason}. / Above all, {reason} is the cause.
            / We can thank or blame {reason} for it. / If it had not been for {reason}, things would be different. /
            One thing explains it best, and that is {reason}. / Most of it can be explained by {reason}. / People in
            the branch see {reason} behind it. / Such a result has its reason, in this case {reason}. / According to
            the firm, {reason} was what did it. / The result reflects {reason}. / Not luck, but {reason} made it what
            it is. / With {reason} as the cause, nobody is surprised.
        """),
        items("""
            It is planned to {plan}. / "We will {plan}," says the head of the firm. / What are its plans? It wants to
            {plan}. / There is a plan for next year, namely to {plan}. / Plan: {plan}. / Goal for next year - to
            {plan}. / For the next year, the firm has made plans to {plan}. / As a next move, the company is to
            {plan}. / Before the year is over, it wants to {plan}. / In order to grow, the firm plans to {plan}. / The
            board told the press of its plan to {plan}. / The will to {plan} is there, and the money too. / Work has
            begun on a plan to {plan}. / According to the plan, the next thing to do is to {plan}. / Nothing is
            certain, but the plan is that it will {plan}. / Not to wait but to {plan} is what the firm has in mind. /
            To stay ahead, the company means to {plan}. / If the board has its way, the firm will soon {plan}.
        """),
    ),
    "museum": (
        items("""
            It is at {clock} that we start the tour of the {museum} museum. / It is the {museum} museum that you can
            see on a tour, from {clock}. / "{clock} sharp," it says on the ticket for the tour of the {museum} museum.
            / At what time can you join the tour of the {museum} museum? Come at {clock}. / What can you do at
            {clock}? You can take the tour of the {museum} museum. / There is a tour of the {museum} museum, and the
            start is at {clock}. / Today at the {museum} museum: {clock}, start of the tour. / Start: {clock}. What:
            the tour of the {museum} museum. / By {clock} all guests should be at the door of the {museum} museum,
            since the tour starts then. / Before {clock} there is time for coffee, then the tour of the {museum}
            museum starts. / Every day at {clock}, the {museum} museum starts its tour. / According to the plan at the
            door of the {museum} museum, the tour begins at {clock}. / For those who like old things, the {museum}
            museum has a tour, beginning at {clock}. / In the {museum} museum, {clock} is the time when the tour
            begins. / If it is nearly {clock}, hurry up, because the {museum} museum begins its tour. / No later than
            {clock} you must be at the {museum} museum if you want to do the tour. / The {museum} museum opens early,
            but the tour does not begin until {clock}. / When a bell rings at {clock}, the tour of the {museum} museum
            starts.
        """),
        items("""
            It is {person} who leads the tour. / "Follow me," says {person}, and the tour begins. / There is a guide
            for the group, {person}. / Who is the guide? Her or his name is {person}. / Led by: {person}. / Guide of
            the day - {person}. / As your guide we have chosen {person}. / With a flag in one hand, {person} leads the
            group. / If you get lost, look for {person}, the guide. / In front of the group you will see {person}, who
            leads the tour. / Nobody can lead a tour like {person}. / A tour with {person} as its leader is never
            dull. / Behind {person}, the guide, all go from hall to hall. / Listen to {person}, as your guide has a
            lot to tell. / The group is led round by {person}. / The leader of the tour is called {person}. / Ask
            {person} anything you like, because you will not find a better guide. / The one with the key is {person},
            who leads the tour. / For years {person} has led this tour, and today is no different.
        """),
        items("""
            It is {exhibit} that is the highlight. / "Here it is, {exhibit}," we hear at the highlight of the tour. /
            There is one highlight, {exhibit}. / What should you not miss? The highlight, {exhibit}. / Main
            attraction: {exhibit}. / The highlight - {exhibit}. / Of all that you see, the highlight is surely
            {exhibit}. / Before you go home, have a look at {exhibit}, the highlight. / In the last room stands the
            highlight: {exhibit}. / The tour has its highlight in {exhibit}. / Children will talk about {exhibit}, the
            highlight, for days. / If you can only see one thing, let it be {exhibit}. / Few things are as fine as
            {exhibit}, which is the highlight of the tour. / Among many other things, and as the highlight, you get to
            see {exhibit}. / Next to {exhibit}, the highlight, all the rest looks plain. / The museum is famous for
            one thing above all, {exhibit}. / Take a photo of {exhibit}, because that is the highlight. / According to
            our guests, {exhibit} is the best thing to see.
        """),
        items("""
            It is {euros} that you pay, and {minutes} that it takes. / It is over after {minutes} and costs no more
            than {euros}. / "{euros}, please," says the man at the desk, and the tour of {minutes} can start. / How
            much is it, and how long does it take? {euros}, and {minutes}. / What does it cost? It costs {euros} and
            takes {minutes}. / Duration: {minutes}. Cost: {euros}. / You pay at the desk, {euros}, and then walk with
            the group for {minutes}. / There is a price of {euros} to pay for the {minutes} that it takes. / Bring
            {euros} for the ticket and {minutes} of your time. / If you have {minutes} and {euros}, come along. / In
            {minutes} you see a lot, and it only costs {euros}. / Costing {euros}, the tour keeps you busy for
            {minutes}. / Lasting {minutes}, the tour has a price of {euros}. / You should be good on your feet for
            {minutes}, and you should have {euros} for the ticket. / The price was set at {euros}, and the time it
            takes at {minutes}. / We ask for {euros}, which is fair, as it lasts {minutes}. / Time flies, although it
            takes {minutes}; the {euros} that it costs are well spent. / At {euros} a ticket, the walk of {minutes} is
            good value.
        """),
    ),
    "lost": (
        items("""
            It was in {place} that {item} was found on {day}. / It was {item} that a guard saw in {place}, and the day
            was {day}. / It was {day} when someone came across {item} in {place}. / "Whose is this?" asked a guest who
            found {item} in {place} on {day}. / Where did {item} lie on {day}? Somewhere in {place}. / What did our
            staff discover in {place} on {day}? Nothing less than {item}. / Are you missing {item}? Someone saw it in
            {place} on {day} and took it to us. / There was {item} in a corner of {place} on {day}, and so we took it
            with us. / There is a find from {day}: {item}, seen lying in {place}. / Find of {day}, {place}: {item}. /
            Thing found: {item}. Day: {day}. Place: {place}. / According to our list, {place} is where {item} was
            picked up on {day}. / Somebody left {item} behind in {place}; this was found on {day}. / Under a chair in
            {place} we discovered {item}, and that was on {day}. / In {place}, where many people walk by, {item} was
            picked up on {day}. / When we closed {place} on {day}, there was {item} on a chair. / By chance, {item}
            was found on {day}, as {place} was being cleaned. / A child who was in {place} on {day} picked up {item}
            from the floor. / Nobody has asked for {item} yet, although it was found in {place} on {day}.
        """),
        items("""
            It is {person} who keeps it {spot}. / "I have it {spot}," says {person}. / There is someone who keeps it
            {spot}, and that is {person}. / Where can you get it? It is {spot}, and {person} keeps it there. / By whom
            is it kept? By {person}, {spot}. / Held by: {person}. Held: {spot}. / Go to {person}, who keeps it for you
            {spot}. / We gave it to {person}, and now it is {spot}. / You need not worry, as {person} keeps it safe
            for you {spot}. / It lies {spot}, where {person} watches over it. / If you think it is yours, {person} can
            give it to you {spot}. / The person who keeps it is {person}, and you find it {spot}. / At the moment it
            is {spot}, with {person} as its keeper. / Ring and ask for {person}, since it is stored {spot} by our
            colleague. / To make sure nobody takes it, {person} keeps it {spot}. / Now it waits {spot}, and {person}
            has the key. / Not lost but kept: {person} holds it {spot}. / In a drawer {spot}, {person} keeps it for
            the owner.
        """),
        items("""
            It is until {date} that we can keep it. / It stays here until {date} and is then sold. / "Until {date} and
            not longer," says the rule for things found. / By when must it be fetched? By {date}. / How much time is
            left? Time to fetch it ends on {date}. / There it stays until {date}. / To be fetched by: {date}. / Last
            day - {date}. / If you want it back, come before {date} is over. / Time runs out on {date}, as we do not
            keep it any longer. / Come soon, because we only keep it until {date}. / No owner by {date}? Then we will
            sell it. / As the law says, it must be kept until {date}. / The owner has time until {date} to fetch it. /
            We can wait until {date}, but then we need the space. / When {date} has passed, it can no longer be
            fetched. / Up to {date}, and on that day too, you can come and get it. / It would be sad if nobody came
            for it by {date}.
        """),
        items("""
            It is {proof} that the owner has to bring. / "Have you got {proof}?" the owner will be asked, so bring it.
            / There is one thing that the owner must bring, {proof}. / What do you have to show? You show {proof}. /
            Proof: {proof}. / Owner brings - {proof}. / If you can show {proof}, it will be yours again. / You get it
            back in return for a look at {proof}. / Please have {proof} with you, since we have to be sure that it is
            yours. / Before it is handed over, the owner has to show {proof}. / With {proof} in your hand, you will
            have no trouble to get it back. / Words are not enough: the owner must bring {proof}. / The owner is asked
            to come with {proof}. / We want to be sure who owns it, so bring {proof}. / Unless the owner shows
            {proof}, it stays with us. / As the owner, you have to put {proof} on the table. / Only {proof} will tell
            us that you are the owner, so do not leave it at home. / In exchange, the owner has to show us {proof}. /
            To prove that it is yours, come with {proof}.
        """),
    ),
    "email": (
        items("""
            {person} is writing, and I do so for {company}. / It is {person} who
            writes to you, for {company}. / It is {company} that I work for, and I am {person}. / "{person},
            {company}," says the card on my desk. / Who am I? {person}, of {company}. / For whom do I write? For
            {company}, and {person} is the name. / There is a new name at {company}, mine: {person}. / Name: {person}.
            Firm: {company}. / A short word about me: at {company} I look after orders, and people call me {person}. /
            On behalf of my firm, {company}, I say hello; I am {person}. / We met at the fair, where I stood for
            {company}; {person} is my name. / At {company}, where I work, everyone knows me as {person}. / Since
            spring I have worked at {company}, and I am called {person}. / Some of your colleagues know me already:
            {person}, at home in the office of {company}. / You do not know my voice yet, but soon you will: {person},
            the buyer at {company}. / Hello from {person}, who works for {company}. / The sender of this mail is
            {person}, and the firm behind it is {company}. / As you can see from the address, {person} writes to you,
            from the office of {company}. / Allow me to say who I am: my name is {person}, and {company} pays me.
        """),
        items("""
            It is {request} that we need, by {date}. / It is by {date} that we need {request}. / "Get me {request} by
            {date}," my boss said to me. / What do we need by {date}? We need {request}. / By when do we need
            {request}? By {date}. / There is something that we need by {date}, and it is {request}. / Request:
            {request}. Deadline: {date}. / To be sent by {date}: {request}. / Please make sure that we get {request}
            by {date}. / If it is not too much to ask, send {request} to us by {date}. / May I ask you for {request},
            which we need by {date}? / Without {request} in our hands by {date}, we cannot go on. / We can wait until
            {date}, but then we need {request}. / My wish is simple: {request}, here, by {date}. / As of now we do not
            have {request}, and we need that by {date}. / You would help us a lot with {request}, sent to us by
            {date}. / Our team has to have {request} in the house by {date}. / Before {date} is over, somebody has to
            send us {request}. / The thing we need is {request}, and {date} is our last day.
        """),
        items("""
            It is {occasion} that makes me ask. / It is because of {occasion} that we ask you. / "Why now?" you may
            say, and the answer is {occasion}. / What is it for? For {occasion}. / There is one reason why I ask,
            {occasion}. / Background: {occasion}. / Occasion - {occasion}. / We are busy with {occasion}, so we have
            to ask you. / With {occasion} in mind, I ask you for this. / As a reason I can give you {occasion}. / If
            you ask me for a reason, I can name {occasion}. / Because of {occasion} we have no time to lose. / Our
            whole office talks about {occasion}, and this is why I write. / To be honest, {occasion} forces us to ask.
            / Normally we would wait, but {occasion} means that we cannot. / You see, this is due to {occasion}. / The
            cause of this request is {occasion}. / Without {occasion}, we would have more time.
        """),
        items("""
            It is {extension} where you can reach me. / "{extension}," I say when someone wants to phone me. / There
            is a phone on my desk: {extension}. / Do you want to call me? Then use {extension}. / Where can I be
            reached? On {extension}. / My phone: {extension}. / Number - {extension}. / If anything is not clear, ring
            {extension}. / If you need to talk to me, {extension} is the number. / By phone you reach me on
            {extension}. / On {extension} you can ask me anything. / Please note my number, which is {extension}. / I
            would be glad if you called me on {extension}. / Not by mail but on {extension} you get me quickly. / A
            call to {extension} is enough to reach me. / During the day I answer {extension}. / From nine to five I
            can be reached on {extension}. / Should there be questions, I wait for your call on {extension}.
        """),
    ),
    "maintenance": (
        items("""
            It is the {service} that is down on {date} {window}. / It is on {date}, {window}, that we shut down the
            {service}. / "The {service} is off," you will read on {date} {window}. / Which of our systems must rest on
            {date}? The {service}, {window}. / When can you not use the {service}? On {date}, {window}. / At what time
            is the {service} off on {date}? It is off {window}. / There will be a break for the {service} on {date}
            {window}. / Service: {service}. Date: {date}. Time: {window}. / Notice: {service} off, {date}, {window}. /
            According to our plan, {date} is the day when the {service} is down, {window}. / If you need the
            {service}, do your work before {date}, since it is down {window}. / With the {service} switched off
            {window} on {date}, you may want to take a break. / For some hours on {date}, more exactly {window}, the
            {service} will be down. / Please note {date}, as we take down the {service} {window}. / Users of the
            {service} have to live without it {window} on {date}. / On {date} we need the {service} for ourselves, so
            it is down for you {window}. / As announced, the {service} sleeps on {date} {window}. / The {service} goes
            down {window}, and the date is {date}. / In the night you can work as usual, but {window} on {date} the
            {service} is down.
        """),
        items("""
            It is time to {work}, and that is what we do. / It is in order to {work} that we do this. / "We have to
            {work}," our technicians say. / What for? To {work}. / What is the reason? We have to {work}. / There is a
            need to {work}. / Reason: we {work}. / Job of the day - to {work}. / As a step to more safety, we will
            {work}. / The technicians come to {work}. / The plan is to {work}, and it cannot be done while people use
            it. / During the break, our people are going to {work}. / With new parts at hand, we can {work}. / Nobody
            likes a break, but we need it to {work}. / Without a break, we could not {work}. / If we did not {work},
            there would be trouble later on. / Once a year we have to {work}, and now it is that time. / So that all
            runs well in future, we will {work}.
        """),
        items("""
            It means that {effect} in those hours. / "Why is it that {effect}?" some will ask in those hours. / There
            is a price to pay, as {effect} meanwhile. / What happens in that time? It is simple: {effect}. / In that
            time: {effect}. / We ask for patience, because {effect} as we work. / Note for users: {effect} until we
            have finished. / As a consequence, we have to tell you that {effect} meanwhile. / Please plan your day in
            such a way that you can live with this: {effect}. / So long as our work is not done, {effect}. / One thing
            will be different in that time: {effect}. / If you try, you will see that {effect} in that time. / Do not
            be surprised if {effect} during the work. / Nothing is broken when {effect}; it is part of the work. / For
            as long as it takes, {effect}. / From start to end of the work, {effect}. / With the system off, {effect}.
            / Until everything runs again, {effect}.
        """),
        items("""
            It is {person} who answers your questions, on {extension}. / It is on {extension} that {person} waits for
            your questions. / "Call me," says {person}, whose number is {extension}. / Who answers questions? That is
            {person}, on {extension}. / Where can you reach {person} with questions? On {extension}. / There is
            someone who can answer questions: {person}, on {extension}. / Person to ask: {person}. Number:
            {extension}. / Questions - {person}, {extension}. / If anything is unclear, {person} will answer you on
            {extension}. / With all your questions, turn to {person}, who answers on {extension}. / Should you have a
            question, dial {extension} and ask for {person}. / Any question? Dial {extension}, and {person} will
            answer. / On {extension} you get answers from {person}. / For answers, there is {person}, and the number
            to dial is {extension}. / The phone of {person}, {extension}, is open for your questions. / No question is
            too small for {person}, who can be called on {extension}. / A call to {extension} is enough, and {person}
            will answer your questions. / You can put your questions to {person}, simply by calling {extension}.
        """),
    ),
}
