#!/usr/bin/env bash
# slurm_script_test.sh SCRIPT PROGRAMS: what deploy/slurm/lockstep.sbatch does with the
# files of its directory, where another allocation uses it or has used it. Scripts
# replace the commands of Slurm; each task ends at once, as that of a job that is done.
set -euo pipefail
script=$1 programs=$2
work=$(mktemp -d /tmp/lockstep-slurm-script-XXXXXX)
trap 'rm -rf "$work"' EXIT
directory=$work/fashion
mkdir "$work/bin" "$directory"
echo 'name: "fashion"' >"$directory/job.textproto"

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  cat "$work/said" >&2
  exit 1
}

# fake NAME: a command of Slurm, with the script at standard input.
fake() {
  { echo '#!/bin/sh' && cat; } >"$work/bin/$1"
  chmod +x "$work/bin/$1"
}
fake srun <<<'exit 0'
fake scontrol <<<'echo node1'
fake sleep <<<'exec /bin/sleep 0.1'

# allocation CODE ID: the allocation of this id runs the script, which ends with CODE.
allocation() {
  local code=0
  PATH=$work/bin:$programs:$PATH SLURM_JOB_ID=$2 SLURM_JOB_NUM_NODES=1 \
    SLURM_JOB_NODELIST=node1 timeout 60 bash "$script" "$directory" \
    >"$work/said" 2>&1 || code=$?
  [ "$code" -eq "$1" ] || fail "allocation $2 ended with $code, not $1"
}
says() { grep -qF -- "$1" "$work/said" || fail "it does not say: $1"; }
made_by() { [ "$(cat "$directory/allocation")" = "$1" ] || fail "not of allocation $1"; }

echo "== a new directory"
fake squeue <<<'echo "squeue was called: $*"; exit 1'
allocation 0 11
says "chief 0 has ended with code 0"
made_by 11
[ -f "$directory/certs/chief-0/tls.crt" ] || fail "no certificates"

echo "== the same allocation, queued again"
touch "$directory/certs/old" "$directory/logs/stopping"
allocation 0 11
[ ! -e "$directory/certs/old" ] || fail "it has the old certificates"
[ ! -e "$directory/logs/stopping" ] || fail "it has the stop of its last start"

for state in RUNNING PENDING; do
  echo "== another allocation: $state"
  fake squeue <<<'[ "$*" = "-h -j 11 -o %T" ] && echo '$state
  cp -a "$directory" "$work/before"
  allocation 2 12
  says "in use by allocation 11 ($state)"
  says "scancel 11"
  diff -r "$work/before" "$directory" || fail "it has changed files of allocation 11"
  rm -r "$work/before"
done

echo "== another one that ends at this moment"
fake squeue <<END
[ ! -e $work/asked ] || exit 0
touch $work/asked
echo COMPLETING
END
allocation 0 12
made_by 12

echo "== another one that has failed"
fake squeue <<<'echo FAILED'
allocation 0 13
made_by 13

echo "== another one that Slurm has forgotten"
fake squeue <<<'echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1'
allocation 0 14
made_by 14

# Allocation 99 takes the directory of 14, which is over, beside this one.
cp -a "$directory" "$work/before"
# shellcheck disable=SC2016  # for the fake commands
states='case $3 in 99) echo RUNNING ;; *) echo FAILED ;; esac'
take="echo 99 >$directory/allocation"

echo "== another one that takes the directory during the check"
fake squeue <<<"$states; [ \$3 = 99 ] || $take"
allocation 2 15
says "in use by allocation 99 (RUNNING)"
made_by 99
diff -r -x allocation "$work/before" "$directory" || fail "it has changed files"

echo "== another one that starts at the same moment and is about to write its id"
echo 14 >"$directory/allocation"
echo 99 >"$directory/allocation.after.14"
fake squeue <<<"$states"
fake sleep <<<"$take; rm -f $directory/allocation.after.14"
allocation 2 15
says "in use by allocation 99 (RUNNING)"
made_by 99
diff -r -x allocation "$work/before" "$directory" || fail "it has changed files"
fake sleep <<<'exec /bin/sleep 0.1'
echo 14 >"$directory/allocation"

echo "== certificates of the user's own"
rm -r "$directory/certs"
mkdir "$directory/certs"
echo key >"$directory/certs/ca.key"
allocation 2 15
says "$directory/certs was not made by this script"
[ "$(cat "$directory/certs/ca.key")" = key ] || fail "the key is gone"
rm -r "$directory/certs"

# chief CODE WORDS: a chief that writes these words into its log, and ends with CODE.
chief() {
  fake srun <<END
[ "\$SLURM_EXPORT_ENV" = ALL ] || exit 1
case "\$*" in *' chief fashion.0 '*) ;; *) exit 0 ;; esac
echo started >>$work/starts
echo '$2' >>$directory/logs/chief-0.log
${3:-}
exit $1
END
  rm -f "$work/starts"
}
started() { [ "$(wc -l <"$work/starts")" = "$1" ] || fail "not $1 starts of the chief"; }

echo "== a chief that refuses the job"
chief 2 "total_num_replicas is 3"
SLURM_EXPORT_ENV=NONE allocation 2 15
says "chief 0 has ended with code 2: total_num_replicas is 3"
started 1

echo "== a chief that refuses the job, for which all others wait"
others="$(cat "$work/bin/srun")"
others=${others/"*) exit 0 ;;"/"*) until [ -e $work/over ]; do /bin/sleep 0.1; done; exit 0 ;;"}
fake srun <<<"$others"
fake sleep <<<"echo >>$work/slept; exec /bin/sleep 0.1"
allocation 2 15
: >"$work/over"
says "chief 0 has ended with code 2: total_num_replicas is 3"
[ ! -e "$work/slept" ] || fail "it has waited $(wc -l <"$work/slept") s"
fake sleep <<<'exec /bin/sleep 0.1'

echo "== ports of the user's choice, where others are taken"
chief 129 "the port is taken"
LOCKSTEP_PORT=21000 allocation 129 15
says "chief 0 has ended with code 129: the port is taken"
grep -q '"chief": \["node1:21000"\]' "$directory/cluster.json" || fail "another port"
started 10

echo "== a stop in which the chief is killed"
# shellcheck disable=SC2016  # for the fake command
fake scontrol <<<'[ "$1" != requeue ] && echo node1 || echo "queued: $2"'
chief 137 "writes the checkpoint" "touch $directory/logs/stopping"
allocation 137 15
says "with code 137 and without a new checkpoint: writes the checkpoint; queued again"
says "queued: 15"
started 1
