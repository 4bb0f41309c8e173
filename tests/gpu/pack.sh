#!/usr/bin/env bash
# Packs what tests/gpu.sh runs, for a machine with a GPU on which nothing can be
# built: the programs of preset release, without symbols, and the shared libraries
# that they need beside those of the compiler and of CUDA. Needs patchelf.
#
#   tests/gpu/pack.sh FILE [MODULE]    writes FILE, a tar archive compressed by xz,
#                                      with the Python package for Debian's
#                                      Python, and its native module for another
#                                      one, if one is named
#
# On the other machine: tests/gpu.sh --packed FILE
set -euo pipefail
cd "$(dirname "$0")/../.."

file=${1:?FILE to write}
module=${2:-}
programs=(compute_gpu_test compute_conformance_test gpu_benchmark
  model_benchmark chief ps_server worker lockstep)

cmake --preset release >/dev/null
cmake --build --preset release --target "${programs[@]}" \
  lockstep_python >&2

pack=$(mktemp -d)
trap 'rm -rf "$pack"' EXIT
mkdir -p "$pack/bin" "$pack/lib" "$pack/python" "$(dirname "$file")"
cp -r build/release/python/lockstep "$pack/python"
[ -z "$module" ] || cp "$module" "$pack/python/lockstep"
for program in "${programs[@]}"; do
  find build/release/bin build/release/tests -maxdepth 1 -name "$program" \
    -type f -exec cp {} "$pack/bin" ";"
done
files=("$pack"/bin/* "$pack"/python/lockstep/_native*.so)
for binary in "${files[@]}"; do
  ldd "$binary" | awk '$2 == "=>" { print $3 }'
done | sort -u |
  grep -vE '/lib(c|m|dl|rt|pthread|resolv|stdc\+\+|gcc_s|cublas|cublasLt|cuda)\.so' |
  xargs cp -L --target-directory="$pack/lib"
strip "${files[@]}"
for program in "${files[@]}"; do
  # DT_RPATH, since DT_RUNPATH would not count for libraries of libraries.
  depth=..
  [[ $program == */bin/* ]] || depth=../..
  patchelf --force-rpath --set-rpath "\$ORIGIN/$depth/lib" "$program"
done
git describe --always --dirty >"$pack/commit"
tar -C "$pack" -c . | xz -T0 -6 >"$file"
ls -l "$file" >&2
