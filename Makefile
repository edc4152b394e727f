# Every target has a help line: `make help`.
SHELL := /bin/sh
export LC_ALL := C.UTF-8
VENV := .venv
BIN := $(VENV)/bin
# The demo fleet unless INVENTORY names another: make preflight INVENTORY=inventory/aws_ec2.yml
INVENTORY ?= inventory/demo
LEVEL ?= quick

.DEFAULT_GOAL := help
.PHONY: help preflight test lint types bench corpus mutation fuzz demo-faults clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

$(VENV)/.run-ready: requirements.txt pyproject.toml scripts/setup
	@scripts/setup requirements.txt && touch $@

$(VENV)/.dev-ready: $(VENV)/.run-ready requirements-dev.txt
	@scripts/setup requirements-dev.txt && touch $@

preflight: $(VENV)/.run-ready ## Judge a fleet: the embedded demo, or INVENTORY=..., LEVEL=quick|standard|deep
	@scripts/preflight "$(INVENTORY)" "$(LEVEL)"

test: $(VENV)/.dev-ready ## Lint, type-check and run the unit and end-to-end tests
	@$(MAKE) --no-print-directory lint types
	@$(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(VENV)/.dev-ready ## Style of Python, YAML and Ansible
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/yamllint --strict .
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/ansible-lint --offline -q

types: $(VENV)/.dev-ready ## Static types, strict
	@$(BIN)/mypy

bench: $(VENV)/.dev-ready ## Measure; each benchmark prints its ratio
	@for file in bench/bench_*.py; do name=$$(basename $$file .py); echo "== $$name"; $(BIN)/python -m bench.$$name || exit 1; done

corpus: $(VENV)/.dev-ready ## Judge the labelled corpus: recall and false positives per check, docs/corpus.md
	@$(BIN)/python -m tests.corpus.run --write

mutation: $(VENV)/.dev-ready ## Change each check and see whether its tests notice: PER_CHECK=12 SEED=1
	@$(BIN)/python -m tests.mutation.run --write --per-check $(or $(PER_CHECK),12) --seed $(or $(SEED),1)

fuzz: $(VENV)/.dev-ready ## Mutate every parser's fixtures: CASES=10000 SEED=1
	@$(BIN)/python -m tests.fuzz.run --cases $(or $(CASES),10000) --seed $(or $(SEED),1)

demo-faults: $(VENV)/.run-ready ## List the faults that the demo fleet can have
	@$(BIN)/flightline demo --faults

clean: ## Remove the environment, run store and reports
	rm -rf $(VENV) .flightline .pytest_cache .mypy_cache .ruff_cache
