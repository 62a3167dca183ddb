# The same commands locally and in CI. Needs `pip install -e '.[dev,local]'`.
.PHONY: check test fast crash browser bench format

check:
	ruff check .
	ruff format --check .
	mypy

test:
	python -m pytest

fast:  ## without the embedded model, the package registry and slow tests
	python -m pytest -m 'not model and not registry and not slow'

crash:  ## a run killed at 50 random moments, and 30 % of requests failing
	TEST_KILLS=50 python -m pytest tests/end_to_end/test_hardships.py tests/end_to_end/test_chaos.py

browser:  ## fails where a part is missing; NEEDLEPOINT_AXE names axe-core's axe.min.js
	NEEDLEPOINT_BROWSER=required python -m pytest -m browser tests/browser

bench:  ## figures of prompts; PEER=FOLDER sets EvalScope up there and compares with it
	python benchmarks/startup.py
	python benchmarks/prompts.py $(if $(PEER),--install $(PEER))
	python benchmarks/exactness.py

format:
	ruff check --fix .
	ruff format .
