#include <cuda_runtime.h>

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cuda_on_cpu/control.h"
#include "tests/cuda_on_cpu/test_kernel.h"

namespace lockstep::cuda_on_cpu {
namespace {

using ::testing::Each;

class CaptureRulesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Configure({});
    ASSERT_EQ(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming),
              cudaSuccess);
  }
  void TearDown() override {
    if (graph_ != nullptr) EXPECT_EQ(cudaGraphDestroy(graph_), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(other_), cudaSuccess);
    EXPECT_EQ(cudaEventDestroy(event_), cudaSuccess);
    EXPECT_EQ(cudaFree(data_), cudaSuccess);
  }

  void Begin() {
    EXPECT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal),
              cudaSuccess);
  }
  cudaError_t End() { return cudaStreamEndCapture(stream_, &graph_); }
  cudaError_t Set(int value, cudaStream_t stream) {
    return cudaMemset2DAsync(data_, 16, value, 16, 1, stream);
  }

  const cudaStream_t stream_ = NewStream();
  const cudaStream_t other_ = NewStream();
  int* const data_ = NewMemory<int>(4);
  cudaEvent_t event_ = nullptr;
  cudaGraph_t graph_ = nullptr;
};

TEST_F(CaptureRulesTest, NothingRunsBeforeTheLaunch) {
  EXPECT_EQ(Set(1, stream_), cudaSuccess);
  Begin();
  EXPECT_EQ(Set(2, stream_), cudaSuccess);
  EXPECT_EQ(End(), cudaSuccess);
  cudaGraphExec_t executable = nullptr;
  EXPECT_EQ(cudaGraphInstantiateWithFlags(&executable, graph_, 0), cudaSuccess);
  EXPECT_THAT(Fetch(data_, 4, stream_), Each(0x01010101));

  EXPECT_EQ(cudaGraphLaunch(executable, stream_), cudaSuccess);
  // It ends what it has begun.
  EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);

  EXPECT_THAT(Fetch(data_, 4, stream_), Each(0x02020202));
  EXPECT_EQ(cudaGraphLaunch(executable, stream_), cudaErrorInvalidValue);
}

TEST_F(CaptureRulesTest, CallThatItCannotSeeFailsAndEndsIt) {
  const auto is_refused = [&](auto call) {
    Begin();
    EXPECT_EQ(call(), cudaErrorStreamCaptureUnsupported);
    EXPECT_EQ(Set(1, stream_), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(End(), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(graph_, nullptr);
  };
  void* more = nullptr;
  int host = 0;
  is_refused([&] { return cudaMalloc(&more, 1); });
  is_refused([&] { return cudaFree(data_); });
  is_refused([&] { return cudaStreamSynchronize(stream_); });
  is_refused([&] { return cudaStreamSynchronize(other_); });
  is_refused([&] { return cudaDeviceSynchronize(); });
  is_refused([&] { return cudaEventQuery(event_); });
  is_refused([&] {
    return cudaMemcpyAsync(data_, &host, 4, cudaMemcpyDefault, stream_);
  });
}

TEST_F(CaptureRulesTest, EventOfOutsideIsIsolated) {
  EXPECT_EQ(cudaEventRecord(event_, other_), cudaSuccess);
  Begin();
  EXPECT_EQ(cudaStreamWaitEvent(stream_, event_),
            cudaErrorStreamCaptureIsolation);
  EXPECT_EQ(End(), cudaErrorStreamCaptureInvalidated);
}

TEST_F(CaptureRulesTest, StreamsThatTakePartMustJoin) {
  Begin();
  EXPECT_EQ(cudaEventRecord(event_, stream_), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(other_, event_), cudaSuccess);
  EXPECT_EQ(Set(1, other_), cudaSuccess);
  EXPECT_EQ(End(), cudaErrorStreamCaptureUnjoined);

  Begin();
  EXPECT_EQ(cudaEventRecord(event_, stream_), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(other_, event_), cudaSuccess);
  EXPECT_EQ(Set(1, other_), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event_, other_), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(event_), cudaErrorCapturedEvent);
  EXPECT_EQ(cudaStreamWaitEvent(stream_, event_), cudaSuccess);
  EXPECT_EQ(End(), cudaSuccess);
}

TEST_F(CaptureRulesTest, BeginsAndEndsWhereItMay) {
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeThreadLocal),
            cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(End(), cudaErrorIllegalState);
  Begin();
  EXPECT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal),
            cudaErrorIllegalState);
  EXPECT_EQ(cudaStreamDestroy(stream_), cudaErrorStreamCaptureUnsupported);
  std::thread([&] {
    EXPECT_EQ(End(), cudaErrorStreamCaptureWrongThread);
  }).join();
  EXPECT_EQ(End(), cudaSuccess);
}

}  // namespace
}  // namespace lockstep::cuda_on_cpu
