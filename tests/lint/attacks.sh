#!/usr/bin/env bash
# Every test that the table of attacks in common/rpc/security/README.md names exists.
source "$(dirname "$0")/lib.sh"
cd "$1"
page=common/rpc/security/README.md
table() { sed -n '/^## Attacks/,$p' "$page" | sed -n '/^|/p'; }
{
  [ "$(table | wc -l)" -gt 2 ] || echo "$page:1: there is no table of attacks"
  table | sed -n "1,2d; /Test/!s/^/${page//\//\\/}:1: no test is named: /p"
  { table | grep -oE '`[A-Za-z0-9]+Test(\.[A-Za-z0-9]+)?`' || true; } | tr -d '`' |
    while IFS=. read -r suite name; do
      grep -rqzE "TEST(_F|_P)?\($suite,[[:space:]]*${name:-[A-Za-z0-9]+}\)" tests ||
        echo "$page:1: there is no test $suite${name:+.$name}"
    done
} | lint_verdict
