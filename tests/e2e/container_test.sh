#!/usr/bin/env bash
# container_test.sh SOURCE_DIR BUILD_DIR VENV: builds the image of
# deploy/Containerfile from a Debian that debootstrap makes, and runs the pods
# of deploy/kubernetes/base on this machine with `podman kube play`: they train
# Fashion-MNIST, a worker's container is killed and comes back, and all end with
# code 0. Needs root, debootstrap, podman, kubectl, help2man, and VENV, which
# kubernetes_test.sh makes: exits with 77, which is "skipped", where one is
# missing.
#
# Environment:
#   LOCKSTEP_DEBIAN_TREE  a directory that debootstrap has filled, instead of a
#                         new one
set -euo pipefail

skip() {
  printf 'SKIPPED, NOTHING WAS PROVED: %s\n' "$*" >&2
  exit 77
}

fail() {
  printf 'FAILED: %s\n' "$*"
  local name
  for name in $(names); do
    echo "---- $name" && pod logs --tail 15 "$name" 2>&1
  done
  exit 1
}

# Storage of our own. vfs works on every file system.
pod() {
  podman --storage-driver=vfs --root "$work/root" --runroot "$work/run" "$@"
}

names() { pod ps -a --format '{{.Names}}' | grep -v infra; }
status() { pod inspect --format "{{.State.$2}}" "$1"; }

# until_true WHAT COMMAND...: tries the command for three minutes.
until_true() {
  local what=$1 deadline=$((SECONDS + 180))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$deadline" ] || fail "waited in vain for: $what"
    sleep 0.5
  done
}

# Before the mount namespace and the network that the rest runs in.
prepare() {
  [ "$(id -u)" -eq 0 ] || skip "this takes root"
  local tool
  for tool in debootstrap podman kubectl help2man; do
    command -v "$tool" >/dev/null || skip "$tool is not installed"
  done
  [ -x "$venv/bin/python" ] || skip "$venv is missing: run kubernetes_test"
  [ -d /usr/share/datasets/fashion-mnist ] ||
    skip "dataset-fashion-mnist is not installed"
  tree=${LOCKSTEP_DEBIAN_TREE:-$work/tree}
  [ -d "$tree" ] ||
    debootstrap --variant=minbase bookworm "$tree" >"$work/log" 2>&1 ||
    { tail -n 3 "$work/log" >&2; skip "debootstrap failed"; }
  rm -f "$build"/lockstep_*.deb
  cmake --build "$build" --target lockstep_deb -- --quiet
  mkdir -p "$work/context/build/release" "$work/context/deploy"
  cp "$source/deploy/Containerfile" "$work/context/deploy"
  cp "$build"/lockstep_*.deb "$work/context/build/release"
  printf '%s\n' '[containers]' \
    'default_ulimits = ["nofile=1024:1024","nproc=1000:1000"]' '[engine]' \
    'cgroup_manager = "cgroupfs"' 'events_logger = "file"' >"$work/conf"
  mkdir "$work/volumes"
  mkdir -m 777 "$work/volumes/state" "$work/volumes/checkpoints"
}

# make_image TAG ARGUMENT...
make_image() {
  pod build --isolation=chroot --network=host --layers \
    --tag "localhost/lockstep:$1" --build-arg BASE=localhost/base:1 "${@:2}" \
    --file "$work/context/deploy/Containerfile" "$work/context" \
    >"$work/log" 2>&1
}

build_image() {
  tar -C "$tree" -c . | pod import - localhost/base:1 >/dev/null
  make_image test || { tail -n 20 "$work/log" >&2; exit 1; }
  # That base has no cuBLAS.
  ! make_image cuda --build-arg CUDA=ON || { echo "not an image for GPUs" >&2; exit 1; }
  grep -F 'CUDA=ON, but' "$work/log" | tail -n 1
}

has_step() {
  local now
  now=$("$lockstep" status --cluster "$work/cluster.json" --json 2>/dev/null |
    sed -n 's/.*"global_step": *\([0-9]*\).*/\1/p')
  [ "${now:-0}" -ge "$1" ]
}
is_another() { [ "$(status "$1" Pid)" -gt 0 ] && [ "$(status "$1" Pid)" != "$2" ]; }
is_ended() { [ "$(status "$1" Status)" = exited ]; }

# In a network of its own, where all ports are free.
run_pods() {
  ip link set lo up
  "$lockstep" config make --ps 2 --workers 2 --host_pattern 127.0.0.1 \
    >"$work/cluster.json"
  kubectl kustomize "$source/deploy/kubernetes/base" |
    sed 's|image: lockstep:.*|image: localhost/lockstep:test|' >"$work/all.yaml"
  "$venv/bin/python" "$source/tests/e2e/pods_of_jobs.py" "$work/all.yaml" \
    "$work/cluster.json" "$work/volumes" >"$work/pods.yaml"
  pod kube play "$work/pods.yaml" >/dev/null
  until_true "step 50" has_step 50
  local worker=fashion-worker-1-worker killed name
  killed=$(status "$worker" Pid)
  kill -KILL "$killed"
  until_true "another process of $worker" is_another "$worker" "$killed"
  for name in $(names); do
    until_true "the end of $name" is_ended "$name"
    [ "$(status "$name" ExitCode)" = 0 ] || fail "$name did not end with 0"
  done
  pod logs fashion-chief-0-chief 2>&1 | grep 'done at step 2000' ||
    fail "the job is not done"
}

if [ "${1:-}" = --inside ]; then
  shift
  source=$1 build=$2 venv=$3 work=$4 tree=$5 lockstep=$2/bin/lockstep
  export CONTAINERS_CONF=$work/conf
  # crun refuses a machine that mounts both versions of control groups.
  umount /sys/fs/cgroup/unified 2>/dev/null || true
  if [ "${6:-}" = run ]; then
    trap 'pod pod rm --force --all >/dev/null 2>&1 || true' EXIT
    run_pods
  else
    build_image
  fi
  exit 0
fi

source=$1 build=$2 venv=$3
work=$(mktemp -d /tmp/lockstep-container-XXXXXX)
trap 'rm -rf --one-file-system "$work"' EXIT
echo "== preparing" && prepare
echo "== the image" &&
  unshare --mount "$0" --inside "$source" "$build" "$venv" "$work" "$tree"
echo "== pods" && unshare --mount --net "$0" --inside "$source" "$build" \
  "$venv" "$work" "$tree" run
echo "pods train, a killed worker comes back, and all end with 0"
