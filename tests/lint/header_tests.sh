#!/usr/bin/env bash
# Every header of a room that declares a function is included by a test of that
# room: a file of tests/unit/<room> or tests/integration/<room>. Those of
# header_tests_undone.txt are still to be done: the list may only shrink.
source "$(dirname "$0")/lib.sh"
cd "$1"
table=${LOCKSTEP_ROOMS:-$lint_here/rooms.txt}
undone=${LOCKSTEP_HEADERS_UNDONE:-$lint_here/header_tests_undone.txt}
mapfile -t files < <(lint_files '*.h' '*.cuh' '*.cc' '*.cu')
awk -v table="$table" -v undone_list="$undone" \
  -f "$lint_here/header_tests.awk" "$table" "$undone" "${files[@]}" |
  sort | lint_verdict
