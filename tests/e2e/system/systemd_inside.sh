#!/usr/bin/env bash
# Runs as root in a booted Debian that has the package lockstep: a job without
# servers by units, then one of one chief, two servers, three workers and an
# evaluator. The machine reboots in the middle of the latter; this is run before
# and after. See systemd_test.sh.
set -euo pipefail
# shellcheck source=tests/e2e/system/system_lib.sh
source /system_lib.sh

job=/etc/lockstep/fashion
units=(lockstep-ps@fashion.{0,1} lockstep-worker@fashion.{0,1,2}
  lockstep-chief@fashion lockstep-evaluator@fashion)
operator=(--tls_dir /srv/certs/operator-read)

fail() {
  printf 'FAILED: %s\n' "$*"
  systemctl list-units --all --no-pager 'lockstep*' || true
  journalctl --no-pager -n 60 -u 'lockstep*' || true
  exit 1
}

# Entries arrive at the journal a moment after their event.
journal() { journalctl --sync && journalctl --no-pager -o cat "$@"; }
chief_log() { journal -u "lockstep-chief@${job##*/}"; }
property() { systemctl show -P "$2" "$1"; }
is() { [ "$(property "$1" "$2")" = "$3" ]; }
step() {
  lockstep status --cluster "$job/cluster.json" --json \
    "${operator[@]}" 2>/dev/null |
    sed -n 's/.*"global_step": *\([0-9]*\).*/\1/p' | head -n 1
}
has_step() { local now; now=$(step) && [ "${now:-0}" -ge "$1" ]; }

# write_job STEPS BATCH OPTION...: $job, with the cluster that the options make.
write_job() {
  mkdir -p "$job"
  lockstep config make --host_pattern 127.0.0.1 "${@:3}" >"$job/cluster.json"
  lockstep config check --cluster "$job/cluster.json"
  sed "s/^train_steps: .*/train_steps: $1/; s/decay_steps: .*/decay_steps: $1/
    s/^batch_size: .*/batch_size: $2/; s/^name: .*/name: \"${job##*/}\"/" \
    /usr/share/doc/lockstep/examples/fashion_mnist/job.textproto \
    >"$job/job.textproto"
}
configure() { write_job 3000 100 --ps 2 --workers 3 --evaluator; }

check_sandbox() {
  for unit in "${units[@]}"; do
    systemd-analyze security --threshold=30 "$unit.service" >/tmp/security ||
      fail "$unit: $(tail -n 1 /tmp/security)"
    echo "$unit: $(tail -n 1 /tmp/security)"
  done
}

check_missing_configuration() {
  ! systemctl start lockstep-ps@nothing.0 2>/dev/null || fail "it started"
  is lockstep-ps@nothing.0 ExecMainStatus 2 || fail "exit code is not 2"
  is lockstep-ps@nothing.0 NRestarts 0 || fail "it was started again"
  journal -u lockstep-ps@nothing.0 | grep nothing/cluster.json
}

# The README's drop-in for a program of one's own, with one that makes memory which it
# may both write and execute, as PyTorch does. The tree has Perl, but no Python.
check_own_program() {
  local readme=/usr/share/doc/lockstep/README.systemd.md number=9
  local unit=lockstep-worker@fashion.2
  [ "$(uname -m)" = x86_64 ] || number=222  # mmap
  cat >/opt/train.py <<PROGRAM
my \$at = syscall($number, 0, 4096, 7, 34, -1, 0);
print "has \$ENV{LOCKSTEP_TLS_DIR}, maps: ", \$at == -1 ? \$! : "yes", "\\n";
exit(\$at == -1);
PROGRAM
  mkdir -p "/run/systemd/system/$unit.service.d"
  sed -n '/^    \[Service\]$/,/train\.py$/p' "$readme" |
    sed 's/^    //; s|/usr/bin/python3|/usr/bin/perl|' \
      >"/run/systemd/system/$unit.service.d/own.conf"
  systemctl daemon-reload
  systemctl start "$unit"
  until_true "the end of the program" has_ended "$unit"
  is "$unit" ExecMainStatus 0 || fail "$(journal -u "$unit")"
  journal -u "$unit" | grep 'has /etc/lockstep/tls/{role}-{index}, maps: yes'
  rm -r "/run/systemd/system/$unit.service.d"
  systemctl daemon-reload
}
has_ended() { [[ $(property "$1" ActiveState) =~ inactive|failed ]]; }

