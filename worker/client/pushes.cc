#include "worker/client/pushes.h"

#include <deque>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/fault_points.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/numeric/bfloat16.h"
#include "common/wire/wire_codec.h"
#include "worker/client/chunk_messages.h"
#include "worker/client/exchange/call_deadline.h"
#include "worker/client/exchange/last_answers.h"
#include "worker/client/exchange/push_answers.h"

namespace lockstep::worker {
namespace {

constexpr char kPush[] = "/lockstep.v1.ParameterService/Push";

PushOutcome OutcomeOf(int outcome) {
  switch (outcome) {
    case v1::ACCEPTED:
      return PushOutcome::kAccepted;
    case v1::STALE:
      return PushOutcome::kStale;
    case v1::DUPLICATE:
      return PushOutcome::kDuplicate;
    default:
      return PushOutcome::kSuperseded;
  }
}

}  // namespace

struct Pushes::Active {
  Active(const PushId& of, int num_servers)
      : id(of), answers(of, num_servers) {}

  // Brackets the use of an answer. False if the push was given up: then the
  // answer must change nothing.
  bool BeginUse() {
    MutexLock lock(mutex);
    if (given_up) return false;
    ++uses;
    return true;
  }
  void EndUse() {
    MutexLock lock(mutex);
    --uses;
    unused.SignalAll();
  }
  // Returns when no answer is in use.
  void GiveUp() {
    MutexLock lock(mutex);
    given_up = true;
    while (uses > 0) unused.Wait(mutex);
  }

  const PushId id;
  v1::PushHeader header;

  Mutex mutex;
  CondVar unused;
  int uses ABSL_GUARDED_BY(mutex) = 0;
  bool given_up ABSL_GUARDED_BY(mutex) = false;
  PushAnswers answers ABSL_GUARDED_BY(mutex);
  std::unique_ptr<ChunkTransfer> transfer;

