#!/usr/bin/env bash
# check_tools.sh: says what to install where a tool that makes the package is
# missing, and leaves with 1.
set -euo pipefail

packages=()
need() { command -v "$1" >/dev/null || packages+=("$2"); }
need help2man help2man
need dpkg-shlibdeps dpkg-dev
need file file
[ "${#packages[@]}" -eq 0 ] || {
  echo "lockstep_deb: tools are missing; install them and start it again:" >&2
  echo "  apt-get install ${packages[*]}" >&2
  exit 1
}
