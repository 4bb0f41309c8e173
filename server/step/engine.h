#ifndef LOCKSTEP_SERVER_STEP_ENGINE_H_
#define LOCKSTEP_SERVER_STEP_ENGINE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/memory/shared_memory.h"
#include "common/memory/write_counters.h"
#include "common/plan/step_vocabulary.h"
#include "server/step/gate.h"
#include "server/step/gradient.h"
#include "server/update/gradient_slices.h"

namespace lockstep::server {

// The rows of a part that a gradient covers: row i of the gradient belongs to
// row indices[i] of the part.
struct GradientRows {
  std::vector<int64_t> indices;
  std::vector<int64_t> shape;  // of the gradient; the number of rows first
  // If the gradient is the sum of several gradients: the number of them that
  // have each row. Empty: it is one gradient.
  std::vector<int64_t> counts = {};
};

// The bytes of one gradient of one part. `owner` keeps them alive.
struct PartGradient {
  std::vector<ByteSlice> slices = {};
  std::shared_ptr<const void> owner = {};
  GradientType type = GradientType::kVariable;
  std::optional<GradientRows> rows = {};  // set for sparse gradients
  // Strict mode: the pass has no gradient of the part. The gradient has no
  // bytes, and counts as zeros.
  bool absent = false;
  // The place where other processes of this host can read the bytes of a lent
  // mean, if they may. The owner need not live until they have read them.
  std::optional<SharedPlace> place = {};
  // Set for a mean in the memory of another server of this host, which may
  // overwrite the mean at any time: readers must check `peer_writes`
  // afterwards.
  std::optional<PeerWrites> peer_writes = {};
};

// Returns the bytes of a gradient in one range: in place if they are one slice,
// else copied to `scratch`, in place of its contents.
absl::Span<const std::byte> Contiguous(const PartGradient& gradient,
                                       std::vector<std::byte>& scratch);

// The value of one part. It does not change while `owner` lives.
struct LentBytes {
  absl::Span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
  // The place where other processes of this host can read the value.
  // Meaningless unless the state's memory is shared. Updates do not wait for
  // those processes, so the owner need not live until they have copied the
  // value.
  SharedPlace place = {};
};

using lockstep::PushOutcome;

// One worker's gradients of consecutive parts.
struct Push {
  Pass pass;
  int64_t attempt = 0;  // strict mode
  int first_part = 0;
  std::vector<PartGradient> gradients;  // one per part
  bool return_values = false;           // strict mode
};

// The answer to the push that was filed under `ticket`.
struct PushAnswer {
  uint64_t ticket = 0;
  std::vector<PushOutcome> outcomes;  // one per part
  int64_t server_step = 0;
  absl::Status status;  // not OK: an update failed
  // Set if the push has `return_values` and counted: the updated values, one
  // per part. They are the values of local_step + 1 once that is committed.
  std::vector<LentBytes> values = {};
};

// The answer to the chief's wait for a step that was filed under `ticket`.
struct TakeAnswer {
  uint64_t ticket = 0;
  bool prepared = false;  // false: a later take has withdrawn this one
  int64_t attempt = 0;
  absl::Status status;  // not OK: an update failed
  // Strict mode, if prepared or with `squares`: the workers whose gradients
  // were summed, ascending. Empty if work is shared: such steps always sum all
  // numbers.
  std::vector<int> contributors = {};
  // If the norm of the mean gradients is limited: the sum of the squares of
  // this server's means. If `prepared` is not set, the update waits for the
  // norm over all servers.
  std::optional<double> squares = {};
};

// The answers that a call made ready. The caller must send them, with no lock
// held.
struct ShardAnswers {
  std::vector<PushAnswer> pushes{};
  std::vector<TakeAnswer> takes{};
  // Set if the call has prepared the step after `step`, which can now be
  // committed.
  struct Prepared {
    int64_t step = 0;
    int64_t attempt = 0;
  };
  std::optional<Prepared> prepared;
  // Means() can lend more than before, or other means are wanted.
  bool means_changed = false;

