"""Tools of a phone and a home, and how users ask for them."""

from __future__ import annotations

from engine.embedded.corpus.base import phrases
from engine.embedded.corpus.tools_form import known
from engine.embedded.corpus.tools_values import (
    APP,
    CHORE,
    CITY,
    CONDITION,
    DATE,
    DAY,
    DEGREES,
    DEVICE,
    DOOR,
    EMAIL,
    EVENT,
    FILE,
    GROCERY,
    LEVEL,
    LINE,
    MESSAGE,
    MINUTES,
    PERSON,
    RATING,
    ROOM,
    SUBJECT,
    SWITCH,
    TEMPERATURE,
    TIME,
    TITLE,
    UNIT,
    enum,
)
from engine.embedded.corpus.wordings import wordings

IN_UNIT = phrases(
    """Use {unit}. / In {unit}, please. / (Show|Give) it in {unit}. / I want it in {unit}. / Answer in {unit}. /
    (The|As) unit: {unit}. / Please use {unit}. / (I need|I would like) {unit}.""",
    more=wordings("tools_words.IN_UNIT"),
)
WITH_LABEL = phrases(
    """Call it {label}. / Name it {label}. / The label is {label}. / Label it {label}. / Label: {label}. /
    It is for {label}. / Use the label {label}. / Please call it {label}.""",
    more=wordings("tools_words.WITH_LABEL"),
)
LABEL = enum("(Label|Name of the timer)", "pasta", "tea", "pizza", "laundry", "break", "rice", "nap", "homework")

