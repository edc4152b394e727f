# Every target has a help line: `make help`.
SHELL := /bin/sh
export LC_ALL := C.UTF-8
VENV := .venv
BIN := $(VENV)/bin
# The demo fleet unless INVENTORY names another: make preflight INVENTORY=inventory/aws_ec2.yml
INVENTORY ?= inventory/demo
LEVEL ?= quick

.DEFAULT_GOAL := help
.PHONY: help check compliance preflight test lint types bench corpus mutation fuzz hostile up down down-compute outputs configure demo-faults hosts hosts-down integration clean

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

check: $(VENV)/.dev-ready ## One check's own tests and corpus cases, in seconds: ID=xid
	@test -n "$(ID)" || { echo "check: saw no ID, wanted a check's id; do: make check ID=xid" >&2; exit 2; }
	@$(BIN)/python -m pytest -q tests/unit/checks/test_$(ID).py
	@$(BIN)/python -m tests.corpus.run --check $(ID)

corpus: $(VENV)/.dev-ready ## Judge the labelled corpus: recall and false positives per check, docs/corpus.md
	@$(BIN)/python -m tests.corpus.run --write

mutation: $(VENV)/.dev-ready ## Change each check and see whether its tests notice: PER_CHECK=12 SEED=1
	@$(BIN)/python -m tests.mutation.run --write --per-check $(or $(PER_CHECK),12) --seed $(or $(SEED),1)

fuzz: $(VENV)/.dev-ready ## Mutate every parser's fixtures: CASES=10000 SEED=1; RECORD=1 adds to docs/fuzz.md
	@$(BIN)/python -m tests.fuzz.run --cases $(or $(CASES),10000) --seed $(or $(SEED),1) $(if $(RECORD),--record)
	@$(if $(RECORD),$(BIN)/python -m tests.fuzz.ledger)

hostile: $(VENV)/.dev-ready ## Judge hostile nodes, and end runs in every way: CASES=10000 HOSTS=200 SEED=1
	@$(BIN)/python -m pytest -n 2 -q tests/hostile
	@$(BIN)/python -m tests.hostile.run --cases $(or $(CASES),10000) --hosts $(or $(HOSTS),200) --seed $(or $(SEED),1)

up: $(VENV)/.run-ready ## Build a stack, or bring its nodes back: STACK=dev; YES=1 answers Pulumi's question
	@YES="$(YES)" scripts/cluster up "$(STACK)"

down: $(VENV)/.run-ready ## Tear a stack down; data stays where keepData is true: STACK=dev
	@YES="$(YES)" scripts/cluster down "$(STACK)"

down-compute: $(VENV)/.run-ready ## Tear down a stack's nodes only: STACK=dev
	@YES="$(YES)" scripts/cluster down-compute "$(STACK)"

outputs: $(VENV)/.run-ready ## Give a stack's outputs to Ansible: STACK=dev, or OUTPUTS=FILE
	@$(BIN)/python -m infra.link $(if $(OUTPUTS),--outputs "$(OUTPUTS)",--stack "$(STACK)")

configure: $(VENV)/.run-ready ## Configure the nodes of INVENTORY with the roles
	@PATH="$(CURDIR)/$(BIN):$$PATH" ansible-playbook -i "$(INVENTORY)" -i inventory/roles.yml playbooks/site.yml

demo-faults: $(VENV)/.run-ready ## List the faults that the demo fleet can have
	@$(BIN)/flightline demo --faults

hosts: $(VENV)/.dev-ready ## Make the real hosts (root, Debian): N=4 systemd-nspawn machines and their inventory
	@scripts/hosts up $(or $(N),4)

hosts-down: ## Remove the real hosts; their image and package cache stay in .flightline/hosts
	@scripts/hosts down

compliance: $(VENV)/.dev-ready ## Look at configured hosts: INVENTORY=..., GROUP=gpu_nodes; JUnit and HTML in .flightline/compliance
	@$(BIN)/python -m pytest tests/compliance --hosts=ansible://$(or $(GROUP),gpu_nodes) --ansible-inventory=$(INVENTORY) \
	    --junitxml=.flightline/compliance/junit.xml --html=.flightline/compliance/report.html --self-contained-html

compliance-mutations: $(VENV)/.dev-ready ## Break real hosts in every way of docs/compliance.md, see what notices and what configure repairs (an hour)
	@$(BIN)/python -m tests.compliance.on_bed --write

integration: $(VENV)/.dev-ready ## Configure the real hosts with the roles, twice, and break them in between
	@$(BIN)/python -m pytest tests/integration --durations=0

clean: ## Remove the environment, run store and reports
	rm -rf $(VENV) .flightline .pytest_cache .mypy_cache .ruff_cache
