#!/usr/bin/env bash
# debian_tree_test.sh BUILD_DIR TREE [BASE NAME...]: makes TREE, a Debian with
# systemd, and with all that apt installs along with the package in BUILD_DIR, but
# without that: what systemd_test.sh, container_test.sh and own_program_test.sh
# start from, without a network. With BASE, which this script has made, TREE is a
# copy of that with the packages of these names. A TREE that has what the package
# asks for, and the names, is kept. Needs root, mmdebstrap and a mirror of Debian:
# exits with 77, which is "skipped", where one is missing.
set -euo pipefail
script_arguments=("$@")
# shellcheck source=tests/e2e/system/system_lib.sh
source "$(dirname "$0")/system_lib.sh"
need_root
need_tools help2man dpkg-deb mmdebstrap
in_namespaces --mount
tree=$2
package=$(newest_package "$1")
base=${3:-}
more=("${@:4}")
wanted="$(dpkg-deb -f "$package" Depends)${more[*]:+, ${more[*]}}"
sources=etc/apt/sources.list
if [ -e "$tree/$sources.closed" ] &&
  [ "$(cat "$tree/made-for" 2>/dev/null)" = "$wanted" ]; then
  echo "$tree is there already"
  exit 0
fi
work=$(mktemp -d "$1/debian-tree-XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT

# A mirror that hangs is one that cannot be reached.
run_or_skip() {
  timeout 240 "$@" >"$work/log" 2>&1 ||
    { tail -n 5 "$work/log" >&2; skip "failed, or took 4 minutes: $*"; }
}

apt=(chroot "$work/tree" env DEBIAN_FRONTEND=noninteractive LC_ALL=C
  apt-get -q -y --no-install-recommends install)

make_tree() {
  if [ -n "$base" ]; then
    [ -e "$base/made-for" ] || skip "$base is missing"
    cp -a --reflink=auto "$base" "$work/tree"
    mv "$work/tree/$sources.closed" "$work/tree/$sources"
    cp /etc/resolv.conf "$work/tree/etc/resolv.conf"
    run_or_skip chroot "$work/tree" apt-get -q \
      -o Acquire::http::Timeout=20 update
    return
  fi
  run_or_skip mmdebstrap --variant=minbase --include=systemd,dbus \
    --aptopt='Acquire::http::Timeout "20"' --skip=cleanup/apt \
    bookworm "$work/tree"
}

# A package that cannot be fetched skips the test; one that cannot be resolved is
# an error of ours.
install_dependencies() {
  cp "$package" "$work/tree/lockstep.deb"
  cp /etc/resolv.conf "$work/tree/etc/resolv.conf"
  mount -t proc proc "$work/tree/proc"
  "${apt[@]}" --simulate /lockstep.deb "${more[@]}" >"$work/plan"
  local names
  names=$(awk '$1 == "Inst" && $2 != "lockstep" { print $2 }' "$work/plan")
  # shellcheck disable=SC2086  # names are words
  run_or_skip "${apt[@]}" --download-only $names
  # shellcheck disable=SC2086
  "${apt[@]}" $names >"$work/log" 2>&1 || { tail "$work/log" >&2; return 1; }
  umount "$work/tree/proc"
}

# From here on there is no network, and apt does not wait for it.
close_tree() {
  chroot "$work/tree" apt-get clean
  rm -rf "$work"/tree/lockstep.deb "$work"/tree/var/lib/apt/lists/*
  mv "$work/tree/$sources" "$work/tree/$sources.closed"
  : >"$work/tree/$sources"
  echo "$wanted" >"$work/tree/made-for"
  rm -rf --one-file-system "$tree"
  mv "$work/tree" "$tree"
}

phase "a Debian tree" make_tree
phase "what the package depends on" install_dependencies
phase "closing the tree" close_tree
phases
