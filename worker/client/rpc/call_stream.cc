#include "worker/client/rpc/call_stream.h"

#include <utility>

#include "common/rpc/status.h"
#include "common/wire/tensor_message.h"

namespace lockstep::worker {
namespace {

// The server ends a stream whose messages have more calls: call_stream.proto.
constexpr int kMostCalls = 1024;

// Moves the calls of `calls` behind the first kMostCalls to the result.
v1::StreamedCalls TakeRest(v1::StreamedCalls& calls) {
  v1::StreamedCalls rest;
  const int size = calls.calls_size();
  if (size <= kMostCalls) return rest;
  // The caller sends more before an answer: the rest.
  rest.set_waits(calls.waits());
  calls.set_waits(false);
  for (int i = kMostCalls; i < size; ++i) {
    rest.add_calls()->Swap(calls.mutable_calls(i));
  }
  calls.mutable_calls()->DeleteSubrange(kMostCalls, size - kMostCalls);
  return rest;
}

}  // namespace

void CallStreamClient::Open(v1::CallStreamService::Stub& stub,
                            CallPoller& poller, OnEnd on_end) {
  MutexLock lock(mutex_);
  on_end_ = std::move(on_end);
  poller_ = &poller;
  context_.set_initial_metadata_corked(true);  // the first write opens it
  stream_ = stub.PrepareAsyncCalls(&context_, &poller.queue());
  stream_->StartCall(nullptr);
  under_way_ = 1;
  stream_->Read(&incoming_, &read_);
}

bool CallStreamClient::Call(const std::string& method,
                            const grpc::ByteBuffer& request,
                            absl::Time deadline, Callback callback) {
  MutexLock lock(mutex_);
  if (broken_) return false;
  v1::StreamedCall& call = *calls_.add_calls();
  call.set_id(++last_id_);
  call.set_method(method);
  call.set_request(CopyBytes(request));
  waiting_.emplace(last_id_, Waiting{deadline, std::move(callback)});
  WriteNext();
  return true;
}

void CallStreamClient::Hold() {
  MutexLock lock(mutex_);
  ++holds_;
}

void CallStreamClient::Release(bool waits) {
  MutexLock lock(mutex_);
  --holds_;
  // The server then need not look for further calls before it answers these.
  if (waits && calls_.calls_size() > 0) calls_.set_waits(true);
  WriteNext();
}

void CallStreamClient::WriteNext() {
  // gRPC allows one write at a time. Calls that come meanwhile collect in
  // `calls_` and leave together in the next write.
  if (writing_ || broken_ || holds_ > 0 || calls_.calls_size() == 0) return;
  writing_ = true;
  ++under_way_;
  v1::StreamedCalls rest = TakeRest(calls_);
  stream_->Write(calls_, &write_);
  calls_.Clear();
  if (rest.calls_size() > 0) calls_.Swap(&rest);
}

// The last operation to end ends the stream, and perhaps deletes `this`.
void CallStreamClient::Operation::Happened(bool ok) {
  CallStreamClient& stream = *stream_;
  (stream.*then_)(ok);
  {
    MutexLock lock(stream.mutex_);
    if (--stream.under_way_ > 0) return;
  }
  stream.End();
}

// A failed write needs no handling: the read fails as well.
void CallStreamClient::Written(bool /*ok*/) {
  MutexLock lock(mutex_);
  writing_ = false;
  WriteNext();
}

void CallStreamClient::Read(bool ok) {
  v1::StreamedAnswers batch;
  {
    MutexLock lock(mutex_);
    ++under_way_;
    if (!ok) {
      // No call is accepted from here on, so the write in flight is the last
      // one.
      broken_ = true;
      stream_->Finish(&status_, &finish_);
      return;
    }
    batch.Swap(&incoming_);
  }
  // A read sends flow-control bytes to the peer: in a packet of their own,
  // unless calls are written at the same time. So it waits for the callbacks
  // below.
  poller_->BeforeWaiting(&read_on_);
  for (v1::StreamedAnswer& answer : *batch.mutable_answers()) Answered(answer);
}

void CallStreamClient::ReadOn(bool /*ok*/) {
  MutexLock lock(mutex_);
  ++under_way_;
  stream_->Read(&incoming_, &read_);
}

void CallStreamClient::Finished(bool /*ok*/) {}

void CallStreamClient::Answered(v1::StreamedAnswer& answer) {
  Callback callback;
  {
    MutexLock lock(mutex_);
    const auto found = waiting_.find(answer.id());
    // The server answered twice, or a call that it was not sent.
    if (found == waiting_.end()) return;
    callback = std::move(found->second.callback);
    waiting_.erase(found);
  }
  const grpc::Slice response(answer.response());
  callback(
      FromGrpcStatus(grpc::Status(static_cast<grpc::StatusCode>(answer.code()),
                                  answer.message(), answer.detail())),
      grpc::ByteBuffer(&response, 1));
}

absl::Status CallStreamClient::WhyBroken() {
  if (cancelled_) return absl::CancelledError("the job ended");
  if (overdue_) {
    return absl::DeadlineExceededError("no answer within the deadline");
  }
  // A server that shuts down cancels its calls; this end did not.
  if (status_.ok() || status_.error_code() == grpc::StatusCode::CANCELLED) {
    return absl::UnavailableError("the server ended the stream");
  }
  return FromGrpcStatus(status_);
}

void CallStreamClient::End() {
  std::map<uint64_t, Waiting> failed;
  absl::Status why;
  {
    MutexLock lock(mutex_);
    failed.swap(waiting_);
    why = WhyBroken();
  }
  // An error of the stream says nothing about its calls, which may be repeated.
  // kCancelled must stay, or they would be repeated after the job's end.
  const bool passing = absl::IsCancelled(why) || absl::IsDeadlineExceeded(why);
  for (auto& [id, call] : failed) {
    call.callback(passing ? why : absl::UnavailableError(why.message()), {});
  }
  const OnEnd on_end = std::move(on_end_);  // may end this object
  on_end(why);
}

void CallStreamClient::CheckDeadlines(absl::Time now) {
  MutexLock lock(mutex_);
  for (const auto& [id, call] : waiting_) overdue_ |= call.deadline < now;
  // One overdue call breaks the stream for all: the server or the connection
  // hangs, and callers repeat the calls that fail.
  if (overdue_) context_.TryCancel();
}

void CallStreamClient::Cancel() {
  MutexLock lock(mutex_);
  cancelled_ = true;
  context_.TryCancel();
}

}  // namespace lockstep::worker
