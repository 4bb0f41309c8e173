#!/usr/bin/env bash
# container_test.sh SOURCE_DIR BUILD_DIR TREE: builds the image of
# deploy/Containerfile on TREE, which debian_tree_test.sh makes, and runs the pods
# of deploy/kubernetes/base on this machine with `podman kube play`: they train
# Fashion-MNIST, a worker's container is killed and comes back, the job is
# stopped, and started again with certificates, as the pods of overlays/tls, it
# goes on to its end. Then those of overlays/mirrors train, and those that an
# operator makes of examples/tfjob_mirrors.yaml. own_program_test.sh has the pods of
# overlays/own-program. Where there is a CUDA
# toolkit, the image for GPUs is made too, and trains without one. Needs root, mounts,
# podman and a kubectl that renders: exits with 77, which is "skipped", where one is
# missing.
set -euo pipefail
script_arguments=("$@")
here=$(dirname "$0")
# shellcheck source=tests/e2e/system/system_lib.sh
source "$here/system_lib.sh"
# shellcheck source=tests/e2e/system/container_lib.sh
source "$here/container_lib.sh"
source=$1 build=$2 base=$3 lockstep=$2/bin/lockstep
need_root
need_containers
need_data
in_namespaces --mount --net  # where all ports are free
ip link set lo up
# Not on loopback, where programs need neither certificates nor --insecure.
ip address add 10.9.0.1/24 dev lo
[ -e "$base/made-for" ] || skip "$base is missing: see debian_tree_test"
package=$(newest_package "$build")

work=$(mktemp -d /tmp/lockstep-container-XXXXXX)
finish() {
  pods_end
  rm -rf --one-file-system "$work"
}
trap finish EXIT

# For a package that was built with CUDA, with the toolkit's cuBLAS as a volume.
gpu_image() {
  ! make_image cuda base "$work/context" --build-arg CUDA=ON ||
    { echo "FAILED: an image for GPUs without cuBLAS"; return 1; }
  grep -F 'CUDA=ON, but' "$work/log" | tail -n 1
  if ! grep -q cublasCreate "$build/bin/worker" ||
    ! [ -e /usr/local/cuda/lib64/libcublas.so ]; then
    echo "SKIPPED, NOTHING WAS PROVED: the image for GPUs: no CUDA toolkit"
    return
  fi
  echo /usr/local/cuda/lib64 >"$work/probe/cuda.conf"
  printf 'FROM localhost/base:1\nCOPY cuda.conf /etc/ld.so.conf.d/\n' |
    pod build --isolation=chroot --network=host --tag localhost/toolkit:1 \
      --file - "$work/probe" >/dev/null 2>&1
  make_image cuda toolkit "$work/context" --build-arg CUDA=ON "${cuda[@]}" ||
    { tail -n 20 "$work/log" >&2; return 1; }
  gpu_worker --version
  gpu_worker --help | grep -- --device
  gpu_job
}

cuda=(--volume "$(readlink -f /usr/local/cuda):/usr/local/cuda:ro")
in_gpu_image() {
  pod run --rm --timeout=600 --network=host --read-only --tmpfs /tmp \
    "${cuda[@]}" "$@"
}

# The loader warns about libraries that it cannot preload.
gpu_worker() {
  local said
  said=$(in_gpu_image --env LD_PRELOAD=libcublas.so \
    --entrypoint /usr/libexec/lockstep/worker localhost/lockstep:cuda "$@" 2>&1)
  echo "$said"
  ! grep -q 'cannot be preloaded' <<<"$said"
}

# There is no GPU: workers say so, and train on the CPU.
gpu_job() {
  local example=/usr/share/doc/lockstep/examples/fashion_mnist
  mkdir -m 777 "$work/gpu"
  in_gpu_image --volume "$work/gpu:/gpu" \
    --volume /usr/share/datasets:/usr/share/datasets:ro \
    localhost/lockstep:cuda run --cluster $example/cluster.json \
    --job $example/job.textproto --set train_steps=20 \
    --set checkpoint.directory=/gpu/checkpoints --log_dir /gpu/logs |
    tail -n 1
  grep 'computes on cpu: no GPU here' "$work"/gpu/logs/worker-0.log
}

# The example's pods, with the job of the base in its ConfigMap.
make_operator_pods() {
  local kubernetes=$source/deploy/kubernetes
  { kubectl create configmap fashion --dry-run=client --output yaml \
      --from-file="$kubernetes/base/job.textproto" &&
    echo --- && cat "$kubernetes/examples/tfjob_mirrors.yaml"; } | pods_of 400
}

