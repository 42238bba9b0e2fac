# Each target makes .venv when it is missing, and again when pyproject.toml or constraints.txt changed.
# Only relative paths, so that the repository may lie in a folder with a space in its name.
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
TARGETS := sglang==0.5.22 sglang==0.5.23

.DEFAULT_GOAL := help
.PHONY: help check prove bench soak mutations test gpu lint

help: ## Show this list
	@grep -hE '^[a-z]+:.*## ' Makefile | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 18

check: .venv/made ## Hold the reference and released SGLang against the model; results/check.json
	$(BIN)/poolproof targets install $(TARGETS)
	mkdir -p results
	$(BIN)/poolproof check --json results/check.json

prove: .venv/made ## Prove the theorems with z3, and again with cvc5; results/proofs.json
	mkdir -p results
	$(BIN)/poolproof prove --json results/proofs.json --smt2 results/smt2 --receipt results/receipts

bench: .venv/made ## Time the fast pool beside SGLang and vLLM; results/bench.json (a quarter of an hour)
	$(BIN)/poolproof targets install sglang==0.5.23 vllm==0.33.0
	mkdir -p results
	$(BIN)/poolproof bench --json results/bench.json --plot results/bench.svg

soak: .venv/made ## Ten minutes of an engine-like loop on the fast pool, with faults; results/soak.json
	mkdir -p results
	$(BIN)/python -m tests.fast.soak --minutes 10 --json results/soak.json

mutations: .venv/made ## Change the specification in small ways; each must turn something red
	$(BIN)/python -m tests.mutations

test: .venv/made ## Run the tests on two cores
	$(BIN)/poolproof targets install $(TARGETS)
	$(BIN)/python -m pytest -n 2 --dist worksteal -q

gpu: .venv/made ## Run what needs a CUDA device, and measure the kernels; results/gpu.json
	$(BIN)/python -m pytest -m gpu -q -rs
	mkdir -p results
	$(BIN)/poolproof bench --gpu --quick --json results/gpu.json

lint: .venv/made ## Style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

.venv/made: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: $$($(PYTHON) --version), poolproof needs Python 3.11 or newer."; \
	  echo "  fix: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 2; }
	@echo 'making .venv (a few minutes the first time)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[fast,bench,sglang,smt,dev]'
	touch .venv/made
