#include <cuda_runtime.h>

#include <atomic>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cuda_on_cpu/control.h"
#include "tests/cuda_on_cpu/test_kernel.h"

namespace lockstep::cuda_on_cpu {
namespace {

using ::testing::Each;

// A kernel that runs until the test lets it end.
std::atomic<bool> open = true;

void Wait(int*) {
  while (!open.load()) continue;
}

class StreamRulesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Configure({});
    open = true;
  }
  void TearDown() override {
    open = true;
    for (cudaStream_t stream : {first_, second_}) {
      EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    }
    EXPECT_EQ(cudaEventDestroy(event_), cudaSuccess);
    EXPECT_EQ(cudaFree(data_), cudaSuccess);
  }

  void Hold(cudaStream_t stream) {
    open = false;
    Launch(&Wait, 1, 1, stream, static_cast<int*>(nullptr));
  }
  static cudaEvent_t NewEvent() {
    cudaEvent_t event = nullptr;
    EXPECT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
              cudaSuccess);
    return event;
  }

  const cudaStream_t first_ = NewStream();
  const cudaStream_t second_ = NewStream();
  const cudaEvent_t event_ = NewEvent();
  int* const data_ = NewMemory<int>(4);
};

TEST_F(StreamRulesTest, EventIsNotReadyBeforeItsStream) {
  EXPECT_EQ(cudaEventQuery(event_), cudaSuccess) << "never recorded";
  Hold(first_);
  EXPECT_EQ(cudaEventRecord(event_, first_), cudaSuccess);

  EXPECT_EQ(cudaEventQuery(event_), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotReady)
      << "the next launch would return it";

  open = true;
  EXPECT_EQ(cudaEventSynchronize(event_), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event_), cudaSuccess);
}

TEST_F(StreamRulesTest, PinnedMemoryIsReadLateAndOtherMemoryAtTheCall) {
  alignas(4096) static int pinned[1024];
  std::vector<int> ordinary = {1, 1};
  pinned[0] = pinned[1] = 1;
  EXPECT_EQ(cudaHostRegister(pinned, sizeof(pinned), 0), cudaSuccess);
  Hold(first_);
  EXPECT_EQ(cudaMemcpyAsync(data_, pinned, 8, cudaMemcpyDefault, first_),
            cudaSuccess);
  EXPECT_EQ(
      cudaMemcpyAsync(data_ + 2, ordinary.data(), 8, cudaMemcpyDefault, first_),
      cudaSuccess);

  pinned[0] = pinned[1] = 2;
  ordinary = {2, 2};
  open = true;

  EXPECT_THAT(Fetch(data_, 2, first_), Each(2));
  EXPECT_THAT(Fetch(data_ + 2, 2, first_), Each(1));
  EXPECT_EQ(cudaHostUnregister(pinned), cudaSuccess);
}

TEST_F(StreamRulesTest, StreamWaitsForTheEventAsItWasRecordedLast) {
  Hold(first_);
  EXPECT_EQ(cudaMemset2DAsync(data_, 16, 1, 16, 1, first_), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event_, first_), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(second_, event_), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event_, second_), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event_), cudaErrorNotReady);

  open = true;

  EXPECT_THAT(Fetch(data_, 4, second_), Each(0x01010101));
}

TEST_F(StreamRulesTest, LostDeviceStaysLost) {
  SetFault({"cudaStreamSynchronize", 2, cudaErrorECCUncorrectable});
  EXPECT_EQ(cudaStreamSynchronize(first_), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(first_), cudaErrorECCUncorrectable);

  void* data = nullptr;
  EXPECT_EQ(cudaMalloc(&data, 1), cudaErrorECCUncorrectable);
  EXPECT_EQ(cudaGetLastError(), cudaErrorECCUncorrectable);
  EXPECT_EQ(cudaGetLastError(), cudaErrorECCUncorrectable);
  Configure({});
}

}  // namespace
}  // namespace lockstep::cuda_on_cpu
