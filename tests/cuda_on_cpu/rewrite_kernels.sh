#!/usr/bin/env bash
# rewrite_kernels.sh FROM: prints a file of kernels with the two things in it
# changed that no macro can make C++:
#
#   kernel<<<grid, block, shared, stream>>>(arguments)
#   __shared__ T name[sizes];
#
# Lines keep their numbers. Clang's own mode for CUDA does not serve here: for
# the host it compiles no body of a kernel.
set -euo pipefail
printf '#line 1 "%s"\n' "$1"
sed -E \
  -e 's/([A-Za-z_]+)<<<(.*)>>>\(/LOCKSTEP_CUDA_ON_CPU_LAUNCH(\1, \2)(/' \
  -e 's/__shared__ ([A-Za-z_]+) ([A-Za-z_]+)(\[.*\]);/LOCKSTEP_CUDA_ON_CPU_SHARED(\1, \2, \3);/' \
  "$1"
