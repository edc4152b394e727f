# Every target has a help line: `make help`.
SHELL := /bin/sh
export LC_ALL := C.UTF-8
VENV := .venv
BIN := $(VENV)/bin
# The demo fleet unless INVENTORY names another: make preflight INVENTORY=inventory/aws_ec2.yml
INVENTORY ?= inventory/demo
LEVEL ?= quick

.DEFAULT_GOAL := help
# The tests start Python some thousand times: without its bytecode beside the sources each start compiles them anew.
export PYTHONDONTWRITEBYTECODE =

.PHONY: kubernetes preflight demo-faults help check lint types test delivery corpus collection generate clean hostile healing healing-hosts training fuzz mutation fabric bench hosts integration integration-types boot hosts-down compliance-mutations up ready recover outputs configure compliance down-compute down

$(VENV)/.run-ready: requirements.txt pyproject.toml scripts/setup
	@scripts/setup requirements.txt && touch $@

$(VENV)/.dev-ready: $(VENV)/.run-ready requirements-dev.txt
	@scripts/setup requirements-dev.txt && touch $@

##@ Judge a fleet

preflight: $(VENV)/.run-ready ## Judge a fleet: the embedded demo, or INVENTORY=..., LEVEL=quick|standard|deep
	@scripts/preflight "$(INVENTORY)" "$(LEVEL)"

demo-faults: $(VENV)/.run-ready ## List the faults that the demo fleet can have, and what each comes to
	@$(BIN)/flightline demo --faults

##@ Work on Flightline: docs in CONTRIBUTING.md

help: ## List the targets
	@awk -F ':.*## ' '/^##@ / {print "\n" substr($$0, 5)} /^[a-z-]+:.*## / {printf "  %-20s  %s\n", $$1, $$2}' $(MAKEFILE_LIST)

check: $(VENV)/.dev-ready ## One check's own tests and corpus cases, in seconds: ID=xid
	@test -n "$(ID)" || { echo "check: saw no ID, wanted a check's id; do: make check ID=xid" >&2; exit 2; }
	@$(BIN)/python -m pytest -q tests/unit/checks/test_$(ID).py
	@$(BIN)/python -m tests.corpus.run --check $(ID)

lint: $(VENV)/.dev-ready ## Style of Python, YAML and Ansible
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports --no-cache --no-logo
	@$(BIN)/yamllint --strict .
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/ansible-lint --offline -q

types: $(VENV)/.dev-ready ## Static types, strict
	@$(BIN)/mypy

test: $(VENV)/.dev-ready ## Lint, type-check and run the unit and end-to-end tests
	@$(MAKE) --no-print-directory -j 2 --output-sync lint types
	@$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

delivery: $(VENV)/.dev-ready ## Install the collection and the wheel elsewhere; the node library kept on nodes, and on every Python from 3.8 to 3.13
	@$(BIN)/python -m pytest -n 2 --dist loadfile tests/delivery

corpus: $(VENV)/.dev-ready ## Judge the labelled corpus: recall and false positives per check, docs/corpus.md
	@$(BIN)/python -m tests.corpus.run --write

collection: $(VENV)/.dev-ready ## Build the Ansible collection flightline.gpu and its wheel into .flightline/dist
	@$(BIN)/python -m tools.collection .flightline/dist

generate: $(VENV)/.dev-ready ## Write anew what follows from one declaration: lists, inputs, stack settings, role pages, schemas, catalogue
	@for tool in registries inputs stack_settings roledocs schemas catalogue must; do $(BIN)/python -m tools.$$tool || exit 1; done

clean: ## Remove the environment, run store and reports
	rm -rf $(VENV) .flightline .pytest_cache .mypy_cache .ruff_cache

##@ Prove more

healing: $(VENV)/.dev-ready ## Heal simulated nodes with killed controllers, on DynamoDB and EC2 (emulated) and on a real Slurm where it is installed; 100 faults on watched nodes, healthy months, 100 dead hosts: FAULTS=100 DEATHS=100 SEED=16
	@$(BIN)/python -m pytest -q tests/healing
	@$(BIN)/python -m tests.healing.sequences --steps $(or $(STEPS),100000) --seed $(or $(SEED),31)
	@$(BIN)/python -m tests.healing.month
	@$(BIN)/python -m tests.healing.dead --deaths $(or $(DEATHS),100)
	@$(BIN)/python -m tests.healing.faults --faults $(or $(FAULTS),100) --seed $(or $(SEED),16)

healing-hosts: $(VENV)/.dev-ready ## A node of real hosts falls sick under a job, leaves service, is rebooted, proven and returns, by the remediator's service alone
	@FLIGHTLINE_HEALING_HOSTS=1 $(BIN)/python -m pytest -q tests/integration/test_healing.py

training: $(VENV)/.dev-ready .flightline/torch/.ready ## Interrupt the reference training job on real PyTorch (CPU, gloo; its environment takes 7 GB and some minutes)
	@$(BIN)/python -m pytest tests/training --durations=5

.flightline/torch/.ready: requirements-training.txt
	@$(BIN)/python -m venv .flightline/torch
	@.flightline/torch/bin/pip install --progress-bar off -r requirements-training.txt
	@touch $@

launchers: $(VENV)/.dev-ready ## Ask the demo fleet through a real Slurm where it is installed, and compare with Ansible
	@$(BIN)/python -m pytest -q tests/launchers

