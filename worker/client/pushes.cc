#include "worker/client/pushes.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/fault_points.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/numeric/bfloat16.h"
#include "common/wire/tensor_message.h"
#include "common/wire/wire_codec.h"
#include "lockstep/v1/parameter.pb.h"
#include "worker/client/chunk_messages.h"

namespace lockstep::worker {
namespace {

constexpr char kPush[] = "/lockstep.v1.ParameterService/Push";
constexpr absl::Duration kCallDeadline = absl::Seconds(10);

void CountOutcomes(const v1::PushResult& result, PushCounts& counts) {
  for (int outcome : result.outcomes()) {
    switch (outcome) {
      case v1::ACCEPTED:
        ++counts.accepted;
        break;
      case v1::STALE:
        ++counts.stale;
        break;
      case v1::DUPLICATE:
        ++counts.duplicate;
        break;
      default:
        ++counts.superseded;
    }
  }
}

}  // namespace

struct Pushes::Active {
  PassId pass;
  int64_t attempt = 0;
  bool rest_sent = false;
  v1::PushHeader header;

  Mutex mutex;
  PushCounts counts ABSL_GUARDED_BY(mutex);
  std::vector<std::set<size_t>> through ABSL_GUARDED_BY(mutex);  // by server
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
      absent_(chunks.num_variables()),
      ready_(chunks.chunks()) {
  OnNewChunks();
}

Pushes::~Pushes() { Drop(); }

void Pushes::OnNewChunks() {
  rounded_.clear();
  for (const auto& chunks : chunks_.chunks()) {
    // 0 is no pass: the numbers of passes begin at 1.
    rounded_.emplace_back(chunks.size());
  }
  ready_ = ReadyChunks(chunks_.chunks());
}

absl::Status Pushes::Take(const grpc::ByteBuffer& response, int server,
                          size_t index, Active& push) {
  const Chunk& chunk = chunks_.chunk(server, index);
  v1::PushResult result;
  TensorPayload payload;
  LOCKSTEP_RETURN_IF_ERROR(DecodeTensorMessage(response, result, payload));
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
  if (has_values) {
    chunks_.Hold(server, index, {push.pass.step + 1, push.attempt});
  }
  MutexLock lock(push.mutex);
  CountOutcomes(result, push.counts);
  // After Hold(): AwaitValues() reads what is held of chunks that are through.
  push.through[server].insert(index);
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
  AddAbsent(chunk, absent_, header);
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
    payload = ChunkGradients(chunk, absent_, memory_, type_);
  }
  PassFaultPoint(FaultPoint::kWorkerPushSend);
  links_.channel(server).Call(
      SizeOf({server, index}), kPush, EncodeTensorMessage(header, payload),
      kCallDeadline,
      [this, server, index, &push, report = std::move(report)](
          absl::Status status, const grpc::ByteBuffer& response) {
        PassFaultPoint(FaultPoint::kWorkerPushAnswered);
        if (status.ok()) status = Take(response, server, index, push);
        report(mapped_.Reconsider(status, server));
      });
}

void Pushes::BeginPass(StepClient::PassKind kind) {
  Drop();
  token_early_ = kind != StepClient::PassKind::kShared;
  std::fill(absent_.begin(), absent_.end(), uint8_t{0});
  // Where every worker counts, the next pass begins early: see TrainingLoop.
  ready_.Reset(kind == StepClient::PassKind::kEverybodyCounts
                   ? ReadyChunks::Order::kThirdsLast
                   : ReadyChunks::Order::kAsReady);
}

void Pushes::GradientAbsent(size_t variable) { absent_[variable] = 1; }

void Pushes::GradientReady(size_t variable) {
  chunks_.RouteSum(variable);
  for (const ReadyChunks::Id& id : ready_.MarkReady(variable)) {
    // MarkReady() must still run: BeginPush() sends the chunks that became
    // ready before it.
    if (active_ == nullptr) continue;
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

void Pushes::BeginPush(const PassId& pass, int64_t attempt) {
  Drop();
  active_ = std::make_unique<Active>();
  active_->pass = pass;
  active_->attempt = attempt;
  v1::PushHeader& header = active_->header;
  *header.mutable_identity() = ToProto(links_.self());
  header.set_local_step(pass.step);
  header.set_pass(pass.number);
  header.set_slot(pass.slot);
  header.set_attempt(attempt);
  // Attempt 0 is a push of compatible mode, whose values are pulled: other
  // gradients may count as well.
  header.set_return_values(attempt > 0);
  header.set_gradient_type(ToProto(type_));
  {
    MutexLock lock(active_->mutex);
    active_->through.resize(links_.num_servers());
  }
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
  // The members of an attempt send in one order. In a later attempt some of
  // them may have begun the pass as one in which only some workers count.
  if (attempt > 1) ready_.KeepNothingBack();
  for (int server = 0; server < links_.num_servers(); ++server) {
    for (size_t chunk : ready_.order()[server]) {
      active_->transfer->Add(server, chunk);
    }
  }
}

void Pushes::SendRest(const PassId& pass, int64_t attempt) {
  const bool begun = active_ != nullptr && active_->pass == pass &&
                     active_->attempt == attempt;
  if (begun && active_->rest_sent) return;
  // All small calls travel in one packet. The wait for the token comes first in
  // it, so the server has it when the last gradient completes the step.
  ServerChannel::Together together(links_.channel(0));
  if (attempt > 0 && token_early_) sync_.SendTakeToken(pass, attempt);
  if (!begun) BeginPush(pass, attempt);
  active_->rest_sent = true;
  for (const ReadyChunks::Id& id : ready_.MarkRest()) {
    active_->transfer->Add(id.server, id.chunk);
  }
  // The token's call was the last small call before an answer, unless some
  // chunks still wait for the window.
  if (attempt > 0 && active_->transfer->AllStarted(0)) together.Wait();
}

absl::StatusOr<PushCounts> Pushes::Push(const PassId& pass, int64_t attempt) {
  SendRest(pass, attempt);
  const absl::Status status = links_.Finish(*active_->transfer);
  const std::unique_ptr<Active> push = std::move(active_);
  LOCKSTEP_RETURN_IF_ERROR(status);
  MutexLock lock(push->mutex);
  return push->counts;
}

absl::Status Pushes::AwaitValues(size_t first, size_t count) {
  if (active_ == nullptr) return absl::AbortedError("no push is under way");
  std::vector<ReadyChunks::Id> chunks;
  for (size_t variable = first; variable < first + count; ++variable) {
    const auto& of_variable = ready_.ChunksOf(variable);
    chunks.insert(chunks.end(), of_variable.begin(), of_variable.end());
  }
  // Returns true when the values of all chunks are held, or some chunk was
  // answered without them; `chunks` keeps those not known to be held.
  const auto known = [&] {
    MutexLock lock(active_->mutex);
    while (!chunks.empty() && active_->through[chunks.back().server].contains(
                                  chunks.back().chunk)) {
      const HeldChunks::Held& held =
          chunks_.held(chunks.back().server, chunks.back().chunk);
      if (held.step != active_->pass.step + 1 ||
          held.attempt != active_->attempt) {
        return true;
      }
      chunks.pop_back();
    }
    return chunks.empty();
  };
  if (!known()) {
    active_->transfer->RunUntil(known);
    // This thread polled while it waited, and now computes: another one must
    // poll.
    links_.poller().ServeAlone();
  }
  if (known() && chunks.empty()) return absl::OkStatus();
  return absl::AbortedError("the push has not brought all of the values");
}

void Pushes::Drop() {
  if (active_ == nullptr) return;
  // The calls refer to `active_` and to the gradients' memory, so they must
  // end. Their results do not matter: the pass was dropped.
  active_->transfer->Run().IgnoreError();
  active_.reset();
}

}  // namespace lockstep::worker
