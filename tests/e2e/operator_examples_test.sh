#!/usr/bin/env bash
# operator_examples_test.sh SOURCE_DIR: checks deploy/kubernetes/examples against
# operator_schemas.yaml, and that mistakes planted in them are found at their
# place. Needs python3-jsonschema and python3-yaml: exits with 77, which is
# "skipped", where one is missing.
set -euo pipefail
source=$1
here=$source/tests/e2e
examples=$source/deploy/kubernetes/examples

if ! python3 -c 'import jsonschema, yaml; jsonschema.Draft202012Validator' \
  2>/dev/null; then
  echo "SKIPPED, NOTHING WAS PROVED: python3-jsonschema or python3-yaml is" \
    "missing" >&2
  exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

check() {
  python3 "$here/check_operator_examples.py" "$here/operator_schemas.yaml" "$1"
}

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

# planted EXAMPLE EDIT PLACE: with the edit, the check names the place.
planted() {
  sed "$2" "$examples/$1.yaml" >"$work/$1.yaml"
  ! cmp -s "$examples/$1.yaml" "$work/$1.yaml" || fail "$1: $2 edits nothing"
  ! check "$work/$1.yaml" >"$work/found" || fail "$1: $2 is not found"
  grep -qF "$3" "$work/found" ||
    fail "$1: $2 is found elsewhere: $(cat "$work/found")"
}

count=0
for example in "$examples"/*.yaml; do
  check "$example"
  count=$((count + 1))
done
for example in "$examples"/tls/*.yaml; do
  check "$example"
  # The same, but for certificates and limits.
  for image in $(sed -n 's/.*command: \[\(.*\)\]/\1/p' "$examples/${example##*/}"); do
    grep -qF "command: [$image]" "$example" || fail "$example: no $image"
  done
done
[ "$count" -eq 4 ] || fail "$count examples, not 4: plant mistakes in each"

planted tfjob_mirrors 's/ Worker:/ Workers:/' "'Workers' was unexpected"
planted tfjob 's/tfReplicaSpecs/replicaSpecs/' "'tfReplicaSpecs' is a required"
planted tfjob 's/replicas: 1/replicas: one/' spec.tfReplicaSpecs.Chief.replicas
planted tfjob 's/restartPolicy: ExitCode/restartPolicy: ExitCodes/' \
  spec.tfReplicaSpecs.PS.restartPolicy
planted tfjob 's/cleanPodPolicy: .*/cleanPodPolicy: running/' \
  spec.runPolicy.cleanPodPolicy
planted tfjob 's/ Worker:/ worker:/' "'worker' was unexpected"
planted tfjob 's/name: tensorflow/name: lockstep/' template.spec.containers
planted tfjob '0,/- name: state$/s//- name: states/' 'tfReplicaSpecs.PS: there is no'

planted jobset 's/operator: All/operator: Every/' spec.successPolicy.operator
planted jobset 's/maxRestarts: 0/maxRestart: 0/' "'maxRestart' was unexpected"
planted jobset 's/enableDNSHostnames: true/enableDNSHostnames: "yes"/' \
  spec.network.enableDNSHostnames
planted jobset '/^    - name: chief/s/name: chief/names: chief/' \
  "spec.replicatedJobs.0: 'name' is a required"
planted jobset 's/v1alpha2/v1/' 'no schema for jobset.x-k8s.io/v1/JobSet'

planted volcano 's/event: PodEvicted/event: Evicted/' spec.policies.0.event
planted volcano 's/action: RestartJob/action: Restart/' spec.policies.0.action
planted volcano 's/minAvailable: 5/minAvailable: 4/' 'spec.minAvailable: 4, not 5'
planted volcano 's/svc: \[\]/svc: true/' spec.plugins.svc
planted volcano '/^    - name: ps/s/name: ps/name: PS/' spec.tasks.1.name

planted tfjob '0,/runAsNonRoot: true/s//runAsNonRoot: false/' \
  'tfReplicaSpecs.Chief: securityContext: runAsNonRoot'
planted volcano '/seccompProfile/d' 'tasks.ps: securityContext: seccompProfile'
planted tfjob_mirrors '/terminationGracePeriodSeconds/d' \
  'tfReplicaSpecs.Worker: terminationGracePeriodSeconds'
planted jobset '/allowPrivilegeEscalation/d' \
  'replicatedJobs.worker: worker: allowPrivilegeEscalation'
planted jobset 's/drop: .ALL./add: [NET_RAW]/' 'replicatedJobs.ps: ps: capabilities'

