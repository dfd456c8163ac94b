# `make` alone lists the targets. Every target sets up .venv first when it is not there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.ready
READY := $(VENV)/.kernels

.DEFAULT_GOAL := help
.PHONY: help train test test-notebooks test-slow lint format docs notebooks bench bench-simulate results pack-results results-table tune-all figures wheel release-check pretrained oversmoothing clean

help: ## List the targets
	@grep -hE '^[a-z -]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $(INSTALLED) && touch $(READY)

$(READY): $(INSTALLED) setup.py $(wildcard csrc/*) # Installing compiles the kernels; afterwards only changes do.
	$(BIN)/python setup.py --quiet build_ext --inplace
	@touch $(READY)

train: $(READY) ## Train KuramotoGNN on the embedded Cora and show the result
	$(BIN)/kuramotognn train --dataset cora --splits 5

test: $(READY) ## Run the whole test suite
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile

test-slow: $(READY) ## Run the checks that take minutes; those in a browser need chromium, chromium-driver and npm
	$(BIN)/python -m pip install --quiet selenium==4.51.0
	-npm install --silent --no-save --no-package-lock axe-core@4.14.0
	$(BIN)/python -m pytest -m slow

test-notebooks: $(READY) ## Run the notebooks of examples/ as scripts and compare the pairs; each must take less than 60 s
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "slow or not slow" -n 2 tests/test_notebooks.py

lint: $(READY) ## Check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY) ## Put the code in order
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY) ## Build the documentation site in site/; warnings are errors
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	$(BIN)/python -m mkdocs build --strict

notebooks: $(READY) ## Run the notebooks of examples/ and keep their outputs (two minutes)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	$(BIN)/python tools/run_notebooks.py

bench: $(READY) ## Measure the engine against what others run (10 minutes; leave the machine alone)
	$(BIN)/python -m pip install --quiet numba==0.68.1
	$(BIN)/python -W ignore -m benchmarks.run

bench-simulate: $(READY) ## Measure the simulator against other packages (some minutes; leave the machine alone)
	$(BIN)/python -m pip install --quiet kuramoto==0.4.0 jaxkuramoto==0.0.8
	$(BIN)/python -W ignore -m benchmarks.simulate

REPRODUCE = $(BIN)/kuramotognn reproduce --out runs/results --jobs 2
BASELINES = graphcon,grand++,grand-l,gcnii,gcn,gat,graphsage
LARGE = photo,pubmed,coauthor-cs,computers
RESULTS = main-accuracy main-accuracy-recipe all-models labels-per-class depth depth-all depth-coupling-grid coupling \
  heterophilic-webkb synchronisation solver-evaluations dataset-statistics efficiency oversmoothing

# Small graphs first, so that tables grow evenly. A cell that failed is in the report and does not stop the others.
results: $(READY) ## Run what results/runs holds (a night; goes on where it stopped) and write the tables
	$(BIN)/python tools/unpack_results.py runs/results
	-$(REPRODUCE) dataset-statistics
	-$(REPRODUCE) main-accuracy --datasets cora,citeseer --models kuramotognn,$(BASELINES) --splits 20
	-$(REPRODUCE) heterophilic-webkb
	-$(REPRODUCE) main-accuracy-recipe --datasets cora,citeseer
	-$(REPRODUCE) depth-coupling-grid --datasets cora,citeseer
	-$(REPRODUCE) coupling
	-$(REPRODUCE) labels-per-class --datasets cora,citeseer
	-$(REPRODUCE) main-accuracy --datasets cora,citeseer --models kuramotognn,$(BASELINES) --splits 100
	-$(REPRODUCE) depth
	-$(REPRODUCE) main-accuracy --datasets $(LARGE) --models kuramotognn,$(BASELINES)
	-$(REPRODUCE) main-accuracy-recipe --datasets $(LARGE)
	-$(REPRODUCE) depth-coupling-grid --datasets pubmed
	-$(REPRODUCE) labels-per-class --datasets $(LARGE)
	-$(REPRODUCE) main-accuracy --datasets cora,citeseer --models kuramotognn --splits 100 --seeds 20
	-$(REPRODUCE) main-accuracy --models kuramotognn@as-coded --splits 5
	-$(REPRODUCE) solver-evaluations
	-$(REPRODUCE) synchronisation
	-$(REPRODUCE) all-models
	-$(REPRODUCE) depth-all
	-$(REPRODUCE) oversmoothing
	-$(REPRODUCE) efficiency --jobs 1
	$(MAKE) pack-results

pack-results: $(READY) ## Keep what was run in results/runs and write the tables
	OMP_NUM_THREADS=1 $(BIN)/kuramotognn report $(RESULTS) --from runs/results --out runs/results-report --pack results/runs
	$(MAKE) results-table

tune-all: $(READY) ## Search settings for every model and data set of the tables (a day; goes on where it stopped)
	$(BIN)/python tools/tune_all.py

results-table: $(READY) ## Write the tables and pictures of README.md and docs/results.md from results/runs
	OMP_NUM_THREADS=1 $(BIN)/python tools/write_results.py

figures: $(READY) ## Draw the pictures of the README and of docs/ from results/
	$(BIN)/python tools/draw_spread.py
	$(BIN)/python tools/draw_dynamics.py

wheel release-check: $(READY) ## Build sdist and wheel in dist/ and check them in a clean environment (some minutes)
	$(BIN)/python -m pip install --quiet build==1.6.1 twine==7.0.0
	$(BIN)/python tools/release_check.py

pretrained: $(READY) ## Train and export the models that come with the library (ten minutes)
	$(BIN)/python tools/make_pretrained.py

oversmoothing: $(READY) ## Run the over-smoothing report card (half an hour; goes on where it stopped) and write its table and pictures
	$(REPRODUCE) oversmoothing
	$(BIN)/kuramotognn report oversmoothing --from runs/results --out runs/oversmoothing-report --pack results/runs
	$(MAKE) results-table

clean: ## Remove .venv, what was built, and caches
	rm -rf $(VENV) build dist src/kuramotognn/kernels/*.so .pytest_cache .mypy_cache .ruff_cache .hypothesis
