# Shared by the self-tests; sourced, never run.
#
# A self-test plants files in a temporary tree and says what its check must
# answer. The tree starts empty at each `fresh`.

set -euo pipefail

checks=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0

fresh() {
  rm -rf "$tree"
  mkdir "$tree"
}

# plant FILE [TEXT]: without TEXT, an empty file.
plant() {
  mkdir -p "$tree/$(dirname "$1")"
  printf '%b' "${2:-}" >"$tree/$1"
}

run_check() {
  answer=$(bash "$checks/$check.sh" "$tree" 2>&1) && verdict=0 || verdict=$?
}

fail() {
  echo "FAILED: $1"
  echo "  the check said: ${answer:-nothing} (exit $verdict)"
  failures=$((failures + 1))
}

# expect_clean CLAIM
expect_clean() {
  run_check
  [ "$verdict" -eq 0 ] && [ -z "$answer" ] || fail "$1"
}

# expect_caught CLAIM TEXT: exactly one line, and TEXT is in it.
expect_caught() {
  run_check
  [ "$verdict" -eq 1 ] && [ "$(wc -l <<<"$answer")" -eq 1 ] &&
    [[ $answer == *"$2"* ]] || fail "$1"
}

finish() {
  [ "$failures" -eq 0 ] || exit 1
  echo "all claims hold"
}
