# A fresh machine needs Python 3.11 or newer and make. Tests of the page need Chromium, those of Spark need Java, and the
# benchmark of the service needs wrk, slow tests strace, those of Kafka Maven: root on Debian gets them here; others are told what to install.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
unexport PYTHONDONTWRITEBYTECODE  # tests start hundreds of processes, which would all compile the same modules

.PHONY: setup build wheel test programs lint described interrupted checked streamed tested sanitized test-slow test-kafka broker docs demo bench bench-kafka bench-defaults bench-accuracy bench-pool bench-scale bench-spark notebook reproduce clean

setup: $(VENV)/dev build

# An environment for each purpose: the package with some extras, and groups of tools. uv does what pip does, but faster.
$(VENV)/dev: NEEDS := --editable '.[completejourney,kafka,reproduce,service,spark,tune]' --group dev
$(VENV)/docs: NEEDS := --editable . --group docs
$(VENV)/demo: NEEDS := --editable '.[completejourney,service]'
$(VENV)/dev $(VENV)/docs $(VENV)/demo: pyproject.toml | $(VENV)/uv
	$(BIN)/uv pip install --python $(BIN)/python $(NEEDS)
	touch $@

$(VENV)/uv:
	$(call compiler)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check uv
	touch $@

# The compiled core, beside its sources; only what has changed is compiled.
build: $(VENV)/dev
	$(BIN)/python setup.py --quiet build_ext --inplace