PERSONAL_TOOLS = (
    known(
        "weather",
        "get_weather|weather|current_weather|get_current_weather|weather_now",
        "(Get|Return) the (current |)weather (in|of|for) a city",
        {"city|location|place|town": CITY, "unit|units": UNIT},
        """What is the weather (in|like in) {city}? / How is the weather in {city}(| right now)? /
        Weather in {city} / (What's|Tell me) the weather in {city} /
        (Get|Check|Look up) the weather (for|in) {city}. / {city} weather /
        I want to know the weather in {city}(| today| now). / Is it raining in {city}? /
        Do I need an umbrella in {city}? / How warm is it in {city}? / Could you check the weather in {city}? /
        Current weather (in|for) {city}, please""",
        "It is {temperature} degrees and {condition} in {city}.",
        {"temperature|temp": TEMPERATURE, "condition|sky|weather": CONDITION},
        optional={"unit": IN_UNIT},
    ),
    known(
        "weather",
        "get_forecast|forecast|weather_forecast",
        "(Get|Return) the weather forecast (of|for) a city (on|for) a day",
        {"city|location|place": CITY, "day": DAY},
        """What will the weather be in {city} {day}? / Forecast for {city} {day} / Will it rain in {city} {day}? /
        What is the (forecast|weather forecast) for {city} {day}? / How will the weather be {day} in {city}? /
        (Get|Show) me the forecast {day} for {city}. / I need the forecast for {city} {day}. /
        Tell me how warm it will be in {city} {day}. / {city} {day}: what will the weather be?""",
        "It will be {temperature} degrees and {condition} in {city}.",
        {"temperature|temp": TEMPERATURE, "condition|sky|weather": CONDITION},
    ),
    known(
        "clock",
        "set_timer|start_timer|timer",
        "(Set|Start) a timer",
        {"minutes|duration|duration_minutes": MINUTES, "label|name": LABEL},
        """Set a timer for {minutes} minutes. / Start a timer, {minutes} minutes. / Timer: {minutes} minutes /
        (Please set|Set|Can you set) a timer of {minutes} minutes / {minutes} minutes timer /
        I need a timer for {minutes} minutes. / Count down {minutes} minutes. / Please time {minutes} minutes. /
        Let me know when {minutes} minutes are over.""",
        "The timer is set for {minutes} minutes.",
        optional={"label": WITH_LABEL},
    ),
    known(
        "clock",
        "set_alarm|create_alarm|alarm",
        "(Set|Create) an alarm",
        {"time|at": TIME},
        """Set an alarm for {time}. / Wake me (up |)at {time}. / Alarm at {time} /
        (Can you|Please) set an alarm at {time}? / I need an alarm at {time}. /
        I have to get up at {time}, set an alarm. / Please wake me at {time}. / New alarm: {time} /
        Make sure I am awake at {time}.""",
        "The alarm is set for {time}.",
    ),
    known(
        "contact",
        "send_email|email|send_mail",
        "Send an email",
        {"to|recipient|address": EMAIL, "subject|title": SUBJECT},
        """Send an email to {to} with the subject "{subject}". / Email {to}, subject: {subject} /
        Write an email to {to}. The subject is "{subject}". /
        (Please send|Send|Can you send) a mail to {to} with (the subject|subject) "{subject}" /
        Mail "{subject}" to {to}. / I want to send an email to {to}, subject "{subject}". /
        To: {to}, subject: {subject}. Send it by email. / Send {to} an email (titled|with the title) "{subject}".""",
        "The email to {to} has been sent.",
    ),
    known(
        "contact",
        "send_message|send_sms|text_message|message",
        "Send a (text |)message to a (person|contact)",
        {"name|to|contact|recipient": PERSON, "text|message|body": MESSAGE},
        """Send {name} the message "{text}". / Text {name}: {text} / Tell {name} "{text}". /
        (Send|Write) a message to {name}: {text} / Message {name}: "{text}" / Please text {name} "{text}". /
        Send "{text}" to {name}. / Can you write "{text}" to {name}? / I want to send {name} a message: {text}""",
        "The message to {name} has been sent.",
    ),
    known(
        "contact",
        "call_contact|call|make_call|phone_call",
        "(Call|Phone) a (person|contact)",
        {"name|contact|person": PERSON},
        """Call {name}. / Phone {name}, please. / Can you call {name}? / (Please call|I want to call) {name} /
        Ring {name}. / Give {name} a call. / I need to talk to {name} on the phone. / Start a call with {name}. /
        Dial {name}.""",
        "Calling {name}.",
    ),
    known(
        "media",
        "play_song|play_music|play",
        "Play a song",
        {"title|song|name": TITLE, "artist|by": PERSON},
        """Play {title} by {artist}. / Play the song "{title}" by {artist}. / I want to hear "{title}" by {artist}. /
        (Please play|Can you play) {title} by {artist} / Put on "{title}" by {artist}. /
        Start "{title}" from {artist}. / Let us listen to {title} by {artist}. / {artist}: {title}. Play it. /
        Music: "{title}" by {artist}""",
        "Now playing {title} by {artist}.",
    ),
    known(
        "media",
        "pause_music|stop_music|pause",
        "(Pause|Stop) the music",
        {},
        """Pause the music. / Stop the music. / Please stop playing. / (Can you|Please) pause the music? /
        Turn the music off. / No more music, please. / Stop the song. / I do not want music now.""",
        "The music has been stopped.",
    ),
    known(
        "media",
        "set_volume|volume|change_volume",
        "Set the volume",
        {"level|volume|percent": LEVEL},
        """Set the volume to {level}. / Volume {level} / Change the volume to {level} percent. /
        (Please set|Put|Turn) the volume to {level} / Make the volume {level}. / I want the volume at {level}. /
        Volume to {level}, please. / Can you set the volume to {level}?""",
        "The volume is set to {level}.",
    ),
    known(
        "media",
        "get_movie_rating|movie_rating|film_rating",
        "(Get|Return) the rating of a (movie|film)",
        {"title|movie|film": TITLE},
        """What is the rating of the movie "{title}"? / How good is the film "{title}"? /
        Rating of the movie {title} / (Get|Look up) the rating of the film "{title}". /
        Is the movie "{title}" any good? / How is "{title}" rated? / Movie rating: {title} /
        I want to know the rating of "{title}".""",
        "{title} has a rating of {rating}.",
        {"rating|score|stars": RATING},
    ),
    known(
        "media",
        "take_photo|take_picture|camera_shot",
        "Take a (photo|picture)",
        {},
        """Take a photo. / Take a picture, please. / Can you take a photo? / (Please take|Take|Make) a picture now /
        Photo, please. / I want a picture. / Use the camera and take a photo. / Shoot a photo.""",
        "The photo has been taken.",
    ),
    known(
        "calendar",
        "create_event|add_event|new_event|calendar_add",
        "(Create an event in|Add an event to) the calendar",
        {"title|name|event": EVENT, "date|day": DATE, "time|start|at": TIME},
        """Create an event "{title}" on {date} at {time}. / Add "{title}" to my calendar on {date} at {time}. /
        New event: {title}, {date}, {time} / (Put|Please put) "{title}" in my calendar for {date} at {time}. /
        I have "{title}" on {date} at {time}, please add it to the calendar. / Calendar: {title}, {date}, {time} /
        Please create the event "{title}" at {time} on {date}. / Plan "{title}" for {date}, {time}.""",
        "{title} is in your calendar on {date} at {time}.",
    ),
    known(
        "calendar",
        "set_reminder|remind|create_reminder",
        "(Set|Create) a reminder",
        {"text|task|message": CHORE, "time|at|when": TIME},
        """Remind me to {text} at {time}. / At {time}, remind me to {text}. / Set a reminder at {time}: {text} /
        (Please remind|Can you remind|Remind) me at {time} to {text} / Reminder: {text}, {time} /
        I have to {text} at {time}, remind me. / Set a reminder to {text} at {time}. /
        I must not forget to {text}. Remind me at {time}.""",
        "I will remind you at {time} to {text}.",
    ),
    known(
        "home",
        "turn_on_light|light_on|switch_on_light",
        "(Turn|Switch) on the light in a room",
        {"room|location": ROOM},
        """Turn on the light in the {room}. / Light on in the {room} / Switch on the {room} light. /
        (Please turn|Turn|Can you turn) on the {room} light / It is too dark in the {room}. /
        I need light in the {room}. / Make it bright in the {room}. / Put the light on in the {room}, please.""",
        "The light in the {room} is on.",
    ),
    known(
        "home",
        "turn_off_light|light_off|switch_off_light",
        "(Turn|Switch) off the light in a room",
        {"room|location": ROOM},
        """Turn off the light in the {room}. / Light off in the {room} / Switch off the {room} light. /
        (Please turn|Turn|Can you turn) off the {room} light / It is too bright in the {room}. /
        I need no light in the {room}. / Make it dark in the {room}. / Put the light off in the {room}, please.""",
        "The light in the {room} is off.",
    ),
    known(
        "home",
        "switch_device|toggle_device|set_device",
        "Switch a device on or off",
        {"device|name": DEVICE, "on|enabled|state": SWITCH},
        """Turn {on} the {device}. / Switch the {device} {on}. / Please turn the {device} {on}. /
        (Can you switch|Switch|Put) the {device} {on} / Turn the {device} {on}, please. /
        The {device} should be {on}. / I want the {device} {on}. / Make sure the {device} is {on}.""",
        "The {device} is now {on}.",
    ),
    known(
        "home",
        "set_temperature|set_thermostat|heat_room",
        "Set the temperature of a room",
        {"room|location": ROOM, "degrees|temperature|target": DEGREES},
        """Set the {room} to {degrees} degrees. / Set the temperature in the {room} to {degrees}. /
        Heat the {room} to {degrees} degrees. / (Please make|Make|I want) the {room} {degrees} degrees /
        Temperature in the {room}: {degrees} degrees / The {room} should have {degrees} degrees. /
        Put the temperature of the {room} at {degrees} degrees. / {degrees} degrees in the {room}, please.""",
        "The {room} is set to {degrees} degrees.",
    ),
    known(
        "home",
        "lock_door|close_lock",
        "Lock a door",
        {"door|name": DOOR},
        """Lock the {door} door. / Please lock the {door} door. / Is the {door} door open? Then lock it. /
        (Can you|Could you|Please) lock the {door} door? / I want the {door} door locked. /
        Make sure the {door} door is locked. / Lock up the {door} door. / The {door} door should be locked.""",
        "The {door} door is locked.",
    ),
    known(
        "home",
        "unlock_door|open_lock",
        "Unlock a door",
        {"door|name": DOOR},
        """Unlock the {door} door. / Please unlock the {door} door. / Is the {door} door locked? Then unlock it. /
        (Can you|Could you|Please) unlock the {door} door? / I want the {door} door unlocked. /
        Make sure the {door} door is unlocked. / The {door} door has to be unlocked. /
        Please open the lock of the {door} door.""",
        "The {door} door is unlocked.",
    ),
    known(
        "wifi",
        "set_wifi|toggle_wifi|wifi",
        "(Turn|Switch) the wifi on or off",
        {"on|enabled": SWITCH},
        """Turn {on} the wifi. / Switch the wifi {on}. / Wifi {on} / (Please turn|Turn|Can you turn) the wifi {on} /
        The wifi should be {on}. / Put the wifi {on}, please. / I want the wifi {on}. /
        Make sure the wifi is {on}.""",
        "The wifi is now {on}.",
    ),
    known(
        "app",
        "open_app|launch_app|start_app",
        "(Open|Start) an app",
        {"app|name|app_name": APP},
        """Open the {app} app. / Start {app}. / Please open {app}. / (Can you open|Open|Launch) the app {app} /
        Open {app} / I want to use the {app} app. / Run the app {app}. / Show me the {app} app.""",
        "{app} is open.",
    ),
    known(
        "notes",
        "add_to_list|shopping_list_add|add_item",
        "(Add (something|an item) to|Put (something|an item) on) the shopping list",
        {"item|product|name": GROCERY},
        """Add {item} to the shopping list. / Put {item} on my shopping list. / {item} on the shopping list, please /
        (Please add|Add|Can you add) {item} to my shopping list / We need {item}, put it on the list. /
        Write {item} on the shopping list. / Shopping list: add {item} / We have no {item}. Add it to the list.""",
        "I have put {item} on the shopping list.",
    ),
    known(
        "notes",
        "create_note|save_note|take_note|add_note",
        "(Save|Create) a note",
        {"text|note|content": CHORE},
        """Note: {text} / Make a note: {text} / Save the note "{text}". / (Please write|Write|Take) a note: {text} /
        Create a note that says "{text}". / Write this down: {text} / New note: "{text}" / Please note "{text}".""",
        "The note has been saved.",
    ),
    known(
        "files",
        "read_file|open_file|get_file",
        "(Read|Return) the (text|content) of a file",
        {"path|file|filename": FILE},
        """Read the file {path}. / What is in {path}? / Show me the file {path} / (Read|Open|Show) {path}. /
        What does the file {path} say? / Please read {path}. / I want to see what is in {path}. /
        Tell me the content of {path}.""",
        "The file {path} says: {content}",
        {"content|text": LINE},
    ),
    known(
        "files",
        "delete_file|remove_file|erase_file",
        "(Delete|Remove) a file",
        {"path|file|filename": FILE},
        """Delete the file {path}. / Remove {path}. / Delete {path} /
        (Please delete|Can you delete|Remove) the file {path} / I do not need {path} any more, delete it. /
        Erase {path}. / Get rid of the file {path}. / The file {path} can be deleted.""",
        "The file {path} has been deleted.",
    ),
    known(
        "time",
        "get_time|current_time|time_in|world_clock",
        "(Get|Return) the (current |)time in a city",
        {"city|location|place": CITY},
        """What time is it in {city}? / Time in {city} / How late is it in {city}? /
        (What is|Tell me) the time in {city} / Current time in {city}, please / Get the time in {city}. /
        What is the local time in {city}? / I want to know what time it is in {city}.""",
        "It is {time} in {city}.",
        {"time|local_time|now": TIME},
    ),
    known(
        "time",
        "get_sunrise|sunrise|sunrise_time",
        "(Get|Return) the time of the sunrise in a city",
        {"city|location|place": CITY},
        """When does the sun rise in {city}? / Sunrise in {city} / What time is sunrise in {city}? /
        (When is|Get) the sunrise in {city} / When will the sun come up in {city}? /
        Sunrise time for {city}, please / Tell me when the sun rises in {city}. /
        I want to see the sunrise in {city}. When is it?""",
        "The sun rises at {time} in {city}.",
        {"time|sunrise": TIME},
    ),
    known(
        "time",
        "get_date|current_date|today",
        "(Get|Return) the (current date|date of today)",
        {},
        """What is the date today? / What day is it? / Which date is it? / (What is|Tell me) the date /
        Today's date, please. / Get the date. / Do you know the date today? / What is today's date?""",
        "The date is {date}.",
        {"date|today": DATE},
    ),
)
