#!/bin/sh
# Runs the tour against a fresh local backend; exits with its status.
# Usage: demo.sh [PATH_OF_holdfast-shell]; PYTHON names the interpreter.
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
python=${PYTHON:-$root/.venv/bin/python}
[ -x "$python" ] || python=python3
PYTHONPATH=$root/Tests/server exec "$python" "$here/demo.py" "$@"
