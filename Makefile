PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Torch's and the BLAS's own threads fight over the cores that the tests already fill. In a vendor's environment pytest would
# load plugins that are not ours: ours are named.
TEST_ENV := OMP_NUM_THREADS=1 PYTEST_DISABLE_PLUGIN_AUTOLOAD=1
PYTEST := $(BIN)/python -m pytest -q -p asyncio -p hypothesispytest -p xdist -p timeout -p syrupy -n 3 --dist loadfile --no-loadscope-reorder

.PHONY: setup run test soak check format

# Workers never write bytecode: what only they import would be compiled at each start of a pool.
setup:
	@$(PYTHON) .ci/setup.py --venv $(VENV)
	@$(BIN)/python -m compileall -q -j 0 tui engine sessions harness suites tests/support

run: setup
	@$(BIN)/wavedeck

# Rewriting the assertions takes each worker of a clean clone six seconds of CPU time. What fails runs again with its values.
test: setup
	@$(TEST_ENV) $(PYTEST) --assert=plain || { $(TEST_ENV) $(PYTEST) --last-failed --last-failed-no-failures none; exit 1; }

soak: setup
	@$(TEST_ENV) WAVEDECK_SOAK=1 $(PYTEST) --timeout 3600

check: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: setup
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .
