# shellcheck shell=bash
# What tests of a job over the hosts of namespaces.sh have in common, to be
# sourced by them with the folder of the programs and a name. The test is skipped
# where it cannot run. Sets `programs`, `data`, the pictures' folder, and `work`, a
# directory with the logs that goes at the end with the hosts.
programs=$1
# shellcheck source=namespaces.sh
. "$(dirname "${BASH_SOURCE[0]}")/namespaces.sh"

hosts_or_skip
data=/usr/share/datasets/fashion-mnist
[ -d "$data" ] || hosts_skip "dataset-fashion-mnist is not installed"

work=$(mktemp -d "/tmp/lockstep-$2-XXXXXX")
trap 'hosts_end 2>/dev/null; rm -rf "$work"' EXIT

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  find "$work" -name '*.log' -exec tail -n 20 {} + >&2
  exit 1
}

# until_true WHAT COMMAND...: tries the command for two minutes.
until_true() {
  local what=$1 deadline=$((SECONDS + 120))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$deadline" ] || fail "waited in vain for: $what"
    sleep 0.2
  done
}

# The status of the job of the chief at `address`, and its step.
status() {
  (on_host chief-0 "$programs/lockstep" status --chief "$address" --json) 2>/dev/null
}
step() { status | sed -n 's/.*"global_step": *\([0-9]*\).*/\1/p' | head -n 1; }
# step_now: the step, of a chief that may be busy.
has_told_step() { told=$(step) && [ -n "$told" ]; }
step_now() {
  local told=
  until_true "the chief's status" has_told_step
  echo "$told"
}
has_step() { local now; now=$(step) && [ "${now:-0}" -ge "$1" ]; }