# A wheel for each supported Python on this machine; the hosted checks build them for all, with cibuildwheel.
VERSIONS := 3.11 3.12 3.13 3.14
wheel: $(VENV)/uv
	@for version in $(VERSIONS); do \
		python="$$($(BIN)/uv python find --no-python-downloads $$version 2>/dev/null)" || { \
			echo "Python $$version is not on this machine: no wheel for it"; continue; }; \
		$(BIN)/uv build --quiet --wheel --python "$$python" --out-dir dist || exit 1; \
	done
	@ls dist/*.whl

# Install one of Debian's packages if its command is missing: $(call install,command,package)
define install
	@command -v $(1) >/dev/null || { $(call packages,$(2)); }
endef

# Install Debian's packages as root, or say which ones are missing.
packages = { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; } || { \
	echo "Missing: $(1). Install it (on Debian, as root: apt-get install $(1)), then try again." >&2; exit 1; }; \
	echo "Installing $(1) with apt-get"; \
	apt-get update -qq && apt-get install -qq -y --no-install-recommends $(1) >/dev/null

# The core is built with a C compiler and Python's headers.
define compiler
	@command -v $(CC) >/dev/null && $(PYTHON) -c 'import os, sys, sysconfig; \
		sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' || { \
		$(call packages,gcc libc6-dev python3-dev); }
endef

# Linters and tests run side by side, each with its output in one piece; the tests (+) show their progress. Lines of the
# package that they cover are counted, and may not become fewer.
test: setup
	rm -f .coverage*
	$(MAKE) --jobs=6 $(if $(filter output-sync,$(.FEATURES)),--output-sync) --no-print-directory tested streamed lint checked described interrupted
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --omit='*/unbasket/kafka/*'  # which `make test-kafka` covers

# Thousands of tests wait for a sync to disk. In memory they don't, if there is room for their files.
ROOM := $(shell [ "$$(df --output=avail /dev/shm 2>/dev/null | tail -n 1)" -gt 4000000 ] 2>/dev/null && echo TMPDIR=/dev/shm)
COVERED = COVERAGE_FILE=.coverage.$@ $(BIN)/pytest --cov --cov-report= --cov-fail-under=0

programs:  # that tests start
	$(call install,openssl,openssl)
	$(call install,chromium,chromium)
	$(call install,java,openjdk-17-jre-headless)

tested: setup programs  # more processes than two cores, since some tests wait for another process
	+$(ROOM) $(COVERED) --numprocesses=3 --dist=loadfile -p no:schemathesis \
		--ignore=tests/service/test_openapi.py --ignore=tests/deploy/test_install.py \
		--ignore=tests/spark --ignore=src/unbasket/spark --ignore=tests/test_interrupts.py

streamed: setup programs  # in a process of their own, since these tests share a Spark session
	$(ROOM) $(COVERED) -p no:schemathesis tests/spark src/unbasket/spark

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/stubtest --concise --ignore-missing-stub --ignore-disjoint-bases --mypy-config-file pyproject.toml unbasket.core
	$(BIN)/cython-lint --no-pycodestyle src/unbasket/core
	$(BIN)/lint-imports --no-cache
	$(BIN)/oxlint --deny-warnings src/unbasket/service/web

interrupted: setup  # without coverage: its trace function and interrupts beside other threads made Python 3.11 loop
	$(ROOM) $(BIN)/pytest -p no:schemathesis tests/test_interrupts.py

described: setup  # in a process of its own: all of its tests have one name, and xdist would run one of them
	$(COVERED) tests/service/test_openapi.py

# The laws on copies of the package that check bounds, or run under AddressSanitizer and UBSan.
LAWS := tests/core tests/engine/test_laws.py tests/engine/test_verification.py
checked: setup  # on the wheel that the tests of installation have built with bounds checks
	rm -rf build/checked
	$(ROOM) $(BIN)/pytest -p no:schemathesis tests/deploy/test_install.py --wheels=build/checked
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --target build/checked/lib build/checked/*.whl
	PYTHONPATH=build/checked/lib $(BIN)/pytest -p no:schemathesis $(LAWS)

sanitized: setup  # without a test that inspects freed memory itself
	UNBASKET_BUILD=sanitized $(BIN)/python setup.py --quiet build --build-base build/watched --build-lib build/watched/lib
	LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libubsan.so)" \
		ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc \
		PYTHONPATH=build/watched/lib $(BIN)/pytest --ignore=tests/core/memory/test_buffers.py $(LAWS)

# Apache Kafka, of which tests start one node, from Maven Central.
KAFKA := build/kafka/.fetched
fetch = mvn --batch-mode --quiet --file $< dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(CURDIR)/$(@D)
$(KAFKA): tests/kafka/pom.xml
	$(call install,java,openjdk-17-jre-headless)
	$(call install,mvn,maven)
	rm -rf $(@D)
	$(fetch)
	touch $@

# Spark's connector, of the installed Spark's version or, while Maven Central lacks that, of those that the pom names.
CONNECTOR := build/spark-kafka/.fetched
LACKED_BY_SPARK := spark-sql-kafka-0-10_2.13,spark-token-provider-kafka-0-10_2.13,kafka-clients,commons-pool2
$(CONNECTOR): tests/kafka/connector.xml | $(KAFKA) $(VENV)/dev
	rm -rf $(@D)
	version=$$($(BIN)/python -c 'import pyspark; print(pyspark.__version__)'); copy='$(fetch) -DincludeArtifactIds=$(LACKED_BY_SPARK)'; \
		$$copy -Dspark.version=$$version -Dtoken.version=$$version >/dev/null || $$copy
	touch $@

broker: $(KAFKA) $(CONNECTOR)

test-kafka: setup broker  # some five minutes; on a disk, since a broker that is killed keeps only what it has written
	$(COVERED) -p no:schemathesis -m 'not slow' tests/kafka
	COVERAGE_FILE=.coverage.$@ $(BIN)/coverage report --include='*/unbasket/kafka/*'

bench-kafka: setup broker
	$(BIN)/python -m benchmarks.kafka

test-slow: setup
	$(call install,java,openjdk-17-jre-headless)
	$(call install,strace,strace)
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

bench-scale: setup  # half an hour, and 12 GB of memory; writes the table of docs/engine.md, its figure, and a row of README.md
	$(BIN)/python -m benchmarks.scale --page docs/engine.md --figure docs/images/scale.svg
	$(BIN)/python -m benchmarks.large

bench-accuracy: setup  # an hour on two idle cores, and all five datasets; writes the table of accuracy in README.md
	$(BIN)/python -m benchmarks.accuracy

bench-pool: setup  # some ten minutes, and all five datasets; writes the tables and the figure of docs/pool.md
	$(BIN)/python -m benchmarks.pool

bench-defaults: setup  # half an hour on two idle cores, and all five datasets; writes the tables of docs/evaluation.md
	$(BIN)/python -m benchmarks.defaults

notebook: setup  # tests compare its stored outputs with a run
	$(BIN)/jupyter nbconvert --to notebook --execute --inplace --ExecutePreprocessor.record_timing=False \
		--log-level=ERROR docs/notebook.ipynb

reproduce: setup
	$(BIN)/unbasket reproduce

clean:
	rm -rf $(VENV) build site jupyter_execute .coverage* .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -f src/unbasket/core/.build_fingerprint
	find src -name "*.so" -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