echo "== exit codes"
restarts() { python3 "$here/check_restarts.py" "$@"; }
restarts "$source"/deploy/kubernetes/base/*.yaml "$examples"/{,tls/}*.yaml

# restarts_planted FILE EDIT WORDS: with the edit, the check finds these words.
restarts_planted() {
  sed "$2" "$source/deploy/kubernetes/$1" >"$work/planted.yaml"
  ! cmp -s "$source/deploy/kubernetes/$1" "$work/planted.yaml" ||
    fail "$1: $2 edits nothing"
  ! restarts "$work/planted.yaml" >"$work/found" || fail "$1: $2 is not found"
  grep -qF "$3" "$work/found" ||
    fail "$1: $2 is found as: $(cat "$work/found")"
}
restarts_planted base/ps.yaml 's/, *--stopped_is_done//; s/--stopped_is_done//' \
  'ps is started again when it was stopped for good, with code 3'
restarts_planted base/chief.yaml 's/values: .1, 2, 3./values: [1, 2]/' \
  'chief is started again when it was stopped for good, with code 3'
restarts_planted base/chief.yaml \
  's/values: .1, 2, 3./values: [1, 2, 3, 143]/; s/values: .129, 143./values: [129]/' \
  'chief is not started again with code 143'
restarts_planted base/worker.yaml 's/values: .129, 143./values: [129]/' \
  '6 of 12 starts that tasks ask for are counted, and backoffLimit is 10'
restarts_planted base/ps.yaml 's/backoffLimit: .*/backoffLimit: 10/' \
  '12 of 12 starts that tasks ask for are counted, and backoffLimit is 10'
restarts_planted base/ps.yaml '/podReplacementPolicy/d' \
  'another pod of a task starts while the one before serves'
restarts_planted examples/jobset.yaml '/podReplacementPolicy/d' \
  'another pod of a task starts while the one before serves'
restarts_planted base/worker.yaml 's/type: DisruptionTarget/type: Ready/' \
  'pods of drained nodes are counted, or fail the Job'
restarts_planted examples/jobset.yaml 's/backoffLimit: 1000000.*/backoffLimit: 10/' \
  '12 of 12 starts that tasks ask for are counted, and backoffLimit is 10'
restarts_planted base/chief.yaml 's/restartPolicy: Never/restartPolicy: OnFailure/' \
  'podFailurePolicy takes restartPolicy Never'
restarts_planted base/worker.yaml 's/, --stopped_is_done//' \
  'worker ends all workers when one is taken out'
restarts_planted examples/tfjob.yaml '0,/ExitCode/s/ExitCode/OnFailure/' \
  'chief is started again with code 1'
restarts_planted examples/volcano.yaml 's/--stopped_is_done//' \
  'chief is started again when it was stopped for good, with code 3'
restarts_planted examples/jobset.yaml '0,/\[1, 2, 3\]/s//[2, 3]/' \
  'chief is started again with code 1'

echo "== certificates"
made=$source/deploy/kubernetes/cert-manager/certificates.yaml
certificates() { python3 "$here/check_certificates.py" "$1" "$2"; }
for example in "$examples"/tls/*.yaml; do certificates "$made" "$example"; done

# certificates_planted FILE EDIT WORDS: with the edit, the check finds these words.
certificates_planted() {
  local first=$made second=$examples/tls/jobset.yaml
  sed "$2" "$1" >"$work/planted.yaml"
  ! cmp -s "$1" "$work/planted.yaml" || fail "$1: $2 edits nothing"
  if [ "$1" = "$made" ]; then first=$work/planted.yaml; else second=$work/planted.yaml; fi
  ! certificates "$first" "$second" >"$work/found" || fail "$1: $2 is not found"
  grep -qF "$3" "$work/found" || fail "$1: $2 is found as: $(cat "$work/found")"
}
certificates_planted "$made" 's,fashion/worker/\*,fashion/ps/*,' \
  "fashion-worker-tls: its certificate has ['lockstep://fashion/ps/*']"
certificates_planted "$made" 's/, client auth//' 'usages: client auth is missing'
certificates_planted "$made" 's/issuerRef: {name: fashion-ca}/issuerRef: {name: ca}/' \
  'there is no Issuer ca'
certificates_planted "$examples/tls/jobset.yaml" \
  '0,/--tls_dir=[^],]*/s//--insecure/' 'pod 1: --insecure'
certificates_planted "$examples/tls/jobset.yaml" \
  's/secretName: fashion-ps-tls/secretName: fashion-server-tls/' \
  'fashion-server-tls: its certificate has None'
certificates_planted "$examples/tls/jobset.yaml" 's/defaultMode: 288/defaultMode: 420/' \
  'defaultMode is not 0440'
certificates_planted "$examples/tls/jobset.yaml" '/limits:/d' 'no limit of memory'
echo "the examples are what their operators know"
