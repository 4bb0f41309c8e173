#include "worker/compute/backend/compute_backend.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/compute/registry.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::Each;
using ::testing::StartsWith;

// Every operation refuses a wrong tensor under its own name, before any
// arithmetic. The conformance suite tests what they compute.
class ComputeBackendTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto backend = MakeBackend("cpu", {});
    ASSERT_THAT(backend, lockstep::testing::IsOk());
    backend_ = *std::move(backend);
  }

  Tensor Of(Shape shape) {
    return Tensor(ElementType::kFloat32, std::move(shape), memory_.data());
  }

  void ExpectRefused(const absl::Status& status, const std::string& start) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                                 StartsWith(start)));
    EXPECT_THAT(memory_, Each(7));
  }

  std::unique_ptr<ComputeBackend> backend_;
  std::vector<float> memory_ = std::vector<float>(1000, 7);
};

TEST_F(ComputeBackendTest, CopiesAreChecked) {
  ExpectRefused(backend_->Upload(Of({2}), Of({3})), "Upload: host ");
  ExpectRefused(backend_->Download(Of({2}), Of({3})), "Download: values ");
}

TEST_F(ComputeBackendTest, CopiesNeedMemoryOnBothSides) {
  const Tensor none(ElementType::kFloat32, {2}, nullptr);

  ExpectRefused(backend_->Upload(Of({2}), none), "Upload: out has no memory");
  ExpectRefused(backend_->Download(Of({2}), none),
                "Download: host has no memory");
}

TEST_F(ComputeBackendTest, DenseOperationsAreChecked) {
  ExpectRefused(backend_->MatMul(Of({2, 3}), Of({2, 3}), {}, Of({2, 3})),
                "MatMul: b ");
  ExpectRefused(backend_->AddBias(Of({2}), Of({2, 3})), "AddBias: bias ");
  ExpectRefused(backend_->BiasGradient(Of({2, 3}), Of({2})),
                "BiasGradient: bias_gradient ");
  ExpectRefused(backend_->Relu(Of({2}), Of({3})), "Relu: out ");
  ExpectRefused(backend_->ReluGradient(Of({2}), Of({3}), Of({2})),
                "ReluGradient: out_gradient ");
  ExpectRefused(backend_->ReluGradient(Of({2}), Of({2}), Of({3})),
                "ReluGradient: in_gradient ");
}

TEST_F(ComputeBackendTest, ImageOperationsAreChecked) {
  const Tensor images = Of({1, 4, 4, 2});
  const Tensor filters = Of({3, 3, 2, 5});
  const Tensor out = Of({1, 4, 4, 5});
  const Tensor half = Of({1, 2, 2, 2});

  ExpectRefused(backend_->Conv2D(images, filters, images), "Conv2D: out ");
  ExpectRefused(backend_->Conv2DInputGradient(filters, images, images),
                "Conv2DInputGradient: out_gradient ");
  ExpectRefused(backend_->Conv2DFilterGradient(images, out, images),
                "Conv2DFilterGradient: filters_gradient ");
  ExpectRefused(backend_->MaxPool2x2(images, half, half),
                "MaxPool2x2: argmax ");
  ExpectRefused(backend_->MaxPool2x2Gradient(half, half, images),
                "MaxPool2x2Gradient: argmax ");
}

TEST_F(ComputeBackendTest, ClassificationIsChecked) {
  const std::vector<int32_t> number = {1};
  const ConstTensor labels = ConstTensor::Of<int32_t>(number, {1}).WithBound(2);
  const Tensor loss(ElementType::kFloat64, {1}, memory_.data());

  ExpectRefused(backend_->SoftmaxCrossEntropy(Of({1, 2}), labels.WithBound(3),
                                              loss, Of({1, 2})),
                "SoftmaxCrossEntropy: labels ");
  ExpectRefused(
      backend_->SoftmaxCrossEntropy(Of({1, 2}), labels, Of({1}), Of({1, 2})),
      "SoftmaxCrossEntropy: loss ");
  ExpectRefused(
      backend_->SoftmaxCrossEntropy(Of({1, 2}), labels, loss, Of({2, 1})),
      "SoftmaxCrossEntropy: logits_gradient ");
  ExpectRefused(backend_->CountCorrect(Of({2, 2}), labels, loss),
                "CountCorrect: labels ");
  ExpectRefused(backend_->CountCorrect(Of({1, 2}), labels, Of({1})),
                "CountCorrect: count ");
  ExpectRefused(backend_->CountNonFinite(Of({2}), Of({1})),
                "CountNonFinite: count ");
}

}  // namespace
}  // namespace lockstep::worker
