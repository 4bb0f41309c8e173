#!/usr/bin/env bash
# Every test that strategy/rows.md names exists: in the last column programs,
# golden records and numbers of cases, anywhere paths below tests, and tests of
# C++ as `Suite.Case`, `OtherCase`.
source "$(dirname "$0")/lib.sh"
cd "$1"
table=strategy/rows.md
sources=$(mktemp)
trap 'rm -f "$sources"' EXIT
lint_files 'tests/*' '*' | grep '^tests/' >"$sources" || true

# The tests of CMake as patterns: a variable stands for any text.
cmake_tests=$({ grep '/CMakeLists\.txt$' "$sources" || true; } |
  { xargs -r grep -ohE '(lockstep_add_test\(|NAME )[A-Za-z0-9_${}]+' || true; } |
  sed -E 's/^.*[( ]//; s/\$\{[^}]*\}/[a-z0-9_]+/g')

# program_exists NAME: a source, with the end of its folder if NAME has one, or
# a test of CMake.
program_exists() {
  grep -qE "/$1\.(cc|sh|py)$" "$sources" ||
    grep -qxE -f <(printf '%s\n' "$cmake_tests") <<<"$1"
}

# cases_there: the numbers of TEST_P(..., Case30And31...) and Case95To97....
cases_there() {
  { grep -ohE 'Case[0-9]+((And|To)[0-9]+)?' tests/conformance/strategy/*.cc ||
    true; } | sed 's/Case//; s/And/ /; s/To/ - /' |
    while read -r first second last; do
      case ${second:-} in
        '') echo "$first" ;;
        -) seq "$first" "$last" ;;
        *) printf '%s\n' "$first" "$second" ;;
      esac
    done
}

# cases_named CELL: "cases 49, 50; cases 57 to 58".
cases_named() {
  { grep -oE 'cases [0-9]+((, | to )[0-9]+)*' <<<"$1" || true; } |
    sed 's/cases //; s/, /\n/g' | sed 's/ to / /' |
    while read -r first last; do seq "$first" "${last:-$first}"; done
}

# named_tests: "Suite.Case" for each `Suite.Case` and each `Case` that follows it
# in its line; "SuiteTest." for a suite alone.
named_tests() {
  { grep -E '`[A-Za-z]+Test(\.|`)' "$table" || true; } |
    while IFS= read -r line; do
      suite=
      { grep -oE '`[A-Z][A-Za-z0-9]*(\.[A-Za-z0-9]+)?`' <<<"$line" || true; } |
        tr -d '`' |
        while IFS= read -r name; do
          case $name in
            *Test.*) suite=${name%%.*}; echo "$name" ;;
            *Test) echo "$name." ;;
            *) [ -z "$suite" ] || echo "$suite.$name" ;;
          esac
        done
    done
}

there=" $(cases_there | tr '\n' ' ')"
{
  { grep -E '^\| [A-E][0-9]' "$table" || true; } |
    while IFS= read -r line; do
      row=$(cut -d'|' -f2 <<<"$line" | xargs)
      cell=$(awk -F'|' '{ print $(NF - 1) }' <<<"$line")
      { grep -oE '`[^`]+`' <<<"$cell" || true; } | tr -d '`' |
        while IFS= read -r name; do
          case $name in
            golden_*)
              [ -f "tests/golden/${name#golden_}.jsonl" ] ||
                echo "$table: $row: there is no record for $name" ;;
            *)
              program_exists "$name" ||
                echo "$table: $row: there is no test $name" ;;
          esac
        done
      for case in $(cases_named "$cell"); do
        [[ $there == *" $case "* ]] ||
          echo "$table: $row: tests/conformance/strategy has no case $case"
      done
    done
  { grep -oE '`tests/[^`]+`' "$table" || true; } | tr -d '`' |
    while IFS= read -r path; do
      [ -e "$path" ] || echo "$table: there is no $path"
    done
  named_tests | while IFS=. read -r suite case; do
    grep -rqzE "TEST(_F|_P)?\\($suite,[[:space:]]*${case:+$case\\)}" tests ||
      echo "$table: there is no test $suite.$case"
  done
} | lint_verdict