check_state() {
  server=lockstep-ps@fashion.0
  state=/run/lockstep/ps-fashion.0
  systemctl start "$server"  # ready without any peer
  touch "$state/kept"
  kill -KILL "$(property "$server" MainPID)"
  until_true "a restart" is "$server" NRestarts 1
  until_true "a server that runs" is "$server" ActiveState active
  [ -e "$state/kept" ] || fail "the state is gone"
  systemctl stop "$server"
  journal -u "$server" | grep 'Deactivated successfully' ||
    fail "it did not stop in good order"
  [ -e "$state/kept" ] || fail "the state went with the unit"
  systemctl clean --what=runtime "$server"
  [ ! -e "$state" ] || fail "the state is left"
}

# A task that runs goes on with its program; the operator's settings stay.
check_upgrade() {
  [ "$(dpkg-query -W -f '${Version}' lockstep)" = 0.0.1 ] || fail "no older one"
  local env=/etc/lockstep/lockstep.env before
  sed -i 's/^LOCKSTEP_PS_FLAGS=.*/LOCKSTEP_PS_FLAGS=--log_level=debug/' "$env"
  systemctl start "$server"
  before=$(property "$server" MainPID)
  dpkg --force-confold --install /lockstep.deb
  [ "$(dpkg-query -W -f '${Version}' lockstep)" != 0.0.1 ] || fail "no newer one"
  [ ! -e /usr/share/doc/lockstep/only-in-0.0.1 ] || fail "an older file is left"
  is "$server" ActiveState active || fail "the server was stopped"
  is "$server" MainPID "$before" || fail "the server was started again"
  grep -q 'log_level=debug' "$env" || fail "the operator's settings are gone"
  [ -e "$env.dpkg-dist" ] || fail "the new defaults were not put beside them"
  systemctl restart "$server"
  tr '\0' ' ' </proc/"$(property "$server" MainPID)"/cmdline |
    grep -e --log_level=debug || fail "the settings have no effect"
  echo LOCKSTEP_PS_FLAGS=--log_level=warn >"/etc/lockstep/$server.env"
  systemctl restart "$server"
  tr '\0' ' ' </proc/"$(property "$server" MainPID)"/cmdline |
    grep -e --log_level=warn || fail "the unit's own settings have no effect"
  systemctl stop "$server"
  rm "/etc/lockstep/$server.env"
}

# Tasks are stopped; the operator's files stay until a purge.
check_removal() {
  local server=lockstep-ps@fashion.0 pid
  systemctl start "$server"
  pid=$(property "$server" MainPID)
  dpkg --remove lockstep
  [ ! -e "/proc/$pid" ] || fail "the server still runs"
  [ -e /etc/lockstep/lockstep.env ] || fail "the settings are gone"
  [ -e /var/lib/lockstep/checkpoints ] || fail "the checkpoints are gone"
  [ ! -e /usr/bin/lockstep ] || fail "the programs are left"
}

# Its gRPC server answers the watchdog's questions; then it hangs. What the others
# check goes on meanwhile.
start_watchdog() {
  hung=lockstep-ps@fashion.1
  mkdir -p "/run/systemd/system/$hung.service.d"
  printf '[Service]\nWatchdogSec=16\nTimeoutAbortSec=1\n' \
    >"/run/systemd/system/$hung.service.d/watchdog.conf"
  systemctl daemon-reload
  systemctl start "$hung"
  first_pat=$(property "$hung" WatchdogTimestampMonotonic)
}

