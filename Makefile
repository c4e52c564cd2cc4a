# Everything that a fresh machine needs: Python 3.11 or newer, and this file. Tests of the page need Chromium, those
# of Spark need Java, and the service's benchmark needs wrk: on Debian they are installed here, by root or with sudo.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
unexport PYTHONDONTWRITEBYTECODE  # tests start hundreds of processes, which would all compile the same modules

.PHONY: setup build test programs lint described checked streamed tested sanitized test-slow docs demo bench bench-defaults bench-pool bench-scale bench-spark notebook reproduce clean

setup: $(VENV)/dev build

# What a purpose needs, and the package with its compiled core. uv does what pip does, several times faster.
$(VENV)/dev: EXTRAS := dev
$(VENV)/docs: EXTRAS := docs
$(VENV)/demo: EXTRAS := completejourney,service
$(VENV)/dev $(VENV)/docs $(VENV)/demo: pyproject.toml | $(VENV)/uv
	$(BIN)/uv pip install --python $(BIN)/python --editable '.[$(EXTRAS)]'
	touch $@

$(VENV)/uv:
	$(call compiler)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check uv
	touch $@

# The compiled core, beside its sources; only what has changed is compiled.
build: $(VENV)/dev
	$(BIN)/python setup.py --quiet build_ext --inplace

# One of Debian's packages, if its command is missing: $(call install,command,package)
define install
	@command -v $(1) >/dev/null || { \
		[ "$$(id -u)" = 0 ] && as= || as=sudo; \
		$$as apt-get update -qq && $$as apt-get install -qq -y --no-install-recommends $(2) >/dev/null; }
endef

# A C compiler and Python's headers, which the core is built with.
define compiler
	@command -v $(CC) >/dev/null && $(PYTHON) -c 'import os, sys, sysconfig; \
		sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' || { \
		command -v apt-get >/dev/null || { \
			echo "The core is compiled: install a C compiler and the headers of $(PYTHON) (Python.h), then try again." >&2; \
			exit 1; }; \
		[ "$$(id -u)" = 0 ] && as= || as=sudo; \
		$$as apt-get update -qq && $$as apt-get install -qq -y --no-install-recommends gcc libc6-dev python3-dev >/dev/null; }
endef

# Side by side. Where make can, each shows what it has to say when it ends; the tests (+) show how far they are.
test: setup
	$(MAKE) --jobs=5 $(if $(filter output-sync,$(.FEATURES)),--output-sync) --no-print-directory tested streamed lint checked described

# Thousands of tests wait until a file is on disk; they need not where there is room for their files in memory.
ROOM := $(shell [ "$$(df --output=avail /dev/shm 2>/dev/null | tail -n 1)" -gt 4000000 ] 2>/dev/null && echo TMPDIR=/dev/shm)

programs:  # that tests start
	$(call install,chromium,chromium)
	$(call install,java,openjdk-17-jre-headless)

tested: setup programs  # more processes than two cores, since some tests wait for another process
	+$(ROOM) $(BIN)/pytest --numprocesses=3 --dist=loadfile -p no:schemathesis \
		--ignore=tests/service/test_openapi.py --ignore=tests/deploy/test_install.py \
		--ignore=tests/spark --ignore=src/unbasket/spark

streamed: setup programs  # apart from the others: its tests share a session of Spark
	$(ROOM) $(BIN)/pytest -p no:schemathesis tests/spark src/unbasket/spark

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

described: setup  # apart from the others: its tests all have one name, of which xdist would run one
	$(BIN)/pytest tests/service/test_openapi.py

# The laws on copies of the package that check bounds, or that AddressSanitizer and UBSan watch.
LAWS := tests/core tests/engine/test_laws.py tests/engine/test_verification.py
checked: setup  # the copy that checks bounds is the wheel that tests have built and installed
	rm -rf build/checked
	$(ROOM) $(BIN)/pytest -p no:schemathesis tests/deploy/test_install.py --wheels=build/checked
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --target build/checked/lib build/checked/*.whl
	PYTHONPATH=build/checked/lib $(BIN)/pytest -p no:schemathesis $(LAWS)

sanitized: setup  # without a test that watches freed memory itself
	UNBASKET_BUILD=sanitized $(BIN)/python setup.py --quiet build --build-base build/watched --build-lib build/watched/lib
	LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libubsan.so)" \
		ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc \
		PYTHONPATH=build/watched/lib $(BIN)/pytest --ignore=tests/core/memory/test_buffers.py $(LAWS)

test-slow: setup
	$(call install,java,openjdk-17-jre-headless)
	$(MAKE) sanitized
	$(BIN)/pytest -m slow

docs: $(VENV)/docs
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet -c docs -d $(VENV)/doctrees . site
	@echo "site/index.html"

bench-spark: setup
	$(call install,java,openjdk-17-jre-headless)
	$(BIN)/python benchmarks/spark.py

PORT ?= 8000
demo: $(VENV)/demo
	$(BIN)/unbasket demo --port $(PORT)

bench: setup
	$(call install,wrk,wrk)
	$(BIN)/python benchmarks/install.py
	$(BIN)/python benchmarks/engine.py
	$(BIN)/python benchmarks/store.py
	$(BIN)/python benchmarks/evaluation.py
	$(BIN)/python benchmarks/service.py

bench-scale: setup  # minutes, and 6 GB of memory; writes the table of docs/engine.md and its figure
	$(BIN)/python -m benchmarks.scale --page docs/engine.md --figure docs/images/scale.svg

bench-pool: setup  # some ten minutes; writes the tables and the figure of docs/pool.md
	$(BIN)/python -m benchmarks.pool

bench-defaults: setup  # half an hour on two idle cores; writes the tables of docs/evaluation.md
	$(BIN)/python -m benchmarks.defaults

notebook: setup  # the tests compare its outputs with what comes out
	$(BIN)/jupyter nbconvert --to notebook --execute --inplace --ExecutePreprocessor.record_timing=False \
		--log-level=ERROR docs/notebook.ipynb

reproduce: setup
	$(BIN)/unbasket reproduce

clean:
	rm -rf $(VENV) build site jupyter_execute .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -f src/unbasket/core/.build_fingerprint
	find src -name "*.so" -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
