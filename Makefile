# Everything runs in .venv, on the package as it is installed there, never on the sources under src/.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check
SOURCES := pyproject.toml setup.py $(shell find src -name '*.py' -o -name '*.pxd' -o -name '*.pyi' -o -name '*.h' -o -name '*.js' -o -name py.typed -o -path '*serve/page/*')
# The package as import-linter should see it: a cimport is an import.
IMPORTS := build/imports

.PHONY: demo test test-oldest attack fuzz sanitize lint lint-github docs format bench wheel clean
.DELETE_ON_ERROR:

demo: $(VENV)/installed
	$(BIN)/streamlasso demo

test: $(VENV)/with-test
	$(BIN)/pytest --numprocesses 2

# An hour of attacks, with a table of attempts and failures: make attack MINUTES=5 for a shorter one.
MINUTES ?= 60
attack: $(VENV)/with-test
	$(BIN)/python tests/attack/long.py --minutes $(MINUTES)

# Bytes that reach new lines of the readers are kept and changed further; atheris has wheels for Linux alone.
fuzz: $(VENV)/with-test
	$(PIP) atheris
	$(BIN)/python tests/attack/fuzz.py load --seconds $$((30 * $(MINUTES)))
	$(BIN)/python tests/attack/fuzz.py rows --seconds $$((30 * $(MINUTES)))

# The lowest version of every dependency that pyproject.toml allows, in an environment of its own.
test-oldest: $(VENV)/with-compiler
	$(PIP) uv
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python build/oldest
	$(BIN)/uv pip install --quiet --python build/oldest --resolution lowest-direct '.[test]'
	build/oldest/bin/pytest --numprocesses 2

# The compiled parts with checks of addresses and of undefined behaviour, in a folder of their own, and random streams
# and forged files through them. Python itself has no such checks, so the library of the compiler is loaded first.
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
sanitize: $(VENV)/with-test
	rm -rf build/sanitize && mkdir -p build/sanitize && cp -r src setup.py pyproject.toml README.md LICENSE build/sanitize
	find build/sanitize/src -name '*.so' -delete
	cd build/sanitize && CFLAGS="$(SANITIZE)" LDFLAGS="$(SANITIZE)" \
		$(abspath $(BIN))/python setup.py -q build_ext --inplace
	PYTHONPATH=$(abspath build/sanitize/src) ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libstdc++.so)" \
		$(BIN)/python tests/attack/long.py --minutes $(MINUTES) streams forged_files bodies

lint: $(VENV)/with-lint lint-github
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	rm -rf $(IMPORTS) && mkdir -p $(IMPORTS) && cp -r src/streamlasso pyproject.toml $(IMPORTS)
	find $(IMPORTS) -name '*.py' -exec sed -i.bak 's/^from cython\.cimports\.streamlasso/from streamlasso/' {} +
	for pxd in $$(find $(IMPORTS) -name '*.pxd'); do \
		sed -n 's/^from \(streamlasso[^ ]*\) cimport/from \1 import/p' $$pxd >> $${pxd%.pxd}.py; done
	cd $(IMPORTS) && $(abspath $(BIN))/lint-imports --no-cache

# What GitHub reads, against the schemas that come with check-jsonschema; zizmor looks for ways to misuse a workflow.
SCHEMA := $(BIN)/check-jsonschema --quiet --builtin-schema vendor
lint-github: $(VENV)/with-lint
	$(SCHEMA).github-workflows .github/workflows/*.yml
	$(SCHEMA).dependabot .github/dependabot.yml
	$(SCHEMA).github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(SCHEMA).github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	$(SCHEMA).citation-file-format --force-filetype yaml CITATION.cff
	$(BIN)/zizmor --offline --quiet .github

docs: $(VENV)/with-docs
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --nitpicky --fresh-env docs build/docs
	@echo "Open build/docs/index.html in a browser."

format: $(VENV)/with-lint
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(VENV)/with-bench
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/endurance.py

# An sdist, a wheel made from it, and both installed where nothing else is.
wheel: $(VENV)/with-compiler
	$(PIP) build
	rm -rf dist build/smoke && $(BIN)/python -m build
	for package in dist/*; do \
		$(BIN)/python -m venv --clear build/smoke && \
		build/smoke/bin/pip install --quiet --disable-pip-version-check $$package && \
		build/smoke/bin/python tests/smoke.py || exit 1; done
	ls -l dist

clean:
	rm -rf $(VENV) build dist
	find src -name '*.egg-info' -prune -exec rm -rf {} +
	find src \( -name '*.so' -o -name '*.c' \) -delete

# The package alone, and the package with an extra. It is built with what is in .venv, so that a rebuild compiles only
# what has changed; what it takes to build is read from pyproject.toml.
$(VENV)/installed: $(SOURCES) | $(VENV)/with-compiler
	@echo "Compiling; a minute or two the first time."
	$(PIP) --no-build-isolation .
	touch $@

$(VENV)/with-%: $(SOURCES) | $(VENV)/with-compiler
	@echo "Compiling; a minute or two the first time."
	$(PIP) --no-build-isolation '.[$*]'
	touch $@

$(VENV)/with-compiler: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' > $@.txt
	$(PIP) --requirement $@.txt
	touch $@