# Each task has a Secret of its own here, whose files the group of the pods reads.
prepare_secure_pods() {
  "$lockstep" certs make --cluster "$work/cluster.json" --job fashion \
    --out "$work/certs"
  mkdir "$work/volumes/tls"
  cp -rL "$work"/certs/*-[0-9] "$work/volumes/tls"
  make_pods overlays/tls 600
  local group
  group=$(sed -n 's/^ *fsGroup: *//p' "$work/all.yaml" | sort -u)
  chgrp -R "$group" "$work/volumes/tls"
  chmod -R u=rX,g=rX,o= "$work/volumes/tls"
}

# What the overlay's probes ask for.
is_healthy() {
  python3 -c 'import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1], timeout=5).read().decode())' \
    "http://127.0.0.1:$1/healthz"
}

# All but the chief, whose pod is not started again, would be for any other code.
stop_pods() {
  pod kube play "$work/pods.yaml" >/dev/null
  until_true "step 50" has_step 50
  local worker=fashion-worker-1-worker killed
  killed=$(status "$worker" Pid)
  kill -KILL "$killed"
  until_true "another process of $worker" is_another "$worker" "$killed"
  until_true "step 100" has_step 100
  "$lockstep" stop --cluster "$work/cluster.json"
  # shellcheck disable=SC2046  # names are words
  ends_with 0 $(names | grep -v chief)
  ends_with 3 fashion-chief-0-chief
  pod pod rm --force --time 0 --all >/dev/null
}

train_to_the_end() {
  operator=(--tls_dir "$work/certs/operator-read")
  pod kube play "$work/pods.yaml" >/dev/null
  until_true "a secure job" has_step 1
  # Else the job may end before all questions are asked on a busy machine.
  local steer=(--cluster "$work/cluster.json"
    --tls_dir "$work/certs/operator-steer") port
  "$lockstep" pause "${steer[@]}"
  for port in 9100 9101 9102 9103 9104; do
    is_healthy "$port" || fail "no health at port $port"
  done
  ! "$lockstep" status --cluster "$work/cluster.json" --insecure 2>/dev/null ||
    fail "a pod answers without a certificate"
  ! "$lockstep" stop --cluster "$work/cluster.json" "${operator[@]}" \
    2>"$work/refused" || fail "a reader has stopped the job"
  grep steer "$work/refused"
  "$lockstep" resume "${steer[@]}"
  # shellcheck disable=SC2046
  ends_with 0 $(names)
  chief_says 'resumed from the checkpoint of step'
  chief_says 'done at step 600'
}

# prepare_mirrors WORKERS COMMAND...: the pods that the command makes for a cluster
# of a chief and these workers.
prepare_mirrors() {
  pod pod rm --force --time 0 --all >/dev/null
  rm -r "$work"/volumes/{state,checkpoints}
  mkdir -m 777 "$work"/volumes/{state,checkpoints}
  "$lockstep" config make --ps 0 --workers "$1" --host_pattern 10.9.0.1 \
    >"$work/cluster.json"
  operator=()
  "${@:2}"
}

# train_in_mirrors STEPS CONTAINER COPY: the copy that is lost with the container
# comes back from another pod.
train_in_mirrors() {
  pod kube play "$work/pods.yaml" >/dev/null
  until_true "step 50" has_step 50
  local pid
  pid=$(status "$2" Pid)
  [ "$pid" -gt 0 ] || fail "$2 has ended"
  rm "$work"/volumes/state/lockstep/*.ps-"$3".state
  kill -KILL "$pid"
  # shellcheck disable=SC2046
  ends_with 0 $(names)
  chief_says "ps $3 has lost its state: takes the state of step"
  chief_says "done at step $1"
}

phase "a base image" podman_or_skip "$base"
phase "the image" build_image
phase "the image for GPUs" gpu_image
phase "the pods' manifests" prepare_pods base 1000
phase "a job in pods that is stopped" stop_pods
phase "the pods' manifests, with certificates" prepare_secure_pods
phase "the same job to its end, with certificates" train_to_the_end
phase "the manifests of pods without servers" \
  prepare_mirrors 2 make_pods overlays/mirrors 500
phase "a job in pods with copies of the variables" \
  train_in_mirrors 500 fashion-worker-1-worker 2
phase "the pods of a TFJob without servers" prepare_mirrors 1 make_operator_pods
phase "that job" train_in_mirrors 400 fashion-worker-0-tensorflow 1
phases
echo "pods train, a killed worker comes back, a stopped job stays stopped, and" \
  "goes on to its end when it is started again, with certificates; pods without" \
  "servers train, of Jobs and of a TFJob"
