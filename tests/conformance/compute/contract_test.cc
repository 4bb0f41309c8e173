#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/conformance/compute/device.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr worker::ElementType kFloat = worker::ElementType::kFloat32;

// What every backend promises beside its arithmetic.
class ContractTest : public ::testing::TestWithParam<std::string> {
 protected:
  ContractTest() : device_(GetParam()) {}

  worker::ComputeBackend& backend() { return device_.backend(); }

  Device device_;
};

TEST_P(ContractTest, IsNamedAsInTheRegistry) {
  EXPECT_EQ(backend().name(), GetParam());
}

TEST_P(ContractTest, MemoryIsAligned) {
  for (const size_t bytes : {1u, 63u, 64u, 1000u}) {
    const absl::StatusOr<worker::Buffer> buffer = backend().Allocate(bytes);

    ASSERT_TRUE(buffer.ok()) << buffer.status();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % 64, 0u);
    EXPECT_EQ(buffer->bytes(), bytes);
  }
}

TEST_P(ContractTest, NoMemoryAtAllIsAnEmptyBuffer) {
  const absl::StatusOr<worker::Buffer> buffer = backend().Allocate(0);

  ASSERT_TRUE(buffer.ok()) << buffer.status();
  EXPECT_EQ(buffer->bytes(), 0u);
}

TEST_P(ContractTest, TooMuchMemoryIsAnError) {
  const absl::StatusOr<worker::Buffer> buffer =
      backend().Allocate(std::numeric_limits<size_t>::max() / 2);

  EXPECT_EQ(buffer.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_P(ContractTest, WhatIsUploadedIsDownloaded) {
  const worker::Tensor tensor = device_.Put(kFloat, {3}, {1, -2, 3});

  EXPECT_THAT(device_.Get(tensor), ElementsAre(1, -2, 3));
}

TEST_P(ContractTest, WrongShapeIsRefusedAndNothingIsWritten) {
  const worker::Tensor a = device_.Put(kFloat, {1, 2}, {1, 2});
  const worker::Tensor out = device_.Put(kFloat, {2}, {5, 6});

  const absl::Status status = backend().MatMul(a, a, {}, out);

  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("MatMul: b must be"));
  EXPECT_THAT(device_.Get(out), ElementsAre(5, 6));
}

TEST_P(ContractTest, UncheckedLabelsAreRefused) {
  const worker::Tensor logits = device_.Put(kFloat, {1, 2}, {1, 2});
  const worker::Tensor gradient = device_.Put(kFloat, {1, 2}, {5, 6});

  for (const int64_t bound : {0, 3}) {
    const absl::Status status = backend().SoftmaxCrossEntropy(
        logits, device_.Indices({1}, bound), device_.Number(), gradient);

    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("labels must be known to be in [0, 2)"));
    EXPECT_THAT(device_.Get(gradient), ElementsAre(5, 6));
  }
}

TEST_P(ContractTest, InfinityInALogitIsALossThatIsNotFinite) {
  const double infinity = std::numeric_limits<double>::infinity();
  const worker::Tensor logits = device_.Put(kFloat, {1, 2}, {infinity, 2});

  const worker::Tensor loss = device_.Number();

  const absl::Status status = backend().SoftmaxCrossEntropy(
      logits, device_.Indices({1}, 2), loss, device_.Blank(kFloat, {1, 2}));

  ASSERT_TRUE(status.ok()) << status;
  EXPECT_FALSE(std::isfinite(device_.NumberAt(loss)));
}

INSTANTIATE_TEST_SUITE_P(Backends, ContractTest,
                         ::testing::ValuesIn(ViableBackends()));

}  // namespace
}  // namespace lockstep::testing
