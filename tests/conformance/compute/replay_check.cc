#include "tests/conformance/compute/replay_check.h"

#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/compute/device.h"
#include "worker/compute/backend/indices.h"
#include "worker/compute/backend/scratch.h"
#include "worker/compute/replay/recorder.h"

namespace lockstep::testing {
namespace {

constexpr worker::ElementType kFloat = worker::ElementType::kFloat32;
constexpr int64_t kInputs = 7;
constexpr int64_t kHidden = 33;
constexpr int64_t kClasses = 5;

void Expect(const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; }

// Two dense layers and the loss, in memory that is kept between passes.
class Network {
 public:
  explicit Network(const std::string& backend_name)
      : device_(backend_name), recorder_(device_.backend()) {}

  // The loss, then all gradients, of `n` examples drawn by `seed`.
  std::vector<double> Pass(int64_t n, int seed, bool replay) {
    Stage(n, seed);
    const auto operations = [this] {
      Operations();
      return absl::OkStatus();
    };
    worker::RecordingKey key;
    for (const worker::ConstTensor& tensor : {in_, labels_}) key.Add(tensor);
    Expect(replay ? recorder_.Run(key, operations) : operations());
    Expect(recorder_.TakeFailure());
    std::vector<double> found;
    for (const worker::Tensor& tensor :
         {loss_, count_, first_gradient_, bias_gradient_, second_gradient_}) {
      for (const double value : device_.Get(tensor)) found.push_back(value);
    }
    return found;
  }

  int64_t replays() const { return recorder_.replays(); }

 private:
  worker::Tensor Random(const worker::Shape& shape, int seed) {
    return device_.Put(kFloat, shape, RandomValues(shape, seed));
  }
  worker::Tensor Reserve(worker::Scratch& scratch, const worker::Shape& shape) {
    absl::StatusOr<worker::Tensor> tensor =
        scratch.Reserve(device_.backend(), kFloat, shape);
    Expect(tensor.status());
    return tensor.value_or(worker::Tensor());
  }

  void Stage(int64_t n, int seed) {
    std::vector<float> values;
    for (double x : RandomValues(n * kInputs, seed)) values.push_back(x);
    const worker::Tensor in = Reserve(in_memory_, {n, kInputs});
    Expect(device_.backend().Upload(
        worker::ConstTensor::Of<float>(values, in.shape()), in));
    in_ = in;
    std::vector<int32_t> labels;
    for (int64_t i = 0; i < n; ++i) labels.push_back((i * 3 + seed) % kClasses);
    absl::StatusOr<worker::ConstTensor> staged = worker::StageIndices(
        "labels", worker::ConstTensor::Of<int32_t>(labels, {n}), kClasses,
        device_.backend(), labels_memory_);
    Expect(staged.status());
    labels_ = staged.value_or(worker::ConstTensor());
  }

  void Operations() {
    worker::ComputeBackend& backend = device_.backend();
    const int64_t n = in_.dim(0);
    const worker::Tensor hidden = Reserve(hidden_, {n, kHidden});
    const worker::Tensor logits = Reserve(logits_, {n, kClasses});
    const worker::Tensor logits_gradient =
        Reserve(logits_gradient_, {n, kClasses});
    const worker::Tensor hidden_gradient =
        Reserve(hidden_gradient_, {n, kHidden});
    Expect(backend.MatMul(in_, first_, {}, hidden));
    Expect(backend.AddBias(bias_, hidden));
    Expect(backend.Relu(hidden, hidden));
    Expect(backend.MatMul(hidden, second_, {}, logits));
    Expect(
        backend.SoftmaxCrossEntropy(logits, labels_, loss_, logits_gradient));
    Expect(backend.MatMul(hidden, logits_gradient, {.transpose_a = true},
                          second_gradient_));
    Expect(backend.MatMul(logits_gradient, second_, {.transpose_b = true},
                          hidden_gradient));
    Expect(backend.ReluGradient(hidden, hidden_gradient, hidden_gradient));
    Expect(backend.BiasGradient(hidden_gradient, bias_gradient_));
    Expect(backend.MatMul(in_, hidden_gradient, {.transpose_a = true},
                          first_gradient_));
    Expect(backend.CountNonFinite(first_gradient_, count_));
  }

  Device device_;
  worker::Recorder recorder_;
  const worker::Tensor first_ = Random({kInputs, kHidden}, 101);
  const worker::Tensor bias_ = Random({kHidden}, 102);
  const worker::Tensor second_ = Random({kHidden, kClasses}, 103);
  const worker::Tensor first_gradient_ = Random({kInputs, kHidden}, 1);
  const worker::Tensor bias_gradient_ = Random({kHidden}, 1);
  const worker::Tensor second_gradient_ = Random({kHidden, kClasses}, 1);
  const worker::Tensor loss_ =
      device_.Blank(worker::ElementType::kFloat64, {1});
  const worker::Tensor count_ =
      device_.Blank(worker::ElementType::kFloat64, {1});
  worker::Scratch in_memory_;
  worker::Scratch labels_memory_;
  worker::Scratch hidden_;
  worker::Scratch logits_;
  worker::Scratch logits_gradient_;
  worker::Scratch hidden_gradient_;
  worker::ConstTensor in_;
  worker::ConstTensor labels_;
};

}  // namespace

void ExpectReplaysAreLaunches(const std::string& backend_name) {
  Network launching(backend_name);
  Network replaying(backend_name);
  // The first pass of each shape is launched, the second recorded. More than
  // 512 rows are summed in chunks, for which the device itself needs memory.
  const std::vector<int64_t> sizes = {13, 13, 13, 1031, 1031, 1031, 13, 13};
  for (size_t i = 0; i < sizes.size(); ++i) {
    const int seed = static_cast<int>(i) + 1;

    const std::vector<double> replayed = replaying.Pass(sizes[i], seed, true);

    EXPECT_EQ(replayed, launching.Pass(sizes[i], seed, false)) << "pass " << i;
  }
  EXPECT_EQ(replaying.replays(), 5);
}

}  // namespace lockstep::testing