  void Append(ShardAnswers&& other);
};

// Checks that `num_parts` parts from `first_part` on are among the `all_parts`
// parts of a server.
//
//   kInvalidArgument  they are not, or there are none; names the range
absl::Status CheckPartRange(int first_part, int64_t num_parts,
                            int64_t all_parts);

// kFailedPrecondition: a call about means that only mirrors exchange.
absl::Status NotMirrored();

// Engine decides, on one server, which gradients count and when a step is
// complete. StrictEngine and CompatibleEngine implement it, one for each mode.
//
// A step: AddPush() collects gradients; the last one of a part updates it; when
// all parts are updated the step is prepared, and the chief's Take() is
// answered; Commit() ends it.
//
// Threads: safe to share; no call waits for another process.
// Errors:  a call that fails has changed nothing.
class Engine {
 public:
  virtual ~Engine() = default;

  // Opens the shard at a committed step.
  virtual void Activate(int64_t global_step) = 0;

  // Adds gradients. The push is answered by the call, this one or a later one,
  // that decides its last part. A gradient that is not finite may be reported
  // by the answer instead of this call; the push has not counted in either
  // case.
  //
  //   kInvalidArgument     unknown part, or a gradient of the wrong length, of
  //                        a type that the part or the mode does not accept, or
  //                        not finite where the job refuses that
  //   kFailedPrecondition  a step that this server cannot have reached
  //   kUnavailable         an attempt later than that of StartAttempt()
  //   and the failure of an update in the attempt at hand
  virtual absl::StatusOr<ShardAnswers> AddPush(uint64_t ticket, Push push) = 0;

  // Files the chief's wait until all parts of the step after `step` are
  // updated. Withdraws the wait before it.
  //
  //   kFailedPrecondition  `step` is neither the server's step nor the one
  //                        that it has prepared
  virtual absl::StatusOr<ShardAnswers> Take(uint64_t ticket, int64_t step) = 0;

  // If the norm of the mean gradients over all servers is limited: sets that
  // norm, so that parts are updated. No effect unless all gradients of
  // norm.attempt of the step after `step` have arrived and no norm was set
  // before.
  virtual ShardAnswers ApplyNorm(int64_t /*step*/, const MeanNorm& /*norm*/) {
    return {};
  }

  // Lends the mean gradients of consecutive parts, which this mirror must sum.
  // Returns nullopt until all of them are computed, and for an attempt that has
  // not begun here.
  //
  //   kInvalidArgument     unknown parts, or parts that another server sums
  //   kAborted             that attempt of the step after `step` is over
  //   kFailedPrecondition  the job is not mirrored
  virtual absl::StatusOr<std::optional<std::vector<PartGradient>>> Means(
      int64_t /*step*/, int64_t /*attempt*/, int /*first_part*/,
      int /*num_parts*/) const {
    return NotMirrored();
  }

  // Adds mean gradients of consecutive parts that another mirror sums, as its
  // Means() lent them. No effect if that attempt is over or the means have
  // arrived before.
  //
  //   kInvalidArgument     a part that is summed here, or a mean of another
  //                        size
  //   kUnavailable         the attempt has not begun here
  //   kFailedPrecondition  the job is not mirrored
  virtual absl::StatusOr<ShardAnswers> AddMeans(
      int64_t /*step*/, int64_t /*attempt*/, int /*first_part*/,
      std::vector<PartGradient> /*means*/) {
    return NotMirrored();
  }

  // The parts whose means must come from other mirrors.
  struct MeansWanted {
    int64_t step = 0;
    int64_t attempt = 0;
    std::vector<int> parts{};
  };
  virtual MeansWanted means_wanted() const { return {}; }

  // Withdraws a wait of the chief. No effect once it has been answered.
  virtual void CancelTake(uint64_t ticket) = 0;

  // The step that is prepared and not committed; nullopt in compatible mode.
  virtual std::optional<ShardAnswers::Prepared> WaitsForCommit() const {
    return std::nullopt;
  }

  // Checks that Commit() would succeed. Changes nothing. Errors as Commit().
  virtual absl::Status CheckCommit(int64_t step, int64_t attempt) const = 0;

