#include "worker/client/server_links.h"

#include "absl/functional/function_ref.h"
#include "common/base/clock.h"
#include "common/base/log.h"

namespace lockstep::worker {
namespace {

// Calls in flight per server: enough that chunks travel while the server works
// on others.
constexpr int kWindow = 4;
constexpr absl::Duration kRetryPause = absl::Milliseconds(100);
constexpr absl::Duration kReportEvery = absl::Seconds(5);

}  // namespace

ServerLinks::ServerLinks(const Options& options)
    : self_(options.self), poller_(options.pollers) {
  // gRPC serves one connection in one thread at a time. Two connections to a
  // single server let two of its threads copy; several servers need only one
  // each.
  const int usual = options.servers.size() == 1 ? 2 : 1;
  const int connections = options.connections > 0 ? options.connections : usual;
  for (const std::string& address : options.servers) {
    channels_.push_back(
        std::make_unique<ServerChannel>(poller_, address, connections));
  }
}

void ServerLinks::Cancel() {
  // Before the calls end: their callbacks and loops read it to tell a
  // cancellation from a failure.
  cancelled_ = true;
  for (auto& channel : channels_) channel->Cancel();
}

ChunkTransfer::Options ServerLinks::TransferOptions(const std::string& what) {
  ChunkTransfer::Options options;
  options.window = kWindow;
  options.retry_pause = kRetryPause;
  options.wait = [this](absl::FunctionRef<bool()> done,
                        absl::Duration at_most) {
    poller_.RunUntil(done, Clock::Real().Now() + at_most);
  };
  options.on_retry = [what, reported = Clock::Real().Now()](
                         int server, const absl::Status& status) mutable {
    if (Clock::Real().Now() - reported < kReportEvery) return;
    reported = Clock::Real().Now();
    spdlog::info("{} waits for ps {}: {}", what, server,
                 std::string(status.message()));
  };
  return options;
}

absl::Status ServerLinks::Finish(ChunkTransfer& transfer) {
  const absl::Status status = transfer.Run();
  // Before the status: cancelled calls fail with various errors.
  if (cancelled_) return absl::CancelledError("the job ended");
  return status;
}

}  // namespace lockstep::worker
