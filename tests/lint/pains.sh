#!/usr/bin/env bash
# Every pain U1 to U26 has a row in tests/conformance/README.md, and every test
# that a row names exists.
source "$(dirname "$0")/lib.sh"
cd "$1"
table=tests/conformance/README.md
{
  for i in $(seq 26); do
    grep -q "^| U$i |" "$table" || echo "$table: U$i has no row"
  done
  { grep -oE '`[A-Za-z0-9]+\.[A-Za-z0-9]+`' "$table" || true; } | tr -d '`' |
    while IFS=. read -r suite name; do
      grep -rqzE "TEST(_F|_P)?\($suite,[[:space:]]*$name\)" tests ||
        echo "$table: there is no test $suite.$name"
    done
} | lint_verdict
