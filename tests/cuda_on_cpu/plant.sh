#!/usr/bin/env bash
# plant.sh PLANT FROM TO: copies cuda_device.cc with one mistake in it. Fails if
# there is no such place any more.
set -euo pipefail
case $1 in
  none) change='' ;;
  # Copies do not wait for the kernels before.
  no_wait_for_kernels)
    change='s/Check(cudaStreamWaitEvent(stream, computed_.get()),/Check(cudaSuccess,/' ;;
  # Kernels do not wait for the copies that they need.
  no_wait_for_uploads)
    change='s/Check(cudaStreamWaitEvent(compute(), events_\[copy\].get()),/Check(cudaSuccess,/' ;;
  # Memory is used again while a copy still reads or writes it.
  reused_memory)
    change='s/Check(cudaEventSynchronize(events_\[copy\].get()),/Check(cudaSuccess,/' ;;
  # A buffer is freed while a graph is recorded.
  freed_in_capture)
    change='s/  return EndCapture(compute(), \*name_);/  partial_ = Buffer();\n  workspace_ = Buffer();\n&/' ;;
  # A transposed factor of a product is taken for one that is not.
  wrong_stride)
    change='s/side(gemm.a.stride)/side(gemm.k)/' ;;
esac
sed "$change" "$2" >"$3"
if [ "$1" != none ] && cmp -s "$2" "$3"; then
  echo "plant.sh: $1: the place is not found in $2" >&2
  exit 1
fi
