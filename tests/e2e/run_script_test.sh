#!/usr/bin/env bash
# run_script_test.sh SOURCE_DIR: tests/run.sh runs the tests of the Python package
# in the interpreter that LOCKSTEP_TORCH_PYTHON names, and in Debian's without it.
set -euo pipefail
source=$1

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/tests" "$work/deploy" "$work/bin"
cp "$source/tests/run.sh" "$work/tests"
cp "$source/deploy/packages.sh" "$work/deploy"
printf '#!/bin/sh\necho installed\n' >"$work/bin/dpkg-query"
printf '#!/bin/sh\nprintf "%%s\\n" "$@"\n' >"$work/bin/cmake"
ln -s /bin/true "$work/bin/ctest"
chmod +x "$work/bin/"*

# configured TIER [NAME=VALUE]...: what CMake is given before the tests of a tier.
configured() {
  local tier=$1
  shift
  # It fails, because ctest has run no test.
  env -u LOCKSTEP_TORCH_PYTHON "$@" PATH="$work/bin:$PATH" \
    "$work/tests/run.sh" "$tier" >"$work/out" 2>&1 || true
  cat "$work/build/test-logs/$tier.configure" || fail "$(cat "$work/out")"
}

configured e2e LOCKSTEP_TORCH_PYTHON="/a b/python3" |
  grep -qx -e '-DLOCKSTEP_TORCH_PYTHON=/a b/python3' ||
  fail "the interpreter is not passed on"
configured e2e | grep -qx -e '-DLOCKSTEP_TORCH_PYTHON=' ||
  fail "the interpreter of the run before stays"
configured unit LOCKSTEP_TORCH_PYTHON=/python3 >"$work/unit"
! grep TORCH "$work/unit" ||
  fail "a build without the package gets an interpreter for it"
echo "the interpreter is that of LOCKSTEP_TORCH_PYTHON"
