"""Functions on strings."""

from __future__ import annotations

from functools import partial

from engine.embedded.corpus.python_task import between, one_of, task

string = partial(task, "string")

TEXTS = (("hello world",), ("",), ("Anna and Otto",), ("a",), ("The quick brown fox 42",))
SENTENCES = (("hello world",), ("one",), ("the quick brown fox jumps",), ("a bb ccc dd e",))
LETTERS = one_of("a", "b", "e", "i", "o", "s", "t", "r", "n", "l")

STRINGS = (
    string(
        "reverse_string|reverse|reverse_text: s",
        "return s[::-1]",
        TEXTS,
        the="reverse of a string / string in reverse order / text backwards",
        do="""reverse a string / reverse a text / turn a string around / reverse a word /
        reverse the letters of a string / write a string backwards / reverse a given string""",
    ),
    string(
        "count_vowels|vowels|vowel_count: s",
        'return sum(c in "aeiouAEIOU" for c in s)',
        TEXTS,
        the="number of vowels in a string / number of vowels in a text / number of vowels of a word",
        do="""count the vowels in a string / count vowels / count the vowels of a word /
        count how many vowels a string has""",
    ),
    string(
        "is_palindrome|palindrome|check_palindrome: s",
        "return s == s[::-1]",
        (("anna",), ("",), ("hello",), ("level",), ("ab",)),
        whether="""a string is a palindrome / a word is a palindrome / a text is the same backwards /
        s is a palindrome / a string reads the same backwards""",
    ),
    string(
        "capitalize_words|title_case|capitalize_all: s",
        'return " ".join(w.capitalize() for w in s.split())',
        SENTENCES,
        do="""capitalize every word of a string / capitalise each word /
        make the first letter of each word a capital / capitalize each word of a text /
        capitalise every word of a text / start each word with a capital letter /
        capitalize all words of a string / capitalize the words of a sentence / capitalise all words /
        capitalize each word in a sentence / give every word a capital letter / capitalize the words of a string""",
    ),
    string(
        "count_words|word_count|number_of_words: s",
        "return len(s.split())",
        SENTENCES,
        the="number of words in a string / number of words of a text / number of words in a sentence",
        do="""count the words in a string / count words / count the words of a text /
        count how many words a sentence has""",
    ),
    string(
        "to_upper|upper|uppercase: s",
        "return s.upper()",
        TEXTS,
        the="string in upper case / text in capital letters",
        do="""convert a string to upper case / make a string upper case / turn a text into capital letters /
        uppercase a string""",
    ),
    string(
        "to_lower|lower|lowercase: s",
        "return s.lower()",
        TEXTS,
        the="string in lower case / text in small letters",
        do="""convert a string to lower case / make a string lower case / turn a text into small letters /
        lowercase a string""",
    ),
    string(
        "string_length|length_of|text_length: s",
        "return len(s)",
        TEXTS,
        the="length of a string / number of characters in a string / length of a text",
        do="count the characters of a string / count how many characters a string has",
    ),
    string(
        "first_char|first_letter|get_first: s",
        "return s[0]",
        SENTENCES,
        the="""first character of a string / first letter of a string / first letter of a word /
        first character of a text""",
    ),
    string(
        "last_char|last_letter|get_last: s",
        "return s[-1]",
        SENTENCES,
        the="last character of a string / last letter of a string / last letter of a word / last character of a text",
    ),
    string(
        "remove_spaces|no_spaces|strip_spaces: s",
        'return s.replace(" ", "")',
        TEXTS,
        the="string without spaces / text without its spaces",
        do="""remove the spaces from a string / remove all spaces / delete the spaces of a text /
        take all spaces out of a string""",
    ),
    string(
        "count_char|char_count|count_letter: s c",
        "return s.count(c)",
        (("hello", "l"), ("", "a"), ("banana", "a")),
        the="number of times a character is in a string / number of times c is in s",
        do="""count a character in a string / count how often a character is in a string /
        count how often c is in s / count a letter in a string""",
    ),
    string(
        "count_in|count_it|how_many: s",
        "return s.count(CONST)",
        lambda c: ((f"{c}ab{c}{c}",), ("",), ("hello there",), (c,)),
        the='number of times "{c}" is in a string / number of "{c}" in a text',
        do='count the letter "{c}" in a string / count how often "{c}" is in a text / count "{c}" in a string',
        constant=LETTERS,
    ),
    string(
        "contains|has_text|includes: s t",
        "return t in s",
        (("hello", "ell"), ("hello", "x"), ("", "a")),
        whether="a string contains another / s contains t / one string is in another / a text contains another text",
    ),
    string(
        "starts_with|begins_with|check_start: s",
        "return s.startswith(CONST)",
        lambda c: ((f"{c}bc",), (f"z{c}",), ("",), (c,)),
        whether='a string starts with "{c}" / a word begins with "{c}" / a text has "{c}" at its start',
        constant=LETTERS,
    ),
    string(
        "ends_with|check_end|finishes_with: s",
        "return s.endswith(CONST)",
        lambda c: ((f"bc{c}",), (f"{c}z",), ("",), (c,)),
        whether='a string ends with "{c}" / a word ends in "{c}" / a text ends with "{c}" / s ends with "{c}"',
        constant=LETTERS,
    ),
    string(
        "repeat|repeat_string|repeated: s",
        "return s * CONST",
        (("ab",), ("",), ("x",)),
        the="string repeated {c} times / text {c} times in a row",
        do="""repeat a string {c} times / repeat a text {c} times / repeat a word {c} times /
        write a string {c} times in a row""",
        constant=between(2, 30),
    ),
    string(
        "remove_vowels|no_vowels|without_vowels: s",
        'return "".join(c for c in s if c not in "aeiouAEIOU")',
        TEXTS,
        the="string without vowels / text without its vowels",
        do="""remove the vowels from a string / remove all vowels / delete the vowels of a text /
        take the vowels out of a string""",
    ),
    string(
        "longest_word|find_longest|get_longest_word: s",
        "return max(s.split(), key=len)",
        SENTENCES,
        the="""longest word of a string / longest word in a sentence / longest word of a text /
        longest word in a string / word with the most letters""",
    ),
    string(
        "shortest_word|find_shortest|get_shortest_word: s",
        "return min(s.split(), key=len)",
        SENTENCES,
        the="""shortest word of a string / shortest word in a sentence / shortest word of a text /
        shortest word in a string / word with the fewest letters""",
    ),
    string(
        "reverse_words|words_reversed|flip_words: s",
        'return " ".join(s.split()[::-1])',
        SENTENCES,
        the="words of a string in reverse order / words of a sentence in reverse order",
        do="""reverse the order of the words in a string / reverse the words of a sentence /
        reverse the word order of a text / turn the order of the words around""",
    ),
    string(
        "first_chars|take_chars|prefix: s",
        "return s[:CONST]",
        (("hello world, how are you today",), ("",), ("abcdefghijkl",)),
        the="first {c} characters of a string / first {c} letters of a word / first {c} characters of a text",
        do="cut a string to {c} characters / shorten a string to {c} characters",
        constant=between(2, 30),
    ),
    string(
        "last_chars|end_chars|suffix: s",
        "return s[-CONST:]",
        (("hello world, how are you today",), ("",), ("abcdefghijkl",)),
        the="""last {c} characters of a string / last {c} letters of a word / last {c} characters of a text /
        final {c} characters of a string""",
        constant=between(2, 30),
    ),
    string(
        "split_words|get_words|to_words: s",
        "return s.split()",
        SENTENCES,
        the="words of a string as a list / list of the words in a string",
        do="split a string into words / split a text into a list of words / split a sentence into words",
    ),
    string(
        "is_anagram|anagram|are_anagrams: a b",
        "return sorted(a) == sorted(b)",
        (("listen", "silent"), ("a", "b"), ("aab", "abb")),
        whether="""two strings are anagrams / two words are anagrams / one word is an anagram of another /
        two words have the same letters""",
    ),
    string(
        "swap_case|switch_case|flip_case: s",
        "return s.swapcase()",
        TEXTS,
        do="""swap the case of a string / swap upper and lower case / switch the case of every letter /
        swap upper and lower case in a string / switch upper and lower case in a text /
        swap the case of all letters / flip the case of a string / turn upper case into lower case and back /
        swap the case of every letter in a string / switch the case of a string / flip the case of every letter /
        swap small and capital letters""",
    ),
    string(
        "count_upper|count_capitals|upper_count: s",
        "return sum(c.isupper() for c in s)",
        TEXTS,
        the="number of capital letters in a string / number of upper case letters in a text",
        do="count the capital letters in a string / count the upper case letters of a string / count capital letters",
    ),
    string(
        "only_digits|get_digits|digits: s",
        'return "".join(c for c in s if c.isdigit())',
        TEXTS,
        the="digits of a string / digits in a text as a string",
        do="keep only the digits of a string / remove all but the digits from a string / extract the digits of a text",
    ),
    string(
        "is_numeric|is_number|all_digits: s",
        "return s.isdigit()",
        (("42",), ("a1",), ("",), ("007",)),
        whether="""a string has only digits / a string is a number / a text consists of digits /
        s is made of digits only""",
    ),
    string(
        "replace_spaces|spaces_to|fill_spaces: s",
        'return s.replace(" ", CONST)',
        TEXTS,
        the='string with "{c}" for every space / text with "{c}" in place of spaces',
        do="""replace spaces with "{c}" / turn every space into "{c}" / replace the spaces in a string by "{c}" /
        put "{c}" in place of spaces / write "{c}" for every space of a string""",
        constant=one_of("-", "_", "+", ".", "*", "#", "/", "~"),
    ),
    string(
        "greet|greeting|say_hello: name",
        'return f"Hello, {name}!"',
        (("Mara",), ("Tom",)),
        the="greeting for a name / greeting Hello with a name",
        do="""greet a person by name / greet someone / say hello to a person / say hello to a name /
        greet a name with Hello""",
    ),
    string(
        "initials|acronym|get_initials: s",
        'return "".join(w[0].upper() for w in s.split())',
        SENTENCES,
        the="""initials of a name / acronym of a string / first letters of all words as capitals /
        acronym of a sentence / initials of the words in a string""",
    ),
    string(
        "char_counts|letter_counts|frequencies: s",
        "result = {}\nfor c in s:\n    result[c] = result.get(c, 0) + 1\nreturn result",
        TEXTS,
        the="count of each character as a dictionary / number of times each character is in a string",
        do="""count each character in a string / count how often each letter is in a string /
        count the characters in a dictionary""",
    ),
    string(
        "unique_chars|distinct_chars|remove_repeats: s",
        'return "".join(dict.fromkeys(s))',
        TEXTS,
        the="different characters of a string in order / string without repeated characters",
        do="""remove repeated characters from a string / keep each character of a string once /
        remove duplicate letters from a string""",
    ),
    string(
        "shout|exclaim|loud: s",
        'return s.upper() + "!"',
        TEXTS,
        the="string in upper case with an exclamation mark / text in capitals with an exclamation mark",
        do="shout a text / shout a string in upper case with an exclamation mark / shout a string",
    ),
    string(
        "is_upper|all_upper|check_upper: s",
        "return s.isupper()",
        (("ABC",), ("aBC",), ("abc",)),
        whether="""a string is upper case / all letters of a string are capitals / a text is in capital letters /
        s is upper case""",
    ),
    string(
        "long_words|words_longer|get_long_words: s",
        "return [w for w in s.split() if len(w) > CONST]",
        lambda c: (("a bb ccc dddd eeeee ffffff",), ("",), ("x" * c + " " + "y" * (c + 1),)),
        the="words longer than {c} letters in a string / words of a text with more than {c} letters",
        do="find all words longer than {c} in a string / keep the words with more than {c} letters of a string",
        constant=between(2, 12),
    ),
    string(
        "trim|strip_text|clean: s",
        "return s.strip()",
        (("  a b ",), ("x",), ("",)),
        the="string without spaces at both ends / text without spaces at the start and end",
        do="trim a string / strip the spaces at both ends of a string / remove spaces at the start and end of a string",
    ),
    string(
        "every_second|second_chars|skip_chars: s",
        "return s[::2]",
        TEXTS,
        the="string of every second character of a string / characters at even positions of a string",
        do="""keep every second character of a string / take every other character of a string /
        take every second letter of a text / return every second character of a string /
        get every other letter of a string""",
    ),
    string(
        "remove_char|without_letter|drop_letter: s",
        'return s.replace(CONST, "")',
        lambda c: ((f"{c}ab{c}{c}",), ("",), ("hello there",), (c,)),
        the='string without the letter "{c}" / text without "{c}"',
        do='remove the letter "{c}" from a string / delete every "{c}" in a text / remove all "{c}" from a string',
        constant=LETTERS,
    ),
    string(
        "is_longer|longer|check_length: s",
        "return len(s) > CONST",
        lambda c: (("x" * c,), ("x" * (c + 1),), ("",), ("x" * (c - 1),)),
        whether="""a string is longer than {c} characters / a text has more than {c} characters /
        a word is longer than {c} letters / s is longer than {c}""",
        constant=between(2, 40),
    ),
    string(
        "join_words|join_two|with_space: a b",
        'return a + " " + b',
        (("hello", "world"), ("", "x"), ("a", "b")),
        the="two strings with a space between them / two words joined by a space",
        do="join two strings with a space / join two words with a space / put a space between two strings",
    ),
)