was_patted() { ! is "$hung" WatchdogTimestampMonotonic "$first_pat"; }

hang() {
  until_true "an answer to the watchdog" was_patted
  is "$hung" NRestarts 0 || fail "the watchdog bit a server that lives"
  kill -STOP "$(property "$hung" MainPID)"
}

check_watchdog() {
  until_true "the watchdog" is "$hung" NRestarts 1
  says _SYSTEMD_UNIT=init.scope 'Watchdog timeout'
  systemctl stop "$hung"
  rm -r "/run/systemd/system/$hung.service.d"
  systemctl daemon-reload
}

# kill_worker INDEX: a worker of $job is killed and started again.
kill_worker() {
  local worker=lockstep-worker@${job##*/}.$1 pid
  pid=$(property "$worker" MainPID)
  [ "$pid" -gt 0 ] || fail "$worker has ended"
  kill -KILL "$pid"
  until_true "another worker" is "$worker" NRestarts 1
}

# A job without servers: the chief computes, too. A worker that is killed goes on
# with its copy of the variables; one that has lost the copy takes another's.
check_mirrors() {
  local job=/etc/lockstep/mirrors operator=() state=/run/lockstep/worker-mirrors.1
  local units=(lockstep-worker@mirrors.{0,1} lockstep-chief@mirrors)
  write_job 1000 30 --ps 0 --workers 2
  sed -i '/^replicas_to_aggregate/d; /^total_num_replicas/d
    s|checkpoints/fashion_mnist|checkpoints/mirrors|
    $a strategy { kind: MULTI_WORKER_MIRRORED }' "$job/job.textproto"
  systemctl start "${units[@]}"
  until_true "step 50" has_step 50
  kill_worker 0
  until_true "more steps" has_step $(($(step) + 20))
  rm -r "${state:?}"/*
  kill_worker 1
  end_units
  chief_log | grep 'ps 2 has lost its state: takes the state of step' ||
    fail "it took no state from another worker"
  ! chief_log | grep 'resumed from the checkpoint of step' || fail "steps are lost"
  chief_log | grep 'done at step 1000' || fail "the job is not done"
  [ -e /var/lib/lockstep/checkpoints/mirrors/step-00001000/model.safetensors ] ||
    fail "there is no checkpoint"
  rm -r "$job"
}

# install_certificates: each task's own, for the group of the tasks to read.
install_certificates() {
  local from to
  for from in /srv/certs/*-[0-9]; do
    to=/etc/lockstep/tls/${from##*/}
    install -d -m 0750 -g lockstep "$to"
    for file in tls.key ca.crt tls.crt; do
      install -m 0640 -g lockstep "$from/$file" "$to/.$file"
      mv "$to/.$file" "$to/$file"
    done
  done
}

# The job has certificates, as the package's README says: in files that the tasks
# read again, and for one server by the README's drop-in with LoadCredential=.
secure() {
  local readme=/usr/share/doc/lockstep/README.systemd.md drop_in
  lockstep certs make --cluster "$job/cluster.json" --job fashion \
    --out /srv/certs
  install_certificates
  sed -i 's|^\(LOCKSTEP_[A-Z]*_FLAGS=.*\)|\1 --tls_dir=/etc/lockstep/tls/{role}-{index}|' \
    /etc/lockstep/lockstep.env
  drop_in=$(sed -n 's|^ *# \(/etc/systemd/system/.*/tls.conf\)$|\1|p' "$readme")
  mkdir -p "${drop_in%/*}"
  sed -n '/^ *# \/etc\/systemd\/system\/.*tls.conf$/,/tls_dir=%d$/p' "$readme" |
    sed 's/^ *//' >"$drop_in"
  [ "$(grep -c LoadCredential "$drop_in")" -eq 3 ] || fail "no drop-in in $readme"
  systemctl daemon-reload
}

