#!/usr/bin/env bash
# Builds and runs the tests. From a fresh clone on Debian 12 it installs what is
# missing first.
#
#   tests/run.sh           everything that CI runs: asan and tsan, and before
#                          them, as release, the tests that asan leaves out;
#                          not those labelled e2e-long, as long tests that are
#                          repeated with certificates: release runs them, and
#                          e2e those of its tier
#   tests/run.sh TIER      one of unit, integration, fuzz (with address and
#                          undefined behaviour sanitizers), conformance, e2e,
#                          lint (as release)
#   tests/run.sh BUILD     one of release, asan, tsan
#
# Environment:
#   LOCKSTEP_JOBS          compilers and tests at a time, and half of the
#                          clusters of end-to-end tests; default: the cores
#   LOCKSTEP_FUZZ_SECONDS  for each fuzz target; default 2
#   LOCKSTEP_SYSTEM_TESTS  no: do not boot a Debian with the package, nor train
#                          in pods; default yes, where root and mounts are had
#   LOCKSTEP_ASAN_E2E      end-to-end tests under asan: all, light (default;
#                          without those labelled e2e-heavy) or none
#   LOCKSTEP_STORMS        full, or short (default without a word): a quarter
#                          of the random kills of each test that has many
#   LOCKSTEP_TSAN          tests under tsan: all, or light (default; without
#                          those labelled threads-heavy)
#   LOCKSTEP_TORCH_PYTHON  an interpreter of Debian's version of Python, say with
#                          a newer PyTorch, for the tests of the Python package;
#                          default Debian's
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=deploy/packages.sh
source deploy/packages.sh

jobs=${LOCKSTEP_JOBS:-$(nproc)}
fuzz_seconds=${LOCKSTEP_FUZZ_SECONDS:-2}
logs=build/test-logs
rows=() failures=() reasons=() skips=() tests=0 failed=0 broken=0

# All processes that this script starts carry this mark, and their children too.
export LOCKSTEP_TEST_RUN="$$-$EPOCHSECONDS"

# Prints /proc/ID/environ of each process that carries our mark.
marked_processes() {
  env -u LOCKSTEP_TEST_RUN \
    grep -lzFx "LOCKSTEP_TEST_RUN=$LOCKSTEP_TEST_RUN" /proc/[0-9]*/environ \
    2>/dev/null || true
}