  // Makes `step` the server's step. Repeating it changes nothing.
  //
  //   kFailedPrecondition  not prepared for that step and attempt
  virtual absl::StatusOr<ShardAnswers> Commit(int64_t step,
                                              int64_t attempt) = 0;

  // Must be called when a worker names `step`, the step of its token. Commits
  // the step only if the gate of ps task 0 has committed it already.
  //
  //   kUnavailable         the step is prepared here, and the chief has not yet
  //                        said that it is committed; the token may prove it
  //   kFailedPrecondition  another step that is ahead of this server
  virtual absl::Status CheckReached(int64_t step) = 0;

  // True if a call that names `step` must wait until the chief commits that
  // step here.
  bool AwaitsCommit(int64_t step) {
    return absl::IsUnavailable(CheckReached(step));
  }

  // Begins `attempt` of the step after `step`: drops the gradients that older
  // attempts collected. No effect if the attempt has begun before. The call
  // also proves that the job is at `step`: if that step is prepared here,
  // commits it, except on ps task 0, which commits by itself.
  virtual ShardAnswers StartAttempt(int64_t step, int64_t attempt) = 0;
  // Commits `step` as StartAttempt() does, without a new attempt.
  void LearnCommitted(int64_t step) { StartAttempt(step, 0); }

  // Sets the number of gradients of a step, A. In strict mode the caller must
  // start a newer attempt afterwards; in compatible mode it must call this
  // between steps.
  virtual void SetReplicas(int replicas_to_aggregate) = 0;

  // Applies the update that waited because PartUpdater::ClaimNext() refused
  // `part`. Must be called once per refusal, when the readers have returned the
  // part. No effect if no update waits.
  virtual ShardAnswers PartReturned(int part) = 0;

  // Returns the parts whose updates wait for readers of the memory that is to
  // be written.
  virtual std::vector<int> BlockedParts() const { return {}; }

  // The gradients of the step at hand that have arrived; empty in compatible
  // mode.
  struct Arrivals {
    int64_t attempt = 0;
    int open_parts = 0;  // parts that lack gradients
    // By worker: the number of open parts with its gradient. Empty if work is
    // shared: then gradients belong to numbers.
    std::map<int, int> parts;
  };
  virtual Arrivals arrivals() const { return {}; }

  virtual int64_t step() const = 0;

  // Checks that the parts have the values of `step`, the server's step. Strict
  // mode keeps them until the next step is committed.
  //
  //   kDataLoss  compatible mode: an update of the next step has begun to
  //              overwrite them, or that step is committed
  virtual absl::Status CheckWhole(int64_t /*step*/) const {
    return absl::OkStatus();
  }

  // Describes the gradients that the step at hand lacks, for reports, e.g. "1
  // of 2 gradients of 12 parts"; empty if it lacks none.
  virtual std::string WaitsFor() const = 0;

  // Shared work: false if parts of this server lack the gradient of the number
  // of `pass` in `attempt` of the step at hand, unless that attempt has failed.
  // True of all other passes.
  virtual bool HasGradientOf(const Pass& /*pass*/, int64_t /*attempt*/) const {
    return true;
  }
};

// PartUpdater does the arithmetic of a shard: it turns gradients of a part
// into the part's next value.
//
// Threads: calls for different parts may run at the same time.
// Errors:  an error of Update(), of its halves and variants, or of
//          MarkPrepared(), other than kAborted, ends the attempt at hand. In
//          compatible mode, which updates in place, the step can then neither
//          be completed nor undone. kUnimplemented: this updater has no such
//          update.
class PartUpdater {
 public:
  virtual ~PartUpdater() = default;

  virtual int num_parts() const = 0;
  // Units: bytes.
  virtual size_t part_size(int part) const = 0;

  // Returns the size of a gradient of the part, in bytes.
  //
  //   kInvalidArgument  the part accepts no gradients of this type
  virtual absl::StatusOr<size_t> GradientSize(int part,
                                              GradientType type) const = 0;

  // True if the memory of the part's next value has no readers and may be
  // written. If it returns false, the part's last reader triggers
  // Engine::PartReturned().
  virtual bool ClaimNext(int part) = 0;

