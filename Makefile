# The same commands locally and in CI. Needs `pip install -e '.[dev,local]'`.
.PHONY: check test fast bench format

check:
	ruff check .
	ruff format --check .
	mypy

test:
	python -m pytest

fast:  ## without the embedded model, the package registry and slow tests
	python -m pytest -m 'not model and not registry and not slow'

bench:
	python benchmarks/prompts.py

format:
	ruff check --fix .
	ruff format .
