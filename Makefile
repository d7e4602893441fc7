# make demo    a virtual environment, the package, and the demo on embedded data
# make test    what the tests need, and all tests
# make check   lint and types
# make bench   the benchmarks (scaling, time per epoch; quality where TOPNRANK_DATA names a folder with data)

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test check bench clean

demo: $(VENV)/installed
	$(BIN)/topnrank demo

test: $(VENV)/installed-dev
	$(BIN)/python -m pytest

check: $(VENV)/installed-dev
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy

bench: $(VENV)/installed-dev
	$(BIN)/python benchmarks/scaling.py
	$(BIN)/python benchmarks/epochs.py
	if [ -n "$$TOPNRANK_DATA" ]; then $(BIN)/python benchmarks/quality.py; else echo "quality: skipped, TOPNRANK_DATA is not set"; fi

$(VENV)/python-found:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "topnrank needs Python 3.11 or newer; say which with: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/installed: pyproject.toml $(VENV)/python-found
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/installed-dev: pyproject.toml $(VENV)/python-found
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@ $(VENV)/installed

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
