# `make serve` and `make test` are all a new machine needs: they make .venv themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: serve test test-full test-gateways check format clean

serve: $(VENV)/.serve
	$(BIN)/knapserve serve $(ARGS)

test: $(VENV)/.test
	$(BIN)/python -m pytest -m "not full" $(ARGS)

test-full: $(VENV)/.test
	$(BIN)/python -m pytest $(ARGS)

# LiteLLM brings an openai of its own choice: install it last.
test-gateways: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --editable ".[gateways]"
	$(BIN)/python -m pytest tests/contract/test_gateways.py $(ARGS)

check: $(VENV)/.test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -m "not full" $(ARGS)

format: $(VENV)/.test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# torch first and pinned: another package's range would bring a build with gigabytes of CUDA libraries.
$(VENV)/.serve: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet torch==2.13.0
	$(BIN)/python -m pip install --quiet --editable .
	$(BIN)/python -m engine.native.library
	touch $@

$(VENV)/.test: $(VENV)/.serve
	$(BIN)/python -m pip install --quiet --editable ".[test,browser,plots]"
	touch $@
