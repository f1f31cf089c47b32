# Every target makes its own virtual environment, so each works in a fresh clone with nothing but Python and pip.
#
#   make demo                       the main job: train a small GPT on this project's own text
#   make test                       everything that CI runs
#   make test PYTHON=python3.12     the same on another Python, in an environment of its own
#   make bench                      cached calls and tracing beside torch.compile
#   make fuzz N=20000 SEED=0        generated programs, compiled against eager
#   make full                       the long sweeps: every function of the standard library and torch, 2,000 examples
#   make lint                       ruff and mypy

ifeq ($(origin PYTHON),undefined)
PYTHON := $(shell sh .ci/pythons first)
VENV := .venv
else
VENV := .venv-$(notdir $(PYTHON))
endif
FOUND := $(shell sh .ci/pythons $(PYTHON))
PY := $(VENV)/bin/python
PIP := $(PY) -m pip install --quiet --quiet --disable-pip-version-check
READY := $(VENV)/.ready
N ?= 2000
SEED ?= 0
WORKERS ?= 2

export OMP_NUM_THREADS ?= 1

.PHONY: demo test test-code bench fuzz full lint clean

demo: $(READY)
	$(PY) demos/train_gpt.py

# The summary of the last run is the last line.
test: $(READY) test-code
	$(PY) -m pytest -q -n $(WORKERS) --dist worksteal

# code/ holds all version facts and needs no torch, so it is tested on every interpreter that is found.
test-code:
	sh .ci/code-tests $(FOUND)

bench: $(READY)
	$(PY) benchmarks/frontend.py
	$(PY) benchmarks/code.py

fuzz: $(READY)
	$(PY) -m tests.soundness.fuzz $(N) $(SEED)

full: $(READY)
	MINIDYNAMO_FULL=1 $(PY) -m pytest -q -n $(WORKERS) --dist worksteal

lint: $(READY)
	$(PIP) -e '.[lint]'
	$(PY) -m ruff check .
	$(PY) -m mypy

clean:
	rm -rf .venv .venv-* build *.egg-info

# torch first and by itself: it is most of the download.  Where Python has no ensurepip, pip installs pip.
$(READY): pyproject.toml
	@test -n "$(FOUND)" || { echo "no such Python: $(or $(PYTHON),3.11, 3.12 or 3.13)"; exit 1; }
	@echo "making $(VENV) with $(FOUND); the first time takes some minutes"
	@$(FOUND) -m venv $(VENV) 2>/dev/null || { \
	  $(FOUND) -m venv --clear --without-pip $(VENV) && $(FOUND) -m pip --python $(PY) install --quiet pip; }
	@$(PIP) 'torch==2.13.*'
	@$(PIP) -e '.[test,models]'
	@touch $(READY)
