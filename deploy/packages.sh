# shellcheck shell=bash
# The Debian 12 packages that Lockstep needs, named here and nowhere else;
# deploy/quickstart.sh and tests/run.sh source this.

LOCKSTEP_BUILD_PACKAGES=(
  cmake ninja-build g++
  libgrpc++-dev protobuf-compiler-grpc libprotobuf-dev protobuf-compiler
  libabsl-dev libssl-dev zlib1g-dev libzip-dev libopenblas-dev
  libspdlog-dev nlohmann-json3-dev libcli11-dev libsystemd-dev libnuma-dev
  prometheus-cpp-dev
  pkg-config python3-dev pybind11-dev  # pybind11: the Python package
  libgtest-dev libgmock-dev libbenchmark-dev  # CMake looks for them first
)
LOCKSTEP_PACKAGE_PACKAGES=(dpkg-dev file help2man)  # for target lockstep_deb
LOCKSTEP_DATA_PACKAGES=(dataset-fashion-mnist)
LOCKSTEP_TEST_PACKAGES=(
  git ccache clang clang-format clang-tidy libclang-rt-dev llvm lld python3-venv
  "${LOCKSTEP_PACKAGE_PACKAGES[@]}" mmdebstrap systemd-container
  podman crun catatonit iproute2 iptables bible-kjv bible-kjv-text
  # No kubectl: that of Debian 12, 1.20, renders none of deploy/kubernetes.
  slurmctld slurmd slurm-client munge  # a cluster that a test boots
  python3-jsonschema python3-yaml lintian faketime prometheus
  libgloo-dev  # a benchmark's peer
  python3-grpcio python3-protobuf python3-numpy  # a worker in Python
  python3-torch mypy python3-pip python3-setuptools python3-wheel  # its package
)

# Says what goes on, apart from what the tools print.
say() { printf '\n== %s\n' "$*"; }

# Prints those of the given packages that are not installed.
missing_packages() {
  local package
  for package in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" \
      = installed ] || printf '%s ' "$package"
  done
}

# Installs those of the given packages that are missing, or prints the command
# that would and fails, if we may not.
need_packages() {
  local missing become=()
  missing=$(missing_packages "$@")
  [ -n "$missing" ] || return 0
  local install="apt-get install -y --no-install-recommends ${missing% }"
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null || ! sudo -v; then
      printf '%s\n' "Packages are missing, and installing them takes root." \
        "Run this as root, then start me again:" "" \
        "  apt-get update && $install" ""
      return 1
    fi
    become=(sudo)
  fi
  say "installing from Debian, 1 to 3 minutes: $missing"
  "${become[@]}" apt-get update -q
  # shellcheck disable=SC2086  # words on purpose
  "${become[@]}" env DEBIAN_FRONTEND=noninteractive $install
}
