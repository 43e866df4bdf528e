"""Further texts of each kind, for training alone: other constructions, and other neighbours for each value."""

from __future__ import annotations

from engine.embedded.corpus.manner import items

MORE: dict[str, tuple[str, ...]] = {
    "appointment": (
        *items(
            """On {date}, {name} will (come in|visit us) about {reason}; {doctor} has been told. / {doctor} asked
            whether {name} could come at {time} instead, in room {room}. / {reason} is why {name} wants to see
            {doctor} on {date}. / Room {room}, {time}: {doctor} examines {name}. / At {time} on {date}, please bring
            {name} to {doctor}. The reason is {reason}. / Phone note: {name} rang from {phone}, has {reason}, can
            come on {date}. / Could {doctor} look at {name} on {date}? It is about {reason}. / {phone} is the number
            of {name}, who sees {doctor} at {time}. / Good morning, my name is {name} and I have to cancel my visit
            to {doctor} on {date}. You can reach me at {phone}. / {date} - {time} - {doctor} - {name} - {reason} /
            {time} | {name} | room {room} | {doctor} / The patient is called {name}, the doctor is {doctor}, and
            they meet at {time} in {room}. / {doctor} has asked for {name} in room {room}; it is about {reason}. /
            Because of {reason}, {name} has been given a slot at {time} on {date}. / I am calling for {name}, who
            has {reason}. Is {doctor} free on {date} at {time}? Please ring back at {phone}. / Sign on the door of
            room {room}: {doctor}, next patient {name}, {time}. / {name}, please go to room {room}. {doctor} is
            ready for you. / You have reached the practice of {doctor}. {name}, we have to move your visit to
            {date}; call {phone} if that does not suit you. / Moved: {name}, now {time} on {date}, still with
            {doctor}. / Hello {name}, {doctor} is ill on {date}. Please call {phone} to find a new day. / For
            {reason} we sent {name} to {doctor} in room {room}. / It was {doctor} who saw {name} on {date}, because
            of {reason}. / Seen by {doctor} on {date}: {name}, who came with {reason}. / {name} asks if the visit on
            {date} can start at {time}, since {reason} makes it hard to wait. / patient {name}; doctor {doctor};
            date {date}; time {time} / {date}, {name}, {phone}, {reason} / Waiting list: {name}, {phone}. Wants to
            see {doctor} because of {reason}. / Do not forget that you are to be in room {room} at {time} on {date},
            {name}! / (Hey|Hi) {name}, (just a reminder|this is to remind you): {doctor} expects you on {date},
            {time}. Questions? {phone}. / {name} did not come on {date}. {doctor} had waited in room {room} from
            {time} on. / Next please: {name} with {reason}, room {room}. / In room {room} at {time}, {doctor} has a
            free slot. Shall I put {name} there? / We can offer {name} two things on {date}: room {room} is free,
            and {doctor} is in. Come at {time}. / With {reason} one should not wait, so {doctor} will take {name} on
            {date} already. / {doctor} - room {room} - {date} - {time} / Call {phone} and tell {name} that {doctor}
            has time at {time}. / The visit is confirmed. {doctor} will meet {name} on {date}, and the room is
            {room}. / My back-up number is {phone}. I come at {time} on {date} because of {reason}. Regards, {name}
            / Dear {doctor}, I would rather come on {date}, at {time}. Please ring me. {name}, {phone} / The
            appointment at {time} belongs to {name}, who complains of {reason} and waits outside {room}. / From the
            diary of {doctor}: {time} {name}, {reason}. / What {name} needs is a visit to {doctor}; what we have is
            {date}, {time}. / {reason}, says {name}. Please book {doctor} for {date}. / I'm {name}. {doctor} told me
            to come back on {date} at {time} for {reason}. / Desk to {doctor}: {name} is here for the {time} slot
            and sits in front of room {room}. / {name}, who can be called at {phone}, wishes to talk to {doctor} on
            {date}. / Text message to {phone}: Your visit to {doctor} is on {date} at {time}."""
        ),
        "Doctor: {doctor}\nPatient: {name}\nReason: {reason}\nPhone: {phone}",
        "Hello,\n\nI would like to come in on {date}. I have {reason}.\n\nThank you\n{name}\nTel. {phone}",
        "VISIT CARD\n{name}\n{date}, {time}\n{doctor}, room {room}",
        "{doctor}\nRoom {room}\n\n{time}: {name}, {reason}",
        "Dear {name},\n{doctor} can see you at {time} on {date}. Please go straight to room {room}.\nIf "
        "you cannot come, call {phone}.",
        "When: {date}, {time}\nWho: {name}\nWhy: {reason}\nWhere: room {room}",
    ),
    "order": (
        *items(
            """{product}, {quantity} pieces, to be sent to {city} by {date}. / It was {name} who ordered the {product};
            the order number is {order_number}. / {price} is what {name} paid for {quantity} x {product}. / In
            {city}, {name} is waiting for order {order_number}. / Has order {order_number} left for {city} yet?
            {name} asked for it on {date}. / Placed on {date}: {order_number}. Customer {name}, {city}. Total
            {price}. / Could you change my order {order_number} to {quantity} x {product}? You can write to {email}.
            {name} / {email} wants {quantity} pieces of the {product}, sent to {city}. / The bill for {quantity} x
            {product} comes to {price} and goes to {name}, {email}. / Dear customer, order {order_number} with your
            {product} left our house on {date}. / {quantity} x {product} | {price} | {order_number} | {date} /
            {order_number} - {name} - {city} - {price} / {name} lives in {city}, uses the address {email} and has
            bought the {product}. / Chat: "Hi, it's {name}. Where is my {product}? I ordered it on {date}." / Sold
            to {name} on {date}: {quantity} x {product}. Sum: {price}. / {date}; {order_number}; {product};
            {quantity} / We are sorry, {name}: the {product} is sold out, so we cancel order {order_number} and pay
            back {price}. / The customer in {city} who ordered {quantity} x {product} is called {name}. / Please
            confirm to {email} that {quantity} x {product} will reach {city} by {date}. / Who ordered the {product}?
            It was {name}, order {order_number}, on {date}. / Order {order_number} came in on {date} and was paid at
            once: {price}. / My order, {order_number}, was for {quantity} x {product}, but you charged me {price}.
            Please check. {name}, {city} / From {city} we got an order for {quantity} x {product}; write to {email}
            when it is ready. / {name} returned the {product} on {date} and gets {price} back. / Warehouse, please
            pack {quantity} x {product} for order {order_number}. Destination: {city}. / {quantity} was the
            quantity, {product} the item, {name} the buyer. / Bought by {name}, shipped to {city}, paid with
            {price}: one box with {quantity} x {product}. / (Hello|Good morning), {name} speaking. On {date} I
            bought the {product} from you, order {order_number}, and it has not come to {city} yet. / Number of the
            order: {order_number}. Total: {price}. Email of the buyer: {email}. / To {email}: thanks, {name}, your
            {product} will be in {city} on {date}. / Does {price} cover {quantity} x {product}? I need them in
            {city}. / {name} doubled the order {order_number}. It is now {quantity} x {product} for {price}. / As
            agreed on {date}, you get {quantity} x {product} for {price}. My email: {email}. / The parcel for {city}
            holds {quantity} x {product} and belongs to order {order_number} of {name}. / {city} shop, {date}: one
            customer, {name}, took {quantity} x {product}. / Item {product}. Qty {quantity}. Customer {name}. Date
            {date}. / On {date} you charged {price} to {name} for order {order_number}, which never arrived in
            {city}. / {name} wrote from {email} that order {order_number} should go to {city} instead. / Not
            {product} but money back is what {name} wants for order {order_number}: {price}. / Ready for pick-up in
            {city}: {product}, order {order_number}, to be paid: {price}. / With order {order_number}, {name} got
            the {product} for {price}. / Note to myself: order {quantity} x {product} for {city}, ask {email} about
            the total of {price}. / I paid {price} on {date}. The order is {order_number}. Where is the {product}? /
            Hi {name}, we have received {price} from you. {quantity} x {product} will be sent soon. / {price} -
            {quantity} x {product} - {email} - {date} / Telephone order. {name}, {city}. Wants {product}, {quantity}
            of them, no later than {date}. / For my order I paid {price}, my name is {name}, and the quantity is
            {quantity}. / {product} for {name}, order {order_number}, and please change the quantity to {quantity}.
            / If you look for the order of {name} from {city}, it has the number {order_number}."""
        ),
        "NEW ORDER {order_number}\nBuyer: {name}, {email}\n{quantity} x {product}",
        "Hello,\nplease send {quantity} x {product} to our shop in {city} by {date}.\nThanks,\n{name}",
        "Date of order: {date}\nOrder no.: {order_number}\nShip to: {city}\nArticle: {product}\nNumber of "
        "pieces: {quantity}",
        "{name}\n{city}\n\n{quantity} x {product}\nSum {price}",
        "Dear {name},\n\nyour order {order_number} is on its way to {city}. We have charged you {price}.",
        "From: {email}\nI would like to order the {product} for {price}. Can you deliver it to {city}?",
    ),
    "contact": (
        *items(
            """{company}, where {name} is the {job}, can be found in {city}. / The {job} at {company} is called {name}
            and picks up the phone at {phone}. / In {city}, {name} of {company} is our contact. Mail goes to
            {email}. / {email} and {phone} both reach {name}. / Who is the {job} there? That is {name}, {phone}. /
            Write down: {name}, {phone}, {company}. / {city} office of {company}: {street}, tel. {phone}. / {street}
            in {city} is the address of {name}. / {phone} or {street}: you will find {company} both ways, and {name}
            is its {job}. / You will find all about {company} on {website}; the office is at {street}. / {name}
            moved to {city} and now lives at {street}. / {phone} - that is the new number of {name} from {company}.
            / On the website {website} you can see that {company} has its office in {city}. / Voice mail: "This is
            {name} of {company}. Call me back at {phone}, please." / {company} is based in {city}. Its {job},
            {name}, can be mailed at {email}. / {name}, {job}; {company}; {street}, {city} / If you are ever in
            {city}, visit {name} at {street}. / Please send the letter to {company}, {street}, {city}, for the
            attention of {name}. / A card fell out of the book. It said: {name}, {job}, {website}. / Do you know a
            good {job}? Yes, {name} from {city}, {phone}. / {job} {name} | {company} | {phone} | {website} / Hired
            by {company} as {job}, {name} has the new email {email}. / The person behind {email} is {name}, {job} in
            {city}. / Call {company} at {phone} and ask for {name}, the {job}. / My name is {name}, I am {job} at
            {company}, and our office is at {street}, {city}. / Visit {website} or come to {street}; {name} will
            help you. / {name} from {city} gave me this number: {phone}. The email is {email}. / I work for
            {company} as a {job}. You can write to me at {email}. {name} / At {company} in {city} they have a new
            {job} called {name}. / No longer valid: {phone}. {name} of {company} now only answers mails to {email}.
            / Emergency contact: {name}, {street}, {city}, {phone}. / Not {company} itself, but its {job} {name}
            runs the site {website}. / Ask for {name} when you ring {phone}; that is the {job} who knows {city}
            best. / {website} belongs to {company}, {email} to {name}. / The firm {company} moved from its old house
            to {street} in {city}. The phone number is still {phone}. / For the address book: {company}, {city},
            {email}, {website}. / Hi, {name} here, {job} at {company}. My number has changed to {phone}. /
            (Hello|Dear all), please note that {name} is now the {job} for {city} and can be called at {phone}. /
            Met at the fair: {name}, who is a {job} in {city} and works for {company}. / {company} - {job} - {name}
            - {city} / {name} has a small office at {street}; the site is {website}. / Please correct the entry of
            {name}: email {email}, street {street}, city {city}. / {job} wanted? {name} can help, says {company}.
            Just mail {email}. / Questions about our firm, {company}? {name} will answer them under {phone}. /
            Letters reach {name} at {street}, mails at {email}, calls at {phone}. / Yesterday {company} gave us a
            name: {name}, their {job} in {city}. / {website} shows pictures of the office that {company} has at
            {street}. / {name} from {company} earns a living as a {job}. / To see what {name} does, open {website};
            the work is that of a {job}. / The phone number {phone} belongs to {name}, and {email} belongs to
            {company}."""
        ),
        "{company}\n{street}\n{city}\nTel. {phone}\n{website}",
        "Kind regards\n\n{name}\n{job}\n{email}\n{website}",
        "NAME {name}\nJOB {job}\nFIRM {company}\nTOWN {city}",
        "Hi,\nhere is the address you wanted: {name}, {street}, {city}.\nThe phone number is {phone}.",
        "Contact at {company}:\n- {name}, {job}\n- {phone}\n- {email}",
        "To: {email}\n\nDear {name},\nis {street} in {city} still your address?",
    ),
    "job advert": (
        *items(
            """In {city}, {company} has an open place for a {job}. / {salary} a year for a {job}: that is what
            {company} pays in {city}. / From {start}, a {job} is wanted by {company}. / {job} needed! {hours} hours
            a week, {salary}, at {company}. / {hours} hours a week, a yearly pay of {salary}, and a start on
            {start}: would you like to be our {job}? / Do you live near {city}? {company} is hiring: {job}, {hours}
            hours a week. / Send a mail to {contact} if you want to work as a {job} for {company}. / {contact} takes
            letters from anyone who wants to be a {job} in {city}. / As a {job} at {company} you work {hours} hours
            a week and earn {salary}. / The firm {company}, which is based in {city}, seeks a {job} for {hours}
            hours a week. / We start on {start} with a new shop in {city} and still need a {job}. Mail: {contact}. /
            Forum post: {company} is looking for people in {city}. They want a {job} and pay {salary}. / Sign in the
            window: {job} wanted, {hours} hours a week, ask at {contact}. / Starting on {start}, {company} will pay
            {salary} to a new {job}. / Hi, we at {company} saw your profile. Would a job as {job} in {city} for
            {salary} be of interest? / Who wants to become a {job}? Our team in {city} works {hours} hours a week.
            Apply: {contact}. / Job no longer open: {job} at {company}, start {start}. / Our team lacks a {job}.
            Come to {city}! Your pay would be {salary}, your first day {start}. / Where? In {city}. What? {job}. How
            much? {salary}. For whom? {company}. / {company} raised the pay for its {job} position to {salary}; the
            working time is {hours} hours. / It is {company} that offers the place as {job}, and it begins on
            {start}. / {start} is the first day. The place is {city}, the job {job}, the pay {salary}. / You would
            begin on {start} and work {hours} hours per week as a {job} in {city}. / Letters of application for the
            post of {job} go to {contact}; {company} answers soon. / With {salary} a year and only {hours} hours a
            week, the job of {job} at {company} is a good one. / Part of your week free? {company} needs a {job} for
            {hours} hours. Mail {contact}. / (Hello|Hi), is the job as {job} in {city} still open? I could begin on
            {start}. / {job} - {start} - {city} - {contact} / For its office in {city}, {company} would like to find
            a {job} by {start}. / {company} pays well: {salary}. Wanted is a {job}, and mails go to {contact}. / Our
            {job} leaves, so from {start} on we need a new one. {company}, {city}. / Radio: and here is a job for
            you. {company} in {city} wants a {job} from {start}. / {hours} hours, {salary}, in {city}: {company}
            pays well for a good {job}. / Dream job? {job} in {city}, pay {salary}, work time {hours} hours a week,
            write to {contact}. / Apply by mail to {contact}. We are {company} and we need a {job} who can work
            {hours} hours a week. / People of {city}, {company} is hiring! You can start as a {job} on {start}. /
            {salary}; {hours} hours; {start}; {job}; {company} / The {job} whom {company} is looking for will earn
            {salary} and sit in {city}. / At {company}, working as a {job} means {hours} hours a week. / I can offer
            you a post as {job}. The salary is {salary}, the city is {city}. Yours, {company} / Offer of the week:
            {city}, {job}, first day {start}, yearly pay {salary}. / {company} asks every {job} in {city} who wants
            {salary} a year to write to {contact}. / Full team wanted in {city}: first of all a {job}, by {start},
            {hours} hours weekly. / The job as {job} begins on {start}; for the pay, {salary} is offered; {company}
            waits for your mail at {contact}. / Mail {contact} today! {company} in {city} pays {salary}. / We took
            your address, {contact}, from our list: do you still look for a job as {job} in {city}? / {contact} is
            open for your letter until {company} has found its {job}."""
        ),
        "{city} / {company} / {job} / {hours} hours / {salary}",
        "JOB OFFER\n{job}, {city}\n{salary} a year\nMail: {contact}",
        "We are {company}.\nYou are a {job}.\nLet us talk: {contact}",
        "Employer: {company}\nPosition: {job}\nHours per week: {hours}\nStart date: {start}",
        "{company} in {city}\n\nOpen position: {job}\nPay: {salary}\nBegin: {start}",
        "Dear Sir or Madam,\n\nI would like to work as a {job} for {company}. I can start on {start} and "
        "work {hours} hours a week.",
        "- what: {job}\n- where: {city}\n- pay: {salary}\n- when: from {start}",
    ),
    "invoice": (
        *items(
            """{amount} is due for invoice {invoice_number}, which {company} wrote on {date}. / {name} still has to pay
            invoice {invoice_number}. / The seller is {company}, the customer is {name}, and the total is {amount}.
            / On {date}, {company} sold {quantity} x {product} to {name}. / For {quantity} x {product}, {company}
            asks {amount}. / {product}, {quantity} pieces, sold by {company}: {amount}. / Has {name} paid {company}
            yet? The invoice is {invoice_number}. / It has been {company} that billed us for the {product}; see
            invoice {invoice_number}. / {date} - {company} - {name} - {amount} / Invoice {invoice_number}, written
            for {name}, lists {quantity} x {product}. / {name} bought the {product} from {company} and got invoice
            {invoice_number}. / From {company} to {name}: {product}, {amount}, {date}. / Reminder to {name}:
            {amount} for {quantity} x {product} has not reached {company} yet. / Please check {invoice_number}. It
            says {quantity} x {product}, but {name} got less. / {company} thanks {name} for paying {amount}. /
            Total: {amount}. Seller: {company}. Items: {quantity} x {product}. Invoice date: {date}. / We,
            {company}, charge you {amount} for the {product}. The number of this invoice is {invoice_number}. / Dear
            {company}, your invoice {invoice_number} of {date} is wrong. I ordered {quantity} x {product}. {name} /
            {quantity} x {product} for {name}; invoice {invoice_number}; date {date} / The amount on invoice
            {invoice_number} is {amount}, and {name} will pay it to {company}. / Invoice from {company} dated
            {date}, customer {name}, number {invoice_number}. / Paid in full: {invoice_number}, {amount}, by {name}.
            / Who sold the {product}? {company}. Who bought it? {name}. What was billed? {amount}. / (Hi|Hello), it
            is {name}. I cannot find the invoice for my {product}, dated {date}. It was {amount}. / Dated {date} and
            signed by {company}, the bill for {name} says {quantity} x {product}. / {name} refuses to pay {amount},
            since {company} never sent the {product}. / Enter this: {company}, {invoice_number}, {amount}, {date}. /
            The {product} cost {name} {amount}; the invoice has the number {invoice_number}. / {invoice_number} is
            the invoice that {company} sent on {date}. / {amount} was billed to {name} on {date} for {quantity} x
            {product}. / Customer {name} asks {company} for a copy of invoice {invoice_number} of {date}. / You owe
            us {amount}, {name}. It is for the {product}. Yours, {company} / {quantity} pieces of the {product} were
            billed to {name} by {company}, in all {amount}. / Invoice | {date} | {quantity} | {product} | {amount} /
            Seller {company}, buyer {name}, goods: {quantity} x {product}. / The bookkeeper notes: {date}, {name},
            {invoice_number}, {product}. / As of {date}, {name} has an open bill of {amount} with {company}. / Where
            does invoice {invoice_number} come from? From {company}. It is for {quantity} x {product}. / Since
            {date} the sum of {amount} for invoice {invoice_number} has been open. / In its invoice of {date},
            {company} counts {quantity} x {product} and asks {name} for {amount}. / {name} got the goods, {quantity}
            x {product}, but invoice {invoice_number} went to the wrong house. / Our firm {company} sends you,
            {name}, the bill over {amount}, dated {date}. / {product} for {name}, billed under {invoice_number} at
            {amount}. / Could {company} please split invoice {invoice_number}? {name} wants to pay for {quantity} x
            {product} only. / {company} sold the {product} to {name}, and the quantity on invoice {invoice_number}
            is {quantity}. / {quantity} is the quantity, {amount} the total, {date} the date of the invoice. /
            Product: {product}; customer: {name}; seller: {company}; quantity: {quantity}."""
        ),
        "No. {invoice_number} / {company} / {product} / {quantity}",
        "INVOICE\nNo. {invoice_number}\nSeller: {company}\nBuyer: {name}\nTo pay: {amount}",
        "{date}\n\nDear {name},\nfor {quantity} x {product} we charge you {amount}.\n\n{company}",
        "Bill from {company}\n{quantity} x {product}\nSum: {amount}",
        "Invoice date: {date}\nInvoice: {invoice_number}\nProduct: {product}\nQuantity: {quantity}\nCustomer: {name}",
        "Hello {company},\nI paid {amount} for invoice {invoice_number} on time.\nRegards\n{name}",
        "{name}\nInvoice {invoice_number}, {date}\n{product}: {amount}",
    ),
    "event": (
        *items(
            """{city} will see a {event} on {date}, hosted by {organizer}. / At {time}, the {event} opens at the
            {place}. / The {place} in {city} is where the {event} will be held on {date}. / {organizer} plans a
            {event} for {date}; entry costs {price}. / For {price} you can get into the {event}, which {organizer}
            puts on at the {place}. / Who comes with me to the {event}? It is on {date} at the {place}, {time}. /
            {price} at the door, {time} at the {place}: that is the {event}. / {date}: {event}. Host: {organizer}.
            City: {city}. / A ticket for the {event} is {price}; buy it from {organizer}. / There will be no {event}
            at the {place} on {date}, says {organizer}. / In the {place} they are setting up the {event}. It opens
            on {date} at {time}. / On {date}, {organizer} welcomes you at {time} to a {event} in {city}. / {event} -
            {place} - {city} - {price} / {time}, {place}, {city}: please be on time for the {event}. / The company
            {organizer} has moved its {event} from the old place to the {place}. It still starts at {time}. / What?
            {event}. When? {date}. Where? {city}. How much? {price}. / Our town {city} is proud of its {event}. This
            year it begins on {date}, at {time}. / Hi! {organizer} gives a {event} in {city}. I have a ticket for
            {price} left, who wants it? / Meet us at the {place} at {time} on {date}. We go to the {event} together.
            / Organized by {organizer}, the {event} in {city} costs {price} to enter. / News: {event} in {city} sold
            out. {organizer} adds another one on {date}. / {place}, {date}, {time}, {event}, {price} / If you like a
            good {event}, go to {city} on {date}. / Doors open at {time}. The {event} is held in the {place} and
            entry costs {price}. / Volunteers wanted! {organizer} needs help with the {event} on {date} in {city}. /
            The {event} on {date} is a gift of {organizer} to the people of {city}. / It is {organizer} who pays for
            the {event} at the {place}. / {organizer} | {event} | {date} | {time} | {place} / Tickets at {price} are
            on sale now. The {event} starts at {time} in {city}. / (Dear guests|Dear friends), our {event} will
            begin at {time}. Please find your way to the {place} in {city}. / I paid {price} for the {event} in
            {city}, and it was great. The next one is on {date}. / The {event} of {organizer} has been called off.
            It was to be held on {date} at {time}. / To the people of {city}: on {date} the {place} is closed
            because of the {event}. / At the {place}: {event}. At the door: {price}. On: {date}. / You are invited
            by {organizer} to come to {city} on {date} for a {event}. / From {time} on, the {event} fills the
            {place} with people; {organizer} runs it. / Yes, the {event} is still on. {date}, {time}, and you pay
            {price}. / Poster: {event}! {city}, {place}. Made possible by {organizer}. / How about the {event} on
            {date}? It costs {price} and is near us, in {city}. / The host, {organizer}, asks all guests of the
            {event} to be at the {place} by {time}. / {event}, {organizer}, {city}, {date} / As the {place} is not
            big, {organizer} can let only few into the {event}. Start: {time}. Entry: {price}. / Mark {date} in your
            calendar: {organizer} brings the {event} back to {city}. / The price of entry, {price}, is set by
            {organizer}. The {event} takes place at {time} on {date}. / Held at the {place} in {city}, the {event}
            lets you in for {price} from {time} on. / It costs {price} and begins at {time}: our {event} at the
            {place}."""
        ),
        "INVITATION\n{event}\n{date} at {time}\n{place}, {city}",
        "{organizer} presents:\n{event}\nEntry {price}",
        "Hello neighbours,\nthe {event} will be on {date} in the {place}. It starts at {time}.\nYours, {organizer}",
        "What: {event}\nWhere: {place}\nWhen: {time} on {date}\nPrice: {price}",
        "{date}\n{time} {event}, {place}\nTickets: {price}",
        "City: {city}\nTitle: {event}\nHost: {organizer}\nStart: {time}",
    ),
    "product": (
        *items(
            """{color}, {weight}, size {size}: the {product} by {brand}. / {brand} makes the {product}, and we sell it
            for {price}. / At {price}, the {product} in size {size} is our best offer. / How much is the {product}
            by {brand}? It costs {price}. / Only in {color}: the new {product} from the house of {brand}. / There
            are {stock} pieces of the {product} by {brand} on the shelf. / {stock} pieces left of the {product} in
            {color}, size {size}. / {price} buys you a {product} that weighs {weight}. / The {brand} {product}
            weighs {weight} and comes in {color}. / It weighs {weight}, it is {color}, and it is a {product} by
            {brand}. / Size {size} of the {product} is on sale for {price}. / {weight} is the weight of the
            {product}, and {price} is its price. / Which {product} do you have? One by {brand}, in {color}, for
            {price}. / The maker of this {product} is {brand}; the size is {size}. / We still have {stock} in size
            {size}. The {product} costs {price}. / {product} | {brand} | {size} | {color} | {price} / {brand};
            {product}; {weight}; {price}; in stock: {stock} / Hi, do you have the {product} by {brand} in {color}? I
            would pay {price}. / My new {product} is from {brand}, and I chose it in {color}. / Light or heavy? The
            {product} from {brand} weighs {weight}. / Last {stock} pieces! The {color} {product} is now down to
            {price}. / Made by {brand}, painted {color}, yours for {price}: the {product}. / You asked for size
            {size}: yes, the {product} in {color} is here, {stock} pieces. / With a weight of {weight}, this
            {product} is easy to send. {brand} asks {price} for it. / Price tag: {product}, {size}, {price}. /
            {price} - {product} - {color} - {stock} available / What {brand} calls a {product} is {color} and weighs
            {weight}. / Sale! Everything by {brand} must go, like this {color} {product} for {price}. / On the
            shelf: {stock} x {product}, {color}, {weight}. / Please order more of the {product} by {brand}; we have
            only {stock}. / Our shop counts {stock} pieces of the {product}, size {size}, color {color}. / Seen at
            {brand}: their {product} comes in size {size} for {price}, and the color is {color}. / For everyone who
            likes {color}: {brand} brings out the {product} at {price}. / I weighed the {product}: {weight}. The
            label says {brand}, size {size}. / The {size} size of the {product} costs {price} and there are {stock}
            of them. / The {product} costs {price}, weighs {weight}, and is sold in {color}. / {brand} now sells its
            {product} in {color}, too. We got {stock} of them. / Catalogue entry: {product}, {color}, {weight}, size
            {size}, maker {brand}. / Is {price} too much for a {color} {product} by {brand}? / The {product} in
            {color} does not come from us but from {brand}. / Color {color}, size {size}, price {price}, name
            {product}. / Customers love the {product}. {brand} builds it, and it weighs only {weight}. / Small note:
            {brand} {product}, {stock} in stock, size {size}. / A parcel with {stock} pieces of the {color}
            {product} came in from {brand}. / It's a {product}, it's by {brand}, it's {color}, and it's {price}. /
            As long as we have it: {product}, {weight}, {price}, {stock} pieces. / {color} is how most people want
            the {product}, and {stock} of this kind are here. / As for {brand}, we have {stock} of the {color}
            {product}, each with a weight of {weight}. / Want it in {color}? Then {stock} pieces are left, {price}
            each, all made by {brand}."""
        ),
        "{brand}\n{product}\n{color}, size {size}\n{price}",
        "Item: {product}\nMaker: {brand}\nIn stock: {stock}\nSize: {size}",
        "NEW!\nThe {product} in {color}\nonly {price}",
        "- {product}\n- weight: {weight}\n- color: {color}\n- available: {stock}",
        "Hello,\nis the {product} by {brand} still sold for {price}? I need size {size}.",
        "Color: {color}\nWeight: {weight}\nCost: {price}\nArticle: {product}",
    ),
    "flight": (
        *items(
            """On {date}, flight {flight} takes {name} to {destination}. / To {destination} from {origin}: flight
            {flight}, gate {gate}, {time}. / {destination} is where {name} is going; the trip begins in {origin} on
            {date}. / {origin} - {destination}, {flight}, {time}, gate {gate} / {seat} is the seat of {name}, who
            flies to {destination}. / From gate {gate}, flight {flight} to {destination} departs at {time}. / Gate
            {gate} is where you find flight {flight}, which goes from {origin} to {destination}. / Leaving {origin}
            at {time}, the plane to {destination} has the number {flight}. / {price} is the fare from {origin} to
            {destination}; {name} has paid it. / Where does {name} sit on flight {flight}? In seat {seat}. /
            Attention please: {name}, flying to {destination}, come to gate {gate} at once. / Coming from {origin},
            {name} will land in {destination} on {date}. / The passenger in seat {seat} is {name}, on the way from
            {origin} to {destination}. / Flight {flight} on {date} does not go to {origin}; it starts there and goes
            to {destination}. / I fly to {destination} on {date}. My plane leaves {origin} at {time}. {name} / The
            ticket to {destination} cost {price}. {name} will start in {origin} on {date}. / We start in {origin}
            and want to be in {destination} on {date}. Is there a seat for {price}? / {flight} | {origin} |
            {destination} | {date} | {time} / {name}; {flight}; seat {seat}; gate {gate}; departure {time} / Change
            of gate: flight {flight} to {destination} now leaves from {gate}, still at {time}. / Late: the flight to
            {destination}, which should leave {origin} at {time}. / (Hi|Hello), {name} here. I sit in {seat} on
            flight {flight} and would like another seat. / At {time} on {date} {name} has to be at gate {gate}. / If
            {name} takes flight {flight}, the fare to {destination} is {price}. / Next stop {destination}! {name}
            leaves {origin} on {date}. / Mum, I land in {destination} on {date}. The flight is {flight} from
            {origin}. / Boarding pass: {name}, {origin} to {destination}, gate {gate}, seat {seat}, {time}. / Bound
            for {destination}, flight {flight} left {origin} on {date}. / Cheap tickets! {origin} to {destination}
            for {price}, on {date}. / {name} asked for a window, got seat {seat}, and goes to gate {gate}. / Yes,
            {name} has paid {price}; it was the fare for flight {flight} to {destination}. / Pick me up in
            {destination}. I take the plane from {origin}, number {flight}, on {date}. / With flight {flight} on
            {date}, {name} returns from {origin} to {destination}. / No flights leave {origin} for {destination} on
            {date}. {name} gets {price} back. / The gate is {gate}, the seat is {seat}, the flight is {flight}, and
            it leaves at {time}. / Dear passenger {name}, seat {seat} on your flight from {origin} is yours. /
            Departure from {origin}: {time}. Flight: {flight}. Destination: {destination}. Fare: {price}. / Both
            ways cost {price}. {name} flies out from {origin} on {date} and will visit {destination}. / Who flies
            from {origin} to {destination}? {name}, on {date}, in seat {seat}. / {date}, {flight}, {name}, {seat} /
            Refund of {price} for flight {flight} from {origin}; passenger {name}. / Last call for {name}! Flight
            {flight} from {origin} to {destination} is about to close, gate {gate}. / {name} wanted to go to
            {destination}, so I found flight {flight} for {price}, out of {origin}, on {date}. / Out of {origin} at
            {time}, off to {destination}: that is flight {flight}. / {destination}, reached from {origin} by flight
            {flight}, is the goal of {name}. / {time} {flight} to {destination}, gate {gate} / {date}, {seat},
            {gate}, {flight}: that was all {name} had written down of day, seat, gate and flight. / At gate {gate},
            {name} waits for the plane that comes from {origin}."""
        ),
        "BOARDING PASS\n{name}\n{origin} to {destination}\nSeat {seat}, gate {gate}",
        "Flight {flight}\nDeparture: {origin}, {time}\nArrival: {destination}",
        "Date: {date}\nTo: {destination}\nFrom: {origin}\nFare: {price}\nPassenger: {name}",
        "Dear {name},\nflight {flight} on {date} will leave at {time} from gate {gate}.\nHave a good trip!",
        "Hi,\nI need a ticket from {origin} to {destination} on {date}. I can pay {price}.\n{name}",
        "{date}\n{time} {origin}\nto {destination}\nflight {flight}, seat {seat}",
    ),
    "hotel": (
        *items(
            """In {city}, {name} has booked the {hotel} from {arrival}. / For {nights} nights, the {hotel} asks
            {price}. / On {arrival}, {guests} guests will come to the {hotel}; they stay for {nights} nights. /
            {guests} guests, {nights} nights: that makes {price} in the {hotel}. / {nights} nights for {guests}
            people cost {price}. / The {hotel}, which is in {city}, keeps room {room} for {name}. / Can the {hotel}
            take {guests} people on {arrival}? We would stay {nights} nights. / {name} called from {phone} and wants
            a room in {city} for {guests} people. / Room {room} has been given to {name} and is free for {nights}
            nights. / Please tell {name} at {phone} that room {room} will be ready on {arrival}. / {price} for room
            {room}, says the {hotel} in {city}. / Check-in of {name} at the {hotel}: {arrival}. Room: {room}. / We
            are {guests} people and would like to stay in {city} for {nights} nights, from {arrival} on. / {hotel};
            {city}; {arrival}; {nights} nights; {guests} guests / {name} | room {room} | {guests} guests | {price} /
            Hello, my name is {name}. I have booked {nights} nights with you from {arrival} on, but now we are
            {guests} people. / The number of guests is {guests}, the number of nights is {nights}, and the guest who
            pays is {name}. / A party of {guests} under the name of {name} arrives in {city} on {arrival}. / Thank
            you, {name}! You have paid {price} for {nights} nights at the {hotel}. / Where are you staying in
            {city}? At the {hotel}, room {room}. / Our room at the {hotel} is {room}. We arrived on {arrival} and
            have paid {price}. / {arrival} - {nights} nights - {hotel} - {city} / The {hotel} can be called at
            {phone}; ask for {name} in room {room}. / Cancel please: {name}, arrival {arrival}, {guests} persons. /
            Late arrival: {name} comes to the {hotel} on {arrival}. Phone {phone}. / Since {arrival}, {name} has
            lived in room {room} of the {hotel}. / Dear guests in room {room}, you stay {nights} nights, so we
            charge {price}. {hotel}, {city} / From {arrival} on, {guests} guests will sleep in room {room}. / My
            family wants to see {city}. Is there a room for {guests} at the {hotel} for {price}? / It is {name} who
            pays the {price} for all {guests} guests. / Holiday in {city}! {nights} nights at the {hotel}, all for
            {price}. / Staff note: room {room}, {guests} guests, {nights} nights, name {name}. / When does {name}
            arrive? On {arrival}, with {guests} guests in all, at the {hotel}. / The booking of {name} at the
            {hotel} was changed to {nights} nights. / For {guests} persons and {nights} nights, {name} was offered
            room {room}. / {phone} is the number of {name}, who arrives at the {hotel} on {arrival}. / I reserved
            the {hotel} in {city} for us: {nights} nights, {guests} people. {name} / Good evening, {hotel}? This is
            {name}. We come on {arrival} and there will be {guests} of us. / Bill: {name}, room {room}, {nights}
            nights, {price}. / We booked for {name}: {nights} nights for {price}, at the {hotel}, and that is in
            {city}. / {city}, {hotel}, {name}, {phone} / {name} left the keys of room {room} at the {hotel}. Call
            {phone}. / {guests} persons will share room {room} for {nights} nights and pay {price}. / (Dear|Hello)
            {name}, {city} is waiting for you! Your room at the {hotel} is {room}, and you come on {arrival}. / A
            room for {nights} nights from {arrival}, for {guests} persons: could you call me about it at {phone}? /
            At the {hotel} in {city}, {nights} nights are sold for {price}. / How many nights? {nights}. How many
            guests? {guests}. Which room? {room}. / {price} was paid by {name} for {guests} guests. / {phone} rang:
            {name} wants room {room} for {nights} nights. / The {hotel} wrote to {name}: "Dial {phone} when you are
            in {city}, and we will bring you to room {room}." """
        ),
        "{hotel}\nRoom {room}\n{name}",
        "BOOKING\nName: {name}\nNights: {nights}\nGuests: {guests}\nCheck-in: {arrival}",
        "Dear {hotel},\n\nwe would like a room for {guests} persons. We arrive on {arrival} and stay "
        "{nights} nights.\n\n{name}",
        "City: {city}\nHotel: {hotel}\nPrice: {price}\nPhone: {phone}",
        "{name}, {phone}\n{guests} guests\narriving {arrival}",
        "Hi {name},\nyour stay of {nights} nights at the {hotel} costs {price}.\nSee you in {city}!",
    ),
    "support ticket": (
        *items(
            """On {date}, {name} told us that the {product} {problem}. / The {product} of {name} {problem}; see ticket
            {ticket}. / {priority} priority: the {product} {problem}. Ticket {ticket}. / Ticket {ticket} was opened
            by {name} on {date}. / {email} wrote that the {product} {problem}. / Since {date} the {product}
            {problem}, says {name}. / It {problem}! My {product}, I mean. Please answer to {email}. / {name} needs
            help with the {product}, which {problem}. / Which ticket? {ticket}. Whose? It belongs to {name}.
            Priority? It is {priority}. / Answer {name} at {email} and say that ticket {ticket} is closed. / The
            priority of {ticket} was set to {priority} on {date}. / Hello, {name} here again. My ticket is {ticket},
            and the {product} still {problem}. / {ticket} | {product} | {priority} | {date} / {date} - {name} -
            {product} - {problem} / One more {product} that {problem}. The user is {name}, reached at {email}. / The
            user with the address {email} has a {product}, and it {problem}. / Please look at ticket {ticket} first.
            It has {priority} priority and came from {name}. / What is wrong? The {product} {problem}. Who says so?
            {name}. Since when? {date}. / I am {name}. My {product} {problem} and nobody has answered {email} so
            far. / We have marked ticket {ticket} as {priority}. It is about a {product} that {problem}. / Call
            note, {date}: {name} has a {product}. It {problem}. / Closed on {date}: ticket {ticket}, {product}, user
            {name}. / Dear {name}, on {date} you told us that your {product} {problem}. Is that still so? / Reported
            by {name}: {product} {problem}. Priority set to {priority}. / My {product} is new, but it {problem}. Can
            I get another one? {name} / Can somebody take {ticket}? {name} waits, and the priority is {priority}. /
            The team got a mail from {email} on {date}: "My {product} {problem}." / Forum, {date}: "Does anybody
            know why my {product} {problem}? Thanks, {name}" / {name} sent the {product} back on {date}, as it
            {problem}. / From {email}, on {date}: {product}, {problem}. / Number {ticket}, device {product}, user
            {name}, opened on {date}. / {problem}, this is all that {name} wrote about the {product}. / To be fixed:
            the {product} of {name}. Ticket {ticket}, priority {priority}, mail {email}. / (Hi|Hello) {name}, could
            you tell us when you bought the {product} that {problem}? Please put {ticket} into your answer. / If the
            {product} still {problem}, write to {email} and name the ticket {ticket}. / With ticket {ticket}, {name}
            complains about a {product} that {problem}. / The one who opened {ticket} is {name}, {email}. /
            {priority}; {ticket}; {date}; {email} / In ticket {ticket}, which is marked {priority}, {name} asks when
            we will send back the {product}. / Nothing works here. The {product} {problem}, and I need it on {date}.
            {name}, {email} / As the {product} {problem}, we gave the ticket of {name} the priority {priority}. /
            Chat with {name}: "So your {product} {problem}?" "Yes, since {date}." / {product} {problem}; priority
            {priority}; user {name} / User {name} has waited since {date}; the mail address is {email}, the ticket
            {ticket}. / Our technician tested the {product} on {date}. It {problem}, just as {name} said. / From now
            on {ticket} has {priority} priority. Write to {email} when the {product} is repaired. / {priority} is
            the priority of the case of {name}, and it is about a {product}."""
        ),
        "TICKET {ticket}\n{date}\nDevice: {product}\nPriority: {priority}",
        "Dear team,\n\nmy {product} {problem}. What can I do?\n\n{name}\n{email}",
        "User: {name}\nEmail: {email}\nDevice: {product}\nIssue: {problem}",
        "Hello {name},\nwe opened ticket {ticket} for you on {date}.\nThe priority is {priority}.",
        "Problem: {problem}\nProduct: {product}\nTicket number: {ticket}",
        "{date}: {name}\n{product} {problem}\n{email}",
    ),
    "person": (
        *items(
            """In {city} lives {name}, a {job} of {age} years. / {company} employs {name} as a {job}. / {hobby} is what
            {name} likes best. / By profession a {job}, {name} comes from {country}. / Aged {age}, {name} still
            works for {company}. / {name} left {country} to become a {job} in {city}. / {city} in {country} is the
            home of {name}. / The {job} at {company} is {name}, who is {age} and likes {hobby}. / How old is {name}?
            {age}. And the hobby? It is {hobby}. / After work at {company}, {name} loves {hobby}. / {name} comes
            from {country}, but works for {company} in {city}. / Hi, I am {age}, my name is {name}, and I work for
            {company}. / I live in {city} and my hobby is {hobby}. I am {age} years old. Yours, {name} / From
            {country} to {city}: the long way of {name}, {job}. / {name}; {age}; {city}; {country}; {job} / {name} -
            {job} - {company} - {city} / Who is {name}? Someone who is a {job} and works for {company}. / {age}
            years old, fond of {hobby}, living in {city}: this is {name}. / Born {age} years ago in {country},
            {name} is a {job} today. / {company} is where {name} works; {hobby} fills the evenings at home in
            {city}. / {name} has worked at {company} for long. At {age}, the {job} has more time for {hobby}. /
            {hobby} and work as a {job} fill the life of {name}. / Please welcome {name} at {company}! Our new {job}
            is from {country}. / Everybody in {city} knows {name}, the {job}. / The {age} year old {job} {name} won
            a prize for {hobby}. / I am {age} years old, I work for {company}, and I am a {job} there. My name is
            {name}. / {name} is from {city}. {company} hired the {job} last year. / Pen friend wanted! I am {name}
            from {country}, {age} years old, and I love {hobby}. / Age {age}, hobby {hobby}, country {country}, name
            {name}. / When {name} came from {country} to {city}, {company} gave our friend work as a {job}. / Today
            {name} turns {age}. All at {company} wish the {job} well. / One of us likes {hobby}: {name}, {age}, who
            has lived in {city} for years. / There is a {job} at {company} who comes from {country} and is called
            {name}. / My friend {name} works as a {job} in {city}. In the evening it is all about {hobby}. / {job}
            {name} of {company} turned {age}. / {country} is where {name} was born, and the home of today is in
            {city}. / Do you know {name}? {age} years old, lives in {city}, works at {company}. / For {name}, who is
            {age}, {hobby} is more than a hobby. / {company} is proud of {name}, who has come all the way from
            {country} to work here as a {job}. / You can meet {name} in {city} at the club for {hobby}. / The firm
            {company} is led by {name}, aged {age}, from {country}. / Profile: {name} | {age} | {country} | {hobby}
            / I come from {country}. I work for {company} as a {job}. People call me {name}. / {age}-year-old {name}
            of {city} does {hobby} with friends every week. / With {name} we have found a {job} who likes {hobby} as
            much as we do. / The profession of {name} is {job}, the employer is {company}, and the hobby is {hobby}.
            / {city}: {name}, {age}, {job}, looks for people who like {hobby}."""
        ),
        "NAME: {name}\nHOME: {city}, {country}\nAGE: {age}",
        "About me\n\nI am {name}, {age}, a {job}.\nI like {hobby}.",
        "{name}\n{job} at {company}\n{city}",
        "Hello everyone,\nI am {name} from {country} and I am new here in {city}.\nMy hobby is {hobby}.",
        "Hobby: {hobby}\nProfession: {job}\nEmployer: {company}\nName: {name}",
        "- {name}\n- {age} years\n- from {country}\n- works as a {job}",
    ),
    "delivery": (
        *items(
            """On {date}, {carrier} will bring a parcel to {name}. / {carrier} brings the parcel {tracking} to {city}
            on {date}. / The parcel of {weight} goes to {name} in {city}. / {tracking} is the number of the parcel
            for {name}, {street}. / To {city} by {carrier}: one box, {weight}, number {tracking}. / {name} of
            {street}, {city}, will get a box that weighs {weight}. / Nobody was at home at {street}. {name}, please
            call {carrier} at {phone}. / {phone}: please call this number when you stand in front of {street}.
            {name} / When will {tracking} reach {city}? On {date}, says {carrier}. / Driver, the next stop is
            {street} in {city}; the box weighs {weight}. / At {street} lives {name}, and the parcel {tracking} is
            for this person. / Weighing {weight}, the parcel {tracking} will be handed to {name} on {date}. /
            {carrier} asks {name} to pick up the parcel in {city} on {date}. / The recipient is {name}, the carrier
            is {carrier}, and the parcel weighs {weight}. / {weight}; {city}; {name}; {tracking} / {carrier} |
            {tracking} | {date} | {city} / Has {carrier} brought your box yet, {name}? It should come on {date}. /
            Hello, I am {name}. My parcel {tracking} should go to {street}, not to the old address. / We have a
            parcel for you, {name}! {carrier} will be at {street} on {date}. / {carrier} lost the parcel {tracking}
            on its way to {city}. / Handed over on {date} in {city}: parcel {tracking}, {weight}. / Text from
            {carrier}: the parcel for {name} comes on {date}. Questions: {phone}. / Because {weight} is too heavy
            for the post, {carrier} drives the box to {city}. / For {name}, {street}. Sent with {carrier}. Number:
            {tracking}. / Where is it going? To {city}. How heavy is it? {weight}. Who gets it? {name}. / It was
            {carrier}, not the post, that took parcel {tracking} to {name}. / Leave the box at the door of {street},
            and call {name} at {phone}. / {date}: {name}, {street}, {city} / {city} depot: parcel {tracking} for
            {name} is here and can be fetched on {date}. / {street} is where {carrier} rang on {date}; {name} was
            out, so the parcel came back. / With {carrier}, a box of {weight} can be in {city} by {date}. / Please
            bring {tracking} to {name} by {date}. The phone number is {phone}. / I wait for a parcel of {weight}
            from {carrier}. My street is {street}, my name {name}. / New date for {tracking}: {date}. {carrier}
            drives to {street}. / Parcel {tracking} is too heavy. It weighs {weight}, so {name} should call {phone}.
            / Ring twice at {street}! {name} in {city} does not hear well. / {phone} is how {carrier} can reach
            {name} when the box is in {city}. / The box which {carrier} will take to {city} bears the number
            {tracking} and weighs {weight}. / {name} can follow {tracking} until it reaches {street} in {city}. /
            Moved to {date}: the delivery for {name}, {weight}, by {carrier}. / Give {name} a call at {phone} before
            you bring the {weight} box to {street}. / Not at {street}? Then {carrier} takes {tracking} back on
            {date}. / (Hi|Dear) {name}, your box has left us. It weighs {weight} and {carrier} will be with you on
            {date}. / {street}, {city} - {date} - {carrier} - {phone} / As {name} is away, please take parcel
            {tracking} back to {carrier}. / Label: {tracking}, {weight}, {name}, {street}, {city}. / {phone} is the
            number of {name} in {city}, who waits for a parcel of {weight}. / Dial {phone}, {name}, and {carrier}
            will tell you where {tracking} is. / Tell {name}, {phone}, that the {weight} parcel will come to
            {street} on {date}."""
        ),
        "To:\n{name}\n{street}\n{city}",
        "Carrier: {carrier}\nTracking: {tracking}\nDelivery date: {date}\nPhone: {phone}",
        "Dear {name},\n\nparcel {tracking} will be brought to {street} on {date}.\n\n{carrier}",
        "{carrier}\nParcel {tracking}\n{weight}\nfor {name}",
        "MISSED YOU!\nWe came to {street} on {date}.\nCall {phone}.\n{carrier}",
        "Weight: {weight}\nRecipient: {name}\nCity: {city}\nNumber: {tracking}",
    ),
    "meeting": (
        *items(
            """{topic} will be discussed on {date} in room {room}. / At {time} in room {room}, {name} talks about
            {topic}. / On {date} the people from {department} meet for {duration}. / {duration} should be enough for
            {topic}, says {name}. / The {department} team wants to talk about {topic}; {name} is the host. / {name}
            of {department} has called a meeting on {topic} for {date}. / {room} is the room, {time} is the time,
            and {topic} is the topic. / Room {room} is taken by {department} for {duration}, from {time} on. / Who
            leads the meeting on {topic}? {name} does, in room {room}. / When do we talk about {topic}? On {date} at
            {time}, for {duration}. / {date}, {time}, {room}: {name} on {topic}. / It is {department} that meets in
            room {room} on {date}. / {department} | {topic} | {date} | {duration} / {name}; {room}; {time}; {topic}
            / Please keep {duration} free on {date}. We have to speak about {topic}. {name} / Starting at {time},
            the meeting of {department} takes {duration}. / Could we move the talk about {topic} to room {room}?
            {department} needs our old one at {time}. / Short meeting today? No: {name} has asked for {duration},
            and the topic is {topic}. / Everyone in {department} should be in room {room} at {time}. {name} has news
            about {topic}. / Led by {name}, the talk on {topic} begins at {time} on {date}. / Hi, {name} here. I can
            not make it on {date}; let us speak about {topic} at another time. / Sign: room {room} closed on {date},
            {department} meeting. / With {topic} on the list, the meeting on {date} will take {duration}. / After
            {duration} the meeting led by {name} was over. It had begun at {time} in {room}. / The meeting on {date}
            is off. {topic} has to wait, writes {name}. / {department} asked {name} to explain {topic} on {date}. /
            For the talk about {topic}, please go to {room}. It starts at {time} and takes {duration}. / All about
            {topic}: {date}, room {room}, host {name}. / We need {department} with us when we talk about {topic}.
            Does {time} on {date} suit you? / {time} - {department} - room {room} - {duration} / Change! The meeting
            about {topic} will now be in room {room}, and {name} leads it. / Next to come in room {room} is
            {department}, at {time}, with {name}. / Let's meet at {time}. {topic} is all we talk about, so
            {duration} will do. / Dear colleagues, {name} from {department} will lead us through {topic} on {date}.
            / Minutes of {date}: {name} spoke for {duration} about {topic}. / The host is {name}; the topic is
            {topic}; the room is {room}; it starts on {date} at {time}. / My calendar says {department} on {date} at
            {time} for {duration}. / In room {room}, on {date}, {department} hears a talk by {name}. / Is room
            {room} free for {duration} at {time}? {name} wants to meet there. / Weekly meeting, {department}:
            {time}, led by {name}. / Nobody from {department} came to the talk about {topic} in {room}. / (Hello
            all|Hi everyone), {name} asks you to come to {room} on {date} for {duration}. / From {time} on, {name}
            and the {department} team will be busy with {topic}. / Invitation from {name}: {topic}, {date}, {time},
            {duration}. / {topic} first, says {department}. So be there at {time} on {date}. / I have put {topic} on
            the list for {date}. {department} will send {name}, and we have {duration}. / At {time}, {name} will
            speak in room {room} to the people from {department}. / {duration} on {topic}, all by {name}, and only
            for {department}."""
        ),
        "AGENDA\n{date}, {time}\nRoom {room}\n{topic}",
        "Topic: {topic}\nDepartment: {department}\nLeader: {name}\nDuration: {duration}",
        "Hi all,\nlet us meet in {room} at {time}. I want to talk about {topic}.\n{name}",
        "{department} meeting\nDay: {date}\nPlace: room {room}\nTime: {time}",
        "Dear {department} team,\n\nthe meeting takes {duration} and is about {topic}.\nSee you on {date}!\n\n{name}",
        "{name}\n{topic}\n{duration}, room {room}",
    ),
    "table": (
        *items(
            """On {date}, {restaurant} expects {name} with {guests} guests in all. / {restaurant} has a table for
            {guests} at {time}. / At {time}, {name} and friends, {guests} people in total, will come. / For {guests}
            people, please keep a table free on {date}. {name} / {guests} guests, {date}, {time}, {restaurant} /
            {time} on {date} is fine; {restaurant} will have a table for {name}. / Under the name of {name} we have
            a booking for {guests} on {date}. / Is {restaurant} in {city} open on {date}? There are {guests} of us.
            / {name} called from {phone} and wants to eat at {restaurant} at {time}. / In {city} we ate at
            {restaurant}. {name} had booked for {guests}. / {phone} is the number of {name}, who booked the table at
            {time}. / The table at {restaurant} was booked by {name} for {date}. / How many are you? {guests}. When
            do you come? At {time} on {date}. What is the name? {name}. / {name} | {guests} | {date} | {time} /
            {restaurant}; {city}; {date}; {guests} persons / Please change my table at {restaurant} from {date} to
            another day. {name}, {phone} / Good evening, this is {name}. There will be {guests} of us at {time}, is
            that all right? / Let us meet in {city} at {time}. The place is called {restaurant}. / No table left at
            {restaurant} on {date}! I asked for {guests} persons. / {name} is late and will be at {restaurant} at
            {time}. / Dinner in {city}: {restaurant}, {date}, {time}. I have booked in the name of {name}. / The
            number of guests at {restaurant} went up to {guests}; {name} rang at {time}. / Thank you, {name}. We
            look forward to seeing you and your guests on {date} in {city}. {restaurant} / If you cannot come on
            {date}, call {restaurant} at {phone}. / {restaurant} in {city} can be called at {phone}. They still have
            a table for {guests}. / Hey, {restaurant} or at home? If you say yes, I book for {guests} on {date}. /
            Waiter, the table by the window is for {name}, {guests} persons, {time}. / {name} would like to
            celebrate at {restaurant} with {guests} people on {date}. / {date}: table for {name}. Call {phone} to
            confirm. / Party of {guests} at {time}, name {name}, tel. {phone}. / There is one table left for
            {guests} at {time}, and {name} can have it. / It's {name} from {city}. My booking at {restaurant} is for
            {time}, please make it {guests} people. / In the book of {restaurant} it says: {time}, {name}, {guests}.
            / For {name} and {restaurant} alike {date} was a busy day: {guests} guests came to the table in {city}.
            / We would come to you on {date} at {time}. Please tell {name} at {phone} if that is possible. / With
            {guests} people you cannot just walk into {restaurant}; {name} should book for {date}. / Cancelled:
            {restaurant}, {date}, {guests} persons, in the name of {name}. / Who booked for {time}? It was {name},
            with {guests} people. / (Hi|Hello) {restaurant}, we are {guests} and would like to eat with you on
            {date}. Thanks, {name} / You are invited! {name} will turn the tables at {restaurant} in {city} into a
            party on {date} at {time}. / Please be at {restaurant} by {time}. It is in {city}, and {guests} of us
            will be there. / {name}, {phone}: {guests} people, {time}. / {restaurant} told me that {date} is all
            right, and that {name} should come at {time}. / As {name} is ill, the table for {guests} at {restaurant}
            is free again. / {name} found a place to eat for {guests} people: {restaurant}, right in the middle of
            {city}. / A call for {name}: your table at {restaurant} is ready. We ring you at {phone}. / The table
            for {name} is at {restaurant}, which is near the station of {city}. / Do you know {restaurant}? They
            have a table for us at {time}, and it is not far from {city}. / We call {phone} to book, we come on
            {date}, we are {guests}, and we eat in {city}. / Hi {name}, if {phone} is still your number,
            {restaurant} will call you about {date}."""
        ),
        "Table for {guests}\n{date}, {time}\n{name}",
        "Restaurant: {restaurant}\nCity: {city}\nDate: {date}\nPersons: {guests}",
        "Hello,\n\ndo you have a table for {guests} people on {date}? We could come at {time}.\n\n{name}\n{phone}",
        "{restaurant}\n{city}\nTel. {phone}",
        "Dear {name},\nwe have kept a table for you at {time} on {date}.\n{restaurant}",
        "Phone: {phone}\nName: {name}\nTime: {time}\nPeople: {guests}",
    ),
    "course": (
        *items(
            """{teacher} is the teacher of {name} in {course}. / Taught by {teacher}, {course} starts on {date}. / On
            {date}, {name} begins with {course}; the teacher is {teacher}. / In room {room}, {teacher} gives the
            course {course}. / {price} is the fee for {course} with {teacher}. / {course} has {places} places, and
            {name} got one of them. / {name} wants to learn {course} with {teacher}. Is there a place? / There is
            still room for {name} in {course}, says the teacher, {teacher}. / {places} places, {price}, room {room}:
            this is {course}. / Who teaches {course}? {teacher} does. Who takes it? {name} does. / The student
            {name} paid {price}, so {teacher} put the name on the list. / Room {room} is where {course} begins on
            {date}. / Write to {email} if you want one of the {places} places in {course}. / {email} is the address
            of {name}, who would like to join {course}. / {course}; {teacher}; {date}; {room}; {price} / {name} |
            {email} | {course} | {date} / Dear {teacher}, I cannot come to {course} when it starts on {date}.
            Regards, {name} / Dear {name}, your teacher in {course} will be {teacher}. Please come to room {room}. /
            Sign up now! {course} with {teacher}, only {places} places, starts on {date}. / {teacher} asked {name}
            to come to room {room} for {course}. / Hi, my name is {name}. What does {course} cost? Someone said
            {price}. You can write to {email}. / For {price} you learn {course}, which has {places} places. Start:
            {date}. / {date} is the first day of {course}, and {teacher} will wait for you in {room}. / The fee of
            {price} was paid by {name} for the course {course} of {teacher}. / All {places} places in {course} are
            gone. Please tell {name} at {email}. / News from the school: {teacher} takes over {course}. The room is
            still {room}. / Starting on {date}, {name} goes to {course} in room {room}. / The one who teaches
            {course} is {teacher}; the one who learns is {name}. / {room} - {course} - {teacher} - {places} places /
            You can ask {teacher} about {course} by mail: {email}. / Because too few people came, {course} is put
            off to {date}. {name} gets the {price} back. / Our new course is called {course}. It costs {price} and
            {teacher} leads it. / Is {course} full? No, {places} places are left. It begins on {date} in {room}. /
            With {teacher} as teacher, {course} is always full: {places} places, all taken. / {name}, your place in
            {course} is safe. We start on {date} and need {price} from you. / Mail from {email}: "Please cancel my
            place in {course}. {name}" / School office: {name} moved from another class to {course}, room {room}. /
            I teach {course} in room {room} from {date} on. Please bring {price}. Yours, {teacher} / I would like to
            take {course} from {date} on. My name is {name} and my mail is {email}. / {course}, fee {price}, first
            day {date}, sign up at {email}. / With room for {places} people, {room} is where {teacher} gives the
            course {course}. / Learn something new: {course}, {price}, {places} places, mail to {email}. / Student
            {name}, teacher {teacher}, course {course}, fee {price}. / Teacher {teacher}, student {name}, start
            {date}, room {room}. / How much must {name} pay for {course}? {price}, and it starts on {date}. /
            {teacher} will hold {course} for {places} people and begin on {date}. / {places} places were there for
            {course}, and {name} took the last one. / The fee for {course} is {price}, and the number of places is
            {places}. / {email} wrote to {teacher}: is {course} still in room {room}?"""
        ),
        "COURSE LIST\n{course}\nRoom {room}\nStudent: {name}",
        "Title: {course}\nPlaces: {places}\nFee: {price}\nTeacher: {teacher}",
        "Dear {name},\n\nthank you for choosing {course}. We begin on {date} in room {room}.\n\n{teacher}",
        "{course}\nwith {teacher}\nfrom {date}\n{price}",
        "Hello,\nplease put me on the list for {course}.\n{name}\n{email}",
        "Start date: {date}\nRoom: {room}\nEmail: {email}\nCourse: {course}",
    ),
    "flat": (
        *items(
            """In {city}, a flat with {rooms} rooms is free from {date} on. / {street} in {city}: {area} on floor
            {floor}, {price} a month. / From {date} on you can rent {rooms} rooms at {street}. / {price} a month is
            the rent for {area} in {city}. / On floor {floor} of {street} there is a flat with {rooms} rooms. /
            {rooms} rooms on floor {floor}: call {contact}. / {area} in {rooms} rooms, that is our flat at {street}.
            / Who wants to live in {city}? {rooms} rooms, {price}, from {date}. / The rent is {price}, the floor is
            {floor}, and the number of rooms is {rooms}. / Call {contact} to see the flat at {street}; it costs
            {price}. / {contact} is the number to call for the flat on floor {floor} at {street}. / My flat has
            {area} and lies on floor {floor}. You may move in on {date}. / {city}, {street}, {rooms} rooms, {price}
            / {date} | {city} | {area} | {price} / We are moving out of {street}. Our {rooms} rooms will be free on
            {date}, rent {price}. / Is the flat in {city} still free? I could move in on {date} and pay {price}. /
            The flat, which has {rooms} rooms and {area}, can be found at {street}, {city}. / Sunny flat on floor
            {floor}, {area}, {city}. Phone {contact}. / How big? {area}. How many rooms? {rooms}. Which floor?
            {floor}. How much? {price}. / For {price} a month you get {area} at {street}. / Free from {date}: {area}
            in {city}, floor {floor}. / Hi, I saw your flat at {street}. Can I see it on floor {floor}? Call me:
            {contact}. / Family looks for {rooms} rooms in {city}, rent up to {price}. Tel. {contact}. / The owner
            asks {price} for the {rooms} rooms at {street}, which has {area} in all. / {floor} is the floor,
            {street} the address, {city} the city. / Wanted from {date}: a flat in {city}, about {area}. Please ring
            {contact}. / Flat to let in {city}! It is on floor {floor} and has {rooms} rooms. / Near the park at
            {street}, {rooms} rooms can be had for {price}. They are free from {date}. / No lift, but a fine view:
            floor {floor}, {area}, {price}, {city}. / {contact}: flat with {area}, {rooms} rooms, free on {date}. /
            You can call me at {contact} if you like to live at {street} in {city}. / Rent in {city} is high. This
            flat with {area} costs {price}. / Our tenant leaves {street} on {date}. Then the {area} will be for rent
            again. / The house at {street} has a free flat, floor {floor}, rent {price}, from {date}. / I rent out
            {rooms} rooms in my house in {city}. The rent is {price}, call {contact}. / {rooms} rooms; {area};
            {street}; {date} / {price} - {area} - floor {floor} - {city} / Would {area} be enough for you? It is in
            {city}, has {rooms} rooms, and is free from {date}. / Sign in the window of {street}: flat for rent,
            {rooms} rooms, {contact}. / (Hello|Good day), the flat on floor {floor} in {city} costs {price}. You can
            have it from {date}. / Student wants to share {rooms} rooms at {street}, {city}. The whole flat costs
            {price}. / New in {city}: {street}, floor {floor}, {area}. / To move in on {date}, pay {price} first.
            The address is {street}. / With {rooms} rooms and {area}, the flat on floor {floor} is big enough for a
            family. / At {street} they raised the rent of the {area} flat to {price}. That is {city} for you. / If
            you need {rooms} rooms in {city} by {date}, dial {contact}. / Ring {contact} or write to {street}: the
            flat with {rooms} rooms in {city} is waiting. / The number is {contact}, the rent is {price}, and the
            flat lies on floor {floor}. / Please call me under {contact}, if you have {rooms} rooms to let in
            {city}. / A flat on floor {floor}, tel. {contact}, {area}, with {rooms} rooms."""
        ),
        "FLAT FOR RENT\n{street}, {city}\n{rooms} rooms, {area}\n{price}",
        "Address: {street}\nFloor: {floor}\nRooms: {rooms}\nContact: {contact}",
        "Hello,\nis the flat at {street} free from {date}? Is the rent still {price}?\nMy phone: {contact}",
        "Rent: {price}\nArea: {area}\nFloor: {floor}\nCity: {city}",
        "- {city}\n- {rooms} rooms\n- floor {floor}\n- free from {date}",
        "Free from {date}\n{area}\nfloor {floor}\ncall {contact}",
    ),
    "car": (
        *items(
            """In {city}, {seller} has a {brand} {model} for sale. / {price} for a {color} {brand} {model}: call
            {phone}. / Built in {year}, the {brand} {model} of {seller} has done {mileage}. / {mileage} on the
            clock, {color}, {brand} {model}, {price}. / From {year}, {color}, with {mileage}: my {brand} {model}
            looks for a new owner. / Does {seller} still sell the {brand} {model}? I would pay {price}. / The
            {model} by {brand} was built in {year} and has run {mileage}. / {brand} is the make, {model} the model,
            {year} the year, {color} the color. / {seller} drove the {brand} {model} for {mileage} and now sells it.
            / {color} {brand} {model} in {city}, year {year}. / Ring {phone} if you want the {brand} from {year}. It
            stands in {city}. / {phone} is the number of {seller}, who sells a {brand} {model}. / {seller}; {city};
            {brand} {model}; {price} / {brand} | {model} | {mileage} | {color} / What does the {color} {brand}
            {model} cost? {seller} asks {price}. / Car of the week: {brand} {model}, first on the road in {year},
            now {price}. / After {mileage} I sell my {brand} {model}. It is {color}. {seller}, {city} / Hi, is the
            {brand} {model} from {year} still there? You can call me at {phone}. / The car that {seller} wants to
            sell for {price} is a {brand}, model {model}. / Come to {city} and see our {color} {brand} {model}. It
            has only {mileage}. / Never painted, still {color}: this {brand} {model} from {year}. Phone: {phone}. /
            My father, {seller}, sells his {brand} {model}. It dates from {year} and has {mileage}. / A bargain in
            {city}: for {price} you get a {brand} {model} that has run {mileage}. / Model {model}, make {brand},
            seller {seller}, phone {phone}. / {year} - {brand} - {model} - {mileage} - {price} / Sold! The {brand}
            {model} of {seller} went for {price}. / It's a {color} {brand}. The model is {model}, and {seller} has
            had it since it was built in {year}. / I, {seller}, offer a {brand} {model}, {mileage}, in {city}. /
            People in {city} may know my car: the {color} {brand} {model}. Yours for {price}. / For {price},
            {seller} would give away the {brand} {model}, which is {color}. / You find it in {city}: a {brand}
            {model} of {year} with {mileage}, price {price}. / Parked in {city} and yours for {price}: the {color}
            car of {seller}, a {brand}, model {model}. / {price} or best offer. {brand} {model}, {year}. Ask for
            {seller}. / The color is {color}, the price is {price}, the car is a {brand} {model}. / Looking for a
            {brand}? {seller} in {city} has one, a {model} with {mileage}. / (Hello|Hi), I would like to sell my
            {model}. It is a {brand}, built in {year}, and I want {price} for it. / No rust, {mileage}, {color}
            paint: {brand} {model}, {city}. / Call {seller} under {phone}. The {brand} {model} costs {price}. / How
            old is the {brand} {model}? It is from {year}. How far has it gone? {mileage}. / Our {brand}, a {color}
            {model}, has run {mileage} since {year}. / Swap my {brand} {model}, year {year}, for a van? {seller},
            {phone}. / {city}, {seller}, {color} {brand}, {price} / In {year} this {brand} {model} came out. Now it
            has {mileage} and costs {price}. / The {brand} {model} in {color} may be seen at the home of {seller} in
            {city}. / Test drive in {city}? Call {phone} and ask for the {brand} {model} of {year}. / With
            {mileage}, the {brand} {model} is not new, but {price} is fair, says {seller}. / Yours for {price}, with
            {mileage}, from {year}: this car of {seller} is a {brand}. / {model} is the model, and {seller} in
            {city} says that the car was built by {brand}. / I have driven it for {mileage}, it is {color}, and the
            make is {brand}. Call {phone}. / {color} outside, {mileage} inside, and on the bonnet it says {brand}. /
            If you like a {color} {model}, ring {phone} or come to {city}: {seller} has one, made by {brand}."""
        ),
        "FOR SALE\n{brand} {model}\n{year}, {mileage}\n{price}\n{phone}",
        "Make: {brand}\nModel: {model}\nMileage: {mileage}\nSeller: {seller}",
        "Hi,\nI sell a {color} {brand} {model} from {year}. It costs {price}.\n{seller}",
        "Color: {color}\nYear: {year}\nCity: {city}\nPhone: {phone}\nCar: {brand} {model}",
        "{seller}\n{city}\n{brand} {model}, {color}",
        "- {brand} {model}\n- built in {year}\n- {mileage}\n- in {city}",
    ),
    "match": (
        *items(
            """{away} played at {home}: the home team scored {home_goals}, the guests {away_goals}. / In the {stadium},
            {home} hosted {away} on {date}. / {away} came to {city} to play against {home}, who were at home. / At
            the {stadium}, the home team {home} scored {home_goals} and the guests, {away}, {away_goals}. /
            {visitors} people came to {city} to see {home} at home against {away}. / On {date}, {away} travelled to
            {home}. / The guests from {away} scored {away_goals} times, the hosts of {home} {home_goals} times. /
            The visiting team was {away}; {home} played at home in the {stadium}. / Home team: {home}. Guests:
            {away}. Crowd: {visitors}. / {home} was the host, {away} the guest, and the score was {home_goals} to
            {away_goals}. / {date}: {home} at home against {away}, {city}. / How did {home} play at home against
            {away}? The score was {home_goals} to {away_goals}. / With {visitors} people in the {stadium}, {home}
            received {away}. / In the {stadium} the goals were {home_goals} by the hosts, {home}, and {away_goals}
            by {away}. / {away} will be the guest of {home} on {date} in the {stadium}. / {home_goals} goals for
            {home} at home, {away_goals} for the visitors from {away}. / A crowd of {visitors} watched {away} play
            away at {home}. / Home {home} {home_goals}, away {away} {away_goals}, city {city}. / {stadium} | {home}
            | {away} | {date} / {home} - {away}, {home_goals}:{away_goals}, {stadium}, {visitors} visitors / {city},
            {date}: {home} against {away} {home_goals}:{away_goals} / Tickets for {home} against {away} are on sale.
            The hosts play in the {stadium} on {date}. / Who won? {home} had {home_goals} at home, and {away} had
            {away_goals}. / I was one of {visitors} who saw {home} in the {stadium}. They played at home against
            {away}. / Next home game of {home}: {date}, against {away}, in {city}. / For {away} it is a long way to
            {city}, where {home} waits on {date}. / Away goals: {away_goals}, by {away}. Home goals: {home_goals},
            by {home}. / The match in the {stadium} on {date} was seen by {visitors} people. / It rained in {city},
            but {visitors} people came to see {home} and the guests from {away}. / Nobody was hurt on {date}, when
            the roof of the {stadium} fell in before {home} could host {away}. / After scoring {away_goals} at the
            {stadium}, {away} went home. The hosts, {home}, had {home_goals}. / {visitors} in the crowd,
            {home_goals} goals for the home side {home}, {away_goals} for {away}. / Fans of {away} may take the
            train to {city}; the game at {home} is on {date}. / Live from the {stadium}: {home} {home_goals}, {away}
            {away_goals}. / In {city} the score is {home_goals} to {away_goals}: {home} plays at home, {away} is the
            guest. / {home}, playing at home in {city}, drew {visitors} people to the match on {date}. / On {date}
            the gates of the {stadium} in {city} open for {home} against {away}. / Yesterday's guests were {away}.
            They got {away_goals}; the hosts from {home} got {home_goals}. / (Hey|Hi), do you come along to the
            {stadium}? {home} plays at home against {away} on {date}. / {away} scored {away_goals} in {city}. That
            was on {date}, in front of {visitors} people. / The home game of {home} against {away} had {visitors}
            visitors and was played in {city}. / Called off: {home} at home to {away}, {date}, {stadium}. / {city}
            was the place, {home} the home team, {away} the away team, {visitors} the number of visitors. / In front
            of {visitors} people, hosts {home} scored {home_goals}; {away} answered with {away_goals}. / Never
            before had the {stadium} held {visitors} people. They all wanted to see {home} meet {away} on {date}. /
            {away}, as the away team, had {away_goals} goals, {home}, as the home team, {home_goals}. / On the road
            again: {away} plays at {home} in {city}, {date}. / {home_goals} for the hosts from {home}, {away_goals}
            for the guests from {away}, {visitors} people in the {stadium}. / {away_goals} times {away} scored as
            the guest of {home}, who got {home_goals}."""
        ),
        "MATCH DAY\n{home} against {away}\n{stadium}, {city}\n{date}",
        "Home: {home}, {home_goals}\nAway: {away}, {away_goals}\nVisitors: {visitors}",
        "Full time in {city}!\n{home} {home_goals}\n{away} {away_goals}",
        "Date: {date}\nGuests: {away}\nHosts: {home}\nStadium: {stadium}",
        "Home team: {home}\nHome goals: {home_goals}\nAway team: {away}\nAway goals: {away_goals}",
        "{stadium}, {date}\n{visitors} visitors\n{home} - {away} {home_goals}:{away_goals}",
    ),
    "book": (
        *items(
            """{publisher} published "{title}", which {author} wrote in {year}. / In {language}, the book "{title}" has
            {pages} pages. / {pages} pages long and written by {author}, "{title}" costs {price}. / {price} is the
            price of "{title}", a book of {pages} pages. / Written in {language} by {author}, the book came out at
            {publisher}: "{title}". / {year} was the year in which {author} finished "{title}". / "{title}" came out
            in {year} and has {pages} pages. / "{title}" has {pages} pages and came out in {year}. / Have you read
            "{title}"? It is by {author} and was published by {publisher}. / The author {author} went to {publisher}
            with "{title}" in {year}. / With its {pages} pages, "{title}" is the longest book by {author}. / For
            {price}, {publisher} sells "{title}" in {language}. / {author} | {title} | {publisher} | {pages} /
            {title}; {year}; {pages} pages; {price} / {publisher} asks {price} for "{title}" by {author}. / I am
            looking for "{title}" in {language}. The publisher is {publisher}. / Who wrote "{title}"? It was
            {author}, and {publisher} printed it in {year}. / On page one of "{title}" you find the names of
            {author}, who wrote it, and {publisher}, who printed it. / Since {year}, "{title}" can be read in
            {language}. / My favourite is "{title}". I got the {language} edition for {price}. / {author} needed
            {pages} pages to tell the story of "{title}". / Printed by {publisher} in {year}, this book by {author}
            has {pages} pages. / {year}: {publisher} prints "{title}". Author: {author}. / Now out in {language}:
            "{title}", {pages} pages, from {publisher}. / Library card: {author}, "{title}", {language}, {year}. /
            Our shop has "{title}" for {price}. It was published by {publisher} and is in {language}. / {pages} -
            {year} - {language} - "{title}" / You want a long book? "{title}" by {author} has {pages} pages and
            costs {price}. / The {language} book "{title}" was written by {author} and brought out by {publisher}. /
            {publisher} brought out "{title}" by {author} in {language}, with {pages} pages, in {year}. / "{title}",
            says {author}, was sold to {publisher} in {year}. / It took {author} long to write the {pages} pages of
            "{title}", but in {year} it was there. / Used book for sale: {author}, "{title}", {year}, {price}. / A
            new price for "{title}": {publisher} now sells it at {price}. / Could you order "{title}" for me? Author
            {author}, publisher {publisher}, {year}. / The novel by {author} from {year} is called "{title}" and
            costs {price}. / Before {publisher} took "{title}", {author} had sent it to many others. / We read
            "{title}" at school, all {pages} pages, in {language}. / {author} writes in {language}. The last book,
            "{title}", is from {year}. / When {author} wrote "{title}", {publisher} was still a small house. / Prize
            for {author}! The book "{title}", published by {publisher}, is the best of {year}. / From {year},
            {pages} pages, by {author}: "{title}". / {language} edition of "{title}", {publisher}, {price} /
            (Hi|Hello), do you still have the book by {author} that {publisher} brought out? It is called "{title}"
            and has {pages} pages. / The name of the author is {author}, and the name of the house that printed
            "{title}" is {publisher}. / Price: {price}. Pages: {pages}. Year: {year}. Title: "{title}". / Lost in
            the library: "{title}" by {author}, in {language}, worth {price}. / Pay {price} and you can read
            "{title}" by {author} in {language}. / {price}, {pages} pages, {language}: this is what the label on
            "{title}" says. / Paid {price} for "{title}" in {language}, published by {publisher}."""
        ),
        '"{title}"\nby {author}\n{publisher}, {year}',
        "Author: {author}\nPublisher: {publisher}\nTitle: {title}\nPrice: {price}",
        "Pages: {pages}\nYear: {year}\nTitle: {title}",
        'Dear {author},\n\nwe would like to print "{title}" in {language}.\n\n{publisher}',
        "Book of the week\n{title}\n{author}\n{language}, {price}",
        "- title: {title}\n- language: {language}\n- pages: {pages}\n- out since {year}",
    ),
    "pet": (
        *items(
            """{owner} has a {color} {species} called {pet}. / On {date}, the {species} {pet} was weighed: {weight}. /
            {weight} is what {pet}, the {species} of {owner}, weighs. / At {age} years, {pet} weighs {weight}. / The
            owner of {pet} is {owner}, phone {phone}. / {color} and {age} years old: that is {pet}, our {species}. /
            {pet} belongs to {owner}, who can be called at {phone}. / Have you seen {pet}? It is a {color} {species}
            and ran away on {date}. / {species}, {color}, {weight}, name: {pet} / Call {owner} at {phone} if you
            find the {species} {pet}. / {phone} is the number of {owner}; the {species} is called {pet}. / My name
            is {owner}, and my {species} is called {pet}. / Since {date}, {owner} has had a {species} that is {age}
            years old. / How old is {pet}? {age} years. What does it weigh? {weight}. / The vet saw {pet} on {date}.
            Owner: {owner}. Weight: {weight}. / {pet} | {species} | {age} | {color} / {owner}; {pet}; {species};
            {date} / It was {owner} who brought in the {color} {species} on {date}. / Little {pet} is only {age}
            years old, but weighs {weight} already, says {owner}. / Found on {date}: a {species}, {color}, about
            {weight}. Call {phone}. / Dear {owner}, please bring {pet} to us on {date}. The {species} needs a new
            check. / {owner} wants to give away the {species} {pet}, {age} years old, {color}. / With {weight} and
            in {color}, the {species} of {owner} is a fine animal. / {date}: {pet}, {weight}, {age} years. / The
            {species} is {age} years old and weighs {weight}. It is called {pet}. / Our {pet} is ill! It is a
            {species} of {age} years. Please ring {owner}, {phone}. / Hi, it's {owner}. Could you feed my {species}
            on {date}? It is called {pet}. / For {pet}, a {color} {species}, {owner} looks for a new home. / {age}
            years, {weight}, {color}: who would like to have the {species} {pet}? / Vet's note: {species} {pet},
            {weight}, next visit {date}. / Which animal does {owner} have? A {species} by the name of {pet}. / Three
            things about {pet}: it is a {species}, it is {color}, and it weighs {weight}. / When {owner} got {pet},
            the {species} was {age} years old. / {pet} came to {owner} on {date} and is now {age} years old. / The
            one in {color} is {pet}. It is the {species} of {owner}. / Please ask {owner} how much {pet} eats; the
            {species} weighs {weight} now. / {species} for sale, {age} years, {color}, {weight}. Phone {phone}. / On
            {date} we lost {pet}. The {species} is {color}. {owner} thanks you for any call: {phone}. / {owner}
            named the {species} {pet}, because it is {color}. / A visit for {pet} was booked for {date} by {owner}.
            Species: {species}. Age: {age}. / Prize for {pet}! The {color} {species} of {owner} won the show on
            {date}. / (Hello|Hi), my {species} weighs {weight}. Is that too much at the age of {age}? {owner} /
            {pet} weighed {weight} on {date}, which is a lot for a {species} of {age} years. / Neighbour {owner} has
            lost a {species}. Color: {color}. Weight: {weight}. Name: {pet}. / In the waiting room: {owner} with
            {pet}, a {species}. / {color}; {species}; {age}; {owner}; {phone} / Do not feed {pet}! The {species}
            already weighs {weight}. Thank you, {owner} / If {pet} the {species} comes to you, tell {owner} at once.
            It has been away since {date}. / {weight}, {age} years, {color}: the papers of {pet} are complete. /
            {phone}, that is {owner}, the owner of a {color} {species}. / Dial {phone} and ask {owner} about the
            {species}, which is {age} years old."""
        ),
        "LOST\n{color} {species}\nname: {pet}\ncall {phone}",
        "Owner: {owner}\nPet: {pet}\nWeight: {weight}\nDate: {date}",
        "Hello,\nmy {species} {pet} is {age} years old and needs a home.\n{owner}\n{phone}",
        "{pet}\n{species}, {color}\n{age} years\n{weight}",
        "Dear vet,\n\ncan I come with {pet} on {date}? It is a {species} and weighs {weight}.\n\n{owner}",
        "Animal: {species}\nColor: {color}\nAge: {age}\nName of the pet: {pet}",
    ),
    "lost and found": (
        *items(
            """In the {place}, {name} found a {color} {item}. / {name} has found your {item}; call {phone}. / On
            {date}, somebody left a {color} {item} at the {place}. / In the {place} there lay a {item}, and {name}
            took it along. Mail: {email}. / The {item} that {name} found on {date} is {color}. / {color} {item}
            found! It was in the {place} on {date}. / {email} is the address to write to if the {color} {item} is
            yours. / Whose {item} is this? It was found on {date} by {name}. / Who lost a {item}? I found one in the
            {place}. Call me at {phone}. {name} / Since {date} I miss my {item}. It must be in the {place}. My
            number is {phone}. / {place}, {date}: one {item}, {color}. / {item} | {color} | {place} | {phone} /
            {date}; {item}; found by {name}; {email} / It was in the {place} that {name} saw the {item} on {date}. /
            {phone} - please call if you saw a {item} in the {place}. / Did you leave a {item} in the {place}? Then
            write to {name}, {email}. / Found by {name} in the {place}: a {item}. To get it back, call {phone}. /
            Hi, I think I left my {item} at the {place}. It is {color}. Please mail {email}. / The finder of the
            {color} {item} is {name}, who can be reached at {phone}. / You can pick up the {item} from {name}. It
            had been in the {place} since {date}. / Missing: {item}. Color: {color}. Last seen: {date}, {place}. /
            Thank you, {name}, for bringing back the {item} that you found in the {place}! / To the person who took
            my {color} {item} from the {place} on {date}: please call {phone}. / {color} is the color of the {item}
            which {name} handed in on {date}. / At the {place} you can ask for a {item} that {name} found. / Handed
            in on {date} by {name}: {item}, {color}. / Please help! My {color} {item} is gone. I had it in the
            {place}. Write to {email}. / What was lost? My {item}. Where? In the {place}. When? On {date}. / Not a
            bag of gold, but a {color} {item} was found by {name} on {date}. / Sign at the {place}: {item} found,
            ask {name}, tel. {phone}. / The {place} keeps things that people forget. On {date} it was a {item}. /
            {name} writes from {email}: a {color} {item} is with me. / My {item} has been missing since I was at the
            {place} on {date}. Any news to {email}, please. / If this {color} {item} is yours, tell {name} where in
            the {place} you lost it. / Forum: anybody lost a {item} near the {place}? {name} has it and can be
            called at {phone}. / Call {name} under {phone} about the {item} from the {place}. / {name} picked up a
            {color} {item} on {date} and left the number {phone}. / A child found a {color} {item} at the {place}.
            Phone for the owner: {phone}. / Lost on {date}, found by {name}: the {item} is back. / Behind a door of
            the {place} there was a {item} in {color}. {name} has it now. / On {date} my {item} fell out of my bag.
            It is {color}. Can you mail me at {email}? / (Hello|Good morning), {name} speaking. I found a {item} at
            the {place} on {date}. / For the {color} {item} from the {place}, write to {email}; it was {name} who
            found it. / {item}, {place}, {name}, {email} / We at the {place} have a {color} {item}, brought by
            {name} on {date}. Come and get it. / Is your {item} {color}? Then {name} may have found it on {date}. /
            {email} and {phone} both reach {name}, who has found a {item}. / {phone} is the number of {name}; the
            {color} {item} can be fetched there. / Mail {email} or call {phone}: the {item} from the {place} is
            here. / Here is {phone}, a number to call if you lost a {item} on {date}."""
        ),
        "FOUND\n{color} {item}\nin the {place}\ncall {name}, {phone}",
        "LOST on {date}\nmy {item}\nPlease write to {email}",
        "Thing: {item}\nFinder: {name}\nDay: {date}\nPhone: {phone}",
        "Hello,\n\nI found a {item} in the {place}. Is it yours?\n\n{name}\n{email}",
        "Place: {place}\nColor: {color}\nItem: {item}\nEmail: {email}",
        "Dear all,\non {date} {name} found a {item}. It is {color}.\nPlease pick it up at the {place}.",
    ),
    "payment": (
        *items(
            """On {date}, {amount} went from {payer} to {payee}. / {payee} got {amount}. The payer was {payer}, the
            reference {reference}. / {amount} has been sent to {payee} by {payer}. / For {purpose}, {payer} gave
            {amount} to {payee}. / {reference} is the reference of the payment that {payer} made on {date}. / To
            {payee} from {payer}: {amount}, for {purpose}. / Has {payer} paid {payee} yet? The sum is {amount}. /
            The sum of {amount}, paid by {payer}, reached {payee} on {date}. / {payer} would like to have {amount}
            back from {payee}; the payment had the reference {reference}. / {purpose} cost {payer} {amount}, paid to
            {payee}. / By {date}, {payer} must send {amount} to {payee}. / {payer} | {payee} | {amount} | {date} /
            {payee}; {amount}; {reference}; {purpose} / Bank note: {payer} sent {amount} on {date} with the
            reference {reference}. / Please pay {amount} for {purpose} to {payee}, {payer}. / What is the {amount}
            for? It is for {purpose}, says {payer}, and goes to {payee}. / Your account, {payer}: minus {amount} on
            {date}, to {payee}. / We at {payee} wait for {amount} from {payer}. Please use {reference}. / I paid
            {payee} on {date}. It was {amount}, reference {reference}. Regards, {payer} / Nothing has come in for
            {purpose}. {payer}, please send {amount} by {date}. {payee} / The money that {payee} got on {date} came
            from {payer} and was meant for {purpose}. / {date} - {payee} - {payer} - {amount} / Payee {payee}, payer
            {payer}, reference {reference}. / Twice {payer} sent {amount} to {payee}; once would have been enough.
            Reference: {reference}. / With the reference {reference}, {amount} for {purpose} was paid in on {date}.
            / From whom is the {amount}? From {payer}. To whom? To {payee}. When? On {date}. / Could you tell
            {payee} that I, {payer}, have paid {amount} for {purpose}? / {amount} is missing! {payer} sent it on
            {date}, but {payee} never got it. / It was on {date} that {payer} sent {payee} the money for {purpose}.
            / Each month {payer} pays {amount} to {payee} for {purpose}. / Dear {payee}, the {amount} for {purpose}
            left my account on {date}. {payer} / Dear {payer}, we thank you for {amount}, which came in on {date}
            under {reference}. {payee} / {payee} confirms a payment by {payer} for {purpose}. / To be paid on
            {date}: {amount} to {payee}, reference {reference}, purpose {purpose}. / The firm {payee} sent {payer} a
            letter: {amount} is still open. / (Hi|Hello), {payer} here. Which reference should I use for {purpose}?
            Is it {reference}? I want to pay {payee}. / Transfer stopped: {payer} to {payee}, {amount}, {reference}.
            / Reference {reference}, purpose {purpose}, payer {payer}, date {date}. / Money in: {amount} from
            {payer}. Money for: {purpose}. / Under {reference} the books of {payee} show {amount} from {payer}. /
            The one who pays is {payer}, the one who gets the {amount} is {payee}. / As {purpose} was more than
            planned, {payer} paid {payee} {amount} on {date}. / In the books of {date} you see {payer}, {amount},
            and the reference {reference}. / {payer} owes {payee} {amount}, due on {date}. / Thanks to {payer}, who
            sent {amount}, {payee} can start with {purpose}. / A payment for {purpose} was made to {payee}; the
            amount is {amount}, the reference {reference}. / {payer} asked the bank on {date} to send {amount} to
            {payee}."""
        ),
        "PAYMENT\nPayer: {payer}\nPayee: {payee}\nSum: {amount}",
        "Amount: {amount}\nPurpose: {purpose}\nDate: {date}",
        "Dear {payer},\n\nwe have received {amount} from you. The reference was {reference}.\n\n{payee}",
        "{date}\n{payer} to {payee}\n{amount}\n{reference}",
        "Hello {payee},\nI will pay for {purpose} on {date}.\n{payer}",
        "Receiver: {payee}\nReference: {reference}\nSender: {payer}\nReason: {purpose}",
    ),
    "review": (
        *items(
            """In {city}, {name} bought the {product} and gave it {rating} stars. / {price} is a lot, but the {product}
            is worth {rating} stars. {name} / With {rating} stars, {name} rates the {product}. / On {date}, the
            {product} got {rating} stars from {name}. / {rating} out of 5 for the {product}, says {name} from
            {city}. / The {product}, for which {name} paid {price}, gets {rating} stars. / {name} of {city} bought
            the {product} for {price}. / How many stars for the {product}? I give {rating}. {name}, {city} / From
            {city} comes this review of the {product}: {rating} stars. / {product} - {rating} stars - {price} -
            {name} / {date} | {name} | {product} | {rating} / {rating}; {product}; {city}; {date} / I paid {price}
            for my {product} and would give {rating} stars. Greetings, {name} / Bought on {date} in {city} for
            {price}: the {product}. My rating: {rating}. / It came on {date}. The {product} is not bad, so {rating}
            stars. Yours, {name} / The review that {name} wrote on {date} gives the {product} {rating} stars. / Is
            the {product} any good? {name} says {rating} stars, but {price} is not cheap. / At {price}, the
            {product} is fair. {rating} of 5 stars. / {city}, {date}: {name} is happy with the {product}. / Rated
            {rating} by {name}: the {product}. / Dear shop, your {product} gets {rating} stars from me. I live in
            {city} and paid {price}. {name} / My name is {name}, I come from {city}, and I have used the {product}
            since {date}. / If stars were money, the {product} would get {rating} and not {price}. {name} / For
            {price} I had hoped for more than this {product}. {rating} stars, {date}. / {name} bought a {product} on
            {date} and now writes: {rating} stars, no more and no less. / {rating} stars by {name}, {date}, {city}.
            / The {product} which I got in {city} on {date} broke soon. Rating {rating}. {name} / Customers in
            {city} like the {product}. {name} gave {rating} stars. / Stars: {rating}. Product: {product}. Price
            paid: {price}. Written on {date}. / Would I buy the {product} again? For {price}, yes! {rating} stars
            from {name}. / We asked {name} in {city} about the {product}. The answer: {rating} stars. / This
            {product} costs {price} in {city}. I rate it {rating}. / A friend, {name}, told me to buy the {product}
            for {price}. / Not worth {price}: the {product}. {name} gave it {rating} stars on {date}. / {name}
            changed the review of the {product} on {date}. It now has {rating} stars. / (Hi all|Hello), I tested the
            {product}. It was {price} and gets {rating} stars. Bye, {name} / Review no one asked for: {product},
            {rating} stars, bought in {city}. / "{rating} stars", wrote {name} under the picture of the {product} on
            {date}. / What {name} from {city} says about the {product} is short: {rating} stars. / Since {date} I
            own the {product}. It cost me {price}. I would give it {rating} out of 5. / Very good {product} for
            {price}! {name}, {city}, {date} / Only {rating} stars from {city}: {name} does not like the {product}. /
            To all who want the {product}: I paid {price} on {date} and I give {rating} stars. / The author of this
            review of the {product}, {name}, lives in {city} and gave {rating} stars. / I, {name}, sent the
            {product} back on {date} and got my {price}. {rating} stars. / {price} for a {product}? {name} thinks it
            is fine: {rating} stars. / Posted by {name} on {date}: the {product} deserves {rating} stars and is
            worth its {price}."""
        ),
        "{name}\n{product}\n{rating} stars",
        "REVIEW\nItem: {product}\nStars: {rating}\nPrice: {price}\nCity: {city}",
        "Rating: {rating} of 5\n\nI like my new {product}. It cost {price}.\n\n{name}, {city}",
        "{date}\nThe {product} gets {rating} stars.\n{name}",
        "Reviewer: {name}\nDate: {date}\nItem: {product}\nStars: {rating}",
        "Hello,\nI bought the {product} in {city} on {date} and give it {rating} stars.\n{name}",
    ),
    "email": (
        *items(
            """{sender} asks {recipient} to send the papers on {subject} by {date}. / To {recipient}, from {sender}:
            please call {phone}. / {recipient} got a mail from {sender}. It was about {subject}. / On {date},
            {sender} sent {recipient} a note about {subject}. / {subject} is what {sender} wants to talk about with
            {recipient}. / {department} needs an answer from {recipient} by {date}; please write to {email}. / By
            {date}, {recipient} should tell {department} about {subject}. / Dear {recipient}, my name is {sender}
            and I am with {department}. May I ask you about {subject}? / Hello {recipient}, this is {sender}. You
            can reach me at {phone} or {email}. / {recipient}, please ring {sender} in {department}, {phone}, before
            {date}. / Written by {sender}, read by {recipient}, all about {subject}. / {sender} | {recipient} |
            {subject} | {date} / {date}; from {sender}; to {recipient}; {department} / Hi {recipient}, have you seen
            the mail on {subject}? {sender} in {department} is waiting. / Thank you, {recipient}, for your help with
            {subject}. From {date} on you will find me in {department}. {sender} / Has {recipient} answered {sender}
            yet? The subject was {subject}. / {phone} is my number, {recipient}. Call me about {subject}. Best
            wishes, {sender} / A message for {recipient}: {sender} from {department} has a question about {subject}.
            / I now work in {department}, {recipient}, and need your help with {subject}. A mail to {email} will do.
            {sender} / Good morning {recipient}, on {date} we have to be ready with {subject}. Yours, {sender} /
            Note for {recipient}. {sender} rang from {phone}. It was about {subject}. / Don't wait, {recipient}! The
            date for {subject} is {date}. Write to {email}. / {recipient}, I will be away on {date}, but you can
            always use {phone}. Cheers, {sender} / As you know, {recipient}, {department} wants to see {subject}
            done by {date}. Greetings from {sender} / {email} is where {recipient} should send the text on
            {subject}. / If anything about {subject} is not clear, {recipient}, write to {email}. Many thanks,
            {sender} / It is {sender} who wrote the mail about {subject}, and {recipient} is the one who got it. /
            Please forward this to {recipient}: {department} is done with {subject}. {sender} / The mail that
            {sender} sent on {date} was meant for {recipient} in {department}. / Sorry, {recipient}, I forgot
            {subject}. You will have it by {date}. {sender} / Subject {subject}, sender {sender}, date {date}. /
            {recipient} - call {sender} - {phone} - {subject} / What does {department} think about {subject}? Please
            let me know by {date}, {recipient}. Thanks, {sender} / Voice mail: "{recipient}, it's {sender}. My new
            number is {phone}, and the mail is {email}. Bye!" / With best wishes to {recipient} from {sender},
            {department}, {email}. / Yes, {recipient}, I got your mail on {date}. I will ask {department}. {sender}
            / Let me know what you think about {subject}, {recipient}. You have my mail address, {email}, and my
            phone number, {phone}. / {department} is where {sender} works, who sent {recipient} a mail on {date}. /
            Until {date}, {recipient}, you can send changes to {email}. I will read them all. {sender} / From
            {department} to {recipient}: {subject}, due on {date}. / (Hey|Hi|Hello) {recipient}, do you have time on
            {date}? I need to talk about {subject}. {sender}, {phone} / We in {department} thank you, {recipient},
            for your good work on {subject}. Yours, {sender} / {phone}, {email}: both will reach me, {recipient}.
            Talk to you soon, {sender} / I am writing to you, {recipient}, because {department} told me about
            {subject}. Please answer to {email}. {sender} / {sender} to {recipient}, {date}: please look at
            {subject}. / Meet me on {date}, {recipient}. I will bring the plans for {subject}. Your colleague from
            {department}, {sender} / Reminder from {sender} to {recipient}: the deadline for {subject} is {date},
            and answers go to {email}. / {phone} - please call there about {subject}, {recipient}. Thanks from
            {sender}, {department} / A mail went from {sender} to {recipient}. The subject was {subject}, the
            deadline {date}. / The mail about {subject} was sent by {sender} on {date}, and the one who should read
            it is {recipient}. / From {sender}, who works in {department}, comes this note to {recipient}."""
        ),
        "To: {recipient}\nFrom: {sender}\nDate: {date}\n\nI have a question about {subject}.",
        "Dear {recipient},\n\ncould you send me your notes by {date}?\n\n{sender}\n{department}",
        "{recipient},\nplease call {phone}.\nIt is about {subject}.\n{sender}",
        "Subject: {subject}\n\nHi {recipient},\n{department} has said yes.\n\nBest\n{sender}",
        "From: {sender}\nSubject: {subject}\nReply to: {email}\n\nDear {recipient}, please read this before {date}.",
        "Hello {recipient},\n\nmy new address is {email} and my number is {phone}.\n\nKind regards\n"
        "{sender}, {department}",
    ),
}
