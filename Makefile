# Two words to remember: `make lab` opens the welcome notebook, `make test` proves the house.
# Each makes .venv and installs what it needs, once; again only when pyproject.toml changes.

PYTHON ?= python3
JOBS ?= 3# test files that run at the same time: a test waits a quarter of its time, so three keep two cores busy
BIN := .venv/bin
export PYTHONDONTWRITEBYTECODE :=# a container may set it: then each process compiles again all that it imports
ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)# JupyterLab refuses to be root unasked, as in a container
# Jupyter's own list, and what builds the lessons. A link, or File > Open from Path, still opens these.
HIDDEN := ['__pycache__', '*.pyc', '*.pyo', '.DS_Store', '*~', 'src', 'build.py', 'gallery.py', 'wheel.py']

.PHONY: help lab quick test record test-numeric test-gpu fuzz soak soak-grade lint types bench bench-gpu notebooks gallery protos format clean

help: ## what there is
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

lab: .venv/.lab ## open notebooks/00_welcome.ipynb in JupyterLab; ARGS="--no-browser --port 8899" goes to it
	$(BIN)/jupyter lab $(ROOT) --ServerApp.root_dir=. --ContentsManager.hide_globs="$(HIDDEN)" --LabApp.default_url=/lab/tree/notebooks/00_welcome.ipynb $(ARGS)

quick: .venv/.test ## the tests that need no TensorFlow, no processes and no browser: a minute
	$(BIN)/python -m pytest --quick -n $(JOBS) --dist worksteal $(ARGS)

test: lint types .venv-teacher/.done ## lint, types, and every test; ARGS="-k placer" goes to pytest, JOBS=4 runs four files at once
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS)

record: .venv/.test ## record TensorFlow's answers again, for `make quick`; ARGS="tests/ops/oracle/test_cond.py" records some
	$(BIN)/python -m tests.oracle.record -n $(JOBS) $(ARGS)

test-numeric: .venv/.test ## the tests that compare numbers, with the kernels that BLAS and NumPy have for other CPUs
	$(BIN)/python -m tests.on_other_cpus -n $(JOBS) --dist loadfile $(ARGS)

test-gpu: .venv/.test ## the tests of the real GPU, on the first card
	CUDA_VISIBLE_DEVICES=$${CUDA_VISIBLE_DEVICES-0} $(BIN)/python -m pytest tests/gpu $(ARGS)

fuzz: .venv/.test ## mutated messages and files, 110,000, to all that reads some; ARGS="--only graph --inputs 500000"
	$(BIN)/python -m tests.fuzz $(ARGS)

soak: .venv/.test ## ten minutes of training while tasks and clients fail; ARGS="--seconds 60 --seed 1"
	$(BIN)/python -m tests.soak $(ARGS)

soak-grade: .venv/.test ## grade 1,000 submissions, some of them hostile, 45 minutes; ARGS="--files 60 --jobs 4"
	$(BIN)/python -m tests.grading.soak $(ARGS)

lint: .venv/.test
	$(BIN)/ruff format --check
	$(BIN)/ruff check

types: .venv/.test
	$(BIN)/mypy

bench: .venv/.test ## measurements side by side with TensorFlow; ARGS=--write puts them into docs/measured.md
	$(BIN)/python -m benchmarks $(ARGS)

bench-gpu: .venv/.test ## measurements on a real GPU, next to bare CuPy; ARGS=--write as above
	$(BIN)/python -m benchmarks.gpu $(ARGS)

notebooks: .venv/.test ## rebuild notebooks/*.ipynb from notebooks/src/*.py, exercises/*.ipynb from solutions/*.py
	$(BIN)/python notebooks/build.py

gallery: .venv/.test ## run all lessons and demos, and write what a reader sees to gallery/
	$(BIN)/python notebooks/gallery.py gallery

protos: .venv/.test ## regenerate dtflab/protos from protos/*.proto
	$(BIN)/python protos/generate.py

format: .venv/.test ## let ruff lay out the code
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

clean: ## remove .venv and what runs left behind
	rm -rf .venv .venv-* .*_cache .hypothesis tests/browser/node_modules tests/browser/shots

# The extras of each virtual environment. `test` holds all that `lab` does.
.venv/.lab: EXTRAS := lab
.venv/.lab: WHAT := JupyterLab, matplotlib, NumPy and what they need: 490 MB
.venv/.test: EXTRAS := lab,tensorflow,dev
.venv/.test: WHAT := JupyterLab, TensorFlow, the tools of the tests and what they need: 2.8 GB
.venv/.lab .venv/.test: pyproject.toml | $(BIN)/pip
	@echo "Installing into .venv, once: $(WHAT). It takes 1 to 5 minutes, and nothing outside this folder changes."
	$(BIN)/pip install --editable '.[$(EXTRAS)]'
	@mkdir -p .venv/share/jupyter/lab/settings # names of lessons need the width of the date
	@echo '{"@jupyterlab/filebrowser-extension:browser": {"showLastModifiedColumn": false}}' > .venv/share/jupyter/lab/settings/overrides.json
	$(BIN)/jupyter labextension disable --level=sys_prefix @jupyterlab/apputils-extension:announcements 2>/dev/null # no pop-up over the first notebook
	touch $@

# nbgrader and otter-grader, for tests/teacher: 736 MB that no notebook of ours should load as extensions.
.venv-teacher/.done: pyproject.toml | $(BIN)/pip
	$(BIN)/python -m venv .venv-teacher
	.venv-teacher/bin/pip install --quiet --no-compile --editable '.[teacher]'
	touch $@

$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "dtflab needs Python 3.11 or newer, and $(PYTHON) is not; for example: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv .venv || { rm -rf .venv; \
	  echo "This Python cannot make a virtual environment; on Debian or Ubuntu: apt install python3-venv"; exit 1; }
