# Everything that a fresh machine needs: Python 3.11 or newer, and this file.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: setup java test demo bench reproduce clean

setup: $(VENV)/installed

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

# Spark's tests run for real: where Java is missing and this may install it, it does.
java:
	command -v java >/dev/null || apt-get install --yes --quiet openjdk-17-jre-headless || \
		{ echo "Spark's tests need Java 17: apt install openjdk-17-jre-headless" >&2; exit 1; }

test: setup java
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/pytest

demo: setup
	$(BIN)/unbasket demo

bench: setup
	$(BIN)/python benchmarks/engine.py
	$(BIN)/python benchmarks/store.py
	$(BIN)/python benchmarks/evaluation.py
	$(BIN)/python benchmarks/spark.py

reproduce: setup
	$(BIN)/unbasket reproduce

clean:
	rm -rf $(VENV) .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
