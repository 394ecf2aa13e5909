# Sets KOTLIN_COMPILER and KOTLIN_LIBRARIES, class paths, after unpacking the wheel into the folder $1 if it is not there.
kotlin=$1/kotlin-compiler
if [ ! -e "$kotlin/complete" ]; then
  rm -rf "$kotlin"
  mkdir -p "$kotlin"
  .venv/bin/python -m pip download -q --disable-pip-version-check --no-deps --require-hashes \
    -r bindings/jvm/kotlin-compiler.txt -d "$kotlin"
  .venv/bin/python -m zipfile -e "$kotlin"/*.whl "$kotlin"
  rm "$kotlin"/*.whl
  touch "$kotlin/complete"
fi
kotlin_jars=$kotlin/run_kotlin_kernel/jars
# kotlinx-coroutines is inside the jar with everything.
KOTLIN_LIBRARIES=$(echo "$kotlin_jars"/kotlin-jupyter-kernel-*-all.jar):$(echo "$kotlin_jars"/kotlin-stdlib-*.jar)
KOTLIN_COMPILER=$KOTLIN_LIBRARIES:$(echo "$kotlin_jars"/kotlin-script-runtime-*.jar):$(echo "$kotlin_jars"/kotlin-reflect-*.jar):$(echo "$kotlin_jars"/annotations-*.jar)