# Ends processes that outlived their test, and names them.
end_leftovers() {
  local found pid name
  for found in $(marked_processes); do
    pid=${found//[!0-9]/}
    name=$(cat "/proc/$pid/comm" 2>/dev/null) || continue  # it has ended
    echo "left behind by $1: process $pid ($name)"
    kill -KILL "$pid" 2>/dev/null || true
  done
}

# Runs a command so that a signal to us ends it at once.
run() {
  "$@" &
  wait $!
}

# build_ahead [PRESET TARGETS]...: builds in the background what later stages
# need, one after the other, while tests run that mostly wait. Without our mark:
# it is no leftover of theirs.
build_ahead() {
  # shellcheck disable=SC2016  # for the inner shell
  env -u LOCKSTEP_TEST_RUN setsid nice -n 19 bash -c '
    jobs=$1 && shift
    # Where sessions share the processors, nice counts only inside of each.
    echo 19 2>/dev/null >/proc/self/autogroup
    while [ $# -gt 0 ]; do
      cmake --preset "$1" --log-level=WARNING &&
        cmake --build --preset "$1" -j "$jobs" --target $2 -- --quiet
      shift 2
    done
    ' ahead "$jobs" "$@" >"$logs/$1.ahead" 2>&1 &
  ahead=$!
}

# Ends it, for the stage that needs it goes on from there without being nice,
# and says what is wrong, if something is.
join_ahead() {
  [ -z "$ahead" ] || kill -TERM -- "-$ahead" 2>/dev/null || true
  [ -z "$ahead" ] || wait "$ahead" || true
  ahead=''
}

row() { rows+=("$(printf '%-12s %6s s   %s' "$@")"); }

# stage NAME PRESET TARGETS TEST_PRESET CTEST_ARGUMENT...: builds TARGETS of a
# preset and runs its tests. Fails only if nothing could be tested.
stage() {
  local name=$1 preset=$2 targets=$3 started=$SECONDS
  shift 3
  local settings=(-DLOCKSTEP_FUZZ_SECONDS="$fuzz_seconds")
  # Empty, too: a build directory keeps what it was given before. Sanitizers'
  # builds have no Python package.
  [ "$preset" != release ] ||
    settings+=(-DLOCKSTEP_TORCH_PYTHON="${LOCKSTEP_TORCH_PYTHON:-}")
  say "$name: building, if nothing is built 3 to 20 minutes on 2 cores"
  join_ahead
  # shellcheck disable=SC2086  # targets are words
  if ! { run cmake --preset "$preset" --log-level=WARNING \
           "${settings[@]}" >"$logs/$name.configure" &&
         { [ -z "$targets" ] ||
           run cmake --build --preset "$preset" -j "$jobs" --target $targets \
             -- $quiet; }; }; then
    broken=$((broken + 1))
    row "$name" $((SECONDS - started)) "BUILD FAILED"
    return 1
  fi
  [ -z "$next" ] || "$next"
  next=''
  say "$name: testing"
  test_stage "$name" "$started" "$@"
}

# test_stage NAME STARTED TEST_PRESET CTEST_ARGUMENT...
test_stage() {
  local name=$1 started=$2 log=$logs/$1.ctest result left summary
  shift 2
  rm -f "$log"
  run "${wrapper[@]}" ctest -j "$at_once" --output-log "$log" --preset "$@" &&
    result=0 || result=$?
  summary=$(grep -E '^[0-9]+% tests passed' "$log" || true)
  left=$(end_leftovers "$name")
  if [ -n "$left" ]; then
    printf '%s\n' "$left"
    broken=$((broken + 1))
    summary+=" BUT PROCESSES WERE LEFT BEHIND"
  fi
  if [[ $summary =~ ,\ ([0-9]+)\ tests\ failed\ out\ of\ ([0-9]+) ]]; then
    failed=$((failed + BASH_REMATCH[1]))
    tests=$((tests + BASH_REMATCH[2]))
  fi
  [ "$result" -eq 0 ] || [ "${BASH_REMATCH[1]:-0}" -gt 0 ] ||
    broken=$((broken + 1))
  row "$name" $((SECONDS - started)) "${summary:-NO TEST RAN}"
  mapfile -t -O "${#skips[@]}" skips < <(
    awk -v stage="$name" '/^[0-9]+\/[0-9]+ Testing: / { test = $3 }
      /SKIPPED, NOTHING WAS PROVED/ && !told[test $0]++ {
        print stage ": " test ": " $0
      }' \
      "build/${1%%-*}/Testing/Temporary/LastTest.log" 2>/dev/null)
  mapfile -t -O "${#failures[@]}" failures < <(
    sed -n '/^The following tests FAILED/,/^Errors/s/^\t *[0-9]* - /'"$name: /p" \
      "$log" 2>/dev/null)
  mapfile -t -O "${#reasons[@]}" reasons < <(
    reasons_in "build/${1%%-*}/Testing/Temporary/LastTest.log")
}

# Prints the first failed assertions of each test program, and what pytest and
# the sanitizers say of theirs, from ctest's LOG.
reasons_in() {
  awk '/^[0-9]+\/[0-9]+ Testing: / { test = $3; printed = left = 0 }
    /: Failure$|^E  |^(ERROR|SUMMARY): .*Sanitizer|^FAIL(ED)?[: ]/ {
      if (left == 0) left = 8
    }
    left > 0 && printed < 24 { print test ": " substr($0, 1, 300); ++printed }
    left > 0 { --left }' "$1" 2>/dev/null
}

# Unit and integration tests run with the sanitizers alone. What is left are
# clusters of processes that mostly wait.
release() {
  local at_once=$((2 * jobs))
  stage release release "$(tier_targets conformance e2e bench)" \
    "release$without_system"
}

# Of those, the tests that asan leaves out.
rest_of_release() {
  local at_once=$((2 * jobs))
  if [ "${LOCKSTEP_ASAN_E2E:-light}" = none ]; then
    release
    return
  fi
  stage release release lockstep_tests_rest "release-rest$without_system"
}

asan_targets() {
  local e2e=sanitized
  [ "${LOCKSTEP_ASAN_E2E:-light}" != all ] || e2e=e2e
  tier_targets unit conformance integration fuzz $e2e
}

asan_ahead() {
  build_ahead asan "$(asan_targets)" tsan "$(tsan_targets)"
}

asan() {
  # More than processors: many of these tests wait.
  local at_once=$((jobs + 2))
  stage asan asan "$(asan_targets)" \
    "asan-e2e-${LOCKSTEP_ASAN_E2E:-light}"
}

tsan_targets() {
  local heavy=''
  [ "${LOCKSTEP_TSAN:-light}" != all ] || heavy=threads-heavy
  tier_targets threads $heavy
}

tsan_ahead() { build_ahead tsan "$(tsan_targets)"; }

tsan() {
  # Clang 14 finds its shadow memory taken where addresses vary too much.
  if setarch -R true 2>/dev/null; then wrapper=(setarch -R); fi
  if [ "${LOCKSTEP_TSAN:-light}" = all ]; then
    stage tsan tsan "$(tsan_targets)" tsan-all
  else
    stage tsan tsan "$(tsan_targets)" tsan
  fi
  wrapper=()
}

tier_targets() { printf 'lockstep_tests_%s ' "$@"; }

# tier NAME PRESET
tier() {
  local targets='' test_preset=asan-e2e-all
  [ "$1" = lint ] || targets=$(tier_targets "$1")
  if [ "$2" = release ]; then
    local at_once=$((2 * jobs))
    test_preset=release$without_system
  fi
  stage "$1" "$2" "$targets" "$test_preset" --label-regex "^$1$"
}

summary() {
  say "summary (logs are in $logs)"
  printf '%s\n' "${rows[@]}"
  [ ${#skips[@]} -eq 0 ] || printf '%s\n' "${skips[@]}"
  [ ${#reasons[@]} -eq 0 ] || printf '%s\n' "${reasons[@]}"
  [ ${#failures[@]} -eq 0 ] || printf 'FAILED %s\n' "${failures[@]}"
  [ "$broken" -eq 0 ] || printf '\n%d stages are broken, see above\n' "$broken"
  [ "$tests" -eq 0 ] || printf '\n%d%% %s, %d tests failed out of %d\n' \
    $(((tests - failed) * 100 / tests)) "tests passed" "$failed" "$tests"
}

main() {
  case ${1:-everything} in
    everything)
      export LOCKSTEP_STORMS=${LOCKSTEP_STORMS:-short}
      next=asan_ahead
      rest_of_release && next=tsan_ahead && asan && tsan
      ;;
    release | asan | tsan) "$1" ;;
    conformance | e2e | lint) tier "$1" release ;;
    unit | integration | fuzz) tier "$1" asan ;;
    *)
      sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"
      exit 2
      ;;
  esac
}

end_all() {
  end_leftovers "this run" >&2
  [ -z "$ahead" ] || kill -TERM -- "-$ahead" 2>/dev/null || true
}

trap end_all EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

at_once=$jobs wrapper=() quiet=--quiet ahead='' next=''
without_system=''
[ "${LOCKSTEP_SYSTEM_TESTS:-yes}" = yes ] || without_system=-without-system
[ ! -t 1 ] || quiet=
need_packages "${LOCKSTEP_BUILD_PACKAGES[@]}" "${LOCKSTEP_DATA_PACKAGES[@]}" \
  "${LOCKSTEP_TEST_PACKAGES[@]}"
mkdir -p "$logs"
main "$@" || true
summary
[ "$failed" -eq 0 ] && [ "$broken" -eq 0 ]