  // Lends the value that the newest Update() of the part wrote. The caller must
  // not update the part again before ClaimNext() has returned true.
  virtual LentBytes LendNext(int part) = 0;

  // Writes the part's value and slots of step + 1, computed from those of
  // `step` and the mean of `gradients`. Gradients are summed in the order
  // given; in a shared step, in that of common/plan/number_tree.h. Value and
  // slots stay unchanged if all gradients are absent. Returns false if the mean
  // holds NaN or an infinity (because a gradient does, or because the sum
  // overflows) and the job refuses such gradients.
  virtual absl::StatusOr<bool> Update(
      int part, int64_t step, absl::Span<const PartGradient> gradients) = 0;

  // If the norm of the mean gradients over all servers is limited, an update
  // has two halves. MeasureMean() keeps the mean of `gradients`, as Update()
  // computes it, until the next MeasureMean() of the part; ApplyMean() limits
  // that mean by `norm`, and does the rest. Both calls may be
  // repeated.
  struct Measured {
    bool finite = true;  // as the result of Update()
    double squares = 0;  // the sum of the squares of the mean's elements
  };
  virtual absl::StatusOr<Measured> MeasureMean(
      int /*part*/, absl::Span<const PartGradient> /*gradients*/) {
    return absl::UnimplementedError("no mean gradient can be kept here");
  }
  // The second half.
  //
  //   kAborted  the mean lies in another server's memory, and that server has
  //             begun to write another one there: the attempt is over
  virtual absl::Status ApplyMean(int /*part*/, int64_t /*step*/,
                                 double /*norm*/) {
    return absl::UnimplementedError("no mean gradient is kept here");
  }

  // Lends the mean that MeasureMean() keeps of a part. The mean does not change
  // while the owner lives.
  virtual PartGradient LendMean(int /*part*/) { return {}; }
  // Keeps a mean that another server computed, in place of MeasureMean().
  // Returns the sum of the squares of its elements if clipping needs it.
  //
  //   kInvalidArgument  not as many bytes as the mean of the part has
  //   kAborted          as ApplyMean()
  virtual absl::StatusOr<double> KeepMean(int /*part*/, PartGradient /*mean*/) {
    return absl::UnimplementedError("no mean gradient can be kept here");
  }

  // Strict mode: checks a gradient of rows, which only tables have, sorts its
  // rows and adds up repeated ones. Must be called before CheckFinite().
  //
  //   kInvalidArgument  the gradient does not fit the part; it is unchanged
  virtual absl::Status AdmitRows(int part, PartGradient& /*gradient*/) const {
    return absl::InvalidArgumentError("part " + std::to_string(part) +
                                      " is no table, so it has no rows");
  }

  // Compatible mode: as Update(), from the mean of sparse gradients.
  //
  //   kUnimplemented  this updater has no parts with sparse gradients
  virtual absl::Status UpdateSparse(int /*part*/, int64_t /*step*/,
                                    const SparseGradient& /*mean*/) {
    return absl::UnimplementedError("sparse gradients cannot be applied here");
  }

  // Compatible mode: must be called when the server begins to collect gradients
  // of a part with sparse gradients. Applies the part of the update that does
  // not depend on gradients, such as the decay of slots.
  virtual absl::Status BeginSparse(int /*part*/) { return absl::OkStatus(); }

  // Checks the elements of a gradient.
  //
  //   kInvalidArgument  it holds NaN or an infinity; the message says where
  virtual absl::Status CheckFinite(int part,
                                   const PartGradient& gradient) const = 0;

  // Records that all parts are updated for `attempt` of `step`: after a kill,
  // the server continues with the step prepared. No effect in compatible mode,
  // which updates in place.
  virtual absl::Status MarkPrepared(int64_t step, int64_t attempt) = 0;

  // Withdraws MarkPrepared(). Must be called before parts are updated again for
  // the same step.
  virtual void DropPrepared() = 0;

  // Makes `step` the committed one.
  virtual absl::Status Commit(int64_t step) = 0;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STEP_ENGINE_H_
