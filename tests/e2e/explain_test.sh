#!/usr/bin/env bash
# explain_test.sh PROGRAMS PYTHONPATH: jobs with a planted trouble each. `lockstep
# explain` alone names it as what would help most to mend, and `lockstep trace`
# shows the clocks of the tasks aligned.
# Exits with 77, which is "skipped", without numpy.
set -euo pipefail
programs=$1
export PYTHONPATH=$2
here=$(dirname "$0")
python=/usr/bin/python3

"$python" -c 'import numpy, lockstep' 2>/dev/null || {
  echo "SKIPPED, NOTHING WAS PROVED: $python has no numpy, or lockstep is not built" >&2
  exit 77
}

work=$(mktemp -d /tmp/lockstep-explain-test-XXXXXX)
run=
end_run() { [ -z "$run" ] || { kill "$run" 2>/dev/null && wait "$run"; } || true; run=; }
trap 'end_run; rm -rf "$work"' EXIT

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  tail -n 15 "$work"/*/*.log "$work"/*.out >&2 || true
  exit 1
}

# Starts a job with a trouble; further words are flags of `lockstep run`.
start() {
  export TROUBLE=$1
  shift
  log_dir=$work/$TROUBLE
  rm -rf "$log_dir"
  "$programs/lockstep" run --workers 3 --log_dir "$log_dir" --restarts 1000 \
    --set train_steps=1000000 --set learning_rate=1e-6 "$@" \
    -- "$python" "$here/explained_worker.py" >"$work/$TROUBLE.out" 2>&1 &
  run=$!
}

# Returns once the job has made this step.
await_step() {
  local deadline=$((SECONDS + 120)) now
  until now=$("$programs/lockstep" status --log_dir "$log_dir" --json 2>/dev/null |
    "$python" -c 'import json, sys; print(json.load(sys.stdin)["global_step"])' 2>/dev/null) &&
    [ "$now" -ge "$1" ]; do
    [ "$SECONDS" -lt "$deadline" ] || fail "$TROUBLE: no step $1 within two minutes"
    kill -0 "$run" 2>/dev/null || fail "$TROUBLE: the run has ended"
    sleep 0.2
  done
}

# Prints the explanation, and expects a remedy, and a worker if there is one, to
# be what would help most. What else this machine does may be more trouble for
# some steps, but not for all.
expect() {
  local deadline=$((SECONDS + 60))
  "$programs/lockstep" explain --log_dir "$log_dir" --timeout 20
  until advises "$1" "${2:-}" 2>"$work/advice"; do
    [ "$SECONDS" -lt "$deadline" ] ||
      fail "$TROUBLE: other advice: $(cat "$work/advice")"
    kill -0 "$run" 2>/dev/null || fail "$TROUBLE: the run has ended"
    sleep 1
  done
}

advises() {
  "$programs/lockstep" explain --log_dir "$log_dir" --timeout 20 --json >"$work/explanation" &&
    "$python" - "$work/explanation" "$1" "$2" <<'PY'
import json, sys
it = json.load(open(sys.argv[1]))
best = it["advice"][0]
ok = best["remedy"] == sys.argv[2] and str(best.get("worker", "")) == sys.argv[3]
ok = ok and not it["silent_tasks"] or (ok and sys.argv[2] == "mend_worker")
if not ok:
    print(json.dumps(it, indent=1), file=sys.stderr)
sys.exit(0 if ok else 1)
PY
}

echo "== a slow worker"
start slow --ps 1
await_step 60
expect backup 1

# A trace whose clocks are aligned well, as those of calls that a busy machine
# does not delay.
traced() {
  "$programs/lockstep" trace --log_dir "$log_dir" --steps 20 \
    --out "$work/trace.json" --timeout 20 &&
    "$python" -c 'import json, sys
error = json.load(open(sys.argv[1]))["otherData"]["clock_error_us"]
sys.exit(not 0 <= error < 100_000)' "$work/trace.json"
}

echo "== the trace of that job"
deadline=$((SECONDS + 60))
until traced; do
  [ "$SECONDS" -lt "$deadline" ] || fail "the clocks are not aligned"
  sleep 1
done
"$python" - "$work/trace.json" <<'PY' || fail "the trace"
import json, sys
trace = json.load(open(sys.argv[1]))
tasks = {e["pid"]: e["args"]["name"].split(" on ")[0] for e in trace["traceEvents"]
         if e["ph"] == "M" and e["name"] == "process_name"}
assert sorted(tasks.values()) == ["chief 0", "ps 0", "worker 0", "worker 1", "worker 2"], tasks
error = trace["otherData"]["clock_error_us"]
spans = [e for e in trace["traceEvents"] if e["ph"] == "X"]
steps = {e["args"]["step"] for e in spans if e["name"] == "commit"}
assert len(steps) == 20, sorted(steps)
# A push is under way while its server receives it, in aligned time.
seen = 0
for push in spans:
    if push["name"] != "receive":
        continue
    worker = f"worker {push['args']['worker']}"
    step = push["args"]["step"]
    of_worker = [e for e in spans if tasks[e["pid"]] == worker
                 and e["args"].get("step") == step]
    pushes = [e for e in of_worker if e["name"] == "push"]
    passes = [e for e in of_worker if e["name"] in ("backward", "push")]
    if not pushes:
        continue
    begin = min(e["ts"] for e in passes) - error
    end = max(e["ts"] + e["dur"] for e in pushes) + error
    assert begin <= push["ts"] + push["dur"] and push["ts"] <= end, (push, of_worker)
    seen += 1
assert seen >= 20, seen
PY

echo "== its passes in the simulator, by the program of the page"
awk '/^```python$/ { inside = 1; next } /^```$/ { inside = 0 } inside' \
  "$here/../../chief/backups/README.md" >"$work/passes.py"
(cd "$work" && "$python" passes.py) || fail "the program of chief/backups/README.md"
"$programs/lockstep" simulate --trace "$work/passes.json" --steps 50 --json >"$work/simulated" ||
  fail "the simulator refuses $(cat "$work/passes.json")"
"$python" - "$work/simulated" <<'PY' || fail "the simulation: $(cat "$work/simulated")"
import json, sys
it = json.load(open(sys.argv[1]))
assert it["workers"] == 3, it
whole, backup = it["policies"][:2]
assert backup["step_seconds"] < whole["step_seconds"], it
PY

"$programs/lockstep" logs --log_dir "$log_dir" --task chief --task ps:0 >"$work/story"
grep -q ' chief 0  ps 0 registered' "$work/story" && grep -q ' ps 0  registered with' "$work/story" ||
  fail "the logs have other lines: $(cat "$work/story")"
sort -c -s -k1,1 "$work/story" || fail "the logs are not in the order of time"
end_run

echo "== a slow worker of a job that can have no backup, with parts on one mirror alone"
start slow --set strategy.kind=MULTI_WORKER_MIRRORED
await_step 60
expect equal_workers 1
end_run

echo "== a slow reader"
start reader --ps 1
await_step 60
expect faster_reader 1
end_run

echo "== too few servers"
# An optimizer that computes two powers for each element.
start updates --ps 1 --set optimizer.kind=FTRL --set optimizer.learning_rate_power=-0.3
await_step 6
expect more_servers
end_run

echo "== a worker that dies again and again"
start dies --ps 1
await_step 12
expect mend_worker 1
end_run

echo "== nothing but computing"
start none --ps 1
await_step 60
expect more_compute
end_run
