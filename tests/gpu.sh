#!/usr/bin/env bash
# Tests and measures the CUDA backend on a machine with a GPU, nvcc and CMake, and
# writes one file of results, to be committed beside the others in
# tests/benchmark/results. It builds worker/compute alone, which also needs
# Abseil, OpenBLAS and GoogleTest.
#
#   tests/gpu.sh [FILE]             default: DATE-gpu.md in that folder
#   tests/gpu.sh --packed PACK [FILE]
#                                   the same with programs from a file that
#                                   tests/gpu/pack.sh wrote, where nothing can be
#                                   built
#   tests/gpu.sh --simulated [FILE] the same on a device that is simulated on the
#                                   CPU, to try this script; default: no file
#
# Environment:
#   LOCKSTEP_JOBS                   compilers at a time; default: the cores
#   LOCKSTEP_CUDA_ARCHITECTURES     default: that of the first GPU
set -euo pipefail
cd "$(dirname "$0")/.."

simulated=no
pack=
if [ "${1:-}" = --simulated ]; then
  simulated=yes
  shift
elif [ "${1:-}" = --packed ]; then
  pack=$(realpath "${2:?PACK is missing: tests/gpu/pack.sh writes it}")
  shift 2
fi
default=tests/benchmark/results/$(date +%Y-%m-%d)-gpu.md
[ $simulated = no ] || default=/dev/stdout
result=${1:-$default}
compilers=${LOCKSTEP_JOBS:-$(nproc)}
build=build/gpu
[ -z "$pack" ] || build=build/packed
# Without a GPU tests fail here, where elsewhere they are skipped.
[ $simulated = yes ] || export LOCKSTEP_NEEDS_GPU=1
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

# program NAME: its path.
program() {
  find $build -name "$1" -type f | head -n 1
}

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
  printf 'Commit %s.\n' "$(cat $build/commit 2>/dev/null ||
    git describe --always --dirty 2>/dev/null || echo unknown)"
}

sanitize() {
  local tool test sanitizer
  test=$(program compute_gpu_test)
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
  benchmark=("$(program gpu_benchmark)")
  [ $simulated = no ] ||
    benchmark=("$(program gpu_benchmark_on_cpu)"
      --small)
  for row in gemm kernels pinned overlap mlp replay; do
    report "Benchmark: $row" "${benchmark[@]}" $row
  done
  models
}

# Jobs of the real programs, and PyTorch's models in Lockstep's workers.
jobs() {
  local programs
  programs=$(dirname "$(program ps_server)")
  if [ "$programs" = . ]; then
    leave_out "Jobs" "they need a pack"
    return
  fi
  report "Jobs" env LOCKSTEP_BIN="$PWD/$programs" \
    python3 -W ignore tests/gpu/jobs_test.py
  if ! sees_gpu; then
    leave_out "PyTorch's models" "they need a Python whose PyTorch sees the GPU"
    return
  fi
  report "PyTorch's models" env LOCKSTEP_BIN="$PWD/$programs" \
    PYTHONPATH="$PWD/$build/python:tests/e2e/python" OMP_NUM_THREADS=1 \
    python3 -W ignore tests/gpu/torch_test.py
}

sees_gpu() {
  python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null
}

# Whole models against PyTorch's.
models() {
  local model_benchmark precision
  model_benchmark=$(program model_benchmark)
  if [ -z "$model_benchmark" ] || ! sees_gpu; then
    leave_out "Benchmarks: whole models against PyTorch" \
      "they need a pack and a Python whose PyTorch sees the GPU"
    return
  fi
  for precision in float32 tf32 bfloat16; do
    report "Benchmark: models against PyTorch, $precision" \
      python3 tests/benchmark/model_benchmark.py --device cuda --rounds 5 \
      --milliseconds 300 --program "$model_benchmark" --precision $precision
    report "Benchmark: a transformer against torch.compile, $precision" \
      python3 tests/benchmark/model_benchmark.py --device cuda --rounds 5 \
      --milliseconds 300 --program "$model_benchmark" --precision $precision \
      --compile gpt_124m
  done
}

all() {
  describe
  if [ $simulated = yes ]; then
    report "Conformance" "$(program cuda_on_cpu_conformance_test)"
  else
    report "Conformance" "$(program compute_conformance_test)"
    report "Against the CPU" "$(program compute_gpu_test)"
  fi
  jobs
  measure
  sanitize
}

if [ -n "$pack" ]; then
  rm -rf $build && mkdir -p $build && tar -C $build -xJf "$pack"
else
  configure
  targets=()
  [ $simulated = no ] ||
    targets=(--target cuda_on_cpu_conformance_test gpu_benchmark_on_cpu)
  cmake --build $build -j "$compilers" "${targets[@]}"
fi
[ "$result" = /dev/stdout ] || mkdir -p "$(dirname "$result")"
all >"$result"
if [ $failed -gt 0 ]; then
  echo "gpu.sh: $failed of these failed, see $result" >&2
  exit 1
fi
echo "gpu.sh: all passed, see $result" >&2
