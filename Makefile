# Every command works from a fresh clone: it creates .venv and installs what it needs first.
# Without make: CONTRIBUTING.md names the commands.
PORT ?= 8000
PY := .venv/bin/python
# Extra words for pytest, such as ARGS="-k rope", or for another command that takes some.
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help course book epub exercises lab demo lab-full test test-all hardness oracles bench bench-grading style clean install install-dev

help: ## list the commands
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*##/:/' | awk -F': ' '{printf "  make %-13s %s\n", $$1, $$2}'

course: install ## install, generate the exercises, build the book, serve it on http://localhost:8000 (PORT=...)
	@$(PY) book/serve.py --port $(PORT) --check
	@echo "[1/3] exercises"
	@$(PY) -m posenc.grading.cli exercises --if-stale
	@echo "[2/3] book"
	@$(PY) book/build.py
	@echo "[3/3] server"
	@$(PY) book/serve.py --port $(PORT)

book: install ## build the book into _build/html
	@$(PY) book/build.py

epub: install ## build the book as an EPUB, _build/epub/positional-encoding.epub
	@$(PY) book/build.py --epub

exercises: install ## generate exercises/ from solutions/
	@$(PY) -m posenc.grading.cli exercises

lab: install ## open JupyterLab on the exercises
	@$(PY) -m jupyter lab --LabApp.default_url=/lab/tree/exercises

lab-full: install ## train the length lab's models in full, some minutes; the numbers go to _build/lab.json
	@$(PY) -m posenc.lab

demo: install ## grade a sample class of five
	@$(PY) -m posenc.grading.cli demo

test: install-dev style ## style checks and tests, some minutes
	@$(PY) -m pytest -m "not slow" $(ARGS)

test-all: install-dev ## the slow proofs
	@$(PY) -m pytest -m slow $(ARGS)

hardness: install ## print which wrong answers the graders catch and name, and which right ones they accept (ARGS="--seeds 5")
	@$(PY) -m posenc.grading.hardness $(ARGS)

oracles: ## compare with torch, transformers and others, in .venv-oracles (more than 1 GB)
	@sh .ci/install oracles .venv-oracles
	@.venv-oracles/bin/python tests/oracles.py

bench: install ## measure speed against the memory floor, and against torch after make oracles; writes _build/bench.json
	@$$(ls .venv-oracles/bin/python 2>/dev/null || echo $(PY)) tests/bench.py $(ARGS)

bench-grading: install ## grade the same 40 submissions by stock nbgrader and by posenc, some minutes; writes _build/bench-grading.json
	@$(PY) tests/bench_grading.py $(ARGS)

style: install-dev
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check .
	@$(PY) -m codespell_lib .

clean: ## remove what was built; never touches submissions, feedback or a gradebook
	@rm -rf _build .pytest_cache .ruff_cache .hypothesis
	@find posenc book tests -name __pycache__ -type d -prune -exec rm -rf {} +
	@echo "Removed _build and caches. Submissions, feedback and the gradebook are untouched; so is .venv."

install:
	@sh .ci/install book,class

install-dev:
	@sh .ci/install dev
