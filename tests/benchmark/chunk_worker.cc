#include "tests/benchmark/chunk_worker.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status_macros.h"
#include "common/numeric/stream_copy.h"
#include "common/rpc/channel.h"
#include "common/rpc/status.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"
#include "tests/benchmark/benchmark_model.h"
#include "tests/benchmark/chunk_message_codec.h"
#include "tests/benchmark/huge_buffer.h"
#include "tests/benchmark/step_samples.h"

namespace lockstep::benchmark {
namespace {

constexpr int kConnections = 2;
constexpr int kWindow = 4;
constexpr char kMethod[] =
    "/lockstep.benchmark.v1.ChunkParameterService/Exchange";

class ChunkClient {
 public:
  ChunkClient(const std::string& server, int worker, int64_t bytes)
      : worker_(worker),
        bytes_(bytes),
        chunks_((bytes + kChunkBytes - 1) / kChunkBytes),
        gradient_(bytes),
        values_(bytes) {
    for (int i = 0; i < kConnections; ++i) {
      stubs_.push_back(
          std::make_unique<grpc::GenericStub>(MakeChannel(server, i)));
    }
    std::fill_n(reinterpret_cast<float*>(gradient_.bytes().data()),
                bytes / sizeof(float), GradientOf(worker));
  }

  // Returns when all values of the step have arrived, or with the first error.
  absl::Status Step(const MomentumOracle& oracle) {
    int64_t started = 0;
    int64_t done = 0;
    absl::Status status;
    while (done < (status.ok() ? chunks_ : started)) {
      if (status.ok() && started < chunks_ && started - done < kWindow) {
        Start(started++);
        continue;
      }
      status.Update(TakeNext(oracle));
      ++done;
    }
    return status;
  }

 private:
  struct Call {
    int64_t chunk = 0;
    grpc::ClientContext context;
    grpc::ByteBuffer response;
    grpc::Status status;
    std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
  };

  absl::Span<std::byte> Chunk(const HugeBuffer& of, int64_t index) const {
    const int64_t offset = index * kChunkBytes;
    return of.bytes().subspan(offset, std::min(kChunkBytes, bytes_ - offset));
  }

  void Start(int64_t chunk) {
    auto call = std::make_unique<Call>();
    call->chunk = chunk;
    call->context.set_wait_for_ready(true);
    const absl::Span<const std::byte> gradient = Chunk(gradient_, chunk);
    call->reader = stubs_[chunk % kConnections]->PrepareUnaryCall(
        &call->context, kMethod,
        EncodeChunk({worker_, chunk}, gradient.data(), gradient.size()),
        &queue_);
    call->reader->StartCall();
    Call* tag = call.release();
    tag->reader->Finish(&tag->response, &tag->status, tag);
  }

  // Processes gRPC events until a call has ended.
  absl::Status TakeNext(const MomentumOracle& oracle) {
    void* tag = nullptr;
    bool ok = false;
    if (!queue_.Next(&tag, &ok)) return absl::InternalError("no call is left");
    const std::unique_ptr<Call> call(static_cast<Call*>(tag));
    LOCKSTEP_RETURN_IF_ERROR(FromGrpcStatus(call->status));
    return Take(call->response, Chunk(values_, call->chunk), oracle);
  }

  static absl::Status Take(const grpc::ByteBuffer& response,
                           absl::Span<std::byte> values,
                           const MomentumOracle& oracle) {
    std::vector<grpc::Slice> slices;
    if (response.Length() != values.size() || !response.Dump(&slices).ok()) {
      return absl::InternalError("an answer of another size than its chunk");
    }
    std::byte* to = values.data();
    for (const grpc::Slice& slice : slices) {
      StreamCopy(slice.size(),
                 reinterpret_cast<const std::byte*>(slice.begin()), to);
      to += slice.size();
    }
    FinishStreaming();
    float ends[2];
    std::memcpy(&ends[0], values.data(), sizeof(float));
    std::memcpy(&ends[1], to - sizeof(float), sizeof(float));
    LOCKSTEP_RETURN_IF_ERROR(oracle.Check(ends[0]));
    return oracle.Check(ends[1]);
  }

  const int64_t worker_;
  const int64_t bytes_;
  const int64_t chunks_;
  const HugeBuffer gradient_;
  const HugeBuffer values_;
  grpc::CompletionQueue queue_;
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;
};

}  // namespace

absl::Status RunChunkWorker(const Cluster& cluster,
                            const RoleOptions& options) {
  const int worker = cluster.self().index;
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::vector<VariableSpec> variables,
      MakeBenchmarkVariables(options.model, options.bytes));
  LOCKSTEP_ASSIGN_OR_RETURN(std::string server,
                            cluster.Address({TaskType::kPs, 0}));
  ChunkClient client(server, worker, TotalBytes(variables));
  MomentumOracle oracle(cluster.num_workers());
  RunRecorder recorder(options.warmup, options.steps);
  for (int64_t step = 1; step <= AllSteps(options); ++step) {
    oracle.AdvanceTo(step);
    StepSample sample;
    const int64_t began = NowNanoseconds();
    LOCKSTEP_RETURN_IF_ERROR(client.Step(oracle));
    sample.total = NowNanoseconds() - began;
    if (worker == 0) recorder.Add(sample);
  }
  if (worker != 0) return absl::OkStatus();
  return WriteRecord(options.record, recorder.Finish());
}

}  // namespace lockstep::benchmark
