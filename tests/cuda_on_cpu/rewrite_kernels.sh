#!/usr/bin/env bash
# rewrite_kernels.sh FROM: prints a file of kernels with the things in it
# changed that no macro can make C++:
#
#   Kernel<<<grid, block, shared, stream>>>(arguments)
#   address<<<...>>>(arguments)  of a kernel, which begins with a small letter
#   __shared__ T name[sizes];
#   extern __shared__ __align__(32) T name[];
#   #pragma unroll               which not all compilers know
#
# Lines keep their numbers. Clang's own mode for CUDA does not serve here: for
# the host it compiles no body of a kernel.
set -euo pipefail
printf '#line 1 "%s"\n' "$1"
sed -E \
  -e '/^#pragma unroll/s/.*//' \
  -e 's/\b([a-z][a-z_]*)<<<(.*)>>>\(/LOCKSTEP_CUDA_ON_CPU_LAUNCH_ADDRESS(\1, \2)(/' \
  -e 's/extern __shared__ __align__\(32\) ([A-Za-z_]+) ([A-Za-z_]+)\[\];/LOCKSTEP_CUDA_ON_CPU_DYNAMIC_SHARED(\1, \2);/' \
  -e 's/([A-Za-z_]+)<<<(.*)>>>\(/LOCKSTEP_CUDA_ON_CPU_LAUNCH(\1, \2)(/' \
  -e 's/__shared__ ([A-Za-z_]+) ([A-Za-z_]+)(\[.*\]);/LOCKSTEP_CUDA_ON_CPU_SHARED(\1, \2, \3);/' \
  "$1"
