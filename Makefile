# make demo    a virtual environment, the package, and the demo on embedded data
# make test    what the tests need, and the tests that a change needs (a few minutes)
# make test-all     all tests: also the slow ones, those that start processes, Spark and remote storage
# make test-spark   the tests of Spark and of remote storage only
# make check   lint and types
# make docs    the documentation site, in docs/_build/html
# make bench   the benchmark suite: installs the peers in .venv-bench and writes benchmarks/report (TOPNRANK_DATA: ML-1M)

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BENCH := .venv-bench
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal

.PHONY: demo test test-all test-spark check docs bench clean

demo: $(VENV)/installed
	$(BIN)/topnrank demo

test: $(VENV)/installed-dev
	$(PYTEST) -m "not slow and not process and not cluster" $(ARGS)

test-all: $(VENV)/installed-dev
	$(PYTEST) --dist loadgroup $(ARGS)

test-spark: $(VENV)/installed-dev
	$(PYTEST) -n 0 -m cluster tests/spark tests/io $(ARGS)

check: $(VENV)/installed-dev
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy

docs: $(VENV)/installed-docs
	$(BIN)/sphinx-build --builder html --fail-on-warning --keep-going --quiet docs docs/_build/html
	@echo 'open docs/_build/html/index.html'

bench: $(BENCH)/installed
	$(BENCH)/bin/python benchmarks/suite.py

$(VENV)/python-found $(BENCH)/python-found:
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

clean:
	rm -rf docs/_build $(VENV) $(BENCH) .pytest_cache .mypy_cache .ruff_cache .hypothesis
