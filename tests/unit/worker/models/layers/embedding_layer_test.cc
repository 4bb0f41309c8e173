#include "worker/models/layers/embedding_layer.h"

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/compute/registry.h"

namespace lockstep::worker {
namespace {

using ::testing::ElementsAre;

TEST(EmbeddingLayerTest, TokenAndPositionAreAdded) {
  EmbeddingLayer layer(
      {.name = "embedding", .tokens = 2, .positions = 3, .width = 1},
      ElementType::kFloat64);
  const std::unique_ptr<ComputeBackend> backend = *MakeBackend("cpu", {});
  const std::vector<double> tokens = {100, 200}, positions = {1, 2, 3};
  const std::vector<ConstTensor> variables = {
      ConstTensor::Of<double>(tokens, {2, 1}),
      ConstTensor::Of<double>(positions, {3, 1})};
  const std::vector<int32_t> ids = {1, 0, 0, 1};

  const absl::StatusOr<Tensor> out = layer.Forward(
      *backend, ConstTensor::Of<int32_t>(ids, {2, 2}).WithBound(2), variables);

  ASSERT_OK(out);
  EXPECT_THAT(std::vector<double>(out->data<double>(), out->data<double>() + 4),
              ElementsAre(201, 102, 101, 202));
}

}  // namespace
}  // namespace lockstep::worker
