#ifndef LOCKSTEP_SERVER_STEP_SHARD_ENGINE_H_
#define LOCKSTEP_SERVER_STEP_SHARD_ENGINE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/memory/shared_memory.h"
#include "server/step/gate.h"
#include "server/step/gradient.h"
#include "server/update/gradient_slices.h"

namespace lockstep {

// Which rows of a part a gradient is of: row i of `shape` belongs at
// indices[i].
struct GradientRows {
  std::vector<int64_t> indices;
  std::vector<int64_t> shape;  // of the values; the number of rows first
};

// The bytes of one gradient of one part, with whatever keeps them alive.
struct PartGradient {
  std::vector<ByteSlice> slices;
  std::shared_ptr<const void> owner;
  GradientType type = GradientType::kVariable;
  std::optional<GradientRows> rows = {};  // of a sparse gradient
};

// The value of one part, which nobody writes to while `owner` lives.
struct LentBytes {
  absl::Span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
  // Where others on this host find it; of no meaning unless the state's memory
  // is shared. Nobody waits for them: the owner need not live that long.
  SharedPlace place = {};
};

// What became of one part of a push.
enum class PushOutcome { kAccepted, kStale, kDuplicate, kSuperseded };

// One worker's gradients of consecutive parts.
struct Push {
  Pass pass;
  int64_t attempt = 0;  // strict mode
  int first_part = 0;
  std::vector<PartGradient> gradients;  // one per part
  bool return_values = false;           // strict mode
};

// The answer to the push or the take that was filed under `ticket`.
struct PushAnswer {
  uint64_t ticket = 0;
  std::vector<PushOutcome> outcomes;  // one per part
  int64_t server_step = 0;
  absl::Status status;  // of an update that failed
  // Of a push that asked for them and counted: the values that the update
  // gave, one per part. They are of local_step + 1 once that is committed.
  std::vector<LentBytes> values = {};
};
struct TakeAnswer {
  uint64_t ticket = 0;
  bool prepared = false;  // false: withdrawn by a later take
  int64_t attempt = 0;
  absl::Status status;  // of an update that failed
  // Strict mode, of one that is prepared: whose gradients it came of,
  // ascending.
  std::vector<int> contributors = {};
};

// What a call made ready, to be sent once no lock is held.
struct ShardAnswers {
  std::vector<PushAnswer> pushes{};
  std::vector<TakeAnswer> takes{};
  // A step has just been prepared: the step after it can be committed.
  struct Prepared {
    int64_t step = 0;
    int64_t attempt = 0;
  };
  std::optional<Prepared> prepared;

  void Append(ShardAnswers&& other);
};

// Engine decides, on one server, which gradients count and when a step is
// complete. There is one implementation for each mode.
//
// Threads: safe to share; no call waits for another process.
// Errors:  a call that fails has changed nothing.
class Engine {
 public:
  virtual ~Engine() = default;

  // Opens the shard at a committed step.
  virtual void Activate(int64_t global_step) = 0;

  // Adds gradients. The push is answered, here or by a later call, once the
  // outcome of every part of it is known. A gradient that is not finite may be
  // found with the answer only; nothing of that push has counted then either.
  //
  //   kInvalidArgument     a part that does not exist, a gradient of the wrong
  //                        length or of a type that the part or the mode does
  //                        not take, a non-finite one where that is refused
  //   kFailedPrecondition  a step that this server cannot be at yet
  //   kUnavailable         an attempt that StartAttempt() has not told of yet
  //   and the failure of an update in the attempt at hand
  virtual absl::StatusOr<ShardAnswers> AddPush(uint64_t ticket, Push push) = 0;

  // Files the chief's wait for all parts of the step after `step`. A wait that
  // was filed before is withdrawn.
  //
  //   kFailedPrecondition  `step` is neither the server's step nor the one
  //                        that it has prepared
  virtual absl::StatusOr<ShardAnswers> Take(uint64_t ticket, int64_t step) = 0;

  // Withdraws a wait of the chief, if it has not been answered.
  virtual void CancelTake(uint64_t ticket) = 0;

  // The step that is prepared and not committed, where the mode has such.
  virtual std::optional<ShardAnswers::Prepared> WaitsForCommit() const {
    return std::nullopt;
  }

  // Whether Commit() would succeed. Changes nothing. Errors as Commit().
  virtual absl::Status CheckCommit(int64_t step, int64_t attempt) const = 0;

