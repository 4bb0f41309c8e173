#!/usr/bin/env bash
# A file takes the time from a Clock (common/base/clock.h), and waits for an
# event. One that needs the wall clock, or sleeps, is a row of clock.txt with its
# reason; a row whose file does neither any more must go.
source "$(dirname "$0")/lib.sh"
cd "$1"
table=${LOCKSTEP_CLOCK_TABLE:-$lint_here/clock.txt}

# Prints the files in which a pattern stands.
files_with() {
  lint_files '*.h' '*.cc' | { grep -Ev '^(tests/|common/base/clock\.)' || true; } |
    { xargs -r grep -lE -- "$1" || true; }
}

# check KIND PATTERN FIX: files against the rows of that kind.
check() {
  local rows found
  rows=$(awk -v kind="$1" '$1 == kind { print $2 }' "$table" | sort)
  found=$(files_with "$2" | sort)
  comm -13 <(echo "$rows") <(echo "$found") | sed '/^$/d' |
    while IFS= read -r file; do
      grep -nE -- "$2" "$file" | sed -E "s|^([0-9]+):.*|$file:\1: $3|"
    done
  comm -23 <(echo "$rows") <(echo "$found") |
    sed -E "/^$/d; s|(.*)|\1: has a row \"$1\" and needs none|"
}

{
  check wall 'absl::Now\(\)|system_clock::now' \
    'take the time from a Clock, which is never set; or see clock.txt'
  check sleep 'SleepFor|sleep_for|sleep_until' \
    'wait for an event, with a limit; or see clock.txt'
} | lint_verdict
