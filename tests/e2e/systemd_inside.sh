#!/usr/bin/env bash
# Runs as root in a booted Debian that has the package lockstep: a job of one
# chief, two servers and three workers by units. See systemd_test.sh.
set -euo pipefail

job=/etc/lockstep/fashion
units=(lockstep-ps@fashion.{0,1} lockstep-worker@fashion.{0,1,2}
  lockstep-chief@fashion)

fail() {
  printf 'FAILED: %s\n' "$*"
  systemctl list-units --all --no-pager 'lockstep*' || true
  journalctl --no-pager -n 60 -u 'lockstep*' || true
  exit 1
}

# until_true WHAT COMMAND...: tries the command for three minutes.
until_true() {
  local what=$1 deadline=$((SECONDS + 180))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$deadline" ] || fail "waited in vain for: $what"
    sleep 0.2
  done
}

property() { systemctl show -P "$2" "$1"; }
is() { [ "$(property "$1" "$2")" = "$3" ]; }
step() {
  lockstep status --cluster "$job/cluster.json" --json 2>/dev/null |
    sed -n 's/.*"step": *\([0-9]*\).*/\1/p' | head -n 1
}
has_step() { local now; now=$(step) && [ "${now:-0}" -ge "$1" ]; }

mkdir -p "$job"
lockstep config make --ps 2 --workers 3 --host_pattern 127.0.0.1 \
  >"$job/cluster.json"
lockstep config check --cluster "$job/cluster.json"
sed 's/^train_steps: .*/train_steps: 2000/; s/decay_steps: .*/decay_steps: 2000/
  s/^batch_size: .*/batch_size: 100/; s/^name: .*/name: "fashion"/' \
  /usr/share/doc/lockstep/examples/fashion_mnist/job.textproto \
  >"$job/job.textproto"

echo "-- sandbox"
for unit in "${units[@]}" lockstep-evaluator@fashion; do
  systemd-analyze security --threshold=30 "$unit.service" >/tmp/security ||
    fail "$unit: $(tail -n 1 /tmp/security)"
  echo "$unit: $(tail -n 1 /tmp/security)"
done

echo "-- a unit without its configuration"
! systemctl start lockstep-ps@nothing.0 2>/dev/null || fail "it started"
is lockstep-ps@nothing.0 ExecMainStatus 2 || fail "exit code is not 2"
is lockstep-ps@nothing.0 NRestarts 0 || fail "it was started again"
journalctl -u lockstep-ps@nothing.0 | grep nothing/cluster.json

echo "-- state outlives a killed server, not a stopped one"
server=lockstep-ps@fashion.0
state=/run/lockstep/ps-fashion.0
systemctl start "$server"  # ready without any peer
touch "$state/kept"
kill -KILL "$(property "$server" MainPID)"
until_true "a restart" is "$server" NRestarts 1
until_true "a server that runs" is "$server" ActiveState active
[ -e "$state/kept" ] || fail "the state is gone"
systemctl stop "$server"
journalctl --no-pager -o cat -u "$server" | grep 'Deactivated successfully' ||
  fail "it did not stop in good order"
[ ! -e "$state" ] || fail "the state is left"

echo "-- a server that hangs"
mkdir -p "/run/systemd/system/$server.service.d"
printf '[Service]\nWatchdogSec=2\nTimeoutAbortSec=1\n' \
  >"/run/systemd/system/$server.service.d/watchdog.conf"
systemctl daemon-reload
systemctl start "$server"
sleep 5
is "$server" NRestarts 0 || fail "the watchdog bit a server that lives"
kill -STOP "$(property "$server" MainPID)"
until_true "the watchdog" is "$server" NRestarts 1
systemctl stop "$server"
rm -r "/run/systemd/system/$server.service.d"
systemctl daemon-reload

echo "-- a job with a worker that is killed"
systemctl enable "${units[@]}" 2>/dev/null
systemctl start lockstep.target
until_true "step 50" has_step 50
worker=lockstep-worker@fashion.1
killed=$(property "$worker" MainPID)
kill -KILL "$killed"
until_true "another worker" is "$worker" NRestarts 1
for unit in "${units[@]}"; do
  until_true "the end of $unit" is "$unit" ActiveState inactive
  is "$unit" Result success || fail "$unit: $(property "$unit" Result)"
  is "$unit" ExecMainStatus 0 || fail "$unit did not end with 0"
done
journalctl --no-pager -o cat -u lockstep-chief@fashion |
  grep 'done at step 2000' || fail "the job is not done"
ls /var/lib/lockstep/checkpoints/fashion_mnist
journalctl --no-pager -o cat -u "$worker" LOCKSTEP_INSTANCE=fashion.1 |
  grep -q . || fail "the journal has no field LOCKSTEP_INSTANCE"
