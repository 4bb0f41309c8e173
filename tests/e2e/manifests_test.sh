#!/usr/bin/env bash
# manifests_test.sh SOURCE_DIR LOCKSTEP: renders deploy/kubernetes with `kubectl
# kustomize` and resolves what it refers to with check_manifests.py: selectors,
# names of pods, volumes, ports, files, the cluster that `LOCKSTEP config make`
# writes as the documents say. Mistakes planted in the base are found at their
# place. Exits with 77, which is "skipped", where a tool is missing.
set -euo pipefail
source=$1 lockstep=$2
here=$source/tests/e2e

# shellcheck source=tests/e2e/system/system_lib.sh
source "$here/system/system_lib.sh"
need_kustomize "$source"
need_tools python3
python3 -c 'import yaml' 2>/dev/null || skip "python3-yaml is not installed"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

check() { python3 -B "$here/check_manifests.py" "$@"; }
render() { kubectl kustomize "$1" >"$work/rendered.yaml"; }

# given CLUSTER_JSON: the objects that an example takes from elsewhere.
given() {
  mkdir -p "$work/given"
  cp "$1" "$work/given/cluster.json"
  cp "$source"/deploy/kubernetes/base/{job.textproto,checkpoints.yaml} "$work/given"
  cat >"$work/given/kustomization.yaml" <<'YAML'
resources: [checkpoints.yaml]
generatorOptions: {disableNameSuffixHash: true}
configMapGenerator:
  - name: fashion
    files: [cluster.json, job.textproto]
YAML
  kubectl kustomize "$work/given" >"$work/given.yaml"
}

# documented FILE: runs the `lockstep config make` that the file tells.
documented() {
  local command
  command=$(sed -e ':a' -e '/\\$/{N;s/ *\\\n[# ]*/ /;ba}' "$1" |
    grep -o 'config make [^>]*fashion-{task}[^>]*')
  eval "'$lockstep' $command" >"$work/made.json"
}

for directory in "$source"/deploy/kubernetes/base \
  "$source"/deploy/kubernetes/overlays/*; do
  echo "== ${directory##*/}"
  render "$directory"
  check "$work/rendered.yaml"
done

echo "== the cluster that deploy/kubernetes/README.md makes"
documented "$source/deploy/kubernetes/README.md"
cp -r "$source/deploy/kubernetes/base" "$work/made"
cp "$work/made.json" "$work/made/cluster.json"
render "$work/made"
check "$work/rendered.yaml"

documented "$source/deploy/kubernetes/examples/jobset.yaml"
given "$work/made.json"
for example in "$source"/deploy/kubernetes/examples/{,tls/}*.yaml; do
  echo "== ${example##*/}"
  check "$example" "$work/given.yaml"
done

# found WORDS WHAT FILE...: the check of the files finds the words.
found() {
  local words=$1 what=$2
  shift 2
  ! check "$@" >"$work/found" || fail "$what: is not found"
  grep -qF "$words" "$work/found" ||
    fail "$what: is found elsewhere: $(cat "$work/found")"
}

# planted FILE EDIT WORDS: with the edit in the base, the check finds the words.
planted() {
  rm -rf "$work/planted"
  cp -r "$source/deploy/kubernetes/base" "$work/planted"
  sed -i "$2" "$work/planted/$1"
  ! cmp -s "$source/deploy/kubernetes/base/$1" "$work/planted/$1" ||
    fail "$1: $2 edits nothing"
  render "$work/planted"
  found "$3" "$1: $2" "$work/rendered.yaml"
}

# planted_example NAME EDIT WORDS
planted_example() {
  sed "$2" "$source/deploy/kubernetes/examples/$1.yaml" >"$work/$1.yaml"
  found "$3" "$1: $2" "$work/$1.yaml" "$work/given.yaml"
}

echo "== planted mistakes"
planted kustomization.yaml 's/includeTemplates: true/includeTemplates: false/' \
  'Service fashion: selects no pod'
planted kustomization.yaml 's/includeTemplates: true/includeTemplates: false/' \
  'PodDisruptionBudget fashion: selects no pod'
planted service.yaml 's/instance: fashion/instance: other/' \
  'Job fashion-ps: Service fashion does not select it'
