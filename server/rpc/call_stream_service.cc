#include "server/rpc/call_stream_service.h"

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/wire/tensor_message.h"

namespace lockstep::server {
namespace {

// Calls of one stream under way; more stay unread until some are answered.
constexpr int kMaxUnanswered = 64;
// More calls than one message of a caller has.
constexpr int kMaxCalls = 1024;
// Bytes of answers that a caller may leave unread before its calls wait.
constexpr size_t kMaxUnwritten = size_t{16} << 20;
// Answers are copied into the stream's messages; large ones are for unary
// calls. Calls that have an effect are refused before it: see
// ParameterService::kLargestStreamed. The rest is for the header.
constexpr size_t kLargestAnswer =
    ParameterService::kLargestStreamed + (size_t{64} << 10);
// Memory of an answer besides its message.
constexpr size_t kAnswerBytes = 64;

using Reactor = grpc::ServerBidiReactor<v1::StreamedCalls, v1::StreamedAnswers>;

class CallStream;

// While an object is in scope, answers that its thread gives are held back, and
// then sent together. One call often makes several answers ready.
class AnswersTogether {
 public:
  AnswersTogether() : outer_(std::exchange(innermost, this)) {}
  ~AnswersTogether();
  AnswersTogether(const AnswersTogether&) = delete;
  AnswersTogether& operator=(const AnswersTogether&) = delete;

  // True if the stream's answers must wait for the end of the scope.
  static bool Defer(const std::shared_ptr<CallStream>& stream) {
    if (innermost == nullptr) return false;
    innermost->streams_.insert(stream);
    return true;
  }

 private:
  static thread_local AnswersTogether* innermost;

  AnswersTogether* const outer_;
  std::set<std::shared_ptr<CallStream>> streams_;
};

thread_local AnswersTogether* AnswersTogether::innermost = nullptr;

// One open stream. Calls that are under way when it ends keep it alive; their
// answers are dropped.
class CallStream final : public Reactor {
 public:
  // `place` is one of the connection's places for streams; given back when gRPC
  // is done with this one.
  CallStream(const CallStreamService::Handlers& handlers,
             const CallStreamService::OnEnd& on_end, Caller caller,
             std::shared_ptr<void> place)
      : handlers_(handlers),
        on_end_(on_end),
        caller_(std::move(caller)),
        place_(std::move(place)) {}

  void Begin(std::shared_ptr<CallStream> self) {
    self_ = std::move(self);
    StartRead(&incoming_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return End(grpc::Status::OK);  // the caller has gone
    v1::StreamedCalls batch;
    batch.Swap(&incoming_);
    if (batch.calls_size() > kMaxCalls) {
      return End({grpc::StatusCode::INVALID_ARGUMENT,
                  absl::StrCat("a message has ", batch.calls_size(),
                               " calls; send at most ", kMaxCalls)});
    }
    {
      MutexLock lock(mutex_);
      unanswered_ += batch.calls_size();
      reads_ = false;
      // A caller that waits for an answer sends nothing before it. The next
      // read is started only with that answer, so that the flow control of both
      // is one packet.
      caller_waits_ = batch.waits() && batch.calls_size() > 0;
      ReadOn();
    }
    HandleAll(std::move(batch));
  }

  void OnWriteDone(bool ok) override {
    v1::StreamedCalls batch;
    {
      MutexLock lock(mutex_);
      writing_ = false;
      unwritten_ -= std::exchange(written_bytes_, 0);
      // The connection is lost; OnReadDone() ends the stream.
      if (!ok) answers_.clear_answers();
      WriteNext();
      if (ended_) return;
      if (unwritten_ < kMaxUnwritten) batch.Swap(&put_off_);
      ReadOn();
    }
    HandleAll(std::move(batch));
  }

  void OnCancel() override { End(grpc::Status::CANCELLED); }

  void OnDone() override {
    // Not with the object, which calls under way keep alive.
    place_.reset();
    self_.reset();
  }

  void Flush() {
    MutexLock lock(mutex_);
    WriteNext();
  }

 private:
  // Handles calls, or postpones them once the caller has left too many answers
  // unread.
  void HandleAll(v1::StreamedCalls batch) {
    const AnswersTogether together;
    for (v1::StreamedCall& call : *batch.mutable_calls()) {
      if (!PutOff(call)) Handle(call);
    }
  }

  // True if the call was postponed. A write is then under way or about to
  // start, and OnWriteDone() continues with the call.
  bool PutOff(v1::StreamedCall& call) {
    // Without the lock first: this is the usual case, once per call.
    if (unwritten_ < kMaxUnwritten) return false;
    MutexLock lock(mutex_);
    if (unwritten_ < kMaxUnwritten) return false;
    if (!ended_) *put_off_.add_calls() = std::move(call);
    return true;
  }

  void Handle(const v1::StreamedCall& call) {
    Respond respond = [self = self_, id = call.id()](
                          const absl::Status& status,
                          const grpc::ByteBuffer& response) {
      self->Answer(id, status, response);
      if (!AnswersTogether::Defer(self)) self->Flush();
    };
    const auto handler = handlers_.find(call.method());
    if (handler == handlers_.end()) {
      respond(absl::UnimplementedError(absl::StrCat("method \"", call.method(),
                                                    "\" is not for streams")),
              {});
      return;
    }
    const grpc::Slice slice(call.request());
    handler->second(caller_, grpc::ByteBuffer(&slice, 1), std::move(respond));
  }

  void Answer(uint64_t id, const absl::Status& status,
              const grpc::ByteBuffer& response) {
    v1::StreamedAnswer answer;
    answer.set_id(id);
    const size_t bytes = response.Length();
    const absl::Status given =
        !status.ok() || bytes <= kLargestAnswer
            ? status
            : absl::InvalidArgumentError(absl::StrCat(
                  "the answer has ", bytes, " bytes; a stream's have at most ",
                  kLargestAnswer, ": make this a call of its own"));
    if (given.ok()) {
      answer.set_response(CopyBytes(response));
    } else {
      const grpc::Status failure = ToGrpcStatus(given);
      answer.set_code(failure.error_code());
      answer.set_message(failure.error_message());
      answer.set_detail(failure.error_details());
    }
    const size_t held = kAnswerBytes + answer.ByteSizeLong();
    MutexLock lock(mutex_);
    --unanswered_;
    if (ended_) return;
    queued_bytes_ += held;
    unwritten_ += held;
    *answers_.add_answers() = std::move(answer);
    ReadOn();
  }

  // Starts the next read if it may. After the end it must not: gRPC may be done
  // with the stream.
  void ReadOn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (reads_ || ended_ || caller_waits_) return;
    if (unanswered_ >= kMaxUnanswered || unwritten_ >= kMaxUnwritten) return;
    reads_ = true;
    StartRead(&incoming_);
  }

