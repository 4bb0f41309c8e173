#!/usr/bin/env bash
# own_program_test.sh SOURCE_DIR BUILD_DIR TREE VERSION: builds the images of
# deploy/Containerfile and, on that, of deploy/kubernetes/overlays/own-program, on
# TREE, which debian_tree_test.sh makes with PyTorch, and runs the overlay's pods on
# this machine with `podman kube play`: the workers' program trains, and one that is
# killed comes back. Needs root, mounts, podman, a kubectl that renders, and the
# Python package in the build: exits with 77, which is "skipped", where one is
# missing.
set -euo pipefail
script_arguments=("$@")
here=$(dirname "$0")
# shellcheck source=tests/e2e/system/system_lib.sh
source "$here/system_lib.sh"
# shellcheck source=tests/e2e/system/container_lib.sh
source "$here/container_lib.sh"
source=$1 build=$2 base=$3 version=$4 lockstep=$2/bin/lockstep
need_root
need_containers
need_tools dpkg-deb dpkg-shlibdeps
in_namespaces --mount --net  # where all ports are free
ip link set lo up
# Not on loopback, where programs need neither certificates nor --insecure.
ip address add 10.9.0.1/24 dev lo
[ -e "$base/made-for" ] || skip "$base is missing: see trainer_tree_test"
ls "$build"/python/lockstep/_native.*.so >/dev/null 2>&1 ||
  skip "$build/python has no native module: build lockstep_python"
package=$(newest_package "$build")
overlay=deploy/kubernetes/overlays/own-program

work=$(mktemp -d /tmp/lockstep-own-program-XXXXXX)
finish() {
  pods_end
  rm -rf --one-file-system "$work"
}
trap finish EXIT

# From a context with what the overlay's Containerfile takes from the root of the
# project.
trainer_image() {
  local context=$work/trainer
  mkdir -p "$context/build/release" "$context/python/examples" \
    "$context/$overlay"
  "$source/deploy/package/make_python_deb.sh" "$build/python" "$version" \
    /usr/bin/python3 "$context/build/release"
  cp "$source/python/examples/torch_mlp.py" "$context/python/examples"
  cp "$source/$overlay/Containerfile" "$context/$overlay"
  pod build --isolation=chroot --network=host --tag localhost/trainer:test \
    --build-arg BASE=localhost/lockstep:test \
    --file "$context/$overlay/Containerfile" "$context" >"$work/log" 2>&1 ||
    { tail -n 20 "$work/log" >&2; return 1; }
}

# Without the entries that podman, unlike Kubernetes, adds to /etc/passwd.
has_a_home() {
  pod run --rm --network=host --read-only --tmpfs /tmp --passwd=false \
    --entrypoint python3 localhost/trainer:test -c \
    'import getpass, pathlib; (pathlib.Path.home() / getpass.getuser()).touch()'
}

prepare() {
  prepare_pods overlays/own-program 2500
  mkdir -m 777 "$work/volumes/tmp"
  grep -q 'image: localhost/trainer:test' "$work/pods.yaml"
}

train() {
  pod kube play "$work/pods.yaml" >/dev/null
  until_true "step 50" has_step 50
  local worker=fashion-worker-1-worker killed
  killed=$(status "$worker" Pid)
  tr '\0' ' ' <"/proc/$killed/cmdline" |
    grep 'python3 /usr/local/share/trainer/train.py' ||
    fail "$worker runs another program"
  kill -KILL "$killed"
  until_true "another process of $worker" is_another "$worker" "$killed"
  # shellcheck disable=SC2046  # names are words
  ends_with 0 $(names)
  chief_says 'done at step 2500'
  "$lockstep" export --checkpoints "$work/volumes/checkpoints/fashion" \
    --out "$work/model.safetensors"
  [ -s "$work/model.safetensors" ] || fail "no model"
}

phase "a base image with PyTorch" podman_or_skip "$base"
phase "the image" build_image
phase "the image of the workers' program" trainer_image
phase "a home in it" has_a_home
phase "the pods' manifests" prepare
phase "the job" train
phases
echo "pods whose workers are a user's program train to the end, and a killed worker" \
  "comes back"
