# shellcheck shell=bash disable=SC2154
# For tests of whole systems, to be sourced by them and by what they run inside.
#
#   skip WHY               exits with 77, which is "skipped"
#   need_root; need_tools TOOL...; need_data   skip where one is missing
#   need_kustomize SOURCE_DIR   skips where no kubectl renders deploy/kubernetes
#   in_namespaces OPTION...   goes on in new namespaces (unshare OPTION...), which
#                          take mounts and networks with them; skips where they
#                          cannot be made. Call it first: starts the script anew.
#   phase NAME COMMAND...  runs a command, and notes how long it took
#   phases                 prints that, as a table
#   until_true WHAT COMMAND...   tries the command for ten minutes, then calls
#                          `fail`, which the script defines

skip() {
  printf 'SKIPPED, NOTHING WAS PROVED: %s\n' "$*" >&2
  exit 77
}

need_root() { [ "$(id -u)" -eq 0 ] || skip "this takes root"; }

need_tools() {
  local tool
  for tool in "$@"; do
    command -v "$tool" >/dev/null || skip "$tool is not installed"
  done
}

need_data() {
  [ -d /usr/share/datasets/fashion-mnist ] ||
    skip "dataset-fashion-mnist is not installed"
}

# Debian 12's package kubernetes-client has kubectl 1.20, which knows none of the
# fields that kustomize got since its version 2.
need_kustomize() {
  need_tools kubectl
  kubectl kustomize "$1/deploy/kubernetes/base" >/dev/null 2>&1 ||
    skip "this kubectl does not render deploy/kubernetes: $(kubectl version \
      --client 2>&1 | head -n 1); version 1.27 or newer does, and Debian 12 has" \
      "none"
}

in_namespaces() {
  [ -z "${LOCKSTEP_IN_NAMESPACES:-}" ] || return 0
  unshare "$@" mount -t tmpfs none /mnt 2>/dev/null ||
    skip "namespaces or mounts cannot be made here"
  LOCKSTEP_IN_NAMESPACES=yes exec unshare "$@" "$0" "${script_arguments[@]}"
}

phase_rows=()
phase() {
  local name=$1 started=${EPOCHREALTIME/./}
  shift
  echo "== $name"
  "$@"
  phase_rows+=("$(awk -v us=$((${EPOCHREALTIME/./} - started)) -v name="$name" \
    'BEGIN { printf "%7.1f s  %s", us / 1e6, name }')")
}

phases() { [ ${#phase_rows[@]} -eq 0 ] || printf '%s\n' "${phase_rows[@]}"; }

until_true() {
  local what=$1 deadline=$((SECONDS + 600))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$deadline" ] || fail "waited in vain for: $what"
    sleep 0.2
  done
}

# The directory $work/tree: BASE with a layer of our own over it, or a copy.
tree_over() {
  mkdir "$work/upper" "$work/inner" "$work/tree"
  mount -t overlay none "$work/tree" \
    -o "lowerdir=$1,upperdir=$work/upper,workdir=$work/inner" 2>/dev/null ||
    cp -a --reflink=auto "$1/." "$work/tree"
}

# newest_package BUILD_DIR: the path of the Debian package there.
newest_package() {
  local package
  # shellcheck disable=SC2012  # names are ours
  package=$(ls -t "$1"/lockstep_*.deb 2>/dev/null | head -n 1)
  [ -n "$package" ] || skip "$1 has no package: build lockstep_deb"
  echo "$package"
}
