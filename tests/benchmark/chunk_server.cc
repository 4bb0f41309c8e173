#include "tests/benchmark/chunk_server.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/rpc/status.h"
#include "server/update/optimizer.h"
#include "tests/benchmark/benchmark_model.h"
#include "tests/benchmark/chunk_message_codec.h"
#include "tests/benchmark/huge_buffer.h"
#include "tests/benchmark/naive.grpc.pb.h"
#include "tests/benchmark/plain_server.h"

namespace lockstep::benchmark {
namespace {

OptimizerConfig Momentum() {
  OptimizerConfig config;
  config.kind = OptimizerConfig::Kind::kMomentum;
  config.momentum = kMomentum;
  return config;
}

class ChunkParameterService final
    : public v1::ChunkParameterService::WithRawCallbackMethod_Exchange<
          v1::ChunkParameterService::Service> {
 public:
  ChunkParameterService(size_t workers, int64_t bytes, int64_t steps)
      : workers_(workers),
        bytes_(bytes),
        optimizer_(Momentum()),
        values_{HugeBuffer(bytes), HugeBuffer(bytes)},
        velocities_{HugeBuffer(bytes), HugeBuffer(bytes)},
        num_chunks_((bytes + kChunkBytes - 1) / kChunkBytes),
        chunks_(num_chunks_),
        left_(num_chunks_ * static_cast<int64_t>(workers) * steps) {
    for (Chunk& chunk : chunks_) chunk.calls.resize(workers);
  }

  grpc::ServerUnaryReactor* Exchange(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    absl::StatusOr<ChunkMessage> message = DecodeChunk(*request);
    if (!message.ok() || !Known(message->header)) {
      reactor->Finish({grpc::StatusCode::INVALID_ARGUMENT, "no chunk"});
      return reactor;
    }
    const size_t index = message->header.chunk;
    if (Arrived({reactor, response, std::move(message->payload)},
                message->header)) {
      Update(index);
    }
    return reactor;
  }

  void WaitUntilDone() {
    MutexLock lock(mutex_);
    while (left_ > 0) changed_.Wait(mutex_);
  }

 private:
  struct Call {
    grpc::ServerUnaryReactor* reactor = nullptr;
    grpc::ByteBuffer* response = nullptr;
    std::vector<grpc::Slice> gradient;
  };
  struct Chunk {
    std::vector<Call> calls;  // by worker
    size_t arrived = 0;
    int64_t step = 0;  // step of the newest chunk
  };

  bool Known(const ChunkMessage::Header& header) const {
    return header.worker >= 0 &&
           header.worker < static_cast<int64_t>(workers_) &&
           header.chunk >= 0 && header.chunk < num_chunks_;
  }

  // True if it was the last call of its chunk.
  bool Arrived(Call call, const ChunkMessage::Header& header)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    Chunk& chunk = chunks_[header.chunk];
    chunk.calls[header.worker] = std::move(call);
    return ++chunk.arrived == workers_;
  }

  // No other thread accesses the chunk before its calls are answered.
  void Update(size_t index) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    Chunk& chunk = chunks_[index];
    const int64_t offset = static_cast<int64_t>(index) * kChunkBytes;
    const int64_t size = std::min(kChunkBytes, bytes_ - offset);
    const int from = chunk.step++ % 2;
    std::vector<std::vector<server::ByteSlice>> slices(workers_);
    std::vector<server::GradientSlices> gradients;
    for (size_t worker = 0; worker < workers_; ++worker) {
      for (const grpc::Slice& slice : chunk.calls[worker].gradient) {
        slices[worker].push_back(
            {reinterpret_cast<const std::byte*>(slice.begin()), slice.size()});
      }
      gradients.push_back({slices[worker]});
    }
    bool finite = false;
    server::ApplyInput input;
    input.learning_rate = kLearningRate;
    input.gradients = gradients;
    input.divisor = static_cast<int64_t>(workers_);
    input.mean_is_finite = &finite;
    input.old_value = values_[from].bytes().subspan(offset, size);
    input.new_value = values_[1 - from].bytes().subspan(offset, size);
    input.old_slots[0] = velocities_[from].bytes().subspan(offset, size);
    input.new_slots[0] = velocities_[1 - from].bytes().subspan(offset, size);
    Answer(chunk, input.new_value, ToGrpcStatus(optimizer_.Apply(input)));
  }

  void Answer(Chunk& chunk, absl::Span<const std::byte> values,
              const grpc::Status& status) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    std::vector<Call> calls(workers_);
    calls.swap(chunk.calls);
    chunk.arrived = 0;
    for (Call& call : calls) {
      call.gradient.clear();
      const grpc::Slice slice(values.data(), values.size(),
                              grpc::Slice::STATIC_SLICE);
      *call.response = grpc::ByteBuffer(&slice, 1);
      call.reactor->Finish(status);
    }
    MutexLock lock(mutex_);
    left_ -= static_cast<int64_t>(workers_);
    if (left_ == 0) changed_.SignalAll();
  }

  const size_t workers_;
  const int64_t bytes_;
  const server::Optimizer optimizer_;
  const std::array<HugeBuffer, 2> values_;
  const std::array<HugeBuffer, 2> velocities_;
  const int64_t num_chunks_;

  Mutex mutex_;
  CondVar changed_;
  std::vector<Chunk> chunks_ ABSL_GUARDED_BY(mutex_);
  int64_t left_ ABSL_GUARDED_BY(mutex_);  // answers not sent yet
};

}  // namespace

absl::Status RunChunkServer(const Cluster& cluster,
                            const RoleOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::vector<VariableSpec> variables,
      MakeBenchmarkVariables(options.model, options.bytes));
  ChunkParameterService service(cluster.num_workers(), TotalBytes(variables),
                                AllSteps(options));
  return ServeUntil([&] { service.WaitUntilDone(); }, cluster, service);
}

}  // namespace lockstep::benchmark
