# Two commands do everything: `make run` and `make test`. See README.md.
SHELL := /bin/bash
CARGO_TARGET_DIR ?= $(HOME)/.cache/weft/target
export CARGO_TARGET_DIR
export PATH := $(HOME)/.cargo/bin:$(PATH)
WEFT := $(CARGO_TARGET_DIR)/release/weft

.PHONY: run test build setup stop suites bench eval fuzz fix

run: build ## install what is missing, build, start a file system, mount it, run a real job on it
	@scripts/demo $(WEFT)

test: setup ## everything that has to pass before a change lands
	@scripts/test

build: setup
	@echo "==> building (several minutes from nothing)"
	@cargo build --release --locked --workspace --bins

setup:
	@scripts/setup

stop: ## stop what `make run` has started
	@$(WEFT) dev down

suites: build ## the long runs: fsx, fio, databases, git, builds (an hour or more)
	@scripts/suites

fuzz: ## fuzz what decodes bytes from network and disk, a minute each; `scripts/fuzz SECONDS TARGET...`
	@scripts/fuzz

bench: build ## measure against the local file system and the null file system
	@scripts/bench

eval: build ## every study in its small size, a quarter of an hour: reports in ./weft-eval
	@$(WEFT) eval run all --quick

fix: ## what `make test` only checks
	@cargo fmt --all