check_certificates() {
  local pid
  pid=$(property lockstep-ps@fashion.0 MainPID)
  tr '\0' ' ' </proc/"$pid"/cmdline |
    grep -F -- '--tls_dir=/run/credentials/lockstep-ps@fashion.0.service' ||
    fail "the server does not use its credentials"
  ! lockstep status --cluster "$job/cluster.json" --insecure >/tmp/refused 2>&1 ||
    fail "the chief answers without a certificate"
  ! lockstep stop --cluster "$job/cluster.json" \
    --tls_dir /srv/certs/operator-read >/tmp/refused 2>&1 ||
    fail "a reader has stopped the job"
  grep -q steer /tmp/refused || fail "no word of who may: $(cat /tmp/refused)"
}

# Renewed while the job trains: no task is started again for it. The server with
# a copy is, which is how LoadCredential= works.
renew() {
  local unit
  declare -A before
  for unit in "${units[@]}"; do before[$unit]=$(property "$unit" MainPID); done
  lockstep certs renew --cluster "$job/cluster.json" --job fashion \
    --out /srv/certs
  install_certificates
  for unit in "${units[@]}"; do
    [ "$unit" = lockstep-ps@fashion.0 ] && continue
    until_true "new certificates of $unit" renewed "$unit"
    is "$unit" MainPID "${before[$unit]}" || fail "$unit was started again"
  done
  systemctl restart lockstep-ps@fashion.0
  until_true "steps with new certificates" has_step $(($(step) + 20))
}
renewed() {
  journal -u "$1" | grep 'uses new certificates' >/dev/null
}

# The most bytes that the kernel lets the processes of a unit use, with version 2
# or 1 of its groups; nothing if this container has no groups for memory.
memory_in_force() {
  local group
  group=$(property "$1" ControlGroup)
  cat "/sys/fs/cgroup$group/memory.max" \
    "/sys/fs/cgroup/memory$group/memory.limit_in_bytes" 2>/dev/null | head -n 1
}
memory_is() { [ "$(memory_in_force "$1")" = "$2" ]; }
# The kernel holds a unit to its MemoryMax=.
check_memory() {
  local unit=lockstep-worker@fashion.0 bytes
  if [ -z "$(memory_in_force "$unit")" ]; then
    echo "SKIPPED, NOTHING WAS PROVED: this container has no groups for memory," \
      "so the kernel's limits of the units were not seen"
    return
  fi
  bytes=$(property "$unit" MemoryMax)
  systemctl set-property --runtime "$unit" MemoryMax=3G
  until_true "a limit of 3 GiB" memory_is "$unit" $((3 << 30))
  systemctl set-property --runtime "$unit" MemoryMax="$bytes"
}

# The limits of the units hold for the processes.
check_limits() {
  local unit pid files
  # Nobody gets more than this machine's systemd may have. Without a unit's
  # LimitNOFILE= the soft limit would be 1024.
  files=$(awk '/^Max open files/ { print $5 < 65536 ? $5 : 65536 }' /proc/1/limits)
  for unit in "${units[@]}"; do
    pid=$(property "$unit" MainPID)
    grep -Eq "^Max open files +$files +$files" "/proc/$pid/limits" ||
      fail "$unit: $(grep 'open files' "/proc/$pid/limits")"
    grep -Eq '^Max core file size +0 +0' "/proc/$pid/limits" ||
      fail "$unit can dump core"
    [ "$(property "$unit" MemoryMax)" != infinity ] ||
      fail "$unit has no limit of memory"
    property "$unit" IPAddressDeny | grep -q 224.0.0.0 ||
      fail "$unit may send to any address"
  done
}

# The units that the package's README enables and starts.
documented() {
  grep -E '^    systemctl (enable|start) ' /usr/share/doc/lockstep/README.systemd.md
}

