#!/usr/bin/env bash
# Runs a program where loopback connections use cubic, whatever the system's
# default is:
#
#   tests/benchmark/cubic.sh build/release/bin/step_benchmark --rounds 5
#
# The program gets a network namespace of its own with nothing but a loopback
# device. Needs root, or a system that grants user namespaces.
set -euo pipefail
if [ $# -eq 0 ]; then
  sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"
  exit 2
fi
mode=(-n)
[ "$(id -u)" -eq 0 ] || mode=(-r -n)
# shellcheck disable=SC2016  # for the inner shell
exec unshare "${mode[@]}" bash -c '
  set -e
  ip link set lo up
  ip route replace local 127.0.0.0/8 dev lo table local congctl cubic
  ip route replace local 127.0.0.1 dev lo table local src 127.0.0.1 congctl cubic
  exec "$@"' cubic "$@"
