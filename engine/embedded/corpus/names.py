"""First names, and syllables to make more names of."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


FIRST_NAMES = _words(
    """Ada Adam Alan Alice Amir Amy Ana Anna Anton Aria Ben Bella Bruno Cara Carl Carol Chen Clara Cora Dan Dana David
    Dina Ed Eli Elena Ella Emil Emma Eric Eva Felix Fiona Frank Fred Gina Grace Greta Hana Hans Helen Henry Hugo Ian Ida
    Ines Iris Ivan Ivy Jack Jan Jane Jin Jon Jonas Julia June Kai Karl Kate Kim Kira Lara Laura Lea Leo Lena Liam Lily
    Lin Lisa Louis Lucy Luis Luke Maja Mara Marc Maria Mark Max Maya Mia Mila Milo Nadia Nina Noah Nora Olga Oscar Otto
    Owen Paul Peter Petra Pia Rana Raul Rita Rob Rosa Ruby Ruth Sam Sara Sean Sofia Sven Tara Tess Theo Tim Tina Tom
    Uma Vera Victor Wei Will Yara Yuki Zara Zoe"""
)

SYLLABLES = _words(
    """ba be bi bo bra da de do dra fa fe fi ga gi go gra ha he ho ja jo ka ke ki ko kra la le li lo lu ma me mi mo
    na ne ni no pa pe pi po ra re ri ro sa se si so sta ta te ti to tra va ve vi vo wa we wi za ze zo lan mar ner vin
    sol bel tam ric dor nel kan fen hol ster mann berg field well ton ley"""
)
