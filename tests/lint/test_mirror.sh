#!/usr/bin/env bash
# The tests mirror the rooms: every .cc of a room that sees nothing (rooms.txt) has
# tests/unit/<same path>_test.cc, and every unit test has its source. Three
# liberties: what is nothing without real processes or sockets has its test in
# tests/integration/<same path>_test.cc; a long test is split as
# <source>_<aspect>_test.cc; and helpers end in _harness or _fixture. Rooms that
# see more, and mains, are left to the integration and e2e tiers.
source "$(dirname "$0")/lib.sh"
cd "$1"
lint_files '*.h' '*.cc' '*.cu' '*.proto' |
  awk -f "$lint_here/test_mirror.awk" \
    "${LOCKSTEP_ROOMS:-$lint_here/rooms.txt}" - |
  sort | lint_verdict
