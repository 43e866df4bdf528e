"""Functions on numbers."""

from __future__ import annotations

from functools import partial

from engine.embedded.corpus.python_task import between, task

number = partial(task, "number")

WHOLE = ((0,), (1,), (7,), (12,), (30,))
SIGNED = ((0,), (5,), (-4,), (12,), (-7,))
PAIRS = ((1, 2), (7, 7), (-3, 10), (12, -5))

NUMBERS = (
    number(
        "add|add_numbers|sum_two: a b",
        "return a + b",
        PAIRS,
        the="sum of two numbers / total of two numbers",
        do="""add two numbers / add up two numbers / sum two numbers / add two values /
        add one number to another / add a and b / sum up two numbers""",
    ),
    number(
        "subtract|minus|sub: a b",
        "return a - b",
        PAIRS,
        the="first number minus the second / result of the first number minus the second one",
        do="""subtract two numbers / subtract one number from another /
        subtract the second number from the first / subtract b from a / take one number from another /
        subtract two values""",
    ),
    number(
        "multiply|product|times: a b",
        "return a * b",
        PAIRS,
        the="product of two numbers / product of two values",
        do="""multiply two numbers / multiply one number by another / multiply two values / multiply a and b /
        multiply two numbers with each other / multiply a by b""",
    ),
    number(
        "divide|div|quotient: a b",
        "return a / b",
        ((6, 3), (7, 2), (-9, 4)),
        the="quotient of two numbers / first number divided by the second",
        do="""divide two numbers / divide one number by another / divide a by b /
        divide the first number by the second / divide two values""",
    ),
    number(
        "is_even|even|check_even: n",
        "return n % 2 == 0",
        WHOLE,
        whether="""a number is even / an integer is even / a number is divisible by two / n is even /
        a given number is an even number""",
    ),
    number(
        "is_odd|odd|check_odd: n",
        "return n % 2 == 1",
        WHOLE,
        whether="""a number is odd / an integer is odd / a number is not even / n is odd /
        a given number is an odd number""",
    ),
    number(
        "square|squared|square_number: n",
        "return n * n",
        SIGNED,
        the="square of a number / second power of a number / square of n",
        do="square a number / multiply a number by itself / square an integer / square a given number",
    ),
    number(
        "cube|cubed|cube_number: n",
        "return n ** 3",
        SIGNED,
        the="cube of a number / third power of a number / cube of n",
        do="cube a number / raise a number to the third power / cube an integer / cube a given number",
    ),
    number(
        "double|twice|double_number: n",
        "return n * 2",
        SIGNED,
        the="double of a number / double of n",
        do="double a number / multiply a number by two / double an integer / double a given number / double a value",
    ),
    number(
        "half|halve|half_of: n",
        "return n / 2",
        SIGNED,
        the="half of a number / half of n",
        do="halve a number / divide a number by two / halve an integer / halve a given number / halve a value",
    ),
    number(
        "factorial|fact|get_factorial: n",
        "result = 1\nfor i in range(2, n + 1):\n    result *= i\nreturn result",
        ((0,), (1,), (5,), (10,)),
        the="""factorial of a number / factorial of n / factorial of an integer /
        product of the numbers from 1 to n / factorial of a given number""",
    ),
    number(
        "gcd|greatest_common_divisor|common_divisor: a b",
        "while b:\n    a, b = b, a % b\nreturn a",
        ((12, 18), (7, 5), (9, 0), (100, 75)),
        the="""greatest common divisor of two numbers / gcd of two numbers /
        largest common divisor of two numbers / greatest common divisor of a and b / gcd of a and b""",
    ),
    number(
        "lcm|least_common_multiple|common_multiple: a b",
        "result = a\nwhile result % b != 0:\n    result += a\nreturn result",
        ((4, 6), (7, 5), (3, 9), (10, 4)),
        the="""least common multiple of two numbers / lcm of two numbers /
        smallest common multiple of two numbers / least common multiple of a and b / lcm of a and b""",
    ),
    number(
        "is_prime|prime|check_prime: n",
        "if n < 2:\n    return False\nfor i in range(2, n):\n    if n % i == 0:\n        return False\nreturn True",
        ((0,), (1,), (2,), (9,), (13,)),
        whether="""a number is prime / a number is a prime number / n is prime / an integer is prime /
        a given number is prime""",
    ),
    number(
        "fibonacci|fib|nth_fibonacci: n",
        "a, b = 0, 1\nfor i in range(n):\n    a, b = b, a + b\nreturn a",
        ((0,), (1,), (2,), (10,)),
        the="""nth fibonacci number / n-th Fibonacci number / Fibonacci number of n /
        fibonacci number at position n / nth number of the Fibonacci sequence""",
    ),
    number(
        "fibonacci_list|fib_list|first_fibonacci: n",
        "result = []\na, b = 0, 1\nfor i in range(n):\n    result.append(a)\n    a, b = b, a + b\nreturn result",
        ((0,), (1,), (2,), (8,)),
        the="""first n fibonacci numbers / first n Fibonacci numbers as a list /
        list of the first n fibonacci numbers / first n numbers of the Fibonacci sequence""",
    ),
    number(
        "clamp|limit|clip: n low high",
        "return max(low, min(n, high))",
        ((5, 0, 10), (-2, 0, 10), (12, 0, 10)),
        do="""clamp a number between low and high / limit a number to a range /
        keep a number between low and high / clamp n to the range from low to high / clip a number to a range /
        clamp a value between two bounds / limit a number to the range from low to high /
        clamp a number to a range / clip a value between low and high / keep a value in a range /
        force a number into a range / limit n to low and high""",
    ),
    number(
        "sum_to|sum_up_to|total_to: n",
        "return sum(range(1, n + 1))",
        WHOLE,
        the="sum of the numbers from 1 to n / sum of all numbers up to n / total of the numbers from one to n",
        do="add up the numbers from 1 to n / sum all numbers up to n / add the numbers from 1 to n",
    ),
    number(
        "sum_of_squares|squares_sum|sum_squares: n",
        "return sum(i * i for i in range(1, n + 1))",
        WHOLE,
        the="""sum of the squares from 1 to n / sum of squares up to n / sum of the first n squares /
        sum of the first n square numbers""",
        do="add up the squares from 1 to n / sum the squares of the numbers up to n",
    ),
    number(
        "fizzbuzz|fizz_buzz|get_fizzbuzz: n",
        'if n % 15 == 0:\n    return "FizzBuzz"\nif n % 3 == 0:\n    return "Fizz"\nif n % 5 == 0:\n    return "Buzz"\n'
        "return str(n)",
        ((1,), (3,), (5,), (30,), (7,)),
        the="FizzBuzz word for a number / fizzbuzz result for a number / fizzbuzz string of n / FizzBuzz answer for n",
        do="play FizzBuzz for a number / solve fizzbuzz for a number / do FizzBuzz / do fizzbuzz for n",
    ),
    number(
        "absolute|absolute_value|magnitude: n",
        "return n if n >= 0 else -n",
        SIGNED,
        the="""absolute value of a number / absolute value of n / value of a number without its sign /
        absolute value of an integer""",
    ),
    number(
        "sign|get_sign|signum: n",
        "if n > 0:\n    return 1\nif n < 0:\n    return -1\nreturn 0",
        SIGNED,
        the="""sign of a number / sign of a number as 1, 0 or -1 / sign of n / sign of an integer /
        sign of a value as -1, 0 or 1""",
    ),
    number(
        "larger|bigger|max_of_two: a b",
        "return a if a > b else b",
        PAIRS,
        the="""larger of two numbers / bigger of two numbers / maximum of two numbers / larger one of two values /
        greater of two numbers""",
    ),
    number(
        "smaller|lesser|min_of_two: a b",
        "return a if a < b else b",
        PAIRS,
        the="""smaller of two numbers / lesser of two numbers / minimum of two numbers /
        smaller one of two values / lower of two numbers""",
    ),
    number(
        "max_of_three|largest_of_three|max_three: a b c",
        "return max(a, b, c)",
        ((1, 2, 3), (9, 4, 5), (3, 8, 2)),
        the="""largest of three numbers / maximum of three numbers / biggest of three numbers /
        largest of three values / greatest of three numbers""",
    ),
    number(
        "mean_of_two|average_of_two|midpoint: a b",
        "return (a + b) / 2",
        PAIRS,
        the="""average of two numbers / mean of two numbers / middle of two numbers / average of a and b /
        mean of two values""",
    ),
    number(
        "digit_sum|sum_digits|sum_of_digits: n",
        "return sum(int(c) for c in str(n))",
        WHOLE,
        the="sum of the digits of a number / digit sum of a number / digit sum of n / sum of the digits of n",
        do="add up the digits of a number / sum the digits of an integer / add the digits of a number",
    ),
    number(
        "count_digits|number_of_digits|digit_count: n",
        "return len(str(n))",
        WHOLE,
        the="number of digits of a number / number of digits in n / number of digits of an integer",
        do="count the digits of a number / count the digits in n / count how many digits a number has",
    ),
    number(
        "reverse_number|reverse_digits|flip_number: n",
        "return int(str(n)[::-1])",
        ((0,), (123,), (90,), (77,)),
        the="number with its digits reversed / digits of a number in reverse order as a number",
        do="reverse a number / reverse the digits of a number / reverse an integer / reverse the digits of n",
    ),
    number(
        "power|raise_to|pow_of: a b",
        "return a ** b",
        ((2, 3), (5, 0), (-3, 3)),
        the="power of two numbers / result of a to the power of b",
        do="""raise a number to a power / raise a to the power of b / compute a to the power of b /
        raise one number to the power of another""",
    ),
    number(
        "celsius_to_fahrenheit|to_fahrenheit|c_to_f: c",
        "return c * 9 / 5 + 32",
        ((0,), (100,), (-40,), (21,)),
        the="temperature in Fahrenheit for degrees Celsius / Fahrenheit value of a temperature in Celsius",
        do="""convert Celsius to Fahrenheit / turn Celsius into Fahrenheit /
        convert degrees Celsius to Fahrenheit / convert a temperature from Celsius to Fahrenheit""",
    ),
    number(
        "fahrenheit_to_celsius|to_celsius|f_to_c: f",
        "return (f - 32) * 5 / 9",
        ((32,), (212,), (-40,), (70,)),
        the="temperature in Celsius for degrees Fahrenheit / Celsius value of a temperature in Fahrenheit",
        do="""convert Fahrenheit to Celsius / turn Fahrenheit into Celsius /
        convert degrees Fahrenheit to Celsius / convert a temperature from Fahrenheit to Celsius""",
    ),
    number(
        "times|multiply_number|scale: n",
        "return n * CONST",
        SIGNED,
        the="product of a number and {c} / number times {c}",
        do="multiply a number by {c} / multiply n by {c} / multiply an integer by {c} / multiply a value with {c}",
        constant=between(3, 60),
    ),
    number(
        "plus|add_to|increase: n",
        "return n + CONST",
        SIGNED,
        the="sum of a number and {c} / number plus {c}",
        do="add {c} to a number / increase a number by {c} / add {c} to n / increase n by {c}",
        constant=between(1, 99),
    ),
    number(
        "minus_number|decrease|reduce_by: n",
        "return n - CONST",
        SIGNED,
        the="number minus {c} / difference of a number and {c}",
        do="subtract {c} from a number / decrease a number by {c} / subtract {c} from n / reduce a number by {c}",
        constant=between(1, 99),
    ),
    number(
        "is_divisible|divisible|check_divisible: n",
        "return n % CONST == 0",
        lambda c: ((0,), (c,), (c + 1,), (6 * c,), (6 * c - 1,)),
        whether="""a number is divisible by {c} / a number can be divided by {c} / n is divisible by {c} /
        a number is a multiple of {c} / {c} divides a number""",
        constant=between(3, 40),
    ),
    number(
        "remainder|rest|modulo: n",
        "return n % CONST",
        lambda c: ((0,), (c,), (c + 1,), (7 * c - 2,), (5,)),
        the="""remainder of a number divided by {c} / rest of a number divided by {c} /
        remainder of n divided by {c} / number modulo {c} / remainder when dividing a number by {c}""",
        constant=between(3, 40),
    ),
    number(
        "is_greater|is_above|greater: n",
        "return n > CONST",
        lambda c: ((c,), (c + 1,), (c - 1,), (0,)),
        whether="""a number is greater than {c} / a number is larger than {c} / n is above {c} /
        a number is more than {c}""",
        constant=between(1, 200),
    ),
    number(
        "is_less|is_below|less: n",
        "return n < CONST",
        lambda c: ((c,), (c + 1,), (c - 1,), (0,)),
        whether="""a number is less than {c} / a number is smaller than {c} / n is below {c} /
        a number is lower than {c}""",
        constant=between(1, 200),
    ),
    number(
        "is_positive|positive|check_positive: n",
        "return n > 0",
        SIGNED,
        whether="a number is positive / n is positive / a number is greater than zero / an integer is positive",
    ),
    number(
        "is_negative|negative|check_negative: n",
        "return n < 0",
        SIGNED,
        whether="a number is negative / n is negative / a number is less than zero / an integer is negative",
    ),
    number(
        "in_range|is_between|between: n low high",
        "return low <= n <= high",
        ((5, 0, 10), (0, 0, 10), (10, 0, 10), (11, 0, 10), (-1, 0, 10)),
        whether="""a number is between low and high / a number is in a range /
        n is in the range from low to high / a number lies between two bounds""",
    ),
    number(
        "is_multiple|multiple_of|check_multiple: a b",
        "return a % b == 0",
        ((6, 3), (7, 2), (10, 5), (4, 8)),
        whether="""one number is a multiple of another / a is a multiple of b / a is divisible by b /
        the first number is divisible by the second""",
    ),
    number(
        "divisors|factors|find_divisors: n",
        "return [i for i in range(1, n + 1) if n % i == 0]",
        ((1,), (6,), (13,), (28,)),
        the="""divisors of a number / list of all divisors of a number / divisors of n / factors of a number /
        numbers that divide n""",
        do="list the divisors of a number / list all divisors of n",
    ),
    number(
        "countdown|count_down|down_from: n",
        "return list(range(n, 0, -1))",
        ((0,), (1,), (5,)),
        the="""numbers from n down to 1 as a list / list of the numbers from n down to 1 /
        list that counts down from n to 1""",
        do="count down from n to 1 / make a countdown list from n to 1 / list the numbers from n down to 1",
    ),
    number(
        "count_up|numbers_to|up_to: n",
        "return list(range(1, n + 1))",
        ((0,), (1,), (5,)),
        the="numbers from 1 to n as a list / list of the numbers from 1 to n / list that counts from 1 to n",
        do="count from 1 to n in a list / make a list of the numbers from 1 to n / list the numbers from 1 to n",
    ),
    number(
        "even_numbers|evens_to|evens_up_to: n",
        "return list(range(2, n + 1, 2))",
        ((0,), (2,), (9,), (10,)),
        the="even numbers from 1 to n / even numbers up to n / list of the even numbers up to n",
        do="list the even numbers up to n / make a list of the even numbers from 1 to n",
    ),
    number(
        "multiples|multiples_of|list_multiples: n",
        "return [i * CONST for i in range(1, n + 1)]",
        ((0,), (1,), (4,)),
        the="first n multiples of {c} / list of the first n multiples of {c} / first n numbers of the {c} times table",
        do="list the first n multiples of {c} / make a list of the first n multiples of {c}",
        constant=between(3, 40),
    ),
    number(
        "is_square|perfect_square|is_perfect_square: n",
        "return any(i * i == n for i in range(n + 1))",
        ((0,), (1,), (15,), (16,), (26,)),
        whether="""a number is a perfect square / n is a square number / a number is a square number /
        an integer is a perfect square""",
    ),
    number(
        "is_leap_year|leap_year|leap: year",
        "return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)",
        ((2000,), (1900,), (2024,), (2023,)),
        whether="a year is a leap year / a given year is a leap year / the year is a leap year / year is a leap year",
    ),
    number(
        "percentage|percent|percent_of: a b",
        "return a / b * 100",
        ((1, 2), (3, 4), (5, 5)),
        the="""percentage that a is of b / percentage of one number of another / percentage of a in b /
        percentage that one number is of another""",
    ),
    number(
        "rectangle_area|area|area_of_rectangle: width height",
        "return width * height",
        ((3, 4), (1, 1), (10, 7)),
        the="""area of a rectangle / area of a rectangle from its width and height /
        area of a rectangle with a width and a height / size of the area of a rectangle""",
    ),
    number(
        "perimeter|rectangle_perimeter|perimeter_of_rectangle: width height",
        "return 2 * (width + height)",
        ((3, 4), (1, 1), (10, 7)),
        the="""perimeter of a rectangle / perimeter of a rectangle from its width and height /
        perimeter of a rectangle with a width and a height / length around a rectangle""",
    ),
    number(
        "minutes_to_seconds|to_seconds|seconds: minutes",
        "return minutes * 60",
        ((0,), (1,), (7,)),
        the="seconds in a number of minutes / number of seconds of some minutes",
        do="convert minutes to seconds / turn minutes into seconds / convert a number of minutes to seconds",
    ),
    number(
        "to_binary|binary|binary_string: n",
        "return bin(n)[2:]",
        WHOLE,
        the="binary form of a number / binary string of a number / binary form of n",
        do="convert a number to binary / turn a number into a binary string / convert an integer to binary",
    ),
    number(
        "distance|abs_difference|gap: a b",
        "return abs(a - b)",
        PAIRS,
        the="""distance between two numbers / absolute difference of two numbers / distance of two numbers /
        absolute difference between a and b / distance between a and b""",
    ),
)
