# shellcheck shell=bash disable=SC2154
# podman for tests, to be sourced after system_lib.sh. Needs $work.
#
#   podman_or_skip TREE   makes localhost/base:1 of a Debian tree; skips where no
#                         container runs
#   pod ARGUMENT...       podman with storage of our own
#   pods_end              ends all pods and takes the storage away
#   make_image TAG BASE CONTEXT ARGUMENT...   the image of deploy/Containerfile
#                         in CONTEXT on localhost/BASE:1, as
#                         localhost/lockstep:TAG; its log is $work/log

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
