#!/usr/bin/env bash
# lintian_test.sh BUILD_DIR: has lintian check the Debian package there. Exits
# with 77, which is "skipped", where a tool is missing.
set -euo pipefail
# shellcheck source=tests/e2e/system/system_lib.sh
source "$(dirname "$0")/system_lib.sh"
need_tools help2man dpkg-deb lintian
package=$(newest_package "$1")
spoilt=$(mktemp -d /tmp/lockstep-lintian-XXXXXX)
trap 'rm -rf "$spoilt"' EXIT

find_nothing() {
  lintian --allow-root --fail-on error,warning "$package"
}

# The package without its files: lintian need not look at the programs again.
find_a_missing_licence() {
  mkdir "$spoilt/lockstep"
  dpkg-deb --control "$package" "$spoilt/lockstep/DEBIAN"
  rm "$spoilt/lockstep/DEBIAN/conffiles"
  dpkg-deb -Znone --root-owner-group --build "$spoilt/lockstep" "$spoilt" \
    >/dev/null
  ! lintian --allow-root --fail-on error "$spoilt"/*.deb >"$spoilt/found" ||
    { echo "lintian does not miss the licence" >&2; return 1; }
  grep no-copyright-file "$spoilt/found"
}

phase "lintian" find_nothing
phase "lintian finds what is planted" find_a_missing_licence
phases