planted service.yaml '/^metadata/,/^spec/s/name: fashion/name: fashions/' \
  'Job fashion-chief: there is no Service fashion'
planted service.yaml 's/clusterIP: None/type: ClusterIP/' 'is not headless'
planted service.yaml '/publishNotReady/d' 'hides pods that wait'
planted service.yaml 's/targetPort: grpc/targetPort: rpc/' \
  'Job fashion-chief has no port rpc'
planted service.yaml 's/port: 2222/port: 2223/' 'port 2223 cannot lead to port 2222'
planted ps.yaml 's/subdomain: fashion/subdomain: fashions/' \
  'Job fashion-ps: there is no Service fashions'
planted ps.yaml '/subdomain: fashion/d' 'ps 0 is fashion-ps-0.fashion, but'
planted ps.yaml 's/completionMode: Indexed/completionMode: NonIndexed/' \
  'ps 0 is fashion-ps-0.fashion, but its pod is without a name'
planted ps.yaml 's/completions: 2/completions: 3/' 'cluster.json: lacks ps 2'
planted worker.yaml 's/completions: 2/completions: 1/' 'worker 1 has no pod'
planted cluster.json 's/ps-0.fashion:2222/ps-0.fashion:2223/' 'has no port 2223'
planted cluster.json 's/ps-0/ps-2/' 'ps 0 is fashion-ps-2.fashion, but its pod is'
planted chief.yaml '/claimName/s/fashion-checkpoints/fashion/' \
  'there is no PersistentVolumeClaim fashion'
planted chief.yaml 's/mountPath: .var.lib.lockstep/mountPath: \/var\/lib\/other/' \
  'no volume has /var/lib/lockstep/fashion of the job'
planted chief.yaml '/configMap/,/name:/s/name: fashion/name: jobs/' \
  'there is no ConfigMap jobs'
planted chief.yaml 's/mountPath: .etc.lockstep.fashion/mountPath: \/etc\/lockstep/' \
  'nothing gives it the file /etc/lockstep/fashion/cluster.json'
planted chief.yaml 's/grpc: {port: 2222}/grpc: {port: 2223}/' \
  'there is no port 2223'
planted chief.yaml 's/containerPort: 9100/containerPort: 9101/' \
  'prometheus.io/port: there is no port 9100'
planted ps.yaml 's/::]:9100/::]:9101/' 'no --status_address has the port 9100'
planted worker.yaml 's/mountPath: .usr.share.datasets/mountPath: \/data/' \
  'no volume has /usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz'
planted worker.yaml '/limits:/d' 'worker has no limit of memory'
planted worker.yaml 's/--insecure, //' \
  'worker has neither certificates nor --insecure'
planted ps.yaml '/sizeLimit:/d' 'volume state in memory has no sizeLimit'
planted worker.yaml 's/--compute_threads=2/--compute_threads=1/' \
  'worker requests 2 processors, but has no --compute_threads=2'
planted ps.yaml 's/sizeLimit: 1Gi/sizeLimit: 4Gi/' "leaves nothing of the"
planted ps.yaml 's/mountPath: .state/mountPath: \/states/' \
  'no volume for --state_dir /state'
planted disruption.yaml 's/minAvailable: 4/maxUnavailable: 1/' \
  'maxUnavailable lets no pod of a Job go'
planted disruption.yaml 's/minAvailable: 4/minAvailable: 5/' \
  'not all but one of 5 pods'
planted_example tfjob '/--stopped_is_done.  # one/,$s/volumeMounts:/volumeMounts: []/; /- name: data$/,$d' \
  'TFJob fashion, Worker: no volume has'
planted_example jobset 's/subdomain: fashion/subdomain: other/' \
  'but its pod is fashion-chief-0-0.other'
planted_example volcano 's/tensorflow: .*//' 'nothing gives it a cluster'
planted_example tfjob_mirrors '0,/--state_dir/s/--state_dir, .state.lockstep,//' \
  'TFJob fashion, Chief: no --state_dir for its copy'
planted_example tfjob_mirrors '0,/datasets$/{/- name: data$/d;/datasets$/d}' \
  'TFJob fashion, Chief: no volume has /usr/share/datasets'
echo "all that the manifests refer to is there"
