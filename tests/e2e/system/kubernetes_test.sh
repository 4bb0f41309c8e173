#!/usr/bin/env bash
# kubernetes_test.sh SOURCE_DIR LOCKSTEP VENV: renders deploy/kubernetes with
# `kubectl kustomize`, checks all that comes of it against the official schemas
# with kubernetes-validate, in the virtual environment VENV, which is made where
# it is missing, and has LOCKSTEP check what its pods will read. Exits with 77,
# which is "skipped", where a tool cannot be had.
set -euo pipefail
source=$1 lockstep=$2 venv=$3

# shellcheck source=tests/e2e/system/system_lib.sh
source "$(dirname "$0")/system_lib.sh"

need_kustomize "$source"
if [ ! -x "$venv/bin/kubernetes-validate" ]; then
  { python3 -m venv "$venv" &&
    timeout 240 "$venv/bin/pip" --quiet install kubernetes-validate; } ||
    skip "kubernetes-validate cannot be installed"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Against the official schemas: the newest, and those of the oldest version that
# deploy/kubernetes/README.md names.
oldest=$(sed -n 's/.* for Kubernetes \([0-9.]*\) and newer\..*/\1/p' \
  "$source/deploy/kubernetes/README.md")
validate() {
  "$venv/bin/kubernetes-validate" --strict "$1" &&
    "$venv/bin/kubernetes-validate" --strict -k "${oldest:?}" "$1"
}

# field NAME KEY...: a value of the rendered Job NAME.
field() {
  "$venv/bin/python" - "$work/all.yaml" "$@" <<'PYTHON'
import sys
import yaml

path, name, *keys = sys.argv[1:]
for document in yaml.safe_load_all(open(path)):
    if (document["kind"], document["metadata"]["name"]) == ("Job", name):
        for key in keys:
            document = document[key]
        print(document)
PYTHON
}

# The ConfigMap's files, as pods find them.
extract() {
  "$venv/bin/python" - "$work/all.yaml" "$work/fashion" <<'PYTHON'
import os
import sys
import yaml

os.makedirs(sys.argv[2], exist_ok=True)
for document in yaml.safe_load_all(open(sys.argv[1])):
    if document["kind"] == "ConfigMap":
        for name, text in document["data"].items():
            open(os.path.join(sys.argv[2], name), "w").write(text)
PYTHON
}

for directory in base $(cd "$source/deploy/kubernetes" && echo overlays/*); do
  echo "== $directory"
  kubectl kustomize "$source/deploy/kubernetes/$directory" >"$work/all.yaml"
  validate "$work/all.yaml"
  extract
  "$lockstep" config check --cluster "$work/fashion/cluster.json"
  for role in chief ps worker; do
    count=$(field "fashion-$role" spec completions)
    for ((i = 0; i < ${count:-0}; ++i)); do
      "$lockstep" task --config_dir "$work" --show "$role" "fashion.$i"
    done
    ! "$lockstep" task --config_dir "$work" --show "$role" "fashion.$i" \
      2>/dev/null || { echo "cluster.json has more than $i $role"; exit 1; }
  done
done

echo "== certificates"
kubectl kustomize "$source/deploy/kubernetes/overlays/tls" >"$work/all.yaml"
"$venv/bin/python" "$source/tests/e2e/check_certificates.py" \
  "$source/deploy/kubernetes/cert-manager/certificates.yaml" "$work/all.yaml"

echo "== examples"
for example in "$source"/deploy/kubernetes/examples/{,tls/}*.yaml; do
  "$venv/bin/python" "$source/tests/e2e/check_operator_examples.py" \
    "$source/tests/e2e/operator_schemas.yaml" "$example" "$work/embedded.yaml"
  validate "$work/embedded.yaml"
done

echo "== a mistake that is planted is found"
sed 's/mountPath:/mountPaths:/' "$work/embedded.yaml" >"$work/planted.yaml"
if validate "$work/planted.yaml" 2>/dev/null; then
  echo "it is not found" >&2
  exit 1
fi
