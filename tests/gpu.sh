#!/usr/bin/env bash
# Tests and measures the CUDA backend on a machine with a GPU, nvcc and CMake, and
# writes one file of results, to be committed beside the others in
# tests/benchmark/results. It builds worker/compute alone, which also needs
# Abseil, OpenBLAS and GoogleTest.
#
#   tests/gpu.sh [FILE]             default: DATE-gpu.md in that folder
#   tests/gpu.sh --simulated [FILE] the same on a device that is simulated on the
#                                   CPU, to try this script; default: no file
#
# Environment:
#   LOCKSTEP_JOBS                   compilers at a time; default: the cores
#   LOCKSTEP_CUDA_ARCHITECTURES     default: that of the first GPU
set -euo pipefail
cd "$(dirname "$0")/.."

simulated=no
if [ "${1:-}" = --simulated ]; then
  simulated=yes
  shift
fi
default=tests/benchmark/results/$(date +%Y-%m-%d)-gpu.md
[ $simulated = no ] || default=/dev/stdout
result=${1:-$default}
jobs=${LOCKSTEP_JOBS:-$(nproc)}
build=build/gpu
failed=0

# cuda_tool NAME: its path, or nothing.
cuda_tool() {
  command -v "$1" || ls "/usr/local/cuda/bin/$1" 2>/dev/null || true
}

# report TITLE COMMAND...: runs a command, and prints its output as a section.
report() {
  local title=$1 began=$SECONDS code=0 log
  shift
  log=$(mktemp)
  echo "gpu.sh: $title" >&2
  "$@" >"$log" 2>&1 || code=$?
  [ $code = 0 ] || failed=$((failed + 1))
  # shellcheck disable=SC2016  # Markdown, not commands
  printf '\n## %s\n\nExit code %d after %d s: `%s`\n\n```\n' \
    "$title" $code $((SECONDS - began)) "$*"
  # Tests that passed are a number; benchmarks are all of their output.
  grep -vE '^\[ (RUN|      OK) |^\[-----' "$log" | tail -n 60
  printf '```\n'
  rm -f "$log"
}

leave_out() { printf '\n## %s\n\nLeft out: %s.\n' "$1" "$2"; }

configure() {
  if [ $simulated = yes ]; then
    cmake -S worker/compute -B $build -DCMAKE_BUILD_TYPE=Release \
      -DLOCKSTEP_CUDA=OFF
    return
  fi
  local architecture=${LOCKSTEP_CUDA_ARCHITECTURES:-}
  if [ -z "$architecture" ]; then
    architecture=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader |
      head -n 1 | tr -d '. ')
  fi
  cmake -S worker/compute -B $build -DCMAKE_BUILD_TYPE=Release \
    -DLOCKSTEP_CUDA=ON -DLOCKSTEP_CUDA_ARCHITECTURES="$architecture"
}

describe() {
  printf '# The CUDA backend, %s\n\n' "$(date -u +%Y-%m-%d)"
  if [ $simulated = yes ]; then
    printf 'On a simulated device: figures mean nothing.\n\n'
  else
    printf '```\n'
    nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm \
      --format=csv
    "$(cuda_tool nvcc)" --version | tail -n 2
    printf '```\n\n'
  fi
  printf 'Commit %s.\n' "$(git describe --always --dirty 2>/dev/null ||
    echo unknown)"
}

sanitize() {
  local tool test=$build/tests/compute_gpu_test sanitizer
  tool=$(cuda_tool compute-sanitizer)
  for sanitizer in memcheck racecheck initcheck synccheck; do
    if [ -z "$tool" ] || [ $simulated = yes ]; then
      leave_out "compute-sanitizer, $sanitizer" "it is not here"
    else
      report "compute-sanitizer, $sanitizer" "$tool" --tool $sanitizer \
        --error-exitcode 1 "$test"
    fi
  done
}

measure() {
  local row benchmark
  benchmark=("$(find $build -name gpu_benchmark -type f | head -n 1)")
  [ $simulated = no ] ||
    benchmark=("$(find $build -name gpu_benchmark_on_cpu -type f | head -n 1)"
      --small)
  for row in gemm kernels pinned overlap mlp replay; do
    report "Benchmark: $row" "${benchmark[@]}" $row
  done
  leave_out "Benchmarks: whole models against PyTorch" \
    "they need the whole tree and PyTorch, see worker/compute/cuda/README.md"
}

all() {
  describe
  if [ $simulated = yes ]; then
    report "Conformance" $build/tests/cuda_on_cpu_conformance_test
  else
    report "Conformance" $build/tests/compute_conformance_test
    report "Against the CPU" $build/tests/compute_gpu_test
  fi
  sanitize
  measure
}

configure
targets=()
[ $simulated = no ] ||
  targets=(--target cuda_on_cpu_conformance_test gpu_benchmark_on_cpu)
cmake --build $build -j "$jobs" "${targets[@]}"
[ "$result" = /dev/stdout ] || mkdir -p "$(dirname "$result")"
all >"$result"
if [ $failed -gt 0 ]; then
  echo "gpu.sh: $failed of these failed, see $result" >&2
  exit 1
fi
echo "gpu.sh: all passed, see $result" >&2
