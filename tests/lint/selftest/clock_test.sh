#!/usr/bin/env bash
source "$(dirname "$0")/lib.sh"
check=clock

LOCKSTEP_CLOCK_TABLE=$(mktemp)
export LOCKSTEP_CLOCK_TABLE
trap 'rm -rf "$tree" "$LOCKSTEP_CLOCK_TABLE"' EXIT
printf '%s\n' '# a comment' '' 'wall  a/certificates.cc  they are valid by it' \
  'sleep a/lock.cc  flock() knows no limit' >"$LOCKSTEP_CLOCK_TABLE"

usual() {
  fresh
  plant a/certificates.cc 'x(absl::Now());\n'
  plant a/lock.cc 'absl::SleepFor(x);\n'
}

usual
plant common/base/clock.cc 'absl::Now();\n'
plant tests/e2e/a_test.cc 'absl::SleepFor(x);\n'
plant a/b.cc 'clock.Now(); Asleep();\n'
expect_clean "rows, the clock itself and tests pass"

for call in 'absl::Now()' 'std::chrono::system_clock::now()'; do
  usual; plant a/b.cc "\nx($call);\n"
  expect_caught "$call needs a row" "a/b.cc:2: take the time from a Clock"
done
for call in absl::SleepFor std::this_thread::sleep_for sleep_until; do
  usual; plant a/b.h "$call(x);\n"
  expect_caught "$call needs a row" "a/b.h:1: wait for an event"
done
usual; plant a/lock.cc 'absl::Now(); SleepFor(x);\n'
expect_caught "a row is of one kind" "a/lock.cc:1: take the time"
usual; plant a/lock.cc
expect_caught "a row that nothing needs goes" 'a/lock.cc: has a row "sleep"'
finish