kubernetes: $(VENV)/.dev-ready ## Join, judge and taint nodes of a real Kubernetes API server (kubectl; Go builds it once, 15 minutes of CPU); every manifest, strictly
	@$(BIN)/python -m tests.kubernetes.binaries
	@$(BIN)/python -m pytest -q tests/kubernetes --durations=5

hostile: $(VENV)/.dev-ready ## Judge hostile nodes, and end runs in every way: CASES=10000 HOSTS=200 SEED=1 KILLS=6
	@$(BIN)/python -m pytest -n 2 -q tests/hostile
	@$(BIN)/python -m tests.hostile.run --cases $(or $(CASES),10000) --hosts $(or $(HOSTS),200) --seed $(or $(SEED),1)

fuzz: $(VENV)/.dev-ready ## Mutate every parser's fixtures: CASES=10000 SEED=1; RECORD=1 adds to docs/fuzz.md
	@$(BIN)/python -m tests.fuzz.run --cases $(or $(CASES),10000) --seed $(or $(SEED),1) $(if $(RECORD),--record)
	@$(if $(RECORD),$(BIN)/python -m tests.fuzz.ledger)

mutation: $(VENV)/.dev-ready ## Change each check and see whether its tests notice: PER_CHECK=12 SEED=1
	@$(BIN)/python -m tests.mutation.run --write --per-check $(or $(PER_CHECK),12) --seed $(or $(SEED),1)

fabric: $(VENV)/.dev-ready ## Name slow hosts and paths over real MPI traffic between network namespaces (root, Open MPI)
	@$(BIN)/python -m pytest tests/fabric --durations=5

bench: $(VENV)/.dev-ready ## Measure; each benchmark prints its ratio
	@for file in bench/bench_*.py; do name=$$(basename $$file .py); echo "== $$name"; $(BIN)/python -m bench.$$name || exit 1; done

##@ Real hosts on this machine (root, Debian)

hosts: $(VENV)/.dev-ready ## Make the real hosts (root, Debian): N=4 systemd-nspawn machines and their inventory
	@scripts/hosts up $(or $(N),4)

integration: $(VENV)/.dev-ready ## Configure the real hosts with the roles, twice, and break them in between
	@$(BIN)/python -m pytest tests/integration --durations=0

integration-types: $(VENV)/.dev-ready ## Check mode of all roles for the largest type of every family, on a bare host and on an image
	@FLIGHTLINE_TYPES=1 $(BIN)/python -m pytest tests/integration/test_stranger.py -k "defaults_alone or every_family" --durations=0

boot: $(VENV)/.dev-ready ## Boot empty real hosts by a stack's user data against emulated AWS: go, no-go, hang, death, reboot
	@$(BIN)/python -m pytest tests/boot --durations=0

hosts-down: ## Remove the real hosts; their image and package cache stay in .flightline/hosts
	@scripts/hosts down

compliance-mutations: $(VENV)/.dev-ready ## Break real hosts in every way of docs/compliance.md, see what notices and what configure repairs (an hour)
	@$(BIN)/python -m tests.compliance.breaking.on_bed --write

##@ A cluster on AWS

up: $(VENV)/.run-ready ## Build a stack, or bring its nodes back: STACK=dev; YES=1 answers Pulumi's question, READY=no asks no account before
	@YES="$(YES)" READY="$(READY)" scripts/cluster up "$(STACK)"

ready: $(VENV)/.run-ready ## Ask the account whether a stack can start, as `make up` does first: STACK=dev
	@$(BIN)/flightline ready "$(STACK)"

recover: $(VENV)/.run-ready ## Free a stack that a killed command left locked or half done: STACK=dev
	@YES="$(YES)" scripts/cluster recover "$(STACK)"

outputs: $(VENV)/.run-ready ## Give a stack's outputs to Ansible: STACK=dev, or OUTPUTS=FILE
	@$(BIN)/python -m infra.link $(if $(OUTPUTS),--outputs "$(OUTPUTS)",--stack "$(STACK)")

configure: $(VENV)/.run-ready ## Configure the nodes of INVENTORY with the roles; ARGS="--limit gpu-03 --check --diff"
	@case "$(INVENTORY)" in *aws_ec2.yml) [ -e "$(dir $(INVENTORY))group_vars/aws_ec2/stack.json" ] || { \
	    echo "configure: saw no group_vars/aws_ec2/stack.json beside $(INVENTORY); wanted the stack's outputs; do: make outputs" >&2; \
	    exit 2; };; esac
	@PATH="$(CURDIR)/$(BIN):$$PATH" ansible-playbook -i "$(INVENTORY)" -i inventory/roles.yml playbooks/site.yml $(ARGS)

compliance: $(VENV)/.dev-ready ## Look at configured hosts: INVENTORY=..., GROUP=gpu_nodes; JUnit and HTML in .flightline/compliance
	@$(BIN)/python -m pytest tests/compliance --hosts=ansible://$(or $(GROUP),gpu_nodes) --ansible-inventory=$(INVENTORY) \
	    --junitxml=.flightline/compliance/junit.xml --html=.flightline/compliance/report.html --self-contained-html

down-compute: $(VENV)/.run-ready ## Tear down a stack's nodes only: STACK=dev
	@YES="$(YES)" scripts/cluster down-compute "$(STACK)"

down: $(VENV)/.run-ready ## Tear a stack down; data stays where keepData is true: STACK=dev
	@YES="$(YES)" scripts/cluster down "$(STACK)"
