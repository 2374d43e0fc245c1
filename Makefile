# Thin on purpose: what a target does is in toolchain/ and in the earshot command.
STACK ?= local
# recipes read the name from the environment: no shell takes a space or a quote in it for its own
export STACK
PYTHON ?= python3
VENV_PYTHON := .venv/bin/python
CHECKED := .
# docs/rules.md is generated
PROSE := $(filter-out docs/rules.md,$(wildcard *.md docs/*.md docs/*/*.md */README.md */*/README.md))
# for all supported versions of Python and all platforms
PIN := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-emit-find-links --no-annotate --no-strip-extras --custom-compile-command "make lock" --upgrade
COMMIT ?= $(shell git rev-parse HEAD)
TOOK ?= 0
# In a locale without UTF-8, Python 3.11 and Java open no path with letters beyond ASCII.
ifeq ($(shell uname),Linux)
export LC_ALL := C.UTF-8
endif

# Many images of containers set it; without bytecode every process compiles all that it imports.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup up down clean env unit coverage test test-all test-share proofs every-test test-box test-docker-plugin change-interrupts user-changes check architecture bench kafka-judge judge-topologies judge-kubernetes fuzz mutants release-check lock

help: ## show this
	@echo "earshot: is anyone listening?"
	@echo
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22
	@echo
	@echo "STACK=name says which stack (default: $(STACK)); PYTHON=/path which Python (3.11 to 3.13)."
	@echo 'MUTANTS="--seed 1 --sample 50 earshot/rules" says which mistakes `make mutants` makes.'
	@echo 'CHANGES="split and Ctrl-C" says which of `make change-interrupts` are run, SEED=1 when.'
	@echo 'JUDGE="--seed 1 --cases 20000 4.1.1" says what `make kafka-judge` asks.'
	@echo 'TOPOLOGIES="--seed 1 --count 100" says which topologies `make judge-topologies` runs.'
	@echo 'MANIFESTS="--seed 1 --count 16" says which manifests `make judge-kubernetes` runs.'
	@echo 'DOCKER_PLUGIN="-k kill" says which tests `make test-docker-plugin` runs: arguments of pytest.'
	@echo 'FUZZ="--seed 1 --files 1000" says on what `make fuzz` runs.'
	@echo 'For plain pulumi commands:  eval "$$(make -s env)"  and then  pulumi preview'

setup: ## make .venv (with .venv/bin/earshot) and get the tools
	@$(PYTHON) -m toolchain setup

up: setup ## bring the cluster up, validate it, print the matrix
	@exec $(VENV_PYTHON) -m toolchain.stack up --stack="$$STACK"

down: setup ## stop the brokers, keep their data (unless the stack has `data: delete`)
	@exec $(VENV_PYTHON) -m toolchain.stack down --stack="$$STACK"

clean: setup ## stop the brokers and remove their data
	@exec $(VENV_PYTHON) -m toolchain.stack clean --stack="$$STACK"

env: ## print shell exports for plain pulumi commands
	@exec $(PYTHON) -m toolchain env --stack="$$STACK"

unit: setup ## run the tests without real parts (a minute or two)
	@$(VENV_PYTHON) -m pytest -n auto --dist loadscope -m "not e2e"

coverage: setup ## run the unit tests and print the share of lines that they reach
	@$(VENV_PYTHON) -m pytest -q -n auto --dist loadscope -m "not e2e" \
		--cov=earshot --cov=earshot_pulumi --cov=earshot_policies --cov-report=term:skip-covered

test: ## check, and prove every promise once (18 minutes on 2 cores)
	@$(PYTHON) -m toolchain setup --tests
	@$(MAKE) --no-print-directory --jobs 2 check proofs

test-all: ## check, and run all tests, every combination too (over an hour)
	@$(PYTHON) -m toolchain setup --tests
	@$(MAKE) --no-print-directory --jobs 2 check every-test

test-share: ## run the share of what `make test` leaves out that COMMIT chooses, as CI does
	@$(PYTHON) -m toolchain setup --tests
	@$(VENV_PYTHON) -m tests.rest --commit $(COMMIT) --took $(TOOK)

# both beside `check`, which keeps one core busy for a minute
proofs:
	@$(VENV_PYTHON) -m pytest -n auto --dist loadscope -m "not combination"

every-test:
	@$(VENV_PYTHON) -m pytest -n auto --dist loadscope

test-box: ## bring up every option and naming, the validator, and a change, on AWS in a box (minutes)
	@$(PYTHON) -m toolchain setup --tests
	@$(VENV_PYTHON) -m pytest tests/e2e/box/every.py tests/e2e/box/validator.py \
		tests/e2e/box/change.py tests/e2e/box/restart.py

test-docker-plugin: ## run the tests of Docker stacks under a real plugin in place of the double (half an hour)
	@$(PYTHON) -m toolchain setup --tests
	@$(VENV_PYTHON) -m tests.docker_plugin $(DOCKER_PLUGIN)

change-interrupts: ## interrupt every step of every change of listeners on three brokers (an hour)
	@$(PYTHON) -m toolchain setup --tests
	@$(VENV_PYTHON) -m pytest tests/e2e/every_change.py -k "$(CHANGES)"

user-changes: ## restart every broker after every change of users and authorities (half an hour)
	@$(PYTHON) -m toolchain setup --tests
	@$(VENV_PYTHON) -m pytest tests/e2e/every_user_change.py

check: ## format, lint, spelling, strict types, import rules (changes nothing)
	@$(VENV_PYTHON) -m ruff format --check $(CHECKED)
	@$(VENV_PYTHON) -m ruff check $(CHECKED)
	@$(VENV_PYTHON) -m mypy $(CHECKED)
	@.venv/bin/lint-imports --no-cache --no-logo
	@.venv/bin/codespell $(CHECKED)
	@.venv/bin/codespell --dictionary toolchain/plain_words.txt $(PROSE)
	@.venv/bin/codespell --dictionary toolchain/plain_words.txt \
		--skip Dockerfile,'*/__pycache__' earshot components policies toolchain language_host bench

architecture: setup ## print the layers of packages, each of which imports only what is below it
	@$(VENV_PYTHON) -m toolchain.architecture

bench: setup ## measure validation, doctor, rules, lint, names, packs, previews, and containers
	@$(VENV_PYTHON) -m bench

kafka-judge: setup ## ask Kafka of nine releases about generated settings, and compare (minutes)
	@$(VENV_PYTHON) -m tests.judge $(JUDGE)

judge-topologies: ## run 1,000 random topologies on Docker, and compare the model hop by hop (as root)
	@$(PYTHON) -m toolchain setup --tests
	@$(VENV_PYTHON) -m tests.topologies $(TOPOLOGIES)

judge-kubernetes: ## run 300 random manifests on parts of Kubernetes, and compare the model (as root)
	@$(PYTHON) -m toolchain setup --tests
	@$(VENV_PYTHON) -m tests.kubernetes $(MANIFESTS)

fuzz: setup ## run earshot lint on 100,000 damaged files (eight minutes)
	@$(VENV_PYTHON) -m tests.fuzz $(FUZZ)

mutants: ## write single mistakes into a copy and count those that the unit tests notice (as root)
	@$(PYTHON) -m toolchain setup --tests
	@$(VENV_PYTHON) -m tests.mutants $(MUTANTS)

release-check: setup ## build wheel and sdist, and run the command from the wheel elsewhere (minutes)
	@$(VENV_PYTHON) -m tests.release

lock: ## pin the Python packages anew (needs uv: pipx install uv)
	$(PIN) --all-extras pyproject.toml --output-file requirements.lock
	$(PIN) toolchain/pulumi_cli/go.in --output-file toolchain/pulumi_cli/go.lock
	$(PIN) --extra spark --constraint requirements.lock pyproject.toml --output-file earshot/remote/requirements.lock
