#!/usr/bin/env bash
# The tests mirror the sources: every core .cc has tests/unit/<same path>_test.cc
# and every unit test has its source. Three liberties: a core that is nothing
# without real processes or sockets has its test in tests/integration/<same
# path>_test.cc; a long test is split as <source>_<aspect>_test.cc; and helpers
# end in _harness or _fixture. What may name gRPC, and the role classes, are left
# to the integration and e2e tiers.
source "$(dirname "$0")/lib.sh"
cd "$1"
lint_files '*.h' '*.cc' '*.cu' '*.proto' |
  awk -f "$lint_here/names.awk" -f "$lint_here/test_mirror.awk" |
  sort | lint_verdict
