// Every call of CUDA that a worker's passes make fails once, each way.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cuda_on_cpu/control.h"
#include "tests/cuda_on_cpu/device_trainer.h"

namespace lockstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

constexpr int kPasses = 4;
const TrainedModel kModels[] = {{.kind = "mlp", .early = true},
                                {.kind = "cnn", .micro_batches = 2},
                                {.kind = "softmax", .refuse_non_finite = true}};

// One run of a model, which goes on after errors.
struct Outcome {
  std::vector<absl::Status> errors;
  std::vector<std::vector<float>> results;  // of the passes, in the end
};

// A pass that fails is computed again, at most once.
Outcome RunModel(const TrainedModel& trained) {
  Outcome outcome;
  auto trainer = DeviceTrainer::Make("cuda", trained);
  if (!trainer.ok()) {
    outcome.errors.push_back(trainer.status());
    trainer = DeviceTrainer::Make("cuda", trained);
    if (!trainer.ok()) {
      outcome.errors.push_back(trainer.status());
      return outcome;
    }
  }
  for (int step = 1; step <= kPasses; ++step) {
    for (int attempt = 1; attempt <= 2; ++attempt) {
      auto result = (*trainer)->Pass(step);
      if (result.ok()) {
        outcome.results.push_back(*result);
        break;
      }
      outcome.errors.push_back(result.status());
    }
  }
  return outcome;
}

// How often a run without faults makes each call.
std::map<std::string, int64_t> CallsOf(const TrainedModel& trained) {
  cuda_on_cpu::Configure({});
  RunModel(trained);
  std::map<std::string, int64_t> calls;
  for (const std::string& call : cuda_on_cpu::TakeCalls()) ++calls[call];
  return calls;
}

// The first, one in the middle and the last of the calls of each function. Of
// those on events, whose number depends on time, and of those that pin memory,
// whose number depends on which pages it lies on, the first two.
std::vector<cuda_on_cpu::Fault> FaultsOf(const TrainedModel& trained,
                                         cudaError_t error) {
  std::vector<cuda_on_cpu::Fault> faults;
  for (const auto& [call, count] : CallsOf(trained)) {
    const bool varies = call.rfind("cudaEvent", 0) == 0 ||
                        call == "cudaHostRegister" ||
                        call == "cudaHostUnregister";
    const int64_t last = varies ? std::min<int64_t>(count, 2) : count;
    for (const int64_t number : std::set<int64_t>{1, (1 + last) / 2, last}) {
      faults.push_back({call, number, error});
    }
  }
  return faults;
}

class CudaFaultsTest : public ::testing::TestWithParam<TrainedModel> {
 protected:
  void TearDown() override { cuda_on_cpu::Configure({}); }

  Outcome RunWith(const cuda_on_cpu::Fault& fault) {
    cuda_on_cpu::Configure({});
    cuda_on_cpu::SetFault(fault);
    Outcome outcome = RunModel(GetParam());
    EXPECT_TRUE(cuda_on_cpu::FaultHasHappened());
    EXPECT_EQ(cuda_on_cpu::AllocatedBytes(), 0u);
    return outcome;
  }

  static std::string Text(const cuda_on_cpu::Fault& fault) {
    return fault.call + ", number " + std::to_string(fault.number);
  }
};

TEST_P(CudaFaultsTest, CallThatFailsOnceIsOneErrorAndChangesNothing) {
  const auto expected = RunModel(GetParam()).results;
  ASSERT_EQ(expected.size(), kPasses);

  for (const auto& fault : FaultsOf(GetParam(), cudaErrorInvalidValue)) {
    SCOPED_TRACE(Text(fault));
    const Outcome outcome = RunWith(fault);

    EXPECT_LE(outcome.errors.size(), 1u);
    for (const absl::Status& error : outcome.errors) {
      EXPECT_THAT(error, ::testing::AnyOf(
                             StatusIs(absl::StatusCode::kInternal),
                             StatusIs(absl::StatusCode::kFailedPrecondition,
                                      HasSubstr("cudaGetDeviceCount"))));
    }
    ASSERT_EQ(outcome.results, expected);
  }
}

