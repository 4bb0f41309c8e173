#!/usr/bin/env bash
# systemd_test.sh BUILD_DIR SYSTEM_TEST: makes the Debian package, has lintian
# check it, installs an older version of it in a Debian of its own, boots that
# with a real systemd, and runs SYSTEM_TEST inside, which upgrades it. Needs root,
# debootstrap, systemd-nspawn, help2man, lintian and a mirror of Debian: exits
# with 77, which is "skipped", where one is missing.
#
# Environment:
#   LOCKSTEP_DEBIAN_TREE  a directory that debootstrap has filled, with systemd
#                         and dbus; copied, instead of making a new one
set -euo pipefail
build=$1 system_test=$2

skip() {
  printf 'SKIPPED, NOTHING WAS PROVED: %s\n' "$*" >&2
  exit 77
}

[ "$(id -u)" -eq 0 ] || skip "this takes root"
for tool in debootstrap systemd-nspawn help2man dpkg-deb lintian; do
  command -v "$tool" >/dev/null || skip "$tool is not installed"
done
[ -d /usr/share/datasets/fashion-mnist ] ||
  skip "dataset-fashion-mnist is not installed"

work=$(mktemp -d /tmp/lockstep-systemd-XXXXXX)
trap 'rm -rf --one-file-system "$work"' EXIT
tree=$work/tree

make_tree() {
  if [ -n "${LOCKSTEP_DEBIAN_TREE:-}" ]; then
    cp -a "$LOCKSTEP_DEBIAN_TREE" "$tree"
  else
    debootstrap --variant=minbase --include=systemd,dbus bookworm "$tree" \
      >"$work/debootstrap.log" 2>&1 ||
      { tail -n 3 "$work/debootstrap.log" >&2; skip "debootstrap failed"; }
  fi
}

# Runs a command in the tree, which is not booted.
inside() {
  systemd-nspawn --quiet --directory="$tree" --keep-unit --register=no --pipe \
    --setenv=DEBIAN_FRONTEND=noninteractive \
    --bind-ro=/etc/resolv.conf --bind-ro=/etc/apt/sources.list.d "$@"
}

# lintian finds nothing, but would find a missing licence.
check_package() {
  local package
  package=$(echo "$build"/lockstep_*.deb)
  lintian --allow-root --fail-on error,warning "$package"
  older "rm usr/share/doc/lockstep/copyright" "$work/spoilt.deb"
  if lintian --allow-root --fail-on error "$work/spoilt.deb" >/dev/null 2>&1; then
    echo "lintian finds nothing" >&2
    return 1
  fi
}

# older EDIT DEB: the package with a lower version, other defaults, a file that
# the newer one does not have, and EDIT.
older() {
  rm -rf "$work/older"
  dpkg-deb --raw-extract "$build"/lockstep_*.deb "$work/older"
  (cd "$work/older"
   sed -i 's/^Version: .*/Version: 0.0.1/' DEBIAN/control
   echo '# the default of an older version' >>etc/lockstep/lockstep.env
   touch usr/share/doc/lockstep/only-in-0.0.1
   eval "$1")
  dpkg-deb --root-owner-group --build "$work/older" "$2" >/dev/null
}

install_package() {
  cp "$build"/lockstep_*.deb "$tree/lockstep.deb"
  older true "$tree/lockstep-older.deb"
  inside /bin/sh -c 'apt-get update -q && apt-get install -q -y \
    --no-install-recommends /lockstep-older.deb' >"$work/install.log" 2>&1 ||
    { tail -n 20 "$work/install.log" >&2; return 1; }
  cp "$system_test" "$tree/system_test.sh"
  cat >"$tree/etc/systemd/system/system-test.service" <<'UNIT'
[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/bin/bash -c '/bin/bash /system_test.sh >>/system_test.log 2>&1; echo $? >/system_test.code; systemctl poweroff'
[Install]
WantedBy=multi-user.target
UNIT
  inside systemctl enable system-test.service >/dev/null 2>&1
}

# Until SYSTEM_TEST has said how it went; a reboot ends systemd-nspawn too.
boot() {
  local times
  for times in first second; do
    [ ! -e "$tree/system_test.code" ] || break
    echo "the $times boot"
    timeout --kill-after=10 900 systemd-nspawn --quiet --directory="$tree" \
      --keep-unit --register=no --private-network --boot \
      --bind-ro=/usr/share/datasets --console=pipe </dev/null \
      >>"$work/console.log" 2>&1 || true
  done
  cat "$tree/system_test.log" ||
    { tail -n 30 "$work/console.log" >&2; return 1; }
  [ "$(cat "$tree/system_test.code")" = 0 ]
}

purge() {
  inside apt-get purge -q -y lockstep >"$work/purge.log" 2>&1 ||
    { cat "$work/purge.log" >&2; return 1; }
  local left
  for left in /var/lib/lockstep /usr/libexec/lockstep /usr/bin/lockstep \
    /etc/lockstep/lockstep.env /lib/systemd/system/lockstep.target \
    /etc/systemd/system/lockstep.target.wants \
    /etc/systemd/system/multi-user.target.wants/lockstep.target; do
    [ ! -e "$tree$left" ] && [ ! -L "$tree$left" ] || { echo "left after purge: $left" >&2; return 1; }
  done
  ! grep -q warning "$work/purge.log"
}

echo "== the package" && rm -f "$build"/lockstep_*.deb &&
  cmake --build "$build" --target lockstep_deb -- --quiet
echo "== lintian" && check_package
echo "== a Debian tree" && make_tree
echo "== installing" && install_package
echo "== booting" && boot
echo "== purging" && rm -rf "$tree/etc/lockstep/fashion" && purge
echo "systemd runs a job, and restarts and stops its tasks; the package is" \
  "installed, upgraded, removed and purged"
