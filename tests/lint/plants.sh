#!/usr/bin/env bash
# Each planted mistake of tests/plants/*.txt still changes its file and names tests
# that exist. tests/plants/run.sh plants them.
source "$(dirname "$0")/lib.sh"
cd "$1"
lint_files 'tests/plants/*.txt' '*.txt' | grep '^tests/plants/' | sort -u | while IFS= read -r table; do
  number=0
  while IFS= read -r line; do
    number=$((number + 1))
    case $line in '#'* | '') continue ;; esac
    IFS=$'\t' read -r name file edit program tests < <(sed 's/ | /\t/g' <<<"$line")
    at="$table:$number: $name"
    if [ -z "${tests:-}" ]; then
      echo "$at: expected name | file | sed expression | program | tests"
      continue
    fi
    if [ ! -f "$file" ]; then
      echo "$at: there is no file $file"
    elif sed "$edit" "$file" | cmp -s - "$file"; then
      echo "$at: the edit changes nothing in $file; adapt it to the code"
    fi
    grep -rqE "(lockstep_add_test\(|PROGRAM )${program%% *}\b" tests ||
      echo "$at: there is no test program ${program%% *}"
    tr ':' '\n' <<<"$tests" | while IFS=. read -r suite case; do
      suite=${suite##*/}
      pattern="TEST(_F|_P)?\\(${suite//\*/[A-Za-z0-9]*},[[:space:]]*"
      if [ "${case:-*}" != "*" ]; then pattern+="${case//\*/[A-Za-z0-9]*}\\)"; fi
      grep -rqzE "$pattern" tests || echo "$at: there is no test $suite.${case:-*}"
    done
  done < "$table"
done | lint_verdict
