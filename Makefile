PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Torch's and the BLAS's own threads fight over the cores that the tests already fill.
TEST_ENV := OMP_NUM_THREADS=1

.PHONY: setup run test soak check format

setup:
	@$(PYTHON) .ci/setup.py --venv $(VENV)

run: setup
	@$(BIN)/wavedeck run

test: setup
	@$(TEST_ENV) $(BIN)/python -m pytest -q -n 2 --dist loadfile

soak: setup
	@$(TEST_ENV) WAVEDECK_SOAK=1 $(BIN)/python -m pytest -q -n 2 --dist loadfile --timeout 3600

check: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: setup
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .
