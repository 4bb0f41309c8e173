#!/usr/bin/env bash
# configuration_test.sh PROGRAMS: the programs' answers to a TF_CONFIG that is
# missing or wrong, as `lockstep config check` says it, of a chief whose name does
# not resolve, and where their output cannot be written.
set -euo pipefail
programs=$1
work=$(mktemp -d /tmp/lockstep-configuration-test-XXXXXX)
trap 'rm -rf "$work"' EXIT
unset TF_CONFIG CLUSTER_SPEC

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  cat "$work/said" >&2
  exit 1
}

# says CODE TEXT COMMAND...: the command leaves with the code and says the text.
says() {
  local wanted=$1 text=$2 code=0
  shift 2
  timeout 60 "$@" >"$work/said" 2>&1 </dev/null || code=$?
  [ "$code" -eq "$wanted" ] || fail "$*: left with $code, not $wanted"
  grep -qF -- "$text" "$work/said" || fail "$*: does not say: $text"
}

cluster='"cluster":{"chief":["c:1"],"ps":["p:1"],"worker":["w:1"]}'
task() { echo "{$cluster,\"task\":{\"type\":\"$1\",\"index\":0}}"; }

echo "== without TF_CONFIG"
for program in ps_server chief worker 'worker --evaluate'; do
  # shellcheck disable=SC2086  # words on purpose
  says 2 'TF_CONFIG is not set; set it' "$programs"/$program
  says 2 'tf_config is: write its name in capitals' \
    env "tf_config=$(task ps)" "$programs"/${program%% *}
  says 2 'TF_CONFIG: there is no cluster' \
    env 'TF_CONFIG={}' "$programs"/${program%% *}
done
says 1 'TF_CONFIG is not set; set it' "$programs/lockstep" config check

echo "== another program's task"
says 2 'start worker --evaluate, or correct task.type' \
  env "TF_CONFIG=$(task evaluator)" "$programs/worker"
# Not `grep -q`, which leaves the program writing into a pipe that is closed.
"$programs/worker" --help | grep -- --evaluate >/dev/null ||
  fail "it has no --evaluate"
says 2 'start ps_server' env "TF_CONFIG=$(task ps)" "$programs/chief"

echo "== a chief whose name does not resolve"
# Each program listens on the loopback address of this test alone, and the port
# is below those that kernels give out by themselves.
own=127.$((1 + $$ / 64516 % 254)).$((1 + $$ / 254 % 254)).$((1 + $$ % 254))
cluster='"cluster":{"chief":["no.such.host.invalid:1"],"ps":["'$own':21001"],'
cluster+='"worker":["'$own':21002"]}'
for program in ps_server worker 'worker --evaluate'; do
  role=${program%% *}
  [ "$role" != ps_server ] || role=ps
  [ "$program" = "$role" ] || [ "$role" = ps ] || role=evaluator
  # shellcheck disable=SC2086
  says 129 'the name no.such.host.invalid does not resolve' \
    env "TF_CONFIG=$(task "$role")" "$programs"/$program --chief_wait=1
done

echo "== output that cannot be written"
# shellcheck disable=SC2016  # for the inner shell
says 1 'the output is not complete: No space left on device' \
  bash -c '"$0" config make --workers 2 >/dev/full' "$programs/lockstep"
# As `status --watch` before a `head` that has seen enough, which has ended when
# the output begins; 141: SIGPIPE.
# shellcheck disable=SC2016
says 141 'the reader is gone' bash -c '
  exec 3> >(exit 0)
  wait $!
  "$0" config make --workers 2 >&3 || code=$?
  echo the reader is gone
  exit "${code:-0}"' "$programs/lockstep"
echo "what is wrong with a TF_CONFIG is said"
