#include "strategy/workers/peer_probes.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/steady_deadline.h"
#include "common/metrics/durations.h"
#include "common/process/new_thread.h"
#include "common/rpc/channel.h"
#include "common/rpc/deadline.h"
#include "common/rpc/status.h"
#include "strategy/workers/group_link.h"

namespace lockstep::strategy {
namespace {

// True if no answer has come, or that of another program, which has the
// member's address now, or that of a member whose group is another one or has
// ended. A refusal is an answer.
bool IsMissing(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsUnimplemented(status) || absl::IsAborted(status);
}

}  // namespace

PeerProbes::PeerProbes(Options options) : options_(std::move(options)) {
  for (size_t r = 0; r < options_.addresses.size(); ++r) {
    stubs_.push_back(
        static_cast<int>(r) == options_.self.rank
            ? nullptr
            : v1::GroupService::NewStub(MakeChannel(options_.addresses[r])));
  }
}

absl::Status PeerProbes::Begin() {
  LOCKSTEP_ASSIGN_OR_RETURN(thread_, NewThread([this] { Run(); }));
  return absl::OkStatus();
}

PeerProbes::~PeerProbes() {
  {
    MutexLock lock(mutex_);
    ended_ = true;
    // As in GroupLink::End(): no call escapes this.
    if (in_flight_ != nullptr) in_flight_->TryCancel();
    changed_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
}

void PeerProbes::Run() {
  while (!EndsWithin(options_.every)) {
    for (size_t r = 0; r < stubs_.size(); ++r) {
      if (stubs_[r] == nullptr) continue;
      const absl::Status silence = Ask(r);
      if (silence.ok()) continue;
      stubs_[r] = nullptr;
      options_.on_lost(static_cast<int>(r), silence);
    }
  }
}

bool PeerProbes::EndsWithin(absl::Duration time) {
  const auto until = SteadyDeadline(time);
  MutexLock lock(mutex_);
  while (!ended_) {
    const auto left = until - std::chrono::steady_clock::now();
    if (left <= left.zero()) break;
    changed_.WaitFor(mutex_, left);
  }
  return ended_;
}

absl::Status PeerProbes::Ask(size_t rank) {
  absl::Status answer;
  for (int i = 0; i < kTries; ++i) {
    answer = Call(rank);
    // The pause gives a member that a connection has failed time for another.
    if (!IsMissing(answer) ||
        EndsWithin(std::min(options_.every, absl::Seconds(1)))) {
      return absl::OkStatus();
    }
  }
  return answer;
}

absl::Status PeerProbes::Call(size_t rank) {
  const v1::GreetRequest request =
      GreetingOf(options_.self, static_cast<int>(rank), /*leaves=*/false);
  grpc::ClientContext context;
  context.set_deadline(DeadlineIn(options_.timeout));
  context.set_wait_for_ready(true);
  v1::GreetResponse response;
  const RpcTimer timer(RpcSide::kClient, "/lockstep.v1.GroupService/Greet");
  {
    MutexLock lock(mutex_);
    if (ended_) return absl::OkStatus();
    in_flight_ = &context;
  }
  const grpc::Status status = stubs_[rank]->Greet(&context, request, &response);
  {
    MutexLock lock(mutex_);
    in_flight_ = nullptr;
  }
  timer.Done();
  if (!status.ok()) {
    return ExplainUnserved(FromGrpcStatus(status), options_.addresses[rank]);
  }
  if (response.joins()) return absl::OkStatus();
  return absl::AbortedError(
      "is in another group, or its group has ended: by its own timeout, by the "
      "loss of another worker, or because it has heard of another start of "
      "this worker or of another program with this worker's number");
}

}  // namespace lockstep::strategy
