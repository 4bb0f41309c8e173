# shellcheck shell=bash disable=SC2154
# podman for tests, to be sourced after system_lib.sh. Needs $here, $source, $lockstep,
# $package and $work.
#
#   need_containers       skips where the tools are missing
#   podman_or_skip TREE   makes localhost/base:1 of a Debian tree; skips where no
#                         container runs
#   pod ARGUMENT...       podman with storage of our own
#   pods_end              ends all pods and takes the storage away
#   make_image TAG BASE CONTEXT ARGUMENT...   the image of deploy/Containerfile
#                         in CONTEXT on localhost/BASE:1, as
#                         localhost/lockstep:TAG; its log is $work/log
#   build_image           that of $package, as localhost/lockstep:test
#   prepare_pods DIRECTORY STEPS   volumes, a cluster, and make_pods
#   make_pods DIRECTORY STEPS   writes the pods of deploy/kubernetes/DIRECTORY, of a
#                         job of STEPS steps, to $work/pods.yaml
#   has_step STEP, is_another CONTAINER PID, ends_with CODE CONTAINER...,
#   chief_says TEXT       what the pods do; the flags of $operator go to `status`

pod() {
  podman --storage-driver="$driver" --root "$work/root" --runroot "$work/run" \
    "$@"
}

# overlay where a layer can lie over another, else vfs, which copies each layer.
choose_driver() {
  driver=overlay
  mkdir "$work/probe" "$work/probe/"{lower,upper,inner,over}
  mount -t overlay none "$work/probe/over" -o \
    "lowerdir=$work/probe/lower,upperdir=$work/probe/upper,workdir=$work/probe/inner" \
    2>/dev/null && umount "$work/probe/over" || driver=vfs
}

# In memory where there is much: it is quick, and gone with the namespace.
make_storage() {
  mkdir -p "$work/root"
  local free
  free=$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo)
  if [ "${free:-0}" -gt $((4 << 20)) ]; then
    mount -t tmpfs none "$work/root"
  fi
  mkdir "$work/root/tmp"
  export TMPDIR=$work/root/tmp
}

podman_or_skip() {
  make_storage
  printf '%s\n' '[containers]' \
    'default_ulimits = ["nofile=1024:1024","nproc=1000:1000"]' '[engine]' \
    'cgroup_manager = "cgroupfs"' 'events_logger = "file"' >"$work/conf"
  export CONTAINERS_CONF=$work/conf
  # crun refuses a machine that mounts both versions of control groups.
  umount /sys/fs/cgroup/unified 2>/dev/null || true
  choose_driver
  { tar -C "$1" -c . | pod import - localhost/base:1 &&
    pod run --rm --network=host --read-only localhost/base:1 /bin/true &&
    printf 'FROM localhost/base:1\nRUN true\n' |
    pod build --isolation=chroot --network=host --file - "$work/probe"; } \
    >"$work/log" 2>&1 ||
    { tail -n 3 "$work/log" >&2; skip "no container runs or is built here"; }
}

pods_end() {
  pod pod rm --force --time 0 --all >/dev/null 2>&1 || true
  pod umount --all >/dev/null 2>&1 || true
  umount "$work/root/overlay" "$work/root" 2>/dev/null || true
}

make_image() {
  pod build --isolation=chroot --network=host --layers \
    --tag "localhost/lockstep:$1" --build-arg "BASE=localhost/$2:1" "${@:4}" \
    --file "$3/deploy/Containerfile" "$3" >"$work/log" 2>&1
}

need_containers() {
  need_tools podman crun ip
  need_kustomize "$source"
  python3 -c 'import yaml' 2>/dev/null || skip "python3-yaml is not installed"
}

fail() {
  printf 'FAILED: %s\n' "$*"
  local name
  for name in $(names); do
    echo "---- $name" && pod logs --tail 15 "$name" 2>&1
  done
  exit 1
}

names() { pod ps -a --format '{{.Names}}' | grep -v infra; }
status() { pod inspect --format "{{.State.$2}}" "$1"; }

build_image() {
  mkdir -p "$work/context/build/release" "$work/context/deploy"
  cp "$source/deploy/Containerfile" "$work/context/deploy"
  cp "$package" "$work/context/build/release"
  make_image test base "$work/context" || { tail -n 20 "$work/log" >&2; return 1; }
}

has_step() {
  local now
  now=$("$lockstep" status --cluster "$work/cluster.json" "${operator[@]}" \
    --json 2>/dev/null |
    sed -n 's/.*"global_step": *\([0-9]*\).*/\1/p')
  [ "${now:-0}" -ge "$1" ]
}
is_another() { [ "$(status "$1" Pid)" -gt 0 ] && [ "$(status "$1" Pid)" != "$2" ]; }
is_ended() { [ "$(status "$1" Status)" = exited ]; }

operator=()

# pods_of STEPS: the pods of what stands in the input.
pods_of() {
  sed 's|image: lockstep:.*|image: localhost/lockstep:test|
    s|image: trainer:.*|image: localhost/trainer:test|' >"$work/all.yaml"
  python3 "$here/pods_of_jobs.py" "$work/all.yaml" \
    "$work/cluster.json" "$work/volumes" "$1" >"$work/pods.yaml"
}

make_pods() { kubectl kustomize "$source/deploy/kubernetes/$1" | pods_of "$2"; }

prepare_pods() {
  mkdir "$work/volumes"
  mkdir -m 777 "$work/volumes/state" "$work/volumes/checkpoints"
  "$lockstep" config make --ps 2 --workers 2 --host_pattern 10.9.0.1 \
    >"$work/cluster.json"
  make_pods "$@"
}

# ends_with CODE NAME...: waits for the end of these containers.
ends_with() {
  local code=$1 name
  shift
  for name in "$@"; do
    until_true "the end of $name" is_ended "$name"
    [ "$(status "$name" ExitCode)" = "$code" ] ||
      fail "$name ended with $(status "$name" ExitCode), not $code"
  done
}

chief_says() {
  pod logs "$(names | grep chief-0)" 2>&1 | grep "$1" ||
    fail "the chief says no: $1"
}