  // Makes `step` the server's step. Repeating it changes nothing.
  //
  //   kFailedPrecondition  not prepared for that step and attempt
  virtual absl::StatusOr<ShardAnswers> Commit(int64_t step,
                                              int64_t attempt) = 0;

  // A worker that was given a token for `step` asks for its values: when that
  // is the step prepared here, its commit has happened on ps task 0. There,
  // where it is known what has been committed, this changes nothing.
  virtual void LearnCommitted(int64_t step) = 0;

  // Drops what was collected for attempts of `step` before `attempt`. That the
  // step has attempts proves that it has begun, as in LearnCommitted().
  virtual ShardAnswers StartAttempt(int64_t step, int64_t attempt) = 0;

  // A step takes this many gradients from now on. In strict mode a newer
  // attempt has to follow, in compatible mode it is called between steps.
  virtual void SetReplicas(int replicas_to_aggregate) = 0;

  // Nobody reads any more what PartUpdater::ClaimNext() refused.
  virtual ShardAnswers PartReturned(int part) = 0;

  // Parts whose update waits for readers of the memory that it writes to.
  virtual std::vector<int> BlockedParts() const { return {}; }

  // Which gradients of the step at hand are in, where the mode knows.
  struct Arrivals {
    int64_t attempt = 0;
    int open_parts = 0;        // those that lack gradients
    std::map<int, int> parts;  // by worker: the open parts that have one of it
  };
  virtual Arrivals arrivals() const { return {}; }

  virtual int64_t step() const = 0;

  // What the step at hand lacks, for reports, e.g. "1 of 2 gradients of 12
  // parts"; empty when it lacks nothing.
  virtual std::string WaitsFor() const = 0;
};

// PartUpdater does the arithmetic of a shard: it turns gradients of a part
// into the part's next value.
//
// Threads: calls for different parts may run at the same time.
class PartUpdater {
 public:
  virtual ~PartUpdater() = default;

  virtual int num_parts() const = 0;
  // Units: bytes.
  virtual size_t part_size(int part) const = 0;

  // Bytes of a gradient of the part.
  //
  //   kInvalidArgument  gradients of the part are not written so
  virtual absl::StatusOr<size_t> GradientSize(int part,
                                              GradientType type) const = 0;

  // Whether nobody reads the memory that the part's next value goes to. If
  // somebody does, Engine::PartReturned() is called when that is over.
  virtual bool ClaimNext(int part) = 0;

  // The value that the newest Update() of the part wrote. The part is not to
  // be updated again before ClaimNext().
  virtual LentBytes LendNext(int part) = 0;

  // Writes the part's value and slots of step + 1, from those of `step` and
  // the mean of `gradients`, summed in the order given. False: the mean holds
  // NaN or an infinity, be it that a gradient does or that the sum overflows;
  // may be told only where the job refuses such gradients.
  virtual absl::StatusOr<bool> Update(
      int part, int64_t step, absl::Span<const PartGradient> gradients) = 0;

  // Strict mode: checks a gradient of rows of a part, which is of none but a
  // table, and brings its rows in ascending order, adding up what is repeated.
  // CheckFinite() comes after it.
  //
  //   kInvalidArgument  not such a gradient; it has not changed
  virtual absl::Status AdmitRows(int part, PartGradient& /*gradient*/) const {
    return absl::InvalidArgumentError("part " + std::to_string(part) +
                                      " is no table, so it has no rows");
  }

  // Compatible mode: the same from the mean of sparse gradients.
  //
  //   kUnimplemented  parts of this updater have dense gradients
  virtual absl::Status UpdateSparse(int /*part*/, int64_t /*step*/,
                                    const SparseGradient& /*mean*/) {
    return absl::UnimplementedError("sparse gradients cannot be applied here");
  }

  // Compatible mode: the server begins to wait for the gradients of a part
  // with sparse gradients. What its update does without them is done now.
  virtual absl::Status BeginSparse(int /*part*/) { return absl::OkStatus(); }

  //   kInvalidArgument  the gradient holds NaN or an infinity; says where
  virtual absl::Status CheckFinite(int part,
                                   const PartGradient& gradient) const = 0;

  // All parts have been updated for `attempt` of `step`: a server that is
  // killed from now on comes back with that. Where updates are made in place
  // there is nothing to be noted.
  virtual absl::Status MarkPrepared(int64_t step, int64_t attempt) = 0;

  // Takes that back, before parts are updated once more.
  virtual void DropPrepared() = 0;

  // Makes `step` the committed one.
  virtual absl::Status Commit(int64_t step) = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_STEP_SHARD_ENGINE_H_
