#!/usr/bin/env bash
# package_tools_test.sh SOURCE_DIR BUILD_DIR CMAKE: the target lockstep_deb is there
# whatever is installed, and what it does first says which packages are missing.
set -euo pipefail
source=$1 build=$2 cmake=$3

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$cmake" --build "$build" --target help >"$work/targets"
grep -q '^lockstep_deb: ' "$work/targets" || fail "there is no target lockstep_deb"

# check TOOL...: as where these tools alone are.
check() {
  rm -rf "$work/bin"
  mkdir "$work/bin"
  local tool
  for tool in "$@"; do ln -s /bin/true "$work/bin/$tool"; done
  PATH=$work/bin "$BASH" "$source/deploy/package/check_tools.sh" 2>"$work/said"
}

check help2man dpkg-shlibdeps file || fail "refused: $(cat "$work/said")"
! check dpkg-shlibdeps || fail "help2man and file are not missed"
grep -qx '  apt-get install help2man file' "$work/said" || fail "$(cat "$work/said")"
! check help2man file || fail "dpkg-shlibdeps is not missed"
grep -qx '  apt-get install dpkg-dev' "$work/said" || fail "$(cat "$work/said")"
echo "what the package takes is named where it is missing"
