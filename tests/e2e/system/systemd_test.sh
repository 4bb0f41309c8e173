#!/usr/bin/env bash
# systemd_test.sh BUILD_DIR TREE: installs an older version of the package in a
# Debian of its own, which is TREE with a layer over it, boots that with a real
# systemd, and runs systemd_inside.sh there, which upgrades it. TREE is what
# debian_tree_test.sh makes. Needs root, mounts and systemd-nspawn: exits with 77,
# which is "skipped", where one is missing.
set -euo pipefail
script_arguments=("$@")
here=$(dirname "$0")
# shellcheck source=tests/e2e/system/system_lib.sh
source "$here/system_lib.sh"
need_root
need_tools systemd-nspawn dpkg-deb
need_data
in_namespaces --mount
base=$2
[ -e "$base/made-for" ] || skip "$base is missing: see debian_tree_test"
package=$(newest_package "$1")

work=$(mktemp -d /tmp/lockstep-systemd-XXXXXX)
tree=$work/tree
finish() {
  umount "$tree" 2>/dev/null || true
  rm -rf --one-file-system "$work"
}
trap finish EXIT

container=(--quiet "--directory=$tree" --keep-unit --register=no
  --private-network)

# Runs a command in the tree, which is not booted.
inside() {
  systemd-nspawn "${container[@]}" --pipe --setenv=DEBIAN_FRONTEND=noninteractive "$@"
}

# older DEB: the package with a lower version, other defaults, and a file that the
# newer one does not have.
older() {
  dpkg-deb --raw-extract "$package" "$work/older"
  (cd "$work/older"
   sed -i 's/^Version: .*/Version: 0.0.1/' DEBIAN/control
   echo '# the default of an older version' >>etc/lockstep/lockstep.env
   touch usr/share/doc/lockstep/only-in-0.0.1)
  dpkg-deb -Znone --root-owner-group --build "$work/older" "$1" >/dev/null
  rm -r "$work/older"
}

make_tree() {
  tree_over "$base"
  inside /bin/true 2>/dev/null || skip "systemd-nspawn runs nothing here"
}

install_package() {
  cp "$package" "$tree/lockstep.deb"
  older "$tree/lockstep-older.deb"
  inside /bin/sh -c 'apt-get update -q && apt-get install -q -y \
    --no-install-recommends /lockstep-older.deb' >"$work/install.log" 2>&1 ||
    { tail -n 20 "$work/install.log" >&2; return 1; }
  cp "$here"/system_lib.sh "$here"/systemd_inside.sh "$tree"
  cat >"$tree/etc/systemd/system/system-test.service" <<'UNIT'
[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/bin/bash -c '/bin/bash /systemd_inside.sh >>/system_test.log 2>&1; echo $? >/system_test.code; systemctl poweroff'
[Install]
WantedBy=multi-user.target
UNIT
  inside systemctl enable system-test.service >/dev/null 2>&1
}

boot_once() {
  timeout --kill-after=10 "$1" systemd-nspawn "${container[@]}" --boot \
    --bind-ro=/usr/share/datasets --console=pipe </dev/null \
    >>"$work/console.log" 2>&1 || true
}

# Whether a tree boots here that has nothing of ours.
bare_tree_boots() {
  umount "$tree" 2>/dev/null || true
  rm -rf --one-file-system "$tree" "$work/upper" "$work/inner"
  tree_over "$base"
  printf '[Service]\nExecStart=/bin/touch /booted\nExecStartPost=systemctl poweroff\n[Install]\nWantedBy=multi-user.target\n' \
    >"$tree/etc/systemd/system/bare.service"
  inside systemctl enable bare.service >/dev/null 2>&1
  boot_once 240
  [ -e "$tree/booted" ]
}

# Until the test inside has said how it went; a reboot ends systemd-nspawn too.
boot() {
  [ -e "$tree/system_test.code" ] || boot_once 2400
  if [ ! -e "$tree/system_test.log" ]; then
    tail -n 30 "$work/console.log" >&2
    bare_tree_boots || skip "systemd does not boot in a container here"
    echo "FAILED: only a tree without the package boots" >&2
    return 1
  fi
}

report() {
  cat "$tree/system_test.log"
  [ "$(cat "$tree/system_test.code")" = 0 ]
}

purge() {
  rm -rf "$tree/etc/lockstep/fashion" "$tree/etc/lockstep/tls"
  # A volume with checkpoints, which other machines may share, is not emptied. A
  # container's /run begins empty, and is gone when it ends.
  inside /bin/sh -c 'volume=/var/lib/lockstep/volume &&
    mkdir -p $volume && mount -t tmpfs none $volume && touch $volume/model &&
    /bin/sh /var/lib/dpkg/info/lockstep.postrm purge && [ -e $volume/model ] &&
    umount $volume && mkdir -p /run/lockstep/ps-fashion.0 &&
    apt-get purge -q -y lockstep && [ ! -e /run/lockstep ]' \
    >"$work/purge.log" 2>&1 || { cat "$work/purge.log" >&2; return 1; }
  local left
  for left in /var/lib/lockstep /usr/libexec/lockstep /usr/bin/lockstep \
    /etc/lockstep/lockstep.env /lib/systemd/system/lockstep.target \
    /etc/systemd/system/lockstep.target.wants \
    /etc/systemd/system/multi-user.target.wants/lockstep.target; do
    if [ -e "$tree$left" ] || [ -L "$tree$left" ]; then
      echo "left after purge: $left" >&2
      return 1
    fi
  done
  ! grep warning "$work/purge.log"
}

phase "a tree to boot" make_tree
phase "installing an older package" install_package
phase "the first boot" boot
phase "the second boot" boot
report
phase "purging" purge
phases
echo "systemd runs jobs, and restarts and stops their tasks; the package is" \
  "installed, upgraded, removed and purged"