# The worker that is killed comes back, and the job goes on to a checkpoint.
# The evaluator may have no address at which it could be asked.
check_who_is_watched() {
  for unit in "${units[@]}"; do
    case $unit in
      lockstep-evaluator@*) ! is "$unit" WatchdogUSec 1min ;;
      *) is "$unit" WatchdogUSec 1min ;;
    esac || fail "$unit: WatchdogSec is $(property "$unit" WatchdogUSec)"
  done
}

# The target ends after its tasks: no task starts while the chief of before ends,
# which would stop it again.
check_target() {
  local unit before
  systemctl stop lockstep.target
  for unit in "${units[@]}"; do
    is "$unit" ActiveState inactive ||
      fail "$unit is $(property "$unit" ActiveState) after a stop of the target"
  done
  systemctl start lockstep.target
  until_true "steps after a start of all" has_step 100
  before=$(step)
  systemctl restart lockstep.target
  until_true "steps after a restart of all" has_step $((before + 20))
  for unit in "${units[@]}"; do
    is "$unit" NRestarts 0 || fail "$unit was started again after a restart of all"
  done
}

start_job() {
  documented >/tmp/documented
  grep -c enable /tmp/documented
  bash -e /tmp/documented 2>/tmp/refused ||
    fail "$(cat /tmp/documented /tmp/refused)"
  # The document leaves out some of the units of this test.
  systemctl enable --now "${units[@]}" 2>/tmp/refused ||
    fail "$(cat /tmp/refused)"
  until_true "step 50" has_step 50
  check_target
  check_who_is_watched
  check_certificates
  check_limits
  check_memory
  kill_worker 1
  until_true "more steps" has_step 300
  renew
}

# All tasks end in order.
end_units() {
  local unit
  for unit in "${units[@]}"; do
    until_true "the end of $unit" is "$unit" ActiveState inactive
    is "$unit" Result success || fail "$unit: $(property "$unit" Result)"
    is "$unit" ExecMainStatus 0 || fail "$unit did not end with 0"
  done
}

end_job() {
  end_units
  # Since the reboot; the test has restarted the chief before.
  journal -b -u lockstep-chief@fashion |
    grep 'resumed from the checkpoint of step' || fail "it did not resume"
  chief_log | grep 'done at step 3000' || fail "the job is not done"
  chief_log | grep -E 'step 3000: test accuracy 0\.(8[6-9]|9)' ||
    fail "the accuracy is not what it should be"
  check_journal
}

# says FIELD=VALUE... TEXT: an entry with all these fields has the text.
says() {
  journal "${@:1:$#-1}" | grep "${@: -1}" >/dev/null ||
    fail "the journal has no entry with $*"
}

check_journal() {
  says LOCKSTEP_INSTANCE=fashion.1 LOCKSTEP_JOB=fashion LOCKSTEP_TASK='worker 1' \
    'registered with the chief'
  says LOCKSTEP_JOB=fashion LOCKSTEP_TASK='chief 0' LOCKSTEP_STEP=3000 \
    'done at step 3000'
  says LOCKSTEP_JOB=fashion LOCKSTEP_TASK='ps 1' LOCKSTEP_STEP=3000 PRIORITY=6 \
    done
  says LOCKSTEP_TASK='evaluator 0' LOCKSTEP_STEP=3000 'step 3000: accuracy'
}

if [ ! -e "$job" ]; then
  phase "configuration" configure
  start_watchdog
  phase "sandbox" check_sandbox
  phase "a unit without its configuration" check_missing_configuration
  phase "a program of one's own" check_own_program
  hang
  phase "state outlives a killed server, not a stopped one" check_state
  phase "an upgrade" check_upgrade
  phase "a server that hangs" check_watchdog
  phase "a job without servers" check_mirrors
  phase "certificates" secure
  phase "a job with a worker that is killed, and new certificates" start_job
  phases
  echo "-- reboot"
  systemctl reboot
  sleep infinity
else
  phase "the job after a reboot" end_job
  phase "removal" check_removal
  phases
fi
