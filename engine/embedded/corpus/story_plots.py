"""The plots: what happens between the opening of a story and its end. Slots as in `story_words`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Plot:
    """Stages in order; of each, one sentence is told, and any choice of sentences fits together.

    theme  whose morals fit the end.
    does   what the hero does with the object, if a prompt may say so ("finds", "loses", "wants", …).
    asleep whether the story ends in bed, so that no other rest follows.
    """

    theme: str
    does: str
    stages: tuple[tuple[str, ...], ...]
    asleep: bool = False


PLOTS = (
    Plot(
        "friendship",
        "loses",
        (
            (
                "One day, {name} lost {his} favorite {object}.",
                "But one windy day, {he} could not find {his} {object}.",
                "One evening, {name} saw that {his} {object} was missing.",
                "Then, on a rainy day, {his} dear old {object} was lost.",
            ),
            (
                "{He} looked behind every stone, but it was not there.",
                "{name} searched all day long and found nothing.",
                "{He} looked (high and low|everywhere), and soon {he} was close to tears.",
                "{He} searched until {his} feet hurt, but it was no use.",
            ),
            (
                'Then {a_friend} came by and said, "Let us look together."',
                "{A_friend} saw how sad {he} was and offered to help.",
                'Just then, {a_friend} asked, "Why do you look so sad?"',
                "Luckily, {a_friend} heard {him} sigh and came to help.",
            ),
            (
                "They searched side by side and found the {object} in a dark corner.",
                "Together they followed {his} steps back, and there was the {object}, safe and dry.",
                "Four eyes see more than two, and soon they found the {object} behind a bush.",
                "Before sunset, the {friend} pulled the {object} out of a pile of leaves.",
            ),
        ),
    ),
    Plot(
        "honesty",
        "finds",
        (
            (
                "One day, {name} found {an_object} (on the path|in the grass|under a bench).",
                "One afternoon, {he} saw {an_object} lying on the ground.",
                "One rainy morning, {he} found {an_object} that did not belong to {him}.",
                "On {his} way home one day, {he} found {an_object}.",
            ),
            (
                "It was so lovely that {he} wanted to keep it.",
                "{He} liked it very much, but {he} knew that someone must miss it.",
                "For a moment {he} wanted to hide it, but that did not feel right.",
                "How nice it would be to take it home!",
            ),
            (
                "Still, {he} asked everyone {at} who had lost it.",
                "But {name} went from door to door and asked about it.",
                "In the end, {he} put up a big sign and waited.",
                "But {he} thought of the owner and began to ask around.",
            ),
            (
                "At last {he} met {a_friend} who had looked for the {object} all day.",
                "{A_friend} jumped for joy, because the {object} was a gift from a dear friend.",
                "Soon {a_friend} came running and hugged the {object} tightly.",
                'Then {a_friend} came and said with a smile, "That {object} is mine."',
            ),
            (
                "To say thank you, the {friend} gave {him} a (slice of pie|basket of berries|jar of honey).",
                "The {friend} thanked {him} with a warm hug.",
                'The {friend} said, "You have a good heart."',
            ),
        ),
    ),
    Plot(
        "curiosity",
        "finds",
        (
            (
                "One day, {he} found an old {object} {at}.",
                "One morning, {name} dug a hole and found a strange {object}.",
                "One day, {he} opened a dusty chest and found a strange {object}.",
                "After a storm, {name} found an old {object} by the road.",
            ),
            (
                "{name} had never seen one like it before.",
                "{He} turned it around and around and wondered where it came from.",
                "There were tiny letters on it that {he} could not read.",
                "Who had made it, and what was it for?",
            ),
            (
                "{He} took it to {a_friend} and asked many questions.",
                "So {name} carried it to {a_friend}, who had read a hundred books.",
                "{A_friend} knew about such things, so {he} went there for advice.",
            ),
            (
                "The {friend} smiled and said that the {object} had once belonged to a (great queen|famous sailor).",
                "The {friend} looked at the {object} for a long time and told {him} about its travels.",
                "The {friend} laughed and said that the {object} had come from the other side of the sea.",
            ),
            (
                "From then on, {name} asked a new question every morning.",
                "{He} kept it next to {his} bed and dreamed of faraway lands.",
                "That evening, {he} began to write down everything {he} wondered about.",
            ),
        ),
    ),
    Plot(
        "sharing",
        "has",
        (
            (
                "{name} had {an_object} and never let anyone touch it.",
                "For {his} birthday, {name} got {an_object} and kept it all to {himself}.",
                "{He} was very proud of {his} {object} and showed it to nobody.",
            ),
            (
                "One day, {a_friend} asked to see it, but {he} said no.",
                '"It is only mine," {he} told {a_friend} who wanted to borrow it.',
                "When {a_friend} asked to hold it, {he} turned away.",
            ),
            (
                "Soon {name} sat all alone {at}, and the {object} was no fun anymore.",
                "But the days grew long, and even the {object} could not cheer {him} up.",
                "Before long, nobody came to visit, and {he} grew tired of the {object}.",
            ),
            (
                'So {he} went to the {friend} and said, "Let us enjoy it together."',
                "At last {he} put it into the arms of the {friend} and said sorry.",
                "One morning, {he} knocked at the door of the {friend} and offered to share it.",
            ),
            (
                "They laughed (all afternoon|until the sun went down), and everything felt bright again.",
                "The {friend} beamed, and together they had more fun than ever before.",
                "That day was more fun than all the lonely days before.",
            ),
        ),
    ),
    Plot(
        "courage",
        "",
        (
            (
                "There was one thing that {name} feared, and that was the dark.",
                "{name} was afraid of the dark and never went out at night.",
                "When the sun went down, {he} always hid under {his} blanket.",
            ),
            (
                "One night, {a_friend} was sick and asked for {an_object} that stood far away {at}.",
                "One night, {a_friend} had left {an_object} outside and could not sleep without it.",
                "One night, {a_friend} cried because {an_object} was lost somewhere outside.",
            ),
            (
                "{name} was scared, but {he} took a deep breath and opened the door.",
                "{He} counted to three and stepped into the night.",
                "{His} knees shook, but {he} went out all the same.",
            ),
            (
                "The moon smiled down and showed {him} the way.",
                "The stars were shining, and step by step the night felt less scary.",
                "{He} sang a little song, and the dark did not seem so dark anymore.",
            ),
            (
                "When {he} came back with the {object}, the {friend} cheered.",
                "Soon {he} found the {object} and brought it to the {friend}.",
                'The {friend} took the {object} and said, "You are a true hero."',
            ),
        ),
    ),
    Plot(
        "patience",
        "wants",
        (
            (
                "{name} wanted {an_object} more than anything else in the world.",
                "In a shop window, {he} saw {an_object} and could not forget it.",
                "All {he} wished for was {an_object}, but it cost a hundred coins.",
            ),
            (
                "So {he} helped {a_friend} with the (apples|firewood|laundry) every day and saved each coin.",
                "{He} had no money, so {he} went to work for {a_friend}.",
                '"Work with me, and I will pay you well," said {a_friend}.',
            ),
            (
                "The weeks were long, and sometimes {he} wanted to give up.",
                "It took all summer, and {he} counted {his} coins every night.",
                "{He} worked through rain and heat and never complained.",
            ),
            (
                "At last {he} had enough and carried the {object} home with pride.",
                "One fine day, {he} bought the {object} and danced all the way home.",
                "When the first snow fell, the {object} stood on {his} table at last.",
            ),
        ),
    ),
    Plot(
        "kindness",
        "",
        (
            (
                "One cold day, {name} heard that {a_friend} was ill.",
                "One winter day, {a_friend} lay in bed with a bad cold.",
                "One gray morning, {name} learned that {a_friend} was sick and all alone.",
            ),
            (
                "{He} packed {an_object} and a pot of soup and set off.",
                "{He} took {his} {object} and some warm bread and put on {his} coat.",
                "{name} filled a bag with apples, put {an_object} on top and went out.",
            ),
            (
                "The wind was strong and the way was long, but {he} did not turn back.",
                "Snow began to fall, yet {he} kept on walking.",
                "The road was muddy, and {he} slipped three times, but {he} went on.",
            ),
            (
                "When the {friend} saw the {object}, a big smile lit up the room.",
                "The {friend} held the {object} close and began to smile.",
                'The {friend} looked at the {object} and whispered, "You came all this way for me?"',
            ),
            (
                "They drank tea and told stories until the rain stopped.",
                "{name} stayed all evening and made a warm fire.",
                "A few days later, the cold was gone, and they danced {at}.",
            ),
        ),
    ),
    Plot(
        "teamwork",
        "loses",
        (
            (
                "One day, the wind took {his} {object} and dropped it on a high roof.",
                "One day, {name} dropped {his} {object} into a deep hole.",
                "One morning, a cheeky bird stole {his} {object} and left it in a tall tree.",
            ),
            (
                "{name} stretched as far as {he} could, but it was too far away.",
                "{He} tried with a long stick, but {he} could not reach it.",
                "{He} tried again and again, but nothing worked.",
            ),
            (
                "Then {a_friend} came along and had a clever idea.",
                '"You need a helper," said {a_friend} who had watched {him}.',
                "{A_friend} saw it and had a good plan.",
            ),
            (
                "The {friend} held a rope, {name} climbed, and soon {he} had the {object} back.",
                "They made a loop in a rope, threw it together, and soon the {object} was free.",
                "The {friend} tied a rope around {him}, and soon {he} held the {object} in {his} arms.",
            ),
        ),
    ),
    Plot(
        "friendship",
        "",
        (
            (
                "{name} had no one to play with, and the days were long.",
                "Sometimes {name} felt lonely {at}.",
                "But {he} had no friends, because {he} was new there.",
            ),
            (
                "One day, {a_friend} came by with {an_object}.",
                "One sunny afternoon, {he} met {a_friend} with {an_object}.",
                "Then {a_friend} moved in next door and brought {an_object} along.",
            ),
            (
                "At first, {name} was too shy to speak.",
                "{name} wanted to say hello, but no word came out.",
                "{He} hid behind a wall and only looked.",
            ),
            (
                'But the {friend} held up the {object} and asked, "Would you like to see it?"',
                "The {friend} smiled and put the {object} down between them.",
                'The {friend} waved and called, "Come and look at my {object}!"',
            ),
            (
                "They talked and laughed all day, and nobody was lonely anymore.",
                "Soon they knew each other's favorite songs.",
                "Before the sun went down, they had played every game they knew.",
            ),
        ),
    ),
    Plot(
        "honesty",
        "borrows",
        (
            (
                "One day, {name} borrowed {an_object} from {a_friend}.",
                "One morning, {a_friend} let {him} borrow {an_object}.",
                "One Sunday, {he} asked {a_friend} for {an_object} and promised to bring it back.",
            ),
            (
                "But {he} was careless and dropped it into a deep puddle.",
                "On the way home, {he} tripped, and it fell into the mud.",
                "But {he} forgot it in the rain, and it was soon wet and dirty.",
            ),
            (
                "At first, {he} wanted to hide it and say nothing.",
                '"Nobody saw it," {he} thought, but {his} heart felt heavy.',
                "{He} could not eat and could not sleep.",
            ),
            (
                "The next morning, {he} went to the {friend} and told the truth about the {object}.",
                "So {he} took the {object} back to the {friend} and said that {he} was sorry.",
                "At last {he} showed the {friend} the dirty {object} and told the whole story.",
            ),
            (
                'The {friend} was not angry and said, "Thank you for telling me."',
                "The {friend} nodded, and together they cleaned it until it looked like new.",
                "The {friend} forgave {him}, and they washed it side by side.",
            ),
        ),
    ),
    Plot(
        "curiosity",
        "finds",
        (
            (
                "One day, {a_friend} told {him} about {an_object} that was hidden {at}.",
                "One day, {he} heard from {a_friend} that {an_object} lay hidden somewhere nearby.",
                "One evening, {a_friend} gave {him} a map that led to {an_object}.",
            ),
            (
                "{name} packed some bread and set off at sunrise.",
                "{name} could not wait and left at once.",
                "The next morning, {he} put on {his} boots and went to look for it.",
            ),
            (
                "{He} looked behind every stone and asked every bird.",
                "{He} walked for hours and almost gave up.",
                "{He} crawled through bushes and climbed over walls.",
            ),
            (
                "Just before sunset, {he} opened an old chest, and there was the {object}.",
                "Under the last stone of all, {he} found the {object}.",
                "Then {he} saw a small door in a wall, and behind it stood the {object}.",
            ),
            (
                "{He} ran back to the {friend}, and they danced with joy.",
                "The {friend} could hardly believe it, and they looked at it all night.",
                'The {friend} clapped and asked, "Where shall we search next?"',
            ),
        ),
    ),
    Plot(
        "kindness",
        "wins",
        (
            (
                "One day there was a great race {at}, and the prize was {an_object}.",
                "Each spring there was a big race, and the winner got {an_object}.",
                "One summer day, everyone came to run a race for {an_object}.",
            ),
            (
                "{name} ran like the wind and was soon in front.",
                "{name} had trained for weeks and took the lead at once.",
                "The finish was near, and nobody was faster than {name}.",
            ),
            (
                "Then {he} saw that {a_friend} had fallen.",
                "Suddenly {a_friend} tripped and cried out.",
                "But beside the road sat {a_friend} with a sore foot.",
            ),
            (
                "{name} stopped, helped the {friend} up, and they walked to the finish together.",
                "{He} turned around and carried the {friend} over the line.",
                "Without a thought, {he} stopped and led the {friend} to the finish.",
            ),
            (
                "They came in last, but everyone cheered and gave {him} the {object} anyway.",
                "Everyone agreed that the {object} belonged to {him}.",
                "The judges smiled and handed {him} the {object}.",
            ),
        ),
    ),
    Plot(
        "patience",
        "wins",
        (
            (
                "{name} wanted to learn to (dance|sing|juggle), but every try went wrong.",
                "{name} tried to (juggle|dance|whistle) and failed again and again.",
                "More than anything, {he} wanted to learn to (sing|dance|whistle).",
            ),
            (
                '"Practice every day, and you will win my {object}," said {a_friend}.',
                "{A_friend} promised {him} {an_object} if {he} practiced every day.",
                "To cheer {him} up, {a_friend} offered {an_object} as a prize.",
            ),
            (
                "Day after day {he} practiced, even when it rained.",
                "{He} practiced in the morning and in the evening.",
                "{He} made a hundred mistakes and learned from each of them.",
            ),
            (
                "After many weeks, {he} gave a show {at}, and everyone clapped.",
                "In spring, {name} showed it to everyone, and there was not a single mistake.",
                "One day, it worked, and the whole crowd cheered.",
            ),
            (
                "The {friend} laughed with joy and handed {him} the {object}.",
                "The {friend} was proud and gave {him} the {object} with a bow.",
                '"You have earned the {object}," said the {friend}.',
            ),
        ),
    ),
    Plot(
        "kindness",
        "has",
        (
            (
                "One night, a great storm came, and the rain would not stop.",
                "One dark evening, thunder rolled over the land.",
                "One autumn night, the wind howled around the walls.",
            ),
            (
                "Suddenly {a_friend} knocked at the door, wet and cold.",
                "{A_friend} stood outside and had nowhere to go.",
                "At midnight, {a_friend} came to the door and asked for shelter.",
            ),
            (
                "{name} did not have much, only {an_object} and a warm fire.",
                "{He} had only some soup and {an_object}, but {he} gladly shared both.",
                "{He} had just one bed and {an_object}, yet {he} opened the door wide.",
            ),
            (
                "{name} gave the {friend} a dry place to sleep.",
                "All night long, {he} kept the {friend} warm and told funny stories.",
                "They sat close together and waited for the storm to pass.",
            ),
            (
                "In the morning, the sun came out, and the {friend} left a (coin|pretty rose) beside the {object}.",
                "The next day, the {friend} came back with fresh bread and a ribbon for the {object}.",
                "When the sky was blue again, the {friend} fixed the roof as a thank you.",
            ),
        ),
    ),
    Plot(
        "sharing",
        "finds",
        (
            (
                "One day, {name} and {a_friend} found {an_object} at the same time.",
                "One morning, {he} found {an_object}, but {a_friend} had seen it too.",
                "One day, {an_object} lay on the path between {name} and {a_friend}.",
            ),
            (
                '"It is mine!" they both shouted, and they pulled and pulled.',
                "Both of them wanted it, and neither would let go.",
                "They argued until their faces were red.",
            ),
            (
                "Then they slipped, and the {object} landed in the mud with them.",
                "In the end they both fell over, and the {object} rolled away.",
                "All at once, they tumbled into a puddle, and so did the {object}.",
            ),
            (
                "{name} looked at the {friend}, the {friend} looked at {him}, and they began to laugh.",
                "They looked so funny that {name} and the {friend} had to giggle.",
                'The {friend} sighed and said, "We are both being silly."',
            ),
            (
                "After that, they took turns, one day each.",
                "From then on, it belonged to both of them.",
                "They washed it and put it in a place where everyone could enjoy it.",
            ),
        ),
    ),
    Plot(
        "kindness",
        "gives away",
        (
            (
                "The birthday of {a_friend} was coming, and {name} had no gift.",
                "One day, {a_friend} invited {him} to a birthday party.",
                "It was the last day before the birthday of {a_friend}.",
            ),
            (
                "{He} thought about a present all night long.",
                "{He} looked in every shop for a gift, but {he} had no coins.",
                "{name} wanted to bring something special.",
            ),
            (
                "Then {he} took {his} own {object}, cleaned it and tied a ribbon around it.",
                "In the end, {he} wrapped up {his} own {object}, the thing {he} loved most.",
                "At last {he} chose {his} favorite {object} and painted a card for it.",
            ),
            (
                'The {friend} cheered, "The {object} is perfect!"',
                "The {friend} opened the gift and hugged {him} tightly.",
                "Of all the gifts, the {friend} loved the {object} best.",
            ),
            (
                "They ate cake and sang until the candles burned down.",
                "Then everyone danced {at} until late.",
                "It was the merriest party in years.",
            ),
        ),
    ),
    Plot(
        "courage",
        "has",
        (
            (
                "One day, {he} walked too far and lost {his} way.",
                "One foggy afternoon, {name} got lost.",
                "One day, {name} followed a butterfly and could not find the way back.",
            ),
            (
                "The sky grew dark, and every path looked the same.",
                "Night came, and strange sounds were all around.",
                "{He} called out, but only the wind answered.",
            ),
            (
                "All {he} had was {an_object}, so {he} held it tight and walked on.",
                "{He} held on to {his} {object} and told {himself} not to cry.",
                "{He} put down {his} {object}, took a deep breath and called again.",
            ),
            (
                'At last {a_friend} saw {him} and asked, "Are you lost?"',
                "After a while, {he} saw a light, and there stood {a_friend}.",
                "Then {he} heard footsteps, and {a_friend} came out of the dark.",
            ),
            (
                "The {friend} knew the way and led {him} back to the {place}.",
                "The {friend} took {him} home and praised {him} for being so brave.",
                "Together they walked back to the {place} and were not afraid.",
            ),
        ),
    ),
    Plot(
        "courage",
        "",
        (
            (
                "One night, a strange noise woke {name} up.",
                "One night, {he} heard a loud bang outside.",
                "At midnight, {name} heard a bump and a long, low sound.",
            ),
            (
                "What could it be?",
                "{His} heart beat fast, and {he} pulled {his} blanket up.",
                "{He} thought of monsters and began to shake.",
            ),
            (
                "Then {he} lit a candle and tiptoed outside.",
                "But {he} wanted to know, so {he} got up and opened the door.",
                '"I am not afraid," {he} whispered and went to look.',
            ),
            (
                "It was only {a_friend}, who had stumbled over {an_object} in the dark.",
                "There sat {a_friend}, who had dropped {an_object} and could not find it.",
                "And there was {a_friend}, who was carrying {an_object} and had bumped into the fence.",
            ),
            (
                "They both laughed, and {name} made warm milk for two.",
                "{name} giggled and helped the {friend} with the {object}.",
                '"You gave me a fright," said {name}, and the {friend} blushed.',
            ),
        ),
    ),
    Plot(
        "gratitude",
        "has",
        (
            (
                "{name} had {an_object}, but {he} always wanted something better.",
                "{name} had {an_object}, yet {he} was never content.",
                "{He} owned {an_object} and thought that it was much too plain.",
            ),
            (
                "One day, {he} met {a_friend} and traded it for a bag of gold.",
                "One day, {a_friend} gave {him} a bag of gold for it.",
                "So {he} sold it to {a_friend} for a bag of gold.",
            ),
            (
                "But the gold was cold and heavy, and {he} missed the {object}.",
                "{He} counted the gold all night, but {he} could only think of the {object}.",
                "The gold just lay there, and every day {he} missed the {object} more.",
            ),
            (
                "So {he} ran back to the {friend} and asked to trade again.",
                "In the end, {he} took the gold to the {friend} and begged for a trade.",
                'The {friend} saw {his} sad face and said, "Take it back, my dear."',
            ),
            (
                "When {he} held it in {his} arms again, {he} had everything {he} needed.",
                "{He} carried it home and never wanted to trade it again.",
                "Now it seemed more beautiful than all the gold in the world.",
            ),
        ),
    ),
    Plot(
        "teamwork",
        "",
        (
            (
                "One morning, {name} saw {a_friend} with a heavy cart on the road.",
                "One hot day, {he} met {a_friend} who was pushing a heavy cart.",
                "One day, {a_friend} came along with a cart that would not move.",
            ),
            (
                "On the cart lay {an_object} and a big pile of wood.",
                "It was full of boxes, and on top of them lay {an_object}.",
                "The cart held a hundred bricks and {an_object}.",
            ),
            (
                '"It is too hard for me alone," said the {friend} with a sigh.',
                "The {friend} was tired and sat down on the ground.",
                "One wheel was stuck, and the {friend} did not know what to do.",
            ),
            (
                "So {name} pushed, the {friend} pulled, and the cart began to roll.",
                "{name} went behind the cart and pushed with all {his} strength.",
                "They took a deep breath, pushed together, and the cart rolled on.",
            ),
            (
                "At sunset they reached the {place}, and the {friend} gave {him} the {object} as a thank you.",
                "When they were done, the {friend} laughed and let {him} keep the {object}.",
                "In the evening, the {friend} cooked dinner and gave {him} the {object}.",
            ),
        ),
    ),
    Plot(
        "hope",
        "wants",
        (
            (
                "{name} had one big wish, and that was {an_object}.",
                "More than anything, {he} wanted {an_object} of {his} own.",
                "For years, {he} had dreamed of {an_object}.",
            ),
            (
                "Every night, {he} looked at the stars and made a wish.",
                "Every evening, {he} whispered {his} wish to the moon.",
                "Others laughed about it, but {he} never stopped dreaming.",
            ),
            (
                "One evening, {a_friend} heard about it and had an idea.",
                "{A_friend} knew of {his} dream and began to work in secret.",
                "One night, {a_friend} overheard {him} and smiled.",
            ),
            (
                "The next morning, the {object} stood in front of {his} door with a little note.",
                "A week later, {name} woke up and found the {object} beside {his} bed.",
                "When the first flowers bloomed, the {object} lay on {his} table.",
            ),
            (
                '"Never stop dreaming," said the {friend} with a wink.',
                "{He} laughed, cried and hugged the {friend}.",
                "{name} knew at once who had done it and ran to thank the {friend}.",
            ),
        ),
    ),
    Plot(
        "sharing",
        "has",
        (
            (
                "Winter came early, and snow covered everything.",
                "One winter, the snow was so deep that no one could go far.",
                "That year, the winter was long and cold.",
            ),
            (
                "{A_friend} had nothing to eat and asked for help.",
                "One day, {a_friend} stood at the door, cold and hungry.",
                "{name} met {a_friend} who had not eaten for days.",
            ),
            (
                "{name} had only one loaf of bread and {an_object}.",
                "In {his} house there was little more than a loaf of bread and {an_object}.",
                "All that {he} had was {an_object} and a loaf of bread.",
            ),
            (
                "Still, {he} broke the bread in two and gave the {friend} the bigger half.",
                "But {he} cut the bread and shared every crumb with the {friend}.",
                '"Half of it is yours," {he} said to the {friend}.',
            ),
            (
                "In spring, the {friend} came back with a basket full of berries.",
                "When the snow melted, the {friend} filled {his} kitchen with apples and honey.",
                "In summer, the {friend} brought {him} fresh bread every week.",
            ),
        ),
    ),
    Plot(
        "friendship",
        "has",
        (
            (
                "One day, {name} met {a_friend} who never laughed.",
                "One morning, {a_friend} sat {at} with a long face.",
                "One day, {he} saw {a_friend} who looked very sad.",
            ),
            (
                "{He} told a joke and stood on one leg, but nothing helped.",
                "{He} made funny faces, but there was not even a smile.",
                "{name} sang a silly song, but it was no use.",
            ),
            (
                "Then {he} put {an_object} on {his} head and walked in a circle.",
                "So {he} took {an_object} and danced around with it.",
                "At last {he} spun around with {an_object} on {his} nose.",
            ),
            (
                "The {object} wobbled, {name} slipped, and both landed in a pile of hay.",
                "Faster and faster {he} turned, until {he} sat down in a puddle with the {object}.",
                "But {he} tripped, and the {object} flew through the air and splashed into a bucket.",
            ),
            (
                "The {friend} laughed so loudly that the birds flew up.",
                "First the {friend} giggled, and then they both laughed until their bellies hurt.",
                "A smile came to the face of the {friend}, and it stayed there all day.",
            ),
        ),
    ),
    Plot(
        "courage",
        "brings",
        (
            (
                "One day, there was a big feast {at}, and everyone brought something.",
                "One evening, a great feast was held, and each guest brought a gift.",
                "Once a year there was a feast, and nobody came with empty hands.",
            ),
            (
                "{name} had only {an_object} and was too shy to go.",
                "{He} had nothing but {an_object} and wanted to stay at home.",
                "{name} looked at {his} {object} and thought that it was not good enough.",
            ),
            (
                '"Come with me, and do not worry," said {a_friend}.',
                "Then {a_friend} took {him} by the arm and would not let go.",
                '"You are brave enough," said {a_friend} and opened the door.',
            ),
            (
                "So {he} went, and soon everyone wanted to see the {object} and hear its story.",
                "{His} heart beat fast, but {he} held up the {object}, and the whole crowd cheered.",
                "At the table, {he} showed the {object} to the guests, and they all clapped.",
            ),
            (
                "{name} and the {friend} danced until the stars came out.",
                "It turned out to be the happiest night of the year.",
                "Nobody wanted to go home that night.",
            ),
        ),
    ),
    Plot(
        "friendship",
        "",
        (
            (
                "One night, {name} could not fall asleep.",
                "One night, {he} lay awake and looked at the ceiling.",
                "One stormy night, {name} could not close {his} eyes.",
            ),
            (
                "{He} counted a hundred stars and drank warm milk, but nothing helped.",
                "{He} turned to the left and to the right, but sleep did not come.",
                "{He} tried to count to a thousand and only felt more awake.",
            ),
            (
                "Then {a_friend} came with {an_object} and sat down beside {him}.",
                "Soon {a_friend} saw the light in {his} window and came in with {an_object}.",
                "{A_friend} heard {him} sigh and brought {him} {an_object}.",
            ),
            (
                "The {friend} told a slow, gentle story about the {object} and the moon.",
                "In a soft voice, the {friend} sang a song about the {object}.",
                "The {friend} put the {object} next to {him} and hummed an old tune.",
            ),
            (
                "Before it was over, {name} was fast asleep.",
                "Slowly {his} eyes closed, and {he} began to dream.",
                "Soon there was only the sound of quiet breathing.",
            ),
        ),
        asleep=True,
    ),
    Plot(
        "honesty",
        "loses",
        (
            (
                "One morning, {his} {object} was gone.",
                "One day, {name} came home, and {his} {object} was not there.",
                "One evening, {he} could not find {his} {object} anywhere.",
            ),
            (
                "{name} thought that {a_friend} had taken it and said angry words.",
                '"You are a thief!" {he} said to {a_friend} who had come to visit.',
                "{He} told everyone that {a_friend} had stolen it.",
            ),
            (
                "The {friend} said nothing and went away with a sad face.",
                "The {friend} shook with tears and ran home.",
                "Deeply hurt, the {friend} left without a word.",
            ),
            (
                "That night, {he} found the {object} under {his} own bed.",
                "The next day, {he} saw the {object} behind {his} own door.",
                "Later, the {object} turned up in {his} own bag.",
            ),
            (
                'At once {he} ran to the {friend} and said, "I was wrong, please forgive me."',
                "{name} told everyone the truth and said sorry to the {friend}.",
                "{He} went straight to the {friend} and told the truth, and they hugged.",
            ),
        ),
    ),
)
