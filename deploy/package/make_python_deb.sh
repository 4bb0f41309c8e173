#!/usr/bin/env bash
# make_python_deb.sh PACKAGE_DIR VERSION PYTHON OUT: packs the folder `lockstep` of a
# build tree, with its native module, as python3-lockstep_VERSION_ARCH.deb in OUT.
set -euo pipefail

[ $# -eq 4 ] || { sed -n 2,3p "$0" >&2; exit 2; }
built=$1/lockstep version=$2 python=$3 out=$(realpath "$4")
here=$(dirname "$(realpath "$0")")
"$here"/check_tools.sh

work=$(mktemp -d /tmp/lockstep-python-deb-XXXXXX)
trap 'rm -rf "$work"' EXIT
root=$work/root doc=$work/root/usr/share/doc/python3-lockstep
target=$root/usr/lib/python3/dist-packages
install -d "$target/lockstep" "$doc" "$root/DEBIAN"
install -m 644 "$built"/*.py "$built"/*.pyi "$built"/py.typed "$target/lockstep"
install -m 644 "$built"/_native.*.so "$target/lockstep"
strip --strip-unneeded "$target"/lockstep/_native.*.so
install -m 644 "$here/debian/copyright" "$doc"
sed 's/^lockstep (/python3-lockstep (/' "$here/debian/changelog" |
  gzip -9nc >"$doc/changelog.gz"

# pip lists what has metadata.
metadata=$target/lockstep-$version.dist-info
install -d "$metadata"
printf '%s\n' "Metadata-Version: 2.1" "Name: lockstep" "Version: $version" \
  "Requires-Dist: numpy" >"$metadata/METADATA"
printf 'Debian\n' >"$metadata/INSTALLER"

architecture=$(dpkg --print-architecture)
first=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
next=$("$python" -c 'import sys; print("%d.%d" % (sys.version_info[0],
                                                  sys.version_info[1] + 1))')
install -d "$work/debian"
printf 'Source: lockstep\n\nPackage: python3-lockstep\nArchitecture: any\n' \
  >"$work/debian/control"
libraries=$(cd "$work" && dpkg-shlibdeps -O \
  root/usr/lib/python3/dist-packages/lockstep/_native.*.so)
cat >"$root/DEBIAN/control" <<END
Package: python3-lockstep
Source: lockstep
Version: $version
Architecture: $architecture
Maintainer: Lockstep developers <lockstep@example.org>
Installed-Size: $(du -sk --apparent-size "$root/usr" | cut -f1)
Depends: ${libraries#shlibs:Depends=}, python3 (>= $first~), python3 (<< $next), python3-numpy
Recommends: lockstep
Suggests: python3-torch
Section: python
Priority: optional
Description: synchronous training on parameter servers, for Python programs
 Lockstep trains one model on many machines, synchronously, without waiting
 for the slowest of them. This package makes a Python program a worker of such
 a job: with a PyTorch model, or with numpy arrays and any framework.
 .
 The package lockstep has the command that starts whole jobs.
END
cat >"$root/DEBIAN/postinst" <<'END'
#!/bin/sh
set -e
if command -v py3compile >/dev/null; then
  py3compile -p python3-lockstep
fi
END
cat >"$root/DEBIAN/prerm" <<'END'
#!/bin/sh
set -e
if command -v py3clean >/dev/null; then
  py3clean -p python3-lockstep
fi
END
chmod 755 "$root/DEBIAN/postinst" "$root/DEBIAN/prerm"
(cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum) \
  >"$root/DEBIAN/md5sums"
find "$root" -type d -exec chmod 755 {} +
rm -f "$out"/python3-lockstep_*.deb
dpkg-deb --root-owner-group --build "$root" "$out" >/dev/null
echo "$out/python3-lockstep_${version}_$architecture.deb"
