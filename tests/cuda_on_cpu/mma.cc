#include <mma.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace nvcuda::wmma::simulated {

void CheckMatrix(const void* data, size_t stride) {
  if (reinterpret_cast<uintptr_t>(data) % 32 == 0 && stride % 16 == 0) return;
  std::fprintf(
      stderr,
      "cuda_on_cpu: a matrix of tensor cores starts at %p with rows of "
      "%zu bytes; it must start at a multiple of 32 bytes, with rows of "
      "multiples of 16\n",
      data, stride);
  std::abort();
}

}  // namespace nvcuda::wmma::simulated
