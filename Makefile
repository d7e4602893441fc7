# make demo    a virtual environment, the package, and the demo on embedded data
# make test    what the tests need, and the tests that a change needs (a few minutes)
# make test-all     all tests: also the slow ones, those that start processes, Spark and remote storage
# make test-spark   the tests of Spark and of remote storage only
# make check   lint and types
# make docs    the documentation site, in docs/_build/html
# make bench   the benchmark suite: installs the peers in .venv-bench and writes benchmarks/report (TOPNRANK_DATA: ML-1M)
# make torture   faults by the thousand: damaged and hostile files, full disks, kills, forks, threads (ARGS="--full --jobs 16 --report docs/results/robustness.md")
# make serve-campaign   servers at full size: swaps, kills, full disks, 10,000 fuzzed requests; appends to serve-campaign.md
# make test-minimum   the tests of data, files and models with the oldest versions that are allowed, in .venv-minimum
# make out-of-the-box   docs/results/out_of_the_box.md, our default beside the peers' (TOPNRANK_DATA; ARGS="--jobs 16")

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BENCH := .venv-bench
MINIMUM := .venv-minimum
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal

.PHONY: demo test test-all test-spark test-minimum torture serve-campaign check docs bench out-of-the-box clean

demo: $(VENV)/installed
	$(BIN)/topnrank demo

test: $(VENV)/installed-dev
	$(PYTEST) -m "not slow and not process and not cluster" $(ARGS)

test-all: $(VENV)/installed-dev
	$(PYTEST) --dist loadgroup $(ARGS)

test-spark: $(VENV)/installed-dev
	$(PYTEST) -n 0 -m cluster tests/spark tests/io $(ARGS)

test-minimum: $(MINIMUM)/installed
	$(MINIMUM)/bin/python -m pytest -n auto -m "not slow and not process and not cluster" tests/data tests/io tests/kernels tests/models $(ARGS)

torture: $(VENV)/installed-dev
	$(BIN)/python benchmarks/torture.py $(ARGS)

serve-campaign: $(VENV)/installed-dev
	TOPNRANK_CAMPAIGN=$(CURDIR)/serve-campaign.md $(BIN)/python -m pytest -n 0 -s -q tests/serve/test_processes.py tests/serve/test_contract.py $(ARGS)

check: $(VENV)/installed-dev
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy

docs: $(VENV)/installed-docs
	$(BIN)/sphinx-build --builder html --fail-on-warning --keep-going --quiet docs docs/_build/html
	@echo 'open docs/_build/html/index.html'

bench: $(BENCH)/installed
	$(BENCH)/bin/python benchmarks/suite.py

out-of-the-box: $(BENCH)/installed
	$(BENCH)/bin/python benchmarks/out_of_the_box.py --tuned $(ARGS)

$(VENV)/python-found $(BENCH)/python-found $(MINIMUM)/python-found:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "topnrank needs Python 3.11 or newer; say which with: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(@D)
	touch $@

$(VENV)/installed: pyproject.toml $(VENV)/python-found
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/installed-dev: pyproject.toml $(VENV)/python-found
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@ $(VENV)/installed

$(VENV)/installed-docs: pyproject.toml $(VENV)/python-found
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@

$(BENCH)/installed: pyproject.toml benchmarks/suite_install.py $(BENCH)/python-found
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[report,tune]'
	$(BENCH)/bin/python benchmarks/suite_install.py
	touch $@

$(MINIMUM)/installed: pyproject.toml constraints-minimum.txt $(MINIMUM)/python-found
	$(MINIMUM)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-minimum.txt --editable . \
		pytest pytest-xdist hypothesis pandas polars duckdb scikit-learn
	touch $@

clean:
	rm -rf docs/_build $(VENV) $(BENCH) $(MINIMUM) .pytest_cache .mypy_cache .ruff_cache .hypothesis