  // Starts the next write if it may: at most one is under way, and none after
  // Finish().
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_) return;
    if (answers_.answers_size() == 0) {
      if (may_finish_ && !std::exchange(finished_, true)) Finish(end_);
      return;
    }
    written_.Clear();
    written_.Swap(&answers_);
    written_bytes_ = std::exchange(queued_bytes_, 0);
    writing_ = true;
    StartWrite(&written_);
    caller_waits_ = false;
    ReadOn();
  }

  void End(const grpc::Status& status) {
    {
      MutexLock lock(mutex_);
      if (std::exchange(ended_, true)) return;
    }
    // Before the stream is finished: until then the service lives.
    on_end_(caller_.stream());
    MutexLock lock(mutex_);
    end_ = status;
    answers_.clear_answers();
    put_off_.clear_calls();
    may_finish_ = true;
    WriteNext();
  }

  const CallStreamService::Handlers& handlers_;
  const CallStreamService::OnEnd& on_end_;
  const Caller caller_;
  std::shared_ptr<void> place_;
  std::shared_ptr<CallStream> self_;  // until gRPC is done with the stream
  v1::StreamedCalls incoming_;
  v1::StreamedAnswers written_;

  // Bytes of both; changes under the mutex.
  std::atomic<size_t> unwritten_ = 0;

  Mutex mutex_;
  v1::StreamedAnswers answers_ ABSL_GUARDED_BY(mutex_);  // to be written
  size_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;      // of `answers_`
  size_t written_bytes_ ABSL_GUARDED_BY(mutex_) = 0;     // of `written_`
  v1::StreamedCalls put_off_ ABSL_GUARDED_BY(mutex_);
  int unanswered_ ABSL_GUARDED_BY(mutex_) = 0;
  bool reads_ ABSL_GUARDED_BY(mutex_) = true;
  // The caller waits for an answer and sends nothing meanwhile.
  bool caller_waits_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool may_finish_ ABSL_GUARDED_BY(mutex_) = false;  // on_end_ has been called
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Status end_ ABSL_GUARDED_BY(mutex_);
};

// A stream that is refused before anything is read from it.
class RefusedStream final : public Reactor {
 public:
  explicit RefusedStream(const absl::Status& status) {
    Finish(ToGrpcStatus(status));
  }
  void OnDone() override { delete this; }
};

AnswersTogether::~AnswersTogether() {
  innermost = outer_;
  for (const auto& stream : streams_) stream->Flush();
}

}  // namespace

CallStreamService::Handlers StreamedMethods(ParameterService& parameters,
                                            SyncService& sync) {
  // Small and frequent calls only: a stream copies its answers.
  using grpc::ByteBuffer;
  return {
      {"/lockstep.v1.ParameterService/Push",
       [&](const Caller& caller, const ByteBuffer& request, Respond respond) {
         parameters.ServePush(caller, request, std::move(respond));
       }},
      {"/lockstep.v1.ParameterService/Pull",
       [&](const Caller& caller, const ByteBuffer& request,
           const Respond& respond) {
         parameters.ServePull(caller, request, respond, {});
       }},
      {"/lockstep.v1.ParameterService/OpenSharedMemory",
       [&](const Caller& caller, const ByteBuffer& request,
           const Respond& respond) {
         parameters.ServeOpen(caller, request, respond);
       }},
      {"/lockstep.v1.SyncService/Announce",
       [&](const Caller& caller, const ByteBuffer& request,
           const Respond& respond) {
         sync.ServeAnnounce(caller, request, respond);
       }},
      {"/lockstep.v1.SyncService/TakeToken",
       [&](const Caller& caller, const ByteBuffer& request, Respond respond) {
         sync.ServeTakeToken(caller, request, std::move(respond));
       }}};
}

Reactor* CallStreamService::Calls(grpc::CallbackServerContext* context) {
  std::shared_ptr<void> place = places_.Take(context->peer(), 1);
  if (place == nullptr) {
    return new RefusedStream(absl::ResourceExhaustedError(
        absl::StrCat("the connection has ", places_.limit(),
                     " open streams already; end one, or make each call an "
                     "RPC of its own")));
  }
  Caller caller = CallerOf(*context);
  caller.set_stream(++last_stream_);
  auto stream = std::make_shared<CallStream>(
      handlers_, on_end_, std::move(caller), std::move(place));
  stream->Begin(stream);
  return stream.get();
}

}  // namespace lockstep::server