  struct StartAdded final : CallPoller::Event {
    explicit StartAdded(Active& of) : push(of) {}
    void Happened(bool /*ok*/) override { push.transfer->StartAdded(); }
    Active& push;
  } start_added{*this};
};

Pushes::Pushes(ServerLinks& links, HeldChunks& chunks, MappedServers& mapped,
               SyncClient& sync, ParameterMemory& memory, GradientType type)
    : links_(links),
      chunks_(chunks),
      mapped_(mapped),
      sync_(sync),
      memory_(memory),
      type_(type),
      sends_(chunks) {
  OnNewChunks();
}

Pushes::~Pushes() { Drop(); }

void Pushes::OnNewChunks() {
  rounded_.clear();
  for (const auto& chunks : chunks_.chunks()) {
    // 0 is no pass: the numbers of passes begin at 1.
    rounded_.emplace_back(chunks.size());
  }
  sends_.OnNewChunks(chunks_);
}

absl::Status Pushes::Take(const grpc::ByteBuffer& response, int server,
                          size_t index, Active& push) {
  v1::PushResult result;
  TensorPayload payload;
  LOCKSTEP_RETURN_IF_ERROR(DecodeTensorMessage(response, result, payload));
  if (!push.BeginUse()) return absl::OkStatus();
  const absl::Status stored = Store(result, payload, server, index, push.id);
  push.EndUse();
  LOCKSTEP_RETURN_IF_ERROR(stored);
  MutexLock lock(push.mutex);
  for (int outcome : result.outcomes()) push.answers.Count(OutcomeOf(outcome));
  push.answers.MarkThrough({server, index});
  return absl::OkStatus();
}

absl::Status Pushes::Store(const v1::PushResult& result,
                           const TensorPayload& payload, int server,
                           size_t index, const PushId& id) {
  const Chunk& chunk = chunks_.chunk(server, index);
  bool has_values = true;
  if (result.values_size() > 0) {
    const absl::Status copied = mapped_.Copy(result.values(), server, chunk);
    has_values = !absl::IsAborted(copied);  // Pull() gets others
    if (has_values) LOCKSTEP_RETURN_IF_ERROR(copied);
    // A push that did not count for all its parts brings no values.
  } else if (payload.size == 0) {
    has_values = false;
  } else if (payload.size == chunk.size) {
    StoreChunk(payload, chunk, memory_);
  } else {
    return absl::InternalError(absl::StrCat(
        "Push answered ", payload.size, " bytes for parts of ", chunk.size));
  }
  if (has_values) chunks_.Hold(server, index, id.Values());
  return absl::OkStatus();
}

void Pushes::RoundInPlace(int server, size_t index, int64_t pass) {
  if (type_ != GradientType::kBFloat16) return;
  if (std::exchange(rounded_[server][index], pass) == pass) return;
  for (const ByteRange& range : chunks_.chunk(server, index).ranges) {
    if (chunks_.variable(range.variable).dtype != DType::kFloat32) continue;
    RoundToBFloat16InPlace(
        range.size / sizeof(float),
        memory_.gradient(range.variable).data() + range.offset);
  }
}

void Pushes::Start(int server, size_t index, Active& push,
                   ChunkTransfer::Report report) {
  const Chunk& chunk = chunks_.chunk(server, index);
  v1::PushHeader header = push.header;
  header.set_server(server);
  header.mutable_parts()->set_first_part(chunk.first_part);
  header.mutable_parts()->set_num_parts(chunk.num_parts);
  AddAbsent(chunk, sends_.absent(), header);
  std::vector<grpc::Slice> payload;
  if (chunk.table.has_value()) {
    // Rows of the next step are not known before its batch is chosen, so tables
    // are always pulled.
    header.set_return_values(false);
    v1::RowIds& ids = *header.add_rows();
    // Without a gradient the rows stay empty; the push still counts this
    // worker.
    if (header.absent().empty()) {
      const RoutedRows& rows = chunks_.gradient_rows(server, index);
      AddRows(rows, ids);
      AddCounts(*chunk.table, rows, memory_, ids);
      payload.push_back(RowGradients(*chunk.table, rows, memory_, type_));
    }
  } else if (mapped_.Maps(server)) {
    RoundInPlace(server, index, header.pass());
    header.set_shared(true);
    // Memory holds elements of the variable's type, rounded already.
    header.set_gradient_type(v1::VARIABLE);
  } else {
    payload = ChunkGradients(chunk, sends_.absent(), memory_, type_);
  }
  PassFaultPoint(FaultPoint::kWorkerPushSend);
  links_.channel(server).Call(
      SizeOf({server, index}), kPush, EncodeTensorMessage(header, payload),
      CallDeadline(header.shared() ? 0 : chunks_.GradientBytes(server, index)),
      [this, server, index, &push, report = std::move(report)](
          absl::Status status, const grpc::ByteBuffer& response) {
        PassFaultPoint(FaultPoint::kWorkerPushAnswered);
        if (status.ok()) status = Take(response, server, index, push);
        report(mapped_.Reconsider(status, server));
      });
}

void Pushes::BeginPass(StepClient::PassKind kind) {
  Drop();
  sends_.BeginPass(kind);
}

void Pushes::GradientReady(size_t variable) {
  chunks_.RouteSum(variable);
  for (const ReadyChunks::Id& id : sends_.MarkReady(variable)) {
    ChunkTransfer& transfer = *active_->transfer;
    // To start a large call takes as long as to copy it to the kernel, which
    // this thread, in the midst of a pass, leaves to one of the poller.
    if (SizeOf(id) == ServerChannel::Size::kSmall) {
      transfer.Add(id.server, id.chunk);
    } else if (transfer.AddOnly(id.server, id.chunk)) {
      links_.poller().Soon(&active_->start_added);
    }
  }
}

void Pushes::BeginPush(const PushId& id) {
  Drop();
  active_ = std::make_unique<Active>(id, links_.num_servers());
  v1::PushHeader& header = active_->header;
  *header.mutable_identity() = ToProto(links_.self());
  header.set_local_step(id.pass.step);
  header.set_pass(id.pass.number);
  header.set_slot(id.pass.slot);
  header.set_attempt(id.attempt);
  header.set_return_values(id.BringsValues());
  header.set_gradient_type(ToProto(type_));
  ChunkTransfer::Options options = links_.TransferOptions("push");
  // Workers that cut the same gradients into other chunks fill their windows in
  // another order, and would wait for one another. Without a window no worker
  // waits for a call that is still to start: HeldChunks::CutForMapped() makes
  // no more chunks than a connection carries calls, apart from tables.
  for (int server = 0; server < links_.num_servers(); ++server) {
    // Not Maps(): chunks stay cut for memory after a server was restarted.
    options.without_window.push_back(mapped_.HasMapped(server));
  }
  active_->transfer = std::make_unique<ChunkTransfer>(
      std::move(options), HeldChunks::Lists(links_.num_servers()),
      [this, push = active_.get()](int server, size_t index,
                                   ChunkTransfer::Report report) {
        Start(server, index, *push, std::move(report));
      });
  const std::vector<std::deque<size_t>>& order = sends_.BeginPush(id);
  for (int server = 0; server < links_.num_servers(); ++server) {
    for (size_t chunk : order[server]) {
      active_->transfer->Add(server, chunk);
    }
  }
}

void Pushes::SendRest(const PushId& id) {
  const PassSends::Rest rest = sends_.RestOf(id);
  if (!rest.sends_chunks) return;
  // All small calls travel in one packet. The wait for the token comes first in
  // it, so the server has it when the last gradient completes the step.
  ServerChannel::Together together(links_.channel(0));
  if (rest.sends_token_call) sync_.SendTakeToken(id);
  if (rest.begins_push) BeginPush(id);
  for (const ReadyChunks::Id& chunk : sends_.MarkRest()) {
    active_->transfer->Add(chunk.server, chunk.chunk);
  }
  // The token's call was the last small call before an answer, unless some
  // chunks still wait for the window.
  if (id.attempt > 0 && active_->transfer->AllStarted(0)) together.Wait();
}

bool Pushes::AwaitAnswers(const PushId& id) {
  LastAnswers last;
  bool gives_up = false;
  active_->transfer->RunUntil([&] {
    gives_up = last.GivesUp(sync_.TrainingIsOver(id), Clock::Real().Now());
    return gives_up;
  });
  if (gives_up) active_->GiveUp();
  return !gives_up;
}

absl::StatusOr<PushCounts> Pushes::Push(const PushId& id) {
  SendRest(id);
  // The calls end with those of a dropped pass. The gradients of other workers
  // may never come, and values can be pulled meanwhile.
  if (!AwaitAnswers(id)) return LastAnswers::GivenUp();
  const absl::Status status = links_.Finish(*active_->transfer);
  const std::unique_ptr<Active> push = std::move(active_);
  sends_.EndPush();
  LOCKSTEP_RETURN_IF_ERROR(status);
  MutexLock lock(push->mutex);
  return push->answers.counts();
}

absl::Status Pushes::AwaitValues(size_t first, size_t count) {
  if (active_ == nullptr) return absl::AbortedError("no push is under way");
  PassSends::Chunks chunks = sends_.ChunksOf(first, count);
  const auto values = [&] {
    MutexLock lock(active_->mutex);
    return active_->answers.ValuesOf(chunks, chunks_);
  };
  if (values() == PushAnswers::Values::kAwaited) {
    active_->transfer->RunUntil(
        [&] { return values() != PushAnswers::Values::kAwaited; });
    // This thread polled while it waited, and now computes: another one must
    // poll.
    links_.poller().ServeAlone();
  }
  if (values() == PushAnswers::Values::kHeld) return absl::OkStatus();
  return absl::AbortedError("the push has not brought all of the values");
}

void Pushes::Drop() {
  if (active_ == nullptr) return;
  // The calls refer to `active_` and to the gradients' memory, so they must
  // end. Their results do not matter: the pass was dropped.
  active_->transfer->Run().IgnoreError();
  active_.reset();
  sends_.EndPush();
}

}  // namespace lockstep::worker
