"""Functions on lists."""

from __future__ import annotations

from functools import partial

from engine.embedded.corpus.python_task import Calls, between, one_of, task

listing = partial(task, "list")

FULL: Calls = (([3, 1, 2],), ([5],), ([-4, 9, 0, 9],), ([7, 7, 8, 2, 10],))
LISTS: Calls = (*FULL, ([],))
MIXED: Calls = (([1, 2, 3, 4, 5, 6],), ([],), ([-3, -2, 0, 7],), ([9, 11],))
WORDS = ((["pear", "fig", "banana"],), (["a"],), (["to", "be", "or", "not"],))
TWO: Calls = (([1, 2, 3], [3, 4, 1]), ([], [1]), ([5, 6], [7, 8]))

LIST_TASKS = (
    listing(
        "maximum|largest|find_max: items",
        "return max(items)",
        FULL,
        the="""largest number in a list / maximum of a list / biggest number of a list /
        largest element of a list / highest value in a list""",
    ),
    listing(
        "minimum|smallest|find_min: items",
        "return min(items)",
        FULL,
        the="""smallest number in a list / minimum of a list / lowest number of a list /
        smallest element of a list / lowest value in a list""",
    ),
    listing(
        "total|sum_list|add_all: items",
        "return sum(items)",
        LISTS,
        the="sum of a list / sum of the numbers in a list / total of a list",
        do="add up the numbers in a list / sum a list / sum all numbers of a list / add all numbers of a list",
    ),
    listing(
        "average|mean|get_average: items",
        "return sum(items) / len(items)",
        FULL,
        the="average of a list / mean of a list / average of the numbers in a list / mean of a list of numbers",
    ),
    listing(
        "product|multiply_all|multiply_list: items",
        "result = 1\nfor item in items:\n    result *= item\nreturn result",
        LISTS,
        the="product of a list / product of the numbers in a list",
        do="multiply the numbers in a list / multiply all numbers of a list / multiply all elements of a list",
    ),
    listing(
        "unique|remove_duplicates|dedupe: items",
        "return list(dict.fromkeys(items))",
        LISTS,
        the="list without duplicates / different elements of a list in order",
        do="""remove duplicates from a list / remove the duplicates of a list / keep each element of a list once /
        delete repeated elements from a list / drop duplicates from a list""",
    ),
    listing(
        "flatten|flatten_list|merge_lists: items",
        "return [item for part in items for item in part]",
        (([[1, 2], [3], []],), ([],), ([[4], [5, 6]],)),
        the="elements of a list of lists as one list",
        do="""flatten a list of lists / flatten a list / turn a list of lists into one list /
        make a flat list from nested lists / flatten a nested list / join a list of lists into one list /
        put the elements of nested lists in one list""",
    ),
    listing(
        "running_total|cumulative_sum|prefix_sums: items",
        "result = []\ntotal = 0\nfor item in items:\n    total += item\n    result.append(total)\nreturn result",
        LISTS,
        the="running total of a list / cumulative sums of a list / running sums of a list / list of running totals",
    ),
    listing(
        "chunks|split_list|batches: items",
        "return [items[i:i + CONST] for i in range(0, len(items), CONST)]",
        (([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],), ([],), ([1, 2, 3, 4],)),
        the="chunks of size {c} of a list / parts of length {c} of a list",
        do="split a list into chunks of {c} / cut a list into parts of {c} elements / split a list into groups of {c}",
        constant=between(2, 20),
    ),
    listing(
        "second_largest|second_biggest|runner_up: items",
        "return sorted(set(items))[-2]",
        (([3, 1, 2],), ([-4, 9, 0, 9],), ([7, 7, 8, 2, 10],)),
        the="""second largest number in a list / second biggest number of a list /
        second largest element of a list / second highest value in a list""",
    ),
    listing(
        "reverse_list|reversed_list|flip_list: items",
        "return items[::-1]",
        LISTS,
        the="list in reverse order / elements of a list in reverse order",
        do="reverse a list / turn a list around / reverse the order of a list / reverse the elements of a list",
    ),
    listing(
        "sort_list|sorted_list|in_order: items",
        "return sorted(items)",
        LISTS,
        the="sorted list / elements of a list in order",
        do="""sort a list / sort a list of numbers / sort a list in ascending order / put a list in order /
        sort the elements of a list""",
    ),
    listing(
        "sort_descending|sort_down|sort_reverse: items",
        "return sorted(items, reverse=True)",
        LISTS,
        the="list in descending order / elements of a list from largest to smallest",
        do="""sort a list in descending order / sort a list from largest to smallest /
        sort a list in reverse order / sort a list of numbers descending""",
    ),
    listing(
        "evens|even_items|filter_even: items",
        "return [item for item in items if item % 2 == 0]",
        MIXED,
        the="even numbers of a list / even numbers in a list",
        do="""keep only the even numbers of a list / filter the even numbers of a list /
        filter a list for even numbers / remove the odd numbers from a list""",
    ),
    listing(
        "odds|odd_items|filter_odd: items",
        "return [item for item in items if item % 2 == 1]",
        MIXED,
        the="odd numbers of a list / odd numbers in a list",
        do="""keep only the odd numbers of a list / filter the odd numbers of a list /
        filter a list for odd numbers / remove the even numbers from a list""",
    ),
    listing(
        "positives|positive_items|filter_positive: items",
        "return [item for item in items if item > 0]",
        MIXED,
        the="positive numbers of a list / positive numbers in a list",
        do="""keep only the positive numbers of a list / filter the positive numbers of a list /
        filter a list for positive numbers""",
    ),
    listing(
        "squares|square_all|square_list: items",
        "return [item * item for item in items]",
        LISTS,
        the="squares of the numbers in a list / square of each number in a list",
        do="square every number in a list / square all numbers of a list / square each element of a list",
    ),
    listing(
        "longer_than|long_items|filter_long: items",
        "return [item for item in items if len(item) > CONST]",
        lambda c: ((["a", "bb", "ccc", "dddddd"],), ([],), (["x" * c, "y" * (c + 1)],)),
        the="strings longer than {c} in a list / words with more than {c} letters in a list",
        do="""keep the strings longer than {c} of a list / filter a list for words longer than {c} letters /
        keep only the words of a list with more than {c} letters""",
        constant=between(2, 20),
    ),
    listing(
        "greater_than|filter_greater|above: items",
        "return [item for item in items if item > CONST]",
        lambda c: (([c - 1, c, c + 1, 3 * c],), ([],), ([0, 500, -1],)),
        the="numbers greater than {c} in a list / numbers of a list that are larger than {c}",
        do="""keep the numbers greater than {c} of a list / filter a list for numbers above {c} /
        keep only the numbers over {c}""",
        constant=between(2, 200),
    ),
    listing(
        "smaller_than|filter_smaller|below: items",
        "return [item for item in items if item < CONST]",
        lambda c: (([c - 1, c, c + 1, 3 * c],), ([],), ([0, 500, -1],)),
        the="numbers smaller than {c} in a list / numbers of a list that are less than {c}",
        do="""keep the numbers smaller than {c} of a list / filter a list for numbers below {c} /
        keep only the numbers under {c}""",
        constant=between(2, 200),
    ),
    listing(
        "count_greater|count_above|how_many_above: items",
        "return sum(item > CONST for item in items)",
        lambda c: (([c - 1, c, c + 1, 3 * c],), ([],), ([0, 500, -1],)),
        the="number of values above {c} in a list / count of the numbers greater than {c} in a list",
        do="""count the numbers greater than {c} in a list / count how many numbers of a list are above {c} /
        count the values over {c} in a list""",
        constant=between(2, 200),
    ),
    listing(
        "multiply_each|scale_list|times_all: items",
        "return [item * CONST for item in items]",
        LISTS,
        the="list with every number multiplied by {c} / numbers of a list times {c}",
        do="""multiply every number in a list by {c} / multiply each element of a list by {c} /
        multiply all numbers of a list by {c}""",
        constant=between(3, 60),
    ),
    listing(
        "add_to_each|increase_all|shift_list: items",
        "return [item + CONST for item in items]",
        LISTS,
        the="list with {c} added to every number / numbers of a list plus {c}",
        do="""add {c} to every number in a list / add {c} to each element of a list /
        increase all numbers of a list by {c}""",
        constant=between(1, 99),
    ),
    listing(
        "double_all|double_list|doubles: items",
        "return [item * 2 for item in items]",
        LISTS,
        the="doubles of the numbers in a list / double of each number in a list",
        do="double every number in a list / double all numbers of a list / double each element of a list",
    ),
    listing(
        "count_item|count_of|occurrences: items x",
        "return items.count(x)",
        (([1, 2, 1], 1), ([], 3), ([4, 4, 4], 4)),
        the="number of times a value is in a list / number of times x is in a list",
        do="count how often a value is in a list / count a value in a list / count how often x is in a list",
    ),
    listing(
        "index_of|find_index|position_of: items x",
        "return items.index(x)",
        (([1, 2, 1], 2), ([4, 5, 6], 6), ([9], 9)),
        the="""index of a value in a list / position of a value in a list / index of x in a list /
        position of an element in a list""",
    ),
    listing(
        "contains_item|has_item|is_in: items x",
        "return x in items",
        (([1, 2, 1], 2), ([], 6), ([9], 3)),
        whether="a value is in a list / a list contains a value / x is in a list / an element is in a list",
    ),
    listing(
        "contains_number|has_number|has_it: items",
        "return CONST in items",
        lambda c: (([c, 1],), ([],), ([c + 1, c - 1],)),
        whether="{c} is in a list / a list contains {c} / the number {c} is in a list / a list has the number {c}",
        constant=between(2, 200),
    ),
    listing(
        "first_items|take_first|head: items",
        "return items[:CONST]",
        ((list(range(1, 30)),), ([],), ([3, 2, 1, 9],)),
        the="first {c} elements of a list / first {c} items of a list / first {c} numbers of a list",
        do="take the first {c} elements of a list / keep only the first {c} items of a list",
        constant=between(2, 25),
    ),
    listing(
        "last_items|take_last|tail: items",
        "return items[-CONST:]",
        ((list(range(1, 30)),), ([],), ([3, 2, 1, 9],)),
        the="last {c} elements of a list / last {c} items of a list / last {c} numbers of a list",
        do="take the last {c} elements of a list / keep only the last {c} items of a list",
        constant=between(2, 25),
    ),
    listing(
        "skip_items|drop_first|without_first: items",
        "return items[CONST:]",
        ((list(range(1, 30)),), ([],), ([3, 2, 1, 9],)),
        the="list without its first {c} elements / elements of a list after the first {c}",
        do="""skip the first {c} elements of a list / drop the first {c} items of a list /
        remove the first {c} elements of a list""",
        constant=between(2, 25),
    ),
    listing(
        "every_nth|every_step|nth_items: items",
        "return items[::CONST]",
        ((list(range(1, 60)),), ([],), ([3, 2, 1, 9, 8],)),
        the="list of every {c}th element of a list / items of a list in steps of {c}",
        do="""take every {c}th element of a list / keep every {c}th item of a list /
        return every {c}th element of a list""",
        constant=between(4, 20),
    ),
    listing(
        "rotate|rotate_left|rotate_list: items",
        "return items[CONST:] + items[:CONST]",
        ((list(range(1, 30)),), ([],), ([3, 2, 1, 9],)),
        the="list rotated by {c} / list rotated to the left by {c} places",
        do="rotate a list by {c} / rotate a list to the left by {c} / rotate a list by {c} places",
        constant=between(2, 20),
    ),
    listing(
        "remove_value|without|drop_value: items",
        "return [item for item in items if item != CONST]",
        lambda c: (([c, 1, c, c + 1],), ([],), ([c],)),
        the="list without the number {c} / elements of a list that are not {c}",
        do="""remove {c} from a list / remove every {c} from a list / remove all {c} from a list /
        delete the number {c} from a list""",
        constant=between(2, 99),
    ),
    listing(
        "common|intersection|in_both: a b",
        "return [item for item in a if item in b]",
        TWO,
        the="""common elements of two lists / elements that are in both lists / elements of a that are also in b /
        intersection of two lists""",
        do="find the common elements of two lists / find what two lists have in common",
    ),
    listing(
        "difference|only_in_first|not_in_second: a b",
        "return [item for item in a if item not in b]",
        TWO,
        the="""elements of one list that are not in another / elements of a that are not in b /
        difference of two lists / elements that are only in the first of two lists""",
    ),
    listing(
        "concat|join_lists|combine_lists: a b",
        "return a + b",
        TWO,
        the="two lists as one list / elements of two lists in one list",
        do="""join two lists / concatenate two lists / combine two lists / put two lists together /
        append one list to another""",
    ),
    listing(
        "pairs|zip_lists|pair_up: a b",
        "return list(zip(a, b))",
        (([1, 2], [3, 4]), ([], []), ([5, 6, 7], [7, 8, 9])),
        the="pairs of the elements of two lists / list of pairs from two lists",
        do="pair the elements of two lists / zip two lists / make pairs from two lists / pair up two lists",
    ),
    listing(
        "is_sorted|sorted_already|check_sorted: items",
        "return items == sorted(items)",
        (([1, 2, 3],), ([],), ([3, 1],), ([2, 2, 5],)),
        whether="""a list is sorted / a list is in order / the numbers of a list are sorted /
        a list is in ascending order""",
    ),
    listing(
        "is_empty|empty|check_empty: items",
        "return len(items) == 0",
        LISTS,
        whether="a list is empty / a list has no elements / there is nothing in a list / a given list is empty",
    ),
    listing(
        "has_duplicates|duplicates|check_duplicates: items",
        "return len(items) != len(set(items))",
        LISTS,
        whether="""a list has duplicates / a list contains duplicates / any element is in a list twice /
        a list has repeated elements""",
    ),
    listing(
        "spread|value_range|max_minus_min: items",
        "return max(items) - min(items)",
        FULL,
        the="""difference between the largest and the smallest number of a list / range of a list /
        spread of a list of numbers / difference of maximum and minimum of a list""",
    ),
    listing(
        "min_max|extremes|smallest_largest: items",
        "return min(items), max(items)",
        FULL,
        the="""minimum and maximum of a list / smallest and largest number of a list /
        smallest and largest element of a list / lowest and highest value of a list""",
    ),
    listing(
        "median|get_median|middle: items",
        "items = sorted(items)\nm = len(items) // 2\nif len(items) % 2 == 1:\n    return items[m]\n"
        "return (items[m - 1] + items[m]) / 2",
        FULL,
        the="median of a list / median of a list of numbers / median of the numbers in a list / median value of a list",
    ),
    listing(
        "most_common|mode|most_frequent: items",
        "return max(items, key=items.count)",
        FULL,
        the="""most common element of a list / most frequent element of a list / most common value in a list /
        mode of a list / element that is most often in a list""",
    ),
    listing(
        "lengths|word_lengths|get_lengths: items",
        "return [len(item) for item in items]",
        WORDS,
        the="lengths of the strings in a list / length of each word in a list / list of the lengths of words",
        do="list the lengths of the strings in a list / measure the length of each word in a list",
    ),
    listing(
        "sort_by_length|by_length|order_by_length: items",
        "return sorted(items, key=len)",
        WORDS,
        the="strings of a list sorted by length / words in a list ordered by length",
        do="sort a list of strings by length / sort words by their length / order a list of words by length",
    ),
    listing(
        "join_items|join_strings|join_all: items",
        "return CONST.join(items)",
        WORDS,
        the='strings of a list joined with "{c}" / text of all words in a list with "{c}" between them',
        do="""join a list of strings with "{c}" / join words with "{c}" /
        join the strings of a list with "{c}" in between""",
        constant=one_of("-", "_", "+", ".", "*", "#", "/", "~", ", ", "; "),
    ),
    listing(
        "upper_all|all_to_upper|uppercase_list: items",
        "return [item.upper() for item in items]",
        WORDS,
        the="words of a list in upper case / strings of a list in capital letters",
        do="""make every string of a list upper case / convert a list of words to upper case /
        uppercase all strings in a list""",
    ),
    listing(
        "last_item|get_last|last: items",
        "return items[-1]",
        FULL,
        the="last element of a list / last item of a list / last value in a list / final element of a list",
    ),
    listing(
        "first_item|get_first|first: items",
        "return items[0]",
        FULL,
        the="first element of a list / first item of a list / first value in a list / first entry of a list",
    ),
    listing(
        "length|count_items|list_length: items",
        "return len(items)",
        LISTS,
        the="length of a list / number of elements in a list / number of items in a list",
        do="count the elements of a list / count the items in a list / count how many elements a list has",
    ),
    listing(
        "sum_evens|sum_even|add_evens: items",
        "return sum(item for item in items if item % 2 == 0)",
        MIXED,
        the="sum of the even numbers in a list / total of the even numbers of a list",
        do="add up the even numbers in a list / sum the even numbers of a list / sum only the even numbers in a list",
    ),
    listing(
        "count_evens|count_even|number_of_evens: items",
        "return sum(item % 2 == 0 for item in items)",
        MIXED,
        the="number of even numbers in a list / count of even numbers in a list",
        do="""count the even numbers in a list / count how many numbers of a list are even /
        count even numbers in a list""",
    ),
    listing(
        "all_positive|only_positive|are_positive: items",
        "return all(item > 0 for item in items)",
        MIXED,
        whether="""all numbers of a list are positive / every number in a list is positive /
        a list has only positive numbers""",
    ),
    listing(
        "to_strings|strings|as_strings: items",
        "return [str(item) for item in items]",
        LISTS,
        the="numbers of a list as strings / elements of a list as strings",
        do="""convert a list of numbers to strings / turn every number of a list into a string /
        convert each element to a string""",
    ),
)
