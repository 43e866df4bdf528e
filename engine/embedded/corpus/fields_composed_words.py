"""Parts of which texts of each kind are put together: headings, labels, forms of values, phrases and sentences.

Each part says by itself what its values are, whatever stands beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.embedded.corpus.manner import items

Labels = dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Parts:
    """`{slot}` stands for a value; a part may have several slots.

    headings   what the text is about; they fit before any part, and no value could be meant to be theirs.
    labels     names that may stand before the value of each slot.
    values     forms of values in a list of nothing but values.
    phrases    for notes, joined by commas.
    sentences  for notes, without a full stop.
    greets     slots of whom a letter may be written to.
    signs      slots of who may have written it.
    own        slots that do not get the parts that are common to values of their sort (`COMMON`).
    """

    headings: tuple[str, ...]
    labels: Labels
    values: tuple[str, ...]
    phrases: tuple[str, ...]
    sentences: tuple[str, ...]
    greets: tuple[str, ...] = ()
    signs: tuple[str, ...] = ()
    own: tuple[str, ...] = ()


def parts(
    *,
    headings: str = "",
    labels: str = "",
    values: str = "",
    phrases: str = "",
    sentences: str = "",
    greets: str = "",
    signs: str = "",
    own: str = "",
) -> Parts:
    """Parts are separated by " / "; labels are like "name: Guest, Name; date: Date"."""
    named: Labels = {}
    for line in filter(None, " ".join(labels.split()).split("; ")):
        slot, _, names = line.partition(": ")
        named[slot] = tuple(names.split(", "))
    return Parts(
        headings=items(headings),
        labels=named,
        values=items(values),
        phrases=items(phrases),
        sentences=items(sentences),
        greets=tuple(greets.split()),
        signs=tuple(signs.split()),
        own=tuple(own.split()),
    )


GREETINGS = items("Dear {x}, / Hi {x}, / Hello {x}, / Dear {x}! / Hi {x}! / Hey {x}, / To {x}: / Hello {x}! / {x},")
SIGNATURES = (
    *("Regards, {x}", "Best, {x}", "- {x}", "Yours, {x}", "Thanks, {x}", "Best wishes, {x}", "Kind regards, {x}"),
    *("Regards\n{x}", "Kind regards\n{x}", "Greetings, {x}", "Cheers, {x}", "{x} sends this", "{x} wrote this"),
)
# Parts for values of a sort, here called x, whatever the kind of text.
COMMON = {
    "price": parts(
        labels="x: Price, Cost, Costs, How much, To pay, Sum",
        values="{x} / {x} / {x} / for {x} / price {x} / at {x}",
        phrases="{x} / {x} / for {x} / at {x} / price {x} / price: {x} / {x} in all / cost {x} / at a price of {x}",
        sentences="""It costs {x} / The price is {x} / That is {x} / It comes to {x} / The cost is {x} / Price: {x} /
        That costs {x} / That makes {x} / The price of it is {x} / We ask {x}""",
    ),
    "date": parts(
        labels="x: Date, Day, When, On",
        values="{x} / {x} / on {x}",
        phrases="on {x} / on {x} / {x} / date {x} / date: {x}",
        sentences="The date is {x} / The day is {x} / Date: {x} / The date for this is {x} / All this is on {x}",
    ),
    "time": parts(
        labels="x: Time, At, Starts at, Hour, Clock time, Start time",
        values="{x} / {x} / at {x}",
        phrases="at {x} / at {x} / {x} / time {x} / time: {x} / starting at {x} / start at {x} / beginning at {x}",
        sentences="""It starts at {x} / The time is {x} / Be there at {x} / Please come at {x} / Start: {x} /
        Time: {x} / It begins at {x} / The start is at {x} / We start at {x} / We see you at {x}""",
    ),
    "phone": parts(
        labels="x: Phone, Tel., Tel, Telephone, Mobile, Call, Phone number",
        values="{x} / {x} / phone {x} / tel. {x} / call {x}",
        phrases="""phone {x} / tel. {x} / mobile {x} / reachable at {x} / phone number {x} / by phone at {x} /
        phone: {x} / tel.: {x} / to be reached at {x} / telephone {x} / to call: {x}""",
        sentences="""Call {x} / Please call {x} / The phone number is {x} / Phone: {x} /
        Ring {x} if anything is unclear / Any questions? Call {x} / Tel. {x} / Telephone: {x} / Give us a ring at {x} /
        Questions: {x} / Dial {x}""",
    ),
    "email": parts(
        labels="x: Email, E-mail, Mail, Write to, Email address, Mail to",
        values="{x} / {x} / email {x} / mail {x}",
        phrases="""email {x} / mail to {x} / reachable at {x} / by email at {x} / email: {x} / by mail to {x} /
        e-mail {x} / email address {x} / to be reached at {x}""",
        sentences="""Write to {x} / Please write to {x} / The email is {x} / Send a mail to {x} / Email: {x} /
        Reply to {x} / Mail: {x} / Answers go to {x} / Please send all mail to {x} / Any questions? Write to {x}""",
    ),
    "website": parts(
        labels="x: Website, Web, Homepage, Online, Site, Web page",
        values="{x} / {x} / website {x} / see {x}",
        phrases="""online at {x} / see {x} / website {x} / website: {x} / on the web at {x} / homepage {x} /
        more at {x} / {x}""",
        sentences="""Visit {x} / More at {x} / Have a look at {x} / The website is {x} / See {x} / Find us at {x} /
        Web: {x} / All about it is on {x} / The homepage is {x} / Website: {x}""",
    ),
    "city": parts(
        labels="x: City, Town, In, Where, City or town",
        values="{x} / {x} / in {x} / city {x}",
        phrases="in {x} / in {x} / in {x} / city {x} / city: {x} / here in {x} / in the town of {x} / over in {x}",
        sentences="The city is {x} / City: {x} / All this is in {x} / The town is {x} / It is all in {x}",
    ),
    "street": parts(
        labels="x: Street, Address, Street address, Address line",
        values="{x} / {x} / at {x} / address {x}",
        phrases="""at {x} / at {x} / address {x} / address: {x} / street {x} / the address {x} / to be found at {x} /
        {x}""",
        sentences="""The address is {x} / You find it at {x} / Come to {x} / Address: {x} / The house is {x} /
        It is at {x} / The street address is {x} / Please go to {x}""",
    ),
    "color": parts(
        labels="x: Color, Colour, Color of it",
        values="{x} / {x} / color {x} / in {x}",
        phrases="in {x} / in {x} / {x} / color {x} / color: {x} / colored {x} / all {x} / {x} in color / {x} all over",
        sentences="""It is {x} / The color is {x} / Color: {x} / It is {x} in color / The color of it is {x} /
        It looks {x} / It is all {x} / You see it is {x}""",
    ),
    "weight": parts(
        labels="x: Weight, Weighs, Weight of it",
        values="{x} / weight {x} / weighing {x}",
        phrases="""weighing {x} / weight {x} / weight: {x} / with a weight of {x} / {x} in weight / weighs {x} /
        {x} of weight / at a weight of {x}""",
        sentences="""It weighs {x} / The weight is {x} / The scales say {x} / Weight: {x} / It has a weight of {x} /
        On the scales it is {x} / Its weight is {x}""",
    ),
    "duration": parts(
        labels="x: Duration, Length, Takes, How long, Lasts",
        values="{x} / {x} / for {x} / duration {x} / {x} long",
        phrases="for {x} / {x} long / lasting {x} / {x} / duration {x} / duration: {x} / {x} in length / of {x}",
        sentences="""It takes {x} / Plan {x} for it / It lasts {x} / We need {x} / The duration is {x} /
        It is {x} long / Duration: {x} / It goes on for {x} / Please keep {x} free / After {x} it is over""",
    ),
    "room": parts(
        labels="x: Room, Room number, In room, Room no.",
        values="room {x} / room {x} / in room {x} / room: {x}",
        phrases="room {x} / in room {x} / room number {x} / room: {x} / in the room {x} / room no. {x}",
        sentences="""The room is {x} / Come to room {x} / We have room {x} / Room: {x} / It is room {x} /
        Go to room {x} / The room number is {x} / You find us in room {x} / Please go to room {x}""",
    ),
}
# Of any text, before or after; they hold nothing that could be asked for.
NEUTRAL = items(
    """Thank you for your help. / Please let me know if anything is unclear. / Have a nice day! / Thank you very much. /
    Please confirm. / All the best. / I hope this is all right. / We are looking forward to it. /
    Sorry for the trouble. / Please keep this message. / That is all for now. / Thanks a lot! /
    Let us know what you think. / No answer is needed. / Please read this with care. / Here is what you asked for. /
    I hope you are well. / Good news! / Please note: / Here is the information. / Please check this. / As we agreed: /
    Just so you know: / Here it is. / A short note for you: / Do not hesitate to ask. /
    Please tell us if something is wrong. / We thank you for your trust. / Everything is ready. /
    Nothing else has changed. / I think that is everything. / Please forward this if needed. / Thanks for waiting. /
    It was good to hear from you. / Let me know if that suits you. / We are glad to help. / More details will follow. /
    I am sorry that this took so long. / Please keep it to yourself. / Please reply if you can. /
    For your information: / Everything was checked. / Thank you for your patience. / I hope that helps. /
    Please find the details here. / We wrote it down for you. / Please pass it on. / Best of luck!"""
)

PARTS = {
    "appointment": parts(
        headings="Appointment / New appointment / Visit / Appointment note / Booking",
        labels="""name: Patient, Name, For, Who, Booked for; doctor: Doctor, With, Physician, Seen by; reason: Reason,
        Complaint, Because of, Why, Problem""",
        values="""{name} / {name} / for {name} / patient {name} / {doctor} / with {doctor} / {reason} /
        because of {reason} / reason: {reason}""",
        phrases="""for {name} / booked by {name} / patient {name} / patient: {name} / booked for {name} /
        made for {name} / with {doctor} / seen by {doctor} / doctor: {doctor} / by {doctor} /
        with {doctor} as the doctor / because of {reason} / reason {reason} / reason: {reason} / due to {reason} /
        for {reason} / on account of {reason} / with {reason}""",
        sentences="""The patient is {name} / {name} will come / Please expect {name} / {name} needs to be seen /
        {name} asked for it / It was booked for {name} / {name} has {reason} / {name} comes because of {reason} /
        {doctor} is the doctor / The doctor is {doctor} / {doctor} takes care of it / {doctor} will see {name} /
        {name} would like to see {doctor} / {doctor} has time at {time} / The reason is {reason} /
        It is about {reason} / The complaint is {reason} / {name} can be reached at {phone} / It is on {date} /
        The visit is on {date} / Please be there on {date}""",
        greets="name",
        signs="name",
    ),
    "order": parts(
        headings="Order / New order / Purchase / Customer order / Order note",
        labels="""name: Customer, Name, Ordered by, Buyer, For, Client; product: Product, Item, Article, Goods, What;
        quantity: Quantity, Count, Pieces, How many, Qty; price: Total, Amount; date: Ordered on, Order date;
        order_number: Order number, Order no., Order ID, Order, Order code; city: Send to, Ship to""",
        values="""{name} / by {name} / for {name} / {product} / {quantity} x {product} / {quantity} x {product} /
        {quantity} pcs / {quantity} pieces / {order_number} / order {order_number} / no. {order_number} /
        total {price}""",
        phrases="""by {name} / for {name} / ordered by {name} / customer {name} / bought by {name} / placed by {name} /
        {quantity} x {product} / {quantity} x {product} / {quantity} pieces of the {product} /
        {quantity} of the {product} / quantity {quantity} / {quantity} pieces / {quantity} units / item {product} /
        product {product} / the {product} / item: {product} / order {order_number} / order number {order_number} /
        number {order_number} / no. {order_number} / with the number {order_number} / total {price} / {price} in total /
        ordered on {date} / placed on {date} / of {date} / to {city} / to be sent to {city}""",
        sentences="""{name} placed this order / {name} ordered {quantity} x {product} / The customer is {name} /
        {name} wants the {product} / {name} would like to have it / {name} bought this / We need {quantity} pieces /
        Please send {quantity} of them / The quantity is {quantity} / It is about the {product} /
        Please pack the {product} / The item is the {product} / The order number is {order_number} /
        Order number: {order_number} / We know it as {order_number} / Please quote {order_number} /
        The total is {price} / It is {price} in total / It was ordered on {date} / {name} ordered it on {date} /
        Please ship it to {city} / It goes to {city} / {name} lives in {city} / The email of {name} is {email}""",
        greets="name",
        signs="name",
    ),
    "contact": parts(
        headings="New contact / Contact details / Address book / Business card",
        labels="""name: Name, Contact, Who, Person, Contact person; company: Company, Employer, Works at, Works for,
        Firm; job: Job, Position, Job title, Role, Profession, Works as; city: Based in""",
        values="{name} / {name} / {company} / at {company} / company {company} / {job} / {job} / position: {job}",
        phrases="""{name} / {name} / contact {name} / contact: {name} / the contact person {name} /
        a person called {name} / at {company} / working for {company} / employed at {company} /
        of the company {company} / company: {company} / employer {company} / {job} / {job} / working as a {job} /
        a {job} / {job} at {company} / position: {job} / based in {city}""",
        sentences="""The name is {name} / {name} is the person to ask / Ask for {name} / Our contact is {name} /
        {name} is a new contact / Please save {name} / {name} works for {company} / The company is {company} /
        The employer is {company} / {name} is with the company {company} / {name} is a {job} / {name} works as a {job} /
        The job title is {job} / The position is {job} / The office is in {city} / {name} lives in {city} /
        The office is at {street} / The desk is at {street} / {name} answers at {phone} /
        {name} reads mail at {email}""",
        signs="name",
    ),
    "job advert": parts(
        headings="Job offer / Vacancy / Work / Jobs / We are hiring",
        labels="""company: Company, Employer, Firm, At; job: Job, Position, Title, Job title, Wanted, We need; city:
        Place of work; salary: Salary, Pay, Wage, We pay, Salary a year; contact: Contact, Apply to, Apply at; start:
        Start, Start date, From, Begins, Starting; hours: Hours, Hours a week, Weekly hours, Working hours""",
        values="""{company} / at {company} / company {company} / {job} / {job} / position: {job} / {salary} /
        {salary} a year / salary {salary} / {hours} hours a week / {hours} h per week / from {start} / start {start} /
        starting {start}""",
        phrases="""at {hours} hours a week / hours: {hours} / {hours} hours every week / at {company} /
        with {company} as the employer / working for {company} / company: {company} / employer {company} / as a {job} /
        {job} wanted / position: {job} / position {job} / work as a {job} / salary {salary} / {salary} a year /
        for {salary} a year / salary: {salary} / paid {salary} / pay {salary} / {hours} hours a week /
        {hours} hours per week / with {hours} hours a week / working {hours} hours a week / from {start} on /
        starting on {start} / start {start} / to begin on {start} / start: {start} / apply at {contact} /
        letters to {contact}""",
        sentences="""The hours are {hours} a week / Your week has {hours} hours / {company} is hiring /
        The employer is {company} / We are {company} / {company} needs help / {company} is growing /
        Come and work for {company} / {company} is looking for a {job} / We need a {job} / We are looking for a {job} /
        The position is {job} / Wanted: {job} / You are a {job} / The job is in {city} / Work in {city} /
        The office is in {city} / We pay {salary} / The pay is {salary} / You earn {salary} a year /
        The salary is {salary} / You work {hours} hours a week / It is {hours} hours a week /
        We work {hours} hours a week / The start is on {start} / Work begins on {start} / You start on {start} /
        Applications go to {contact} / Please apply at {contact} / Send your papers to {contact}""",
        signs="company",
        own="start",
    ),
    "invoice": parts(
        headings="Invoice / Bill / New invoice / Invoice copy / Open invoice",
        labels="""invoice_number: Invoice number, Invoice no., Invoice, Number, Bill no., No.; name: Customer, Name,
        Billed to, Bill to, Client, To; company: Company, Seller, Sold by, Issued by, From, Vendor; amount: Total,
        Amount, Amount due; date: Invoice date, Dated, Issued on; product: Product, Item, Article, Goods, What;
        quantity: Quantity, Count, Pieces, How many, Qty""",
        values="""{invoice_number} / invoice {invoice_number} / no. {invoice_number} / to {name} / customer {name} /
        billed to {name} / seller {company} / sold by {company} / issued by {company} / {product} /
        {quantity} x {product} / {quantity} pcs / {quantity} pieces / total {amount}""",
        phrases="""invoice no. {invoice_number} / with the number {invoice_number} / to {name} / for {name} /
        billed to {name} / customer {name} / payable by {name} / customer: {name} / made out to {name} /
        from {company} / issued by {company} / sold by {company} / seller {company} / seller: {company} /
        number {invoice_number} / invoice {invoice_number} / invoice number {invoice_number} / no. {invoice_number} /
        dated {date} / of {date} / issued on {date} / total {amount} / {amount} in total / over {amount} /
        amount {amount} / {quantity} x {product} / {quantity} x {product} / {quantity} pieces of the {product} /
        for the {product} / the {product} / quantity {quantity} / {quantity} pieces / item: {product}""",
        sentences="""The customer is {name} / {name} has to pay it / {name} is the customer / {name} will pay /
        Bill it to {name} / The seller is {company} / {company} sent this invoice / {company} sold it /
        {company} asks {name} for {amount} / {company} billed {name} / The invoice number is {invoice_number} /
        Please quote {invoice_number} / The number of the invoice is {invoice_number} / Please pay {amount} /
        The total is {amount} / The sum is {amount} / It was issued on {date} / The invoice date is {date} /
        It is for the {product} / The item is the {product} / {name} got {quantity} x {product} /
        The quantity is {quantity} / There were {quantity} pieces""",
        greets="name",
        signs="company",
    ),
    "event": parts(
        headings="New event / Coming up / Invitation / Program / Event tip",
        labels="""event: Event, Title, What, Happening; place: Place, Location, Venue, Where; time: Start, Begins;
        price: Entry, Tickets, Ticket price; organizer: Organizer, Host, Organized by, Hosted by""",
        values="""{event} / {event} / {place} / in the {place} / at the {place} / entry {price} / tickets {price} /
        organized by {organizer} / host {organizer}""",
        phrases="""{event} / a {event} / the {event} / event: {event} / in the {place} / at the {place} /
        place: {place} / here at the {place} / entry {price} / tickets for {price} / tickets {price} / entry: {price} /
        organized by {organizer} / hosted by {organizer} / with {organizer} as the host / host: {organizer} /
        made by {organizer}""",
        sentences="""Come to the {event} / We have a {event} / There is a {event} / Do not miss the {event} /
        The event is a {event} / The place is the {place} / It is in the {place} / Meet us at the {place} /
        Come to the {place} / The entry is {price} / Tickets cost {price} / A ticket costs {price} / You pay {price} /
        The host is {organizer} / {organizer} invites you / {organizer} organizes it / {organizer} is the host /
        The organizer is {organizer} / It takes place in {city} / We meet in {city} / It takes place on {date} /
        Come on {date} / It is on {date}""",
    ),
    "product": parts(
        headings="New product / Offer / In our shop / Product data / On sale",
        labels="""product: Product, Name, Item, Article, What; brand: Brand, Maker, Made by, By, Manufacturer; stock:
        Stock, Available, In stock, Left, Pieces left; size: Size, Size of it, In size""",
        values="""{product} / {product} / by {brand} / made by {brand} / brand {brand} / {stock} in stock /
        {stock} left / {stock} available / size {size} / in size {size}""",
        phrases="""the size is {size} / cut to size {size} / the {product} / a {product} / {product} /
        product: {product} / {product} by {brand} / made by {brand} / by {brand} / brand {brand} / brand: {brand} /
        from the maker {brand} / {stock} in stock / {stock} left / {stock} available / stock: {stock} /
        with {stock} in stock / still {stock} pieces left / size {size} / in size {size} / size: {size} /
        of size {size}""",
        sentences="""We sell the {product} / New: the {product} / This is the {product} / Have a look at the {product} /
        We have the {product} / It is made by {brand} / {brand} makes it / The brand is {brand} / The maker is {brand} /
        {brand} sells it / The {product} is made by {brand} / {stock} are in stock / Only {stock} are left /
        We still have {stock} / There are {stock} in stock / The size is {size} / It comes in size {size} /
        We have it in size {size} / The {product} costs {price} / The {product} weighs {weight}""",
    ),
    "flight": parts(
        headings="Flight / Booking / Flight ticket / Boarding pass / Trip / Travel note",
        labels="""name: Passenger, Name, Traveller, Who; flight: Flight, Flight number, Flight no.; origin: From,
        Origin, Leaving from, Departs from; destination: To, Destination, Going to, Lands in; time: Time, Departure,
        Departure time, Leaves at; seat: Seat, Seat number, Seat no.; gate: Gate, Boarding gate; price: Fare, Ticket
        price""",
        values="""{name} / {name} / for {name} / passenger {name} / {flight} / flight {flight} / from {origin} /
        to {destination} / from {origin} to {destination} / {origin} to {destination} / seat {seat} / gate {gate} /
        {time} / at {time} / fare {price}""",
        phrases="""boarding at gate {gate} / on seat {seat} / seat no. {seat} / for {name} / with {name} on board /
        passenger {name} / passenger: {name} / in the name of {name} / flight {flight} / on flight {flight} /
        with flight {flight} / flight number {flight} / flight: {flight} / from {origin} to {destination} /
        {origin} to {destination} / from {origin} / leaving {origin} / starting in {origin} / out of {origin} /
        to {destination} / bound for {destination} / going to {destination} / landing in {destination} / at {time} /
        leaving at {time} / departure {time} / departure at {time} / {time} / seat {seat} / in seat {seat} /
        seat: {seat} / seat number {seat} / gate {gate} / from gate {gate} / at gate {gate} / gate: {gate} /
        fare {price} / fare: {price}""",
        sentences="""{name} is the passenger / The passenger is {name} / {name} is flying / It was booked for {name} /
        The flight number is {flight} / It is flight {flight} / Flight {flight} is on the board /
        The plane goes from {origin} to {destination} / {name} flies to {destination} / It flies to {destination} /
        The destination is {destination} / The plane lands in {destination} / It goes to {destination} /
        It starts in {origin} / The trip begins in {origin} / The trip ends in {destination} / It leaves from {origin} /
        It leaves at {time} / The plane takes off at {time} / The departure is at {time} / The seat is {seat} /
        {name} sits in seat {seat} / Please take seat {seat} / Board at gate {gate} / The gate is {gate} /
        Go to gate {gate} / The fare is {price} / The ticket costs {price} / The flight is on {date} /
        It leaves on {date} / It flies on {date}""",
        greets="name",
        own="origin destination time",
    ),
    "hotel": parts(
        headings="Booking / Reservation / Hotel booking / Stay / Hotel note",
        labels="""name: Guest, Name, Booked by, Reserved for, Booked for; hotel: Hotel, Stay at, Staying at, Name of the
        hotel; arrival: Arrival, Check-in, Arriving, Arrives on, From; nights: Nights, Number of nights, For how many
        nights; guests: Guests, Persons, People, Number of guests; price: Total, Total price""",
        values="""{name} / {name} / for {name} / {hotel} / {hotel} / {nights} nights / for {nights} nights /
        {guests} guests / {guests} persons / arrival {arrival} / from {arrival} / {arrival} / {price} in total""",
        phrases="""a room at the {hotel} / booked at the {hotel} / guests: {guests} / {guests} guests in all /
        booked by {name} / for {name} / reserved for {name} / guest {name} / guest: {name} / in the name of {name} /
        at the {hotel} / {hotel} / hotel: {hotel} / staying at the {hotel} / {nights} nights / for {nights} nights /
        staying {nights} nights / {nights} nights in all / a stay of {nights} nights / {guests} guests /
        for {guests} persons / with {guests} people / {guests} people / from {arrival} / from {arrival} on /
        arrival {arrival} / arriving on {arrival} / check-in on {arrival} / on {arrival} / {price} in total /
        total {price} / total: {price}""",
        sentences="""The guest is {name} / {name} booked it / {name} will stay with us / We keep it for {name} /
        {name} arrives on {arrival} / The hotel is the {hotel} / They stay at the {hotel} / The {hotel} expects you /
        We expect {guests} guests / They are {guests} people / There will be {guests} guests /
        They stay {nights} nights / It is for {nights} nights / The stay is {nights} nights /
        They leave after {nights} nights / They arrive on {arrival} / Arrival is on {arrival} /
        Check-in is on {arrival} / The stay begins on {arrival} / The total is {price} / The stay costs {price} /
        The hotel is in {city} / {name} answers at {phone}""",
        greets="name",
        signs="name hotel",
        own="arrival",
    ),
    "support ticket": parts(
        headings="Ticket / New ticket / Support ticket / Support case / Help request",
        labels="""ticket: Ticket, Ticket number, Ticket no., Case number; name: User, Name, Reported by, From; product:
        Product, Device, Item, Which device; problem: Problem, Issue, What is wrong, Trouble; priority: Priority,
        Urgency, Priority of it; date: Reported on, Reported""",
        values="""{ticket} / ticket {ticket} / no. {ticket} / {name} / by {name} / from {name} / {product} / {problem} /
        {product} {problem} / {priority} priority / priority {priority}""",
        phrases="""as {priority} priority / handled with {priority} priority / ticket {ticket} /
        ticket number {ticket} / case {ticket} / no. {ticket} / reported by {name} / from {name} / opened by {name} /
        user {name} / sent in by {name} / device {product} / device: {product} / the {product} {problem} /
        problem: it {problem} / problem: {problem} / priority {priority} / with {priority} priority /
        {priority} priority / priority: {priority} / reported on {date} / opened on {date}""",
        sentences="""Priority: {priority} / The ticket is {ticket} / The ticket number is {ticket} /
        This is ticket {ticket} / Please quote {ticket} / {name} reports a problem / {name} needs help /
        The user is {name} / {name} wrote to us / {name} opened this ticket / The {product} {problem} /
        The {product} of {name} {problem} / Help, the {product} {problem} / It {problem} / We hear that it {problem} /
        It is about the {product} / The device is the {product} / Please look at the {product} /
        The priority is {priority} / We give it {priority} priority / It has {priority} priority /
        This was reported on {date} / The ticket was opened on {date} / {name} wrote from {email}""",
        greets="name",
        signs="name",
    ),
    "person": parts(
        headings="Profile / New colleague / Portrait / New member",
        labels="""name: Name, Full name, Who; age: Age, Years old; city: City, Home, Lives in, Town; job: Job,
        Profession, Works as, Occupation; hobby: Hobby, Likes, Free time, Enjoys, Loves; company: Company, Employer,
        Works at, Works for; country: Country, Comes from, Born in, Country of birth""",
        values="""{name} / {name} / age {age} / {age} years old / aged {age} / lives in {city} / {job} / {job} /
        {hobby} / likes {hobby} / works at {company} / employer {company} / {country} / born in {country}""",
        phrases="""a citizen of {country} / now {age} / a resident of {city} / with a flat in {city} /
        at work for {company} / employed by {company} / a {job} by profession / {name} / {name} / called {name} /
        a person named {name} / name: {name} / {age} years old / aged {age} / age {age} / {age} years of age /
        age: {age} / living in {city} / at home in {city} / with a home in {city} / home: {city} / working as a {job} /
        a {job} / {job} at {company} / job: {job} / employed at {company} / working for {company} /
        employer: {company} / born in {country} / coming from {country} / originally from {country} /
        country: {country} / fond of {hobby} / keen on {hobby} / likes {hobby} / hobby: {hobby} / a fan of {hobby}""",
        sentences="""The birth country is {country} / {name} has a flat in {city} / This is {name} /
        The name is {name} / Meet {name} / {name} joined us / We welcome {name} / {name} is {age} / The age is {age} /
        {name} is {age} years old / {name} lives in {city} / The home is in {city} / {name} works as a {job} /
        {name} is a {job} / The job is {job} / The employer is {company} / {company} is the employer /
        {name} works for {company} / The country is {country} / {name} was born in {country} /
        {name} comes from {country} / The hobby is {hobby} / {name} enjoys {hobby} / Free time means {hobby} /
        {name} loves {hobby}""",
        own="city",
    ),
    "delivery": parts(
        headings="Parcel / Delivery / Shipment / Package / Parcel news",
        labels="""name: Recipient, Name, To, For, Goes to, Deliver to; tracking: Tracking number, Tracking, Tracking
        no., Parcel; date: Delivery date, Arrives on, Delivery on, Expected; carrier: Carrier, Company, Delivered by,
        Sent with""",
        values="""{name} / to {name} / for {name} / {tracking} / parcel {tracking} / tracking {tracking} /
        with {carrier} / carrier {carrier} / delivered by {carrier}""",
        phrases="""to {name} / for {name} / addressed to {name} / recipient {name} / recipient: {name} /
        parcel {tracking} / tracking number {tracking} / shipment {tracking} / number {tracking} /
        tracking: {tracking} / with {carrier} / by {carrier} / carried by {carrier} / carrier {carrier} /
        carrier: {carrier} / delivered by {carrier} / arriving on {date} / delivery on {date} / expected on {date} /
        to {street} / sent to {street} / on the way to {city} / sent to {city}""",
        sentences="""The recipient is {name} / It goes to {name} / {name} is waiting for it / The parcel is for {name} /
        Please hand it to {name} / The tracking number is {tracking} / You can follow it as {tracking} /
        Tracking: {tracking} / The parcel has the number {tracking} / {carrier} delivers it / The carrier is {carrier} /
        {carrier} has the parcel / We sent it with {carrier} / It arrives on {date} / The delivery is on {date} /
        Expect it on {date} / {carrier} brings it on {date} / The parcel weighs {weight} / Please take it to {street} /
        It goes to {street} / The parcel is on the way to {city} / Please bring it to {city} / {name} lives in {city} /
        {name} answers at {phone}""",
        greets="name",
    ),
    "meeting": parts(
        headings="Meeting / Team meeting / Next meeting / Meeting note",
        labels="""topic: Topic, Subject, About, Agenda, What; room: Place; name: Host, Leader, Name, Led by, Hosted by;
        department: Department, Team, For the department""",
        values="""{topic} / about {topic} / topic: {topic} / led by {name} / host {name} / hosted by {name} /
        {department} department / {department} team""",
        phrases="""about {topic} / on {topic} / topic {topic} / topic: {topic} / to talk about {topic} /
        subject: {topic} / led by {name} / with {name} as the host / hosted by {name} / host {name} / host: {name} /
        for the {department} department / with the {department} team / for the {department} team /
        department: {department}""",
        sentences="""The topic is {topic} / We talk about {topic} / It is about {topic} / The subject is {topic} /
        The meeting is about {topic} / {name} leads it / The host is {name} / {name} is the host /
        {name} leads the meeting / {name} is the leader / It is for the {department} department /
        The {department} department is invited / The {department} team is invited / The {department} department meets /
        We meet on {date} / The meeting is on {date} / We meet in room {room} / Keep {date} free""",
    ),
    "table": parts(
        headings="Table / Reservation / Table booking / Booking",
        labels="""name: Guest, Name, Booked by, Reserved for, Booked for; restaurant: Restaurant, Where, Table at,
        Eating at; guests: Guests, Persons, People, Number of guests, How many""",
        values="""{name} / {name} / for {name} / {restaurant} / at {restaurant} / {guests} guests / {guests} people /
        {guests} persons / table for {guests}""",
        phrases="""booked by {name} / for {name} / in the name of {name} / under the name {name} / guest {name} /
        guest: {name} / at {restaurant} / table at {restaurant} / restaurant: {restaurant} / {restaurant} /
        for {guests} people / a table for {guests} / {guests} guests / {guests} people / {guests} of us /
        with {guests} guests / for {guests} persons""",
        sentences="""The table is for {name} / {name} booked it / The name is {name} / {name} booked a table /
        We keep the table for {name} / We eat at {restaurant} / The restaurant is {restaurant} / Come to {restaurant} /
        {restaurant} has a table for us / We are {guests} people / There will be {guests} guests /
        {guests} people will come / It is a table for {guests} / The table is for {guests} people / We come at {time} /
        The table is booked for {time} / The restaurant is in {city} / {name} answers at {phone} / We come on {date} /
        We go there on {date}""",
        greets="name",
        signs="name",
    ),
    "course": parts(
        headings="New course / Course offer / Course note / Course data",
        labels="""name: Student, Name, Participant, Who, Learner; course: Course, Title, Class, What; teacher: Teacher,
        Taught by, Trainer, Tutor, With; date: Start, Start date, Starts on, Begins, First class; price: Fee; places:
        Places, Free places, Places left""",
        values="""{course} / {course} / course: {course} / student {name} / participant {name} / teacher {teacher} /
        with {teacher} as the teacher / taught by {teacher} / start {date} / from {date} / fee {price} /
        {places} places / {places} places free / {places} places left""",
        phrases="""course: {course} / the course {course} / {course} / course {course} / the class {course} /
        student {name} / for the student {name} / student: {name} / participant {name} / with {name} as a student /
        taught by {teacher} / teacher {teacher} / teacher: {teacher} / with {teacher} as the teacher /
        given by {teacher} / starting on {date} / start {date} / from {date} on / start: {date} / fee {price} /
        for a fee of {price} / fee: {price} / {places} places / with {places} places / {places} places free /
        places: {places}""",
        sentences="""{name} signed up / {name} takes part / The student is {name} / {name} wants to learn /
        {name} has a place / {name} wants to join {course} / The course is {course} / The course is called {course} /
        We teach {course} / Learn {course} / You can learn {course} / {teacher} teaches {course} /
        The teacher is {teacher} / {teacher} teaches it / {teacher} is the teacher / It is taught by {teacher} /
        It starts on {date} / The first class is on {date} / The course begins on {date} / {course} starts on {date} /
        The fee is {price} / The course costs {price} / There are {places} places / {places} places are left /
        We have {places} places / {places} places are free""",
        greets="name",
    ),
    "flat": parts(
        headings="Flat / Flat for rent / For rent / To let / Apartment / Flat offer",
        labels="""rooms: Rooms, Number of rooms, How many rooms; area: Area, Living space, Floor area; city: Flat in;
        price: Rent, Monthly rent, Rent a month; floor: Floor, Storey, On floor; date: Free from, Available from, Move
        in from, From; contact: Contact""",
        values="""{rooms} rooms / {rooms} rooms / {area} / {area} / floor {floor} / on floor {floor} /
        free from {date} / from {date} / available from {date} / rent {price} / {price} a month""",
        phrases="""with {rooms} rooms / {rooms} rooms / {rooms} rooms in all / rooms: {rooms} / of {rooms} rooms /
        {area} / of {area} / with {area} / {area} of space / area: {area} / on floor {floor} / floor {floor} /
        floor: {floor} / up on floor {floor} / free from {date} / from {date} on / available from {date} /
        to move in on {date} / free from {date} on / rent {price} / {price} a month / for {price} a month /
        rent: {price} / at a rent of {price} / contact: {contact}""",
        sentences="""It has {rooms} rooms / There are {rooms} rooms / You get {rooms} rooms /
        The flat has {rooms} rooms / It has {area} / The area is {area} / The flat measures {area} /
        It has {rooms} rooms and {area} / It is on floor {floor} / The flat is on floor {floor} /
        You live on floor {floor} / You find {rooms} rooms on floor {floor} / It is free from {date} /
        You can move in on {date} / It is empty from {date} on / It is free on {date} / The rent is {price} /
        We ask {price} a month / The rent comes to {price} / You pay {price} a month / The flat is in {city} /
        You live in {city} / The flat is at {street}""",
        own="date",
    ),
    "car": parts(
        headings="Car / For sale / Used car / Car for sale / Car offer",
        labels="""brand: Brand, Make, Made by, Brand of the car; model: Model, Type, Car model; year: Year, Built in,
        Year built; mileage: Mileage, Driven, Distance driven; seller: Seller, Sold by, Seller of the car""",
        values="""{brand} {model} / {brand} {model} / make {brand} / brand {brand} / model {model} / {year} /
        year {year} / built in {year} / {mileage} / {mileage} / seller {seller} / sold by {seller}""",
        phrases="""{brand} {model} / {brand} {model} / a {brand} {model} / make {brand} / brand {brand} /
        brand: {brand} / model {model} / model: {model} / built in {year} / from {year} / year {year} /
        of the year {year} / year: {year} / {mileage} / with {mileage} / {mileage} driven / driven {mileage} /
        only {mileage} / mileage: {mileage} / sold by {seller} / seller {seller} / seller: {seller} /
        offered by {seller}""",
        sentences="""It is a {brand} {model} / It is made by {brand} / I sell a {brand} {model} / The make is {brand} /
        The brand is {brand} / The model is {model} / It is the model {model} / It was built in {year} /
        The year is {year} / It is from {year} / The car was made in {year} / It has {mileage} / It has done {mileage} /
        It ran {mileage} / The mileage is {mileage} / The seller is {seller} / {seller} sells it /
        {seller} wants to sell it / {seller} asks {price} / The car is in {city} / You can see it in {city} /
        {seller} can be called at {phone}""",
        signs="seller",
    ),
    "match": parts(
        headings="Match / Football / Match report / Football match / Game",
        labels="""home: Home, Home team, At home, Team at home; away: Away, Away team, Visiting team, Guest team;
        home_goals: Home goals, Goals of the home team, Goals home; stadium: Stadium, Arena, Ground, Played in;
        away_goals: Away goals, Goals of the away team, Goals away; visitors: Visitors, Spectators, Fans, Crowd""",
        values="""home team {home} / away team {away} / {home} against {away} / {home} vs {away} / home: {home} /
        away: {away} / {home} {home_goals}:{away_goals} {away} / home goals {home_goals} / away goals {away_goals} /
        {stadium} / in the {stadium} / {visitors} visitors / {visitors} fans""",
        phrases="""with {away_goals} goals for the away team / with {home_goals} goals for the home team /
        played in the {stadium} / ground: {stadium} / {home} against {away} / {home} vs {away} / home team {home} /
        away team {away} / with {home} at home / with {away} as the guests / home: {home} / away: {away} /
        {home} {home_goals}:{away_goals} {away} / {home_goals} goals for the home team /
        {away_goals} goals for the away team / {home_goals} home goals / {away_goals} away goals /
        {away_goals} goals for the guests / in the {stadium} / at the {stadium} / stadium: {stadium} /
        {visitors} visitors / in front of {visitors} people / with {visitors} fans / visitors: {visitors}""",
        sentences="""The home side made {home_goals} goals / The away side made {away_goals} goals /
        The match was in the {stadium} / The {stadium} was full / The teams played in the {stadium} /
        {home} played at home / The home team was {home} / {home} welcomed {away} / {away} came to {home} /
        {away} was the away team / The guests were {away} / {home} played at home against {away} /
        {away} travelled to {home} / The home team scored {home_goals} / The guests scored {away_goals} /
        The away team got {away_goals} goals / At home, {home} scored {home_goals} /
        As guests, {away} scored {away_goals} / The home team got {home_goals} goals / {visitors} people came /
        {visitors} fans saw it / There were {visitors} visitors / The match had {visitors} visitors /
        The stadium was the {stadium} / They met in the {stadium} / They played in {city} / The match was in {city} /
        They played on {date} / The match was on {date}""",
    ),
    "book": parts(
        headings="New book / Book tip / In the library / For readers / Book data",
        labels="""title: Title, Book, Called, Book title; author: Author, Written by, By, Writer; pages: Pages, Number
        of pages; year: Year, Published in, Year of print, Came out in; publisher: Publisher, Published by, Brought out
        by; language: Language, Written in, Language of the book""",
        values=""""{title}" / "{title}" / by {author} / {author} / author {author} / {year} / from {year} /
        {pages} pages / {language} / in {language} / published by {publisher} / publisher {publisher}""",
        phrases=""""{title}" / all of {pages} pages / from the publisher {publisher} / "{title}" / "{title}" /
        the book "{title}" / called "{title}" / by {author} / written by {author} / author {author} / author: {author} /
        from the pen of {author} / from {year} / of {year} / out since {year} / year: {year} / printed in {year} /
        {pages} pages / with {pages} pages / {pages} pages long / pages: {pages} / published by {publisher} /
        brought out by {publisher} / publisher {publisher} / publisher: {publisher} / in {language} /
        written in {language} / language {language} / language: {language}""",
        sentences="""The title is "{title}" / I read "{title}" / We have "{title}" / It is called "{title}" /
        Read "{title}" / {author} wrote it / The author is {author} / It is by {author} / {author} wrote "{title}" /
        "{title}" is by {author} / It came out in {year} / It is from {year} / It was printed in {year} /
        {author} finished it in {year} / It has {pages} pages / The book is {pages} pages long /
        There are {pages} pages / "{title}" has {pages} pages / The publisher is {publisher} /
        {publisher} brought it out / {publisher} published it / It is in {language} / The language is {language} /
        The book is written in {language} / We have it in {language}""",
    ),
    "pet": parts(
        headings="Vet note / Pet record / Pet card / For the vet",
        labels="""pet: Pet, Pet name, Called, Name of the pet; species: Species, Animal, Kind of animal; age: Age, Years
        old, Age of the pet; owner: Owner, Belongs to, Lives with, Owned by; color: Color, Colour""",
        values="""called {pet} / named {pet} / pet: {pet} / {species} / {species} / {color} {species} / {color} /
        {age} years old / age {age} / owner {owner} / owner: {owner} / belongs to {owner}""",
        phrases="""of {color} color / {age} years of age / called {pet} / named {pet} / a {species} called {pet} /
        {pet} the {species} / a {species} / {color} {species} / a {color} {species} / species: {species} /
        {age} years old / aged {age} / age {age} / age: {age} / owner {owner} / owner: {owner} / belonging to {owner} /
        owned by {owner} / with {owner} as the owner / {color} / color {color} / {color} in color / pet: {pet}""",
        sentences="""It is called {pet} / The name of the pet is {pet} / Its name is {pet} / {pet} is a {species} /
        It is a {species} / The animal is a {species} / It is {age} years old / {pet} is {age} years old /
        The pet is {age} / It belongs to {owner} / The owner is {owner} / {owner} is the owner / {owner} owns it /
        {pet} belongs to {owner} / {owner} owns a {species} / The color is {color} / It is {color} / {pet} is {color} /
        {pet} weighs {weight} / {pet} was here on {date} / The visit is on {date}""",
        own="color",
    ),
    "lost and found": parts(
        headings="Lost and found / Lost property / Found things",
        labels="""item: Item, Thing, What, Object, Found; place: Place, Location, Where, Found in; date: Found on; name:
        Finder, Found by, Name of the finder""",
        values="""{item} / {item} / item: {item} / {place} / in the {place} / found by {name} / finder {name} /
        found on {date}""",
        phrases="""a {item} / found: a {item} / item: {item} / thing: {item} / in the {place} / at the {place} /
        place: {place} / inside the {place} / found by {name} / finder {name} / finder: {name} / picked up by {name} /
        found on {date}""",
        sentences="""Someone left a {item} / I found a {item} / We have your {item} / A {item} was found /
        Whose {item} is this? / It was in the {place} / It lay in the {place} / The place is the {place} /
        We found it in the {place} / {name} found it / The finder is {name} / {name} found a {item} /
        {name} picked it up / It was found on {date} / We found it on {date} / {name} answers at {phone} /
        {name} reads mail at {email}""",
    ),
    "payment": parts(
        headings="Payment / Transfer / Money transfer / Bank transfer / Receipt",
        labels="""payer: Payer, Sender, From, Paid by, Sent by; payee: Payee, Receiver, To, Paid to, Sent to; amount:
        Amount, Sum, Paid, Money, How much; date: Paid on; purpose: Purpose, Reason, For, What for; reference:
        Reference, Ref., Reference number, Reference code""",
        values="""from {payer} / payer {payer} / paid by {payer} / to {payee} / payee {payee} / paid to {payee} /
        {amount} / {amount} / reference {reference} / ref. {reference} / {reference} / for {purpose} /
        purpose: {purpose}""",
        phrases="""reference no. {reference} / quoting {reference} / from {payer} / paid by {payer} / sent by {payer} /
        by {payer} / payer: {payer} / to {payee} / paid to {payee} / receiver: {payee} / with {payee} as the receiver /
        {amount} / of {amount} / over {amount} / amount {amount} / {amount} in all / amount: {amount} / for {purpose} /
        purpose {purpose} / reason: {purpose} / purpose: {purpose} / as payment for {purpose} / reference {reference} /
        with the reference {reference} / ref. {reference} / reference: {reference} / paid on {date} / sent on {date}""",
        sentences="""{payer} paid / {payer} sent the money / The payer is {payer} / {payer} paid {amount} /
        {payer} is the payer / {payer} paid {payee} / {payee} gets the money / The receiver is {payee} /
        The money goes to {payee} / {payee} received {amount} / {payee} got it from {payer} / The amount is {amount} /
        The sum is {amount} / {amount} was paid / It was {amount} / It is for {purpose} / The purpose is {purpose} /
        The money is for {purpose} / {payer} pays for {purpose} / The reference is {reference} /
        Please quote {reference} / The code is {reference} / It was paid on {date} / The money was sent on {date}""",
        own="amount",
    ),
    "review": parts(
        headings="Review / Product review / Customer review / Feedback / New review",
        labels="""name: Author, Reviewer, Name, Written by, By, From; product: Product, Item, Article, About, What;
        rating: Rating, Stars, Number of stars; date: Written on; price: Paid""",
        values="""{rating} stars / {rating} stars / rating {rating} / {product} / for the {product} / {name} /
        by {name} / author {name}""",
        phrases="""{rating} stars / with {rating} stars / rating {rating} / rating: {rating} / rated {rating} stars /
        {rating} stars for the {product} / for the {product} / about the {product} / of the {product} /
        item: {product} / product: {product} / by {name} / written by {name} / from {name} / author {name} /
        author: {name} / written on {date} / bought in {city} / bought for {price}""",
        sentences="""I give it {rating} stars / It gets {rating} stars / My rating is {rating} /
        {name} gave {rating} stars / The {product} gets {rating} stars / {rating} stars from me /
        I bought the {product} / I tested the {product} / The product is the {product} / This is about the {product} /
        {name} tested the {product} / {name} wrote this / The author is {name} / The review is by {name} /
        {name} is the author / It was written on {date} / This was posted on {date} / I bought it in {city} /
        {name} lives in {city} / I paid {price} / It cost me {price}""",
        signs="name",
    ),
    "email": parts(
        headings="Message / Letter / Memo / Note / New message",
        labels="""sender: From, Sender, Sent by, Written by; recipient: To, Recipient, Sent to, Goes to; subject:
        Subject, Topic, About, Re; date: Deadline, Due, Due date, Until, Answer by, Due on; department: Department,
        Department to ask, Ask the department""",
        values="""from {sender} / sender {sender} / to {recipient} / recipient {recipient} / about {subject} /
        subject: {subject} / topic: {subject} / until {date} / due on {date} / deadline {date} /
        {department} department""",
        phrases="""department {department} / for the {department} department / from {sender} / written by {sender} /
        sent by {sender} / sender: {sender} / to {recipient} / sent to {recipient} / recipient: {recipient} /
        addressed to {recipient} / about {subject} / on {subject} / subject {subject} / subject: {subject} /
        topic: {subject} / due on {date} / until {date} / deadline {date} / deadline: {date} /
        to be answered by {date} / department: {department} / with the {department} department""",
        sentences="""{sender} wrote this / The sender is {sender} / This message is from {sender} /
        {sender} wrote to {recipient} / This is a message for {recipient} / The recipient is {recipient} /
        This goes to {recipient} / It is about {subject} / The subject is {subject} / I write about {subject} /
        We have to talk about {subject} / Please think about {subject} / I need your notes on {subject} /
        The deadline is {date} / Please answer by {date} / We need it by {date} / Please answer until {date} /
        It is due on {date} / You have time until {date} / Please ask the {department} department /
        The {department} department knows more / The department is {department} /
        I work in the {department} department""",
        greets="recipient",
        signs="sender",
        own="date",
    ),
}
