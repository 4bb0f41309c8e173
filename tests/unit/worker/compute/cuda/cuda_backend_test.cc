#include "worker/compute/cuda/cuda_backend.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker {
namespace {

// What it computes, the conformance suite tests where there is a GPU.
TEST(CudaBackendTest, IsNamedCudaOrRefused) {
  const auto backend = MakeCudaBackend();

  if (backend.ok()) {
    EXPECT_STREQ((*backend)->name(), "cuda");
    EXPECT_FALSE((*backend)->UsesOrdinaryMemory());
  } else {
    EXPECT_TRUE(absl::IsFailedPrecondition(backend.status()))
        << backend.status();
  }
}

}  // namespace
}  // namespace lockstep::worker
