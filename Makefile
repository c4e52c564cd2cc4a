# Everything that a fresh machine needs: Python 3.11 or newer, and this file.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: setup test test-slow demo bench reproduce clean

setup: $(VENV)/installed

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

test: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/pytest

test-slow: setup
	$(BIN)/pytest -m slow

demo: setup
	$(BIN)/unbasket demo

bench: setup
	$(BIN)/python benchmarks/engine.py
	$(BIN)/python benchmarks/store.py
	$(BIN)/python benchmarks/evaluation.py

reproduce: setup
	$(BIN)/unbasket reproduce

clean:
	rm -rf $(VENV) .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
