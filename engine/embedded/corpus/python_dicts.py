"""Functions on dictionaries."""

from __future__ import annotations

from functools import partial

from engine.embedded.corpus.python_task import between, task

mapping = partial(task, "dict")

DICTS = (({"a": 1, "b": 5, "c": 3},), ({"x": 7},), ({"one": 4, "two": -2},))
WORDS = ((["pear", "fig", "banana"],), (["a"],), (["to", "be", "or", "not"],))

DICT_TASKS = (
    mapping(
        "invert|swap_keys|invert_dict: d",
        "return {value: key for key, value in d.items()}",
        DICTS,
        the="dictionary with keys and values swapped / inverse of a dictionary",
        do="""invert a dictionary / swap the keys and values of a dictionary / swap keys and values /
        turn a dictionary around / invert a dict""",
    ),
    mapping(
        "merge|merge_dicts|combine: a b",
        "return {**a, **b}",
        (({"a": 1}, {"b": 2}), ({}, {"x": 1}), ({"a": 1}, {"a": 5})),
        the="two dictionaries as one",
        do="""merge two dictionaries / join two dictionaries / combine two dictionaries / merge two dicts /
        merge a and b into one dictionary / put two dictionaries together / combine two dicts into one""",
    ),
    mapping(
        "get_keys|keys_of|list_keys: d",
        "return list(d.keys())",
        DICTS,
        the="keys of a dictionary / keys of a dictionary as a list / list of the keys in a dict",
        do="list the keys of a dictionary / list all keys of a dict",
    ),
    mapping(
        "get_values|values_of|list_values: d",
        "return list(d.values())",
        DICTS,
        the="values of a dictionary / values of a dictionary as a list / list of the values in a dict",
        do="list the values of a dictionary / list all values of a dict",
    ),
    mapping(
        "sum_values|total_values|add_values: d",
        "return sum(d.values())",
        DICTS,
        the="sum of the values in a dictionary / total of the values of a dictionary / sum of all values of a dict",
        do="add up the values of a dictionary / sum the values of a dict",
    ),
    mapping(
        "average_value|mean_value|value_average: d",
        "return sum(d.values()) / len(d)",
        DICTS,
        the="average of the values in a dictionary / mean of the values of a dict / average value of a dictionary",
    ),
    mapping(
        "key_of_max|best_key|max_key: d",
        "return max(d, key=d.get)",
        DICTS,
        the="""key with the largest value in a dictionary / key of the highest value of a dict /
        key with the biggest value / key with the maximum value in a dictionary""",
    ),
    mapping(
        "key_of_min|lowest_key|min_key: d",
        "return min(d, key=d.get)",
        DICTS,
        the="""key with the smallest value in a dictionary / key of the lowest value of a dict /
        key with the least value / key with the minimum value in a dictionary""",
    ),
    mapping(
        "filter_values|values_above|keep_large: d",
        "return {key: value for key, value in d.items() if value > CONST}",
        lambda c: (({"a": c, "b": c + 1, "c": c - 1},), ({},), ({"x": 900},)),
        the="entries of a dictionary with a value greater than {c} / items of a dict with values above {c}",
        do="keep the entries of a dictionary with values over {c} / filter a dictionary for values greater than {c}",
        constant=between(2, 200),
    ),
    mapping(
        "scale_values|multiply_values|times_values: d",
        "return {key: value * CONST for key, value in d.items()}",
        DICTS,
        the="dictionary with every value multiplied by {c} / dict with all values times {c}",
        do="multiply every value of a dictionary by {c} / multiply all values of a dict by {c}",
        constant=between(2, 60),
    ),
    mapping(
        "increase_values|add_to_values|plus_values: d",
        "return {key: value + CONST for key, value in d.items()}",
        DICTS,
        the="dictionary with {c} added to every value / dict with all values plus {c}",
        do="add {c} to every value of a dictionary / increase all values of a dict by {c}",
        constant=between(2, 99),
    ),
    mapping(
        "count_all|tally|frequency: items",
        "result = {}\nfor item in items:\n    result[item] = result.get(item, 0) + 1\nreturn result",
        ((["a", "b", "a"],), ([],), (["x"],)),
        the="number of times each element is in a list as a dictionary / count of each element of a list",
        do="""count each element of a list in a dictionary / count how often each element is in a list /
        tally the elements of a list""",
    ),
    mapping(
        "word_counts|count_each_word|word_frequency: s",
        "result = {}\nfor w in s.split():\n    result[w] = result.get(w, 0) + 1\nreturn result",
        (("to be or not to be",), ("",), ("one",)),
        the="number of times each word is in a text as a dictionary / count of each word in a string",
        do="""count each word of a text in a dictionary / count how often each word is in a string /
        count the words of a text in a dictionary""",
    ),
    mapping(
        "group_by_letter|by_first_letter|group_words: items",
        "result = {}\nfor w in items:\n    result.setdefault(w[0], []).append(w)\nreturn result",
        ((["pear", "fig", "plum"],), (["a"],), (["to", "be", "try", "bad"],)),
        the="words of a list grouped by their first letter / words grouped by first letter as a dictionary",
        do="""group words by their first letter / group a list of words by first letter /
        group the words of a list by their first letter""",
    ),
    mapping(
        "group_by_length|by_word_length|length_groups: items",
        "result = {}\nfor w in items:\n    result.setdefault(len(w), []).append(w)\nreturn result",
        WORDS,
        the="words of a list grouped by their length / words grouped by length as a dictionary",
        do="group words by their length / group a list of words by length / group the words of a list by their length",
    ),
    mapping(
        "to_dict|make_dict|from_lists: keys values",
        "return dict(zip(keys, values))",
        ((["a", "b"], [1, 2]), ([], []), (["x"], [9])),
        the="dictionary of two lists of keys and values / dict of a list of keys and a list of values",
        do="""make a dictionary from two lists / make a dict from a list of keys and a list of values /
        turn two lists into a dictionary""",
    ),
    mapping(
        "has_key|contains_key|key_exists: d key",
        "return key in d",
        (({"a": 1}, "a"), ({"a": 1}, "b"), ({}, "x")),
        whether="""a dictionary has a key / a key is in a dictionary / a dict contains a key /
        a key exists in a dictionary""",
    ),
    mapping(
        "size|dict_size|count_entries: d",
        "return len(d)",
        DICTS,
        the="number of entries in a dictionary / size of a dictionary / number of keys in a dict",
        do="count the entries of a dictionary / count the keys of a dict",
    ),
    mapping(
        "remove_key|without_key|drop_key: d key",
        "return {k: value for k, value in d.items() if k != key}",
        (({"a": 1, "b": 2}, "a"), ({"a": 1}, "b"), ({}, "x")),
        the="dictionary without a key / dict without one of its keys",
        do="remove a key from a dictionary / delete a key from a dict / remove one key of a dictionary",
    ),
    mapping(
        "sorted_keys|sort_keys|keys_in_order: d",
        "return sorted(d)",
        DICTS,
        the="sorted keys of a dictionary / keys of a dictionary in order",
        do="sort the keys of a dictionary / list the keys of a dictionary in order / sort the keys of a dict",
    ),
)
