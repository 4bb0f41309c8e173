#include "strategy/workers/group_link.h"

#include <chrono>
#include <utility>

#include "common/base/status_macros.h"
#include "common/metrics/durations.h"
#include "common/process/new_thread.h"
#include "common/rpc/channel.h"
#include "common/rpc/deadline.h"
#include "common/rpc/status.h"
#include "strategy/workers/parcel_codec.h"

namespace lockstep::strategy {
namespace {

constexpr auto kPause = std::chrono::milliseconds(100);
// A member that runs answers a greeting at once.
constexpr absl::Duration kGreetDeadline = absl::Seconds(3);
constexpr absl::Duration kLeaveDeadline = absl::Seconds(1);

}  // namespace

v1::GreetRequest GreetingOf(const Greeting& self, int receiver, bool leaves) {
  v1::GreetRequest request;
  request.mutable_sender()->set_rank(self.rank);
  request.mutable_sender()->set_incarnation(self.incarnation);
  request.set_receiver(receiver);
  request.set_members(self.members);
  request.set_purpose(self.purpose);
  request.set_leaves(leaves);
  return request;
}

GroupLink::GroupLink(const Options& options)
    : options_(options),
      stub_(v1::GroupService::NewStub(MakeChannel(options.address))) {}

GroupLink::~GroupLink() {
  End();
  if (!begun_) return;
  // An error does not matter: a member that is not reached notices by its
  // timeout, or is gone itself.
  static_cast<void>(CallGreet(/*leaves=*/true));
}

absl::Status GroupLink::Begin() {
  LOCKSTEP_ASSIGN_OR_RETURN(thread_, NewThread([this] { Run(); }));
  begun_ = true;
  return absl::OkStatus();
}

void GroupLink::Greet() {
  MutexLock lock(mutex_);
  greets_ = true;
  changed_.SignalAll();
}

void GroupLink::Give(Outgoing parcel) {
  MutexLock lock(mutex_);
  outgoing_.push_back(std::move(parcel));
  changed_.SignalAll();
}

void GroupLink::End() {
  {
    MutexLock lock(mutex_);
    ended_ = true;
    // A context is in in_flight_ before its call starts and until it ends, both
    // under the lock: no call escapes this, and no context is used after its
    // life.
    if (in_flight_ != nullptr) in_flight_->TryCancel();
    changed_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
}

void GroupLink::Pause() {
  const auto until = std::chrono::steady_clock::now() + kPause;
  for (auto left = until - std::chrono::steady_clock::now();
       !ended_ && left > left.zero();
       left = until - std::chrono::steady_clock::now()) {
    changed_.WaitFor(mutex_, left);
  }
}

void GroupLink::Run() {
  MutexLock lock(mutex_);
  while (!ended_) {
    if (greets_) {
      greets_ = false;
      mutex_.Unlock();
      const bool again = options_.on_answer(CallGreet(/*leaves=*/false));
      mutex_.Lock();
      if (!again) continue;
      greets_ = true;
      Pause();
    } else if (!outgoing_.empty()) {
      Outgoing& parcel = outgoing_.front();  // deques keep their elements
      if (!shares_) parcel.header.clear_shared();
      mutex_.Unlock();
      const absl::Status given = CallGive(parcel);
      const bool unread = absl::IsNotFound(given) && parcel.header.has_shared();
      // These calls have no deadline: kDeadlineExceeded is the answer of a
      // member whose group has ended.
      const bool done = !unread && !absl::IsUnavailable(given);
      if (done) options_.on_given(parcel.header.sequence(), given);
      mutex_.Lock();
      if (unread) {
        shares_ = false;  // the payload is sent in the next turn
      } else if (done) {
        outgoing_.pop_front();
      } else {
        Pause();
      }
    } else {
      changed_.Wait(mutex_);
    }
  }
}

absl::StatusOr<GreetingAnswer> GroupLink::CallGreet(bool leaves) {
  const v1::GreetRequest request =
      GreetingOf(options_.self, options_.receiver, leaves);
  grpc::ClientContext context;
  context.set_deadline(DeadlineIn(leaves ? kLeaveDeadline : kGreetDeadline));
  // A member that starts later is waited for; one that has gone is not.
  context.set_wait_for_ready(!leaves);
  v1::GreetResponse response;
  const RpcTimer timer(RpcSide::kClient, "/lockstep.v1.GroupService/Greet");
  {
    MutexLock lock(mutex_);
    // The farewell is the one call after End().
    if (ended_ && !leaves) return absl::CancelledError("the link has ended");
    in_flight_ = &context;
  }
  const grpc::Status status = stub_->Greet(&context, request, &response);
  {
    MutexLock lock(mutex_);
    in_flight_ = nullptr;
  }
  timer.Done();
  if (!status.ok()) {
    return ExplainUnserved(FromGrpcStatus(status), options_.address);
  }
  return GreetingAnswer{response.incarnation(), response.joins(),
                        response.pid_space()};
}

absl::Status GroupLink::CallGive(const Outgoing& parcel) {
  // Without a deadline: the exchange has one, and End() cancels the call.
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  v1::GiveResponse response;
  const RpcTimer timer(RpcSide::kClient, "/lockstep.v1.GroupService/Give");
  {
    MutexLock lock(mutex_);
    if (ended_) return absl::CancelledError("the link has ended");
    in_flight_ = &context;
  }
  const auto writer = stub_->Give(&context, &response);
  v1::GiveRequest request;
  *request.mutable_header() = parcel.header;
  // A write that fails is not handled: Finish() returns the reason.
  if (writer->Write(request) && !parcel.header.has_shared()) {
    ForEachPiece(*parcel.leaves, [&](absl::Span<const std::byte> piece) {
      request.set_payload(piece.data(), piece.size());
      return writer->Write(request);
    });
  }
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  {
    MutexLock lock(mutex_);
    in_flight_ = nullptr;
  }
  timer.Done();
  return ExplainUnserved(FromServerStatus(status), options_.address);
}

}  // namespace lockstep::strategy
