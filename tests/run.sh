#!/bin/sh
# Every check of the repository: lint, formats, types, floors, generated docs, then the tests, fast ones first. As root
# or as an ordinary user; a test that needs what this machine lacks is skipped, and says what. Arguments go to pytest.
set -eu
cd "$(dirname "$0")/.."
sh requirements/venv.sh dev
python=.venv/bin/python
export PYTHONDONTWRITEBYTECODE=1

echo "== ruff"
.venv/bin/ruff check --quiet .
.venv/bin/ruff format --quiet --check .
echo "== mypy"
$python -m mypy --strict --no-error-summary
echo "== import floors"
.venv/bin/lint-imports --no-cache >/dev/null || .venv/bin/lint-imports --no-cache
echo "== generated docs"
$python docs/generate.py --check
echo "== tests"
if [ "$#" -eq 0 ]; then set -- $(ls -d tests/*/ tests/test_*.py | grep -v -e tests/real/ -e __pycache__) tests/real; fi
# two at once, each file by one of them
exec $python -m pytest -n 2 --dist loadfile "$@"
