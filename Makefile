# Everything that a fresh machine needs: Python 3.11 or newer, and this file. Tests of the page need Chromium, those
# of Spark need Java, and the service's benchmark needs wrk: on Debian they are installed here, by root or with sudo.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: setup test lint kernels test-slow docs demo bench bench-spark notebook reproduce clean

setup: $(VENV)/installed

$(VENV)/installed: pyproject.toml  # bytecode is compiled when it is needed: most of it never is
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --editable '.[dev]'
	touch $@

# One of Debian's packages, if its command is missing: $(call install,command,package)
define install
	@command -v $(1) >/dev/null || { \
		[ "$$(id -u)" = 0 ] && as= || as=sudo; \
		$$as apt-get update -qq && $$as apt-get install -qq -y --no-install-recommends $(2) >/dev/null; }
endef

test: setup
	$(call install,chromium,chromium)
	$(call install,java,openjdk-17-jre-headless)
	$(MAKE) --jobs=2 lint kernels
	$(BIN)/pytest --numprocesses=2 --ignore=tests/service/test_openapi.py
	$(BIN)/pytest tests/service/test_openapi.py  # its tests all have one name, of which xdist would run one

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

kernels: setup  # compiled once, and not by each worker of the tests
	$(BIN)/python -c 'from unbasket.service.shop import warm_up; warm_up(lambda done, total: None)'

test-slow: setup
	$(call install,java,openjdk-17-jre-headless)
	$(BIN)/pytest -m slow

docs: $(VENV)/docs
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet -c docs -d $(VENV)/doctrees . site
	@echo "site/index.html"

$(VENV)/docs: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@

bench-spark: setup
	$(call install,java,openjdk-17-jre-headless)
	$(BIN)/python benchmarks/spark.py

PORT ?= 8000
demo: $(VENV)/demo
	$(BIN)/unbasket demo --port $(PORT)

$(VENV)/demo: pyproject.toml  # less than all that tests need
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[completejourney,service]'
	touch $@

bench: setup
	$(call install,wrk,wrk)
	$(BIN)/python benchmarks/engine.py
	$(BIN)/python benchmarks/store.py
	$(BIN)/python benchmarks/evaluation.py
	$(BIN)/python benchmarks/service.py

notebook: setup  # the tests compare its outputs with what comes out
	$(BIN)/jupyter nbconvert --to notebook --execute --inplace --ExecutePreprocessor.record_timing=False \
		--log-level=ERROR docs/notebook.ipynb

reproduce: setup
	$(BIN)/unbasket reproduce

clean:
	rm -rf $(VENV) site .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
