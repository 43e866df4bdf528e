"""The engine: a model, rounds that decode with it, and the process that they run in."""

import os

# torch's OpenMP reads this as it loads. By default, a waiting thread keeps its core for milliseconds, perhaps the core
# that the awaited thread needs. 4,000 turns are some 50 µs, which waits within a pass take.
if not {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & {*os.environ}:
    os.environ["GOMP_SPINCOUNT"] = "4000"
