#!/usr/bin/env bash
# Plants each mistake of tests/plants/*.txt in this checkout, one at a time, builds
# the test program that must see it, and expects that a test fails. It changes source
# files while it runs and restores each of them.
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

[ -d "build/$preset" ] || cmake --preset "$preset" > /dev/null
while IFS= read -r line <&3; do
  # As tests/lint/plants.sh reads it.
  IFS=$'\t' read -r name path edit programs filter < <(sed 's/ | /\t/g' <<< "$line")
  read -ra targets <<< "$programs"
  program=${targets[0]}
  if [ "$wanted" != "  " ] && [[ "$wanted" != *" $name "* ]]; then continue; fi
  count=$((count + 1))
  cp "$path" "$held"
  file=$path
  sed -i "$edit" "$path" || true
  if cmp -s "$path" "$held"; then
    echo "$name: $path has no line for the edit"
    missed=$((missed + 1))
  elif ! cmake --build --preset "$preset" --target "${targets[@]}" > build/plant.log 2>&1; then
    tail -n 20 build/plant.log
    echo "$name: $program does not build"
    missed=$((missed + 1))
  else
    timeout -v 300 "build/$preset/tests/$program" --gtest_filter="$filter" \
      > build/plant.log 2>&1 && result=0 || result=$?
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
done 3< <(sed '/^#/d; /^[[:space:]]*$/d' tests/plants/*.txt)
echo "$((count - missed)) of $count planted mistakes are found"
[ "$count" -gt 0 ] && [ "$missed" -eq 0 ]
