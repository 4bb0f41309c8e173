#!/usr/bin/env bash
# Every public header of a room is included by a test of that room: a file of
# tests/unit/<room> or tests/integration/<room>, or of a room in it, as a codec
# tests the types that it carries. A header is public if another room or a
# program includes it; what a room keeps to itself is tested through what uses
# it.
source "$(dirname "$0")/lib.sh"
cd "$1"
table=${LOCKSTEP_ROOMS:-$lint_here/rooms.txt}
mapfile -t files < <(lint_files '*.h' '*.cuh' '*.cc' '*.cu')
awk -v table="$table" -f "$lint_here/header_tests.awk" "$table" "${files[@]}" |
  sort | lint_verdict
