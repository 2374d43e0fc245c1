# Thin on purpose: what a target does is in toolchain/ and in the earshot command.
STACK ?= local
PYTHON ?= python3
VENV_PYTHON := .venv/bin/python
CHECKED := .

.DEFAULT_GOAL := help
.PHONY: help setup up down clean env test test-box check bench lock

help: ## show this
	@echo "earshot: is anyone listening?"
	@echo
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16
	@echo
	@echo "STACK=name says which stack (default: $(STACK)); PYTHON=/path which Python (3.11 to 3.13)."
	@echo 'For plain pulumi commands:  eval "$$(make -s env)"  and then  pulumi preview'

setup: ## make .venv (with .venv/bin/earshot) and get the tools
	@$(PYTHON) -m toolchain setup

up: setup ## bring the cluster up, validate it, print the matrix
	@$(VENV_PYTHON) -m toolchain.stack up --stack $(STACK)

down: setup ## stop the brokers, keep their data
	@$(VENV_PYTHON) -m toolchain.stack down --stack $(STACK)

clean: setup ## stop the brokers and remove their data
	@$(VENV_PYTHON) -m toolchain.stack clean --stack $(STACK)

env: ## print shell exports for plain pulumi commands
	@$(PYTHON) -m toolchain env --stack $(STACK)

test: ## check, then run all tests
	@$(PYTHON) -m toolchain setup --tests
	@$(MAKE) --no-print-directory check
	@$(VENV_PYTHON) -m pytest -n 2 --dist loadscope

test-box: ## bring up every option and naming on AWS in a box of containers (minutes)
	@$(PYTHON) -m toolchain setup --tests
	@$(VENV_PYTHON) -m pytest tests/e2e/box/every.py

check: ## format, lint, strict types (changes nothing)
	@$(VENV_PYTHON) -m ruff format --check $(CHECKED)
	@$(VENV_PYTHON) -m ruff check $(CHECKED)
	@$(VENV_PYTHON) -m mypy $(CHECKED)

bench: setup ## measure validation, doctor, rules, previews, and containers where an engine answers
	@$(VENV_PYTHON) -m bench

lock: ## pin the Python packages anew (needs uv)
	@$(PYTHON) -m toolchain lock