TEST_P(CudaFaultsTest, MemoryThatIsShortIsSaidAndAsksForASmallerBatch) {
  const auto expected = RunModel(GetParam()).results;

  const int64_t count = CallsOf(GetParam())["cudaMalloc"];
  for (int64_t number = 1; number <= count; ++number) {
    SCOPED_TRACE(number);
    const Outcome outcome =
        RunWith({"cudaMalloc", number, cudaErrorMemoryAllocation});

    ASSERT_EQ(outcome.errors.size(), 1u);
    EXPECT_THAT(outcome.errors[0],
                StatusIs(absl::StatusCode::kResourceExhausted,
                         HasSubstr("make batch_size smaller")));
    ASSERT_EQ(outcome.results, expected);
  }
}

// The call that asks how much memory is left fails too.
TEST_P(CudaFaultsTest, ShortMemoryIsSaidWithoutFiguresOfIt) {
  cuda_on_cpu::Configure({.memory = 1000});
  cuda_on_cpu::SetFault({"cudaMemGetInfo", 1, cudaErrorInvalidValue});

  const auto trainer = DeviceTrainer::Make("cuda", GetParam());

  EXPECT_TRUE(cuda_on_cpu::FaultHasHappened());
  EXPECT_THAT(trainer, StatusIs(absl::StatusCode::kResourceExhausted,
                                AllOf(HasSubstr("make batch_size smaller"),
                                      Not(HasSubstr("free")))));
  EXPECT_EQ(cuda_on_cpu::AllocatedBytes(), 0u);
}

TEST_P(CudaFaultsTest, LostDeviceIsUnavailableFromThenOn) {
  // These give back memory and streams in the end, without a result.
  const std::set<std::string> silent = {
      "cudaEventDestroy",      "cudaFree",           "cudaGraphDestroy",
      "cudaGraphExecDestroy",  "cudaHostUnregister", "cudaStreamDestroy",
      "cudaStreamSynchronize", "cublasDestroy"};
  for (const auto& fault : FaultsOf(GetParam(), cudaErrorECCUncorrectable)) {
    SCOPED_TRACE(Text(fault));
    const Outcome outcome = RunWith(fault);

    if (outcome.results.size() == kPasses) {
      EXPECT_TRUE(silent.contains(fault.call));
      continue;
    }
    ASSERT_FALSE(outcome.errors.empty());
    for (const absl::Status& error : outcome.errors) {
      EXPECT_THAT(error, StatusIs(absl::StatusCode::kUnavailable,
                                  HasSubstr("the device is lost")));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, CudaFaultsTest, ::testing::ValuesIn(kModels),
    [](const ::testing::TestParamInfo<TrainedModel>& info) {
      return NameOf(info.param);
    });

// So that none of them is a call that no test makes fail.
TEST(CudaCallsTest, AllCallsOfTheBackendAreAmongThoseThatFail) {
  std::set<std::string> made;
  for (const TrainedModel& trained : kModels) {
    for (const auto& [call, count] : CallsOf(trained)) made.insert(call);
  }

  EXPECT_THAT(made, IsSupersetOf({"cudaGetDeviceCount",
                                  "cudaSetDevice",
                                  "cudaGetDeviceProperties",
                                  "cudaStreamCreateWithFlags",
                                  "cudaEventCreateWithFlags",
                                  "cudaMalloc",
                                  "cudaFree",
                                  "cudaHostRegister",
                                  "cudaHostUnregister",
                                  "cudaMemcpyAsync",
                                  "cudaMemset2DAsync",
                                  "cudaLaunchKernel",
                                  "cudaEventRecord",
                                  "cudaStreamWaitEvent",
                                  "cudaEventQuery",
                                  "cudaEventSynchronize",
                                  "cudaStreamSynchronize",
                                  "cudaStreamBeginCapture",
                                  "cudaStreamEndCapture",
                                  "cudaGraphInstantiateWithFlags",
                                  "cudaGraphDestroy",
                                  "cudaGraphLaunch",
                                  "cudaGraphExecDestroy",
                                  "cudaStreamDestroy",
                                  "cudaEventDestroy",
                                  "cublasCreate",
                                  "cublasDestroy",
                                  "cublasSetStream",
                                  "cublasSetWorkspace",
                                  "cublasGemmStridedBatchedEx"}));
}

}  // namespace
}  // namespace lockstep::testing
