#!/usr/bin/env bash
# Plants each mistake of tests/plants/*.txt in this checkout, one at a time, builds
# the test program that must see it, and expects that a test fails which passes
# without the mistake. It changes source files while it runs and restores each of
# them.
#   tests/plants/run.sh [NAME...]     only these; all without a name
# PRESET is the build that it uses, release by default.
set -euo pipefail
cd "$(dirname "$0")/../.."
preset=${PRESET:-release}
wanted=" $* "
missed=0
count=0
held=$(mktemp)
file=""
restore() { if [ -n "$file" ]; then cp "$held" "$file"; fi; }
trap 'restore; rm -f "$held"' EXIT
# A run that is ended by a signal must restore the file, too.
trap 'exit 1' INT TERM HUP

# The wanted mistakes, as tests/lint/plants.sh reads them: with a tab between
# fields.
rows() {
  local row
  sed '/^#/d; /^[[:space:]]*$/d; s/ | /\t/g' tests/plants/*.txt |
    while IFS= read -r row; do
      [[ $wanted == "  " || $wanted == *" ${row%%$'\t'*} "* ]] || continue
      printf '%s\n' "$row"
    done
}
# build TARGET...
build() { cmake --build --preset "$preset" --target "$@" > build/plant.log 2>&1; }
# tests PROGRAM FILTER: runs the tests; its exit code is theirs.
tests() {
  timeout -v 300 "build/$preset/tests/$1" --gtest_filter="$2" > build/plant.log 2>&1
}

[ -d "build/$preset" ] || cmake --preset "$preset" > /dev/null
# All tests without a mistake first, while nothing has to be built again.
declare -A passes  # by program and filter
while IFS=$'\t' read -r name path edit programs filter <&3; do
  read -ra targets <<< "$programs"
  program=${targets[0]}
  [ -z "${passes[$program $filter]:-}" ] || continue
  if build "${targets[@]}" && tests "$program" "$filter"; then
    passes[$program $filter]=yes
  else
    tail -n 20 build/plant.log
    passes[$program $filter]=no
  fi
done 3< <(rows)

while IFS=$'\t' read -r name path edit programs filter <&3; do
  read -ra targets <<< "$programs"
  program=${targets[0]}
  count=$((count + 1))
  if [ "${passes[$program $filter]}" = no ]; then
    echo "$name: $program $filter fails without the mistake, so it shows nothing"
    missed=$((missed + 1))
    continue
  fi
  cp "$path" "$held"
  file=$path
  sed -i "$edit" "$path" || true
  if cmp -s "$path" "$held"; then
    echo "$name: $path has no line for the edit"
    missed=$((missed + 1))
  elif ! build "${targets[@]}"; then
    tail -n 20 build/plant.log
    echo "$name: $program does not build"
    missed=$((missed + 1))
  else
    tests "$program" "$filter" && result=0 || result=$?
    # A failed assertion, the time limit, or a signal; not a program that did not
    # run, and no test that was skipped.
    if [ "$result" -eq 1 ]; then
      echo "$name: found by $(sed -n 's/^\[  FAILED  \] \([A-Za-z0-9_]*\.[A-Za-z0-9_/]*\).*/\1/p' \
        build/plant.log | sort -u | paste -sd' ')"
    elif [ "$result" -eq 124 ] || [ "$result" -ge 128 ]; then
      echo "$name: found by a crash or the time limit ($result)"
    else
      echo "$name: NOT FOUND by $program $filter ($result)"
      missed=$((missed + 1))
    fi
  fi
  restore
  file=""
done 3< <(rows)
echo "$((count - missed)) of $count planted mistakes are found"
[ "$count" -gt 0 ] && [ "$missed" -eq 0 ]
