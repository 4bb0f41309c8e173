#include "strategy/distributed_dataset.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::strategy {
namespace {

// The state of a worker's data before a step, which it sends to all others.
enum class Have : int64_t {
  kNothing = 0,
  kPieces = 1,  // for each replica
  kError = 2,
  kSome = 3,  // a replica needs a piece of no examples
};

InputContext ContextOf(const Engine& engine) {
  return {engine.group().workers(), engine.group().worker(),
          engine.group().replicas()};
}

absl::Status CheckOptions(const InputOptions& options) {
  if (options.replication == Replication::kPerReplica) {
    return absl::UnimplementedError(
        "a pipeline for each replica is not implemented; use kPerWorker");
  }
  if (options.prefetch >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "prefetch is ", options.prefetch, ", but must be at least 0"));
}

Have HaveOf(const std::vector<Leaf>& parcel) {
  if (parcel.empty() || !std::holds_alternative<Value>(parcel[0])) {
    return Have::kError;
  }
  const Value& told = std::get<Value>(parcel[0]);
  if (told.type() != ElementType::kInt64 || told.size() != 1) {
    return Have::kError;
  }
  return static_cast<Have>(told.Elements<int64_t>()[0]);
}

bool HasTensors(const Element& piece) { return !piece.empty(); }

// The tensors behind the state: a batch of no examples.
Element TensorsOf(const std::vector<Leaf>& parcel) {
  Element tensors;
  for (size_t i = 1; i < parcel.size(); ++i) {
    if (const Value* value = std::get_if<Value>(&parcel[i])) {
      tensors.push_back(*value);
    }
  }
  return tensors;
}

}  // namespace

absl::Status DistributedDataset::Open() {
  LOCKSTEP_ASSIGN_OR_RETURN(stream_, open_());
  if (options_.prefetch == 0) return absl::OkStatus();
  const auto buffer = static_cast<size_t>(options_.prefetch) *
                      static_cast<size_t>(engine_.group().local());
  stream_ = PrefetchStream(std::move(stream_), buffer);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Element>> DistributedDataset::Pull() {
  if (stream_ == nullptr) LOCKSTEP_RETURN_IF_ERROR(Open());
  std::vector<Element> pieces;
  while (pieces.size() < static_cast<size_t>(engine_.group().local())) {
    LOCKSTEP_ASSIGN_OR_RETURN(std::optional<Element> piece, stream_->Next());
    if (!piece.has_value()) break;
    pieces.push_back(*std::move(piece));
  }
  LearnEmpty(pieces);
  return pieces;
}

void DistributedDataset::LearnEmpty(const std::vector<Element>& pieces) {
  // A single replica takes elements as they are, also scalars, of which no
  // empty batch can be made.
  if (engine_.group().replicas() == 1 || like_known_) return;
  if (Lacks(pieces) && !std::exchange(like_asked_, true)) {
    if (const std::optional<Element> like = like_()) {
      if (absl::StatusOr<Element> empty = NoExamples(*like); empty.ok()) {
        empty_ = *std::move(empty);
        like_known_ = true;
        return;
      }
    }
  }
  const auto real = std::find_if(pieces.begin(), pieces.end(), HasTensors);
  if (real == pieces.end()) return;
  // Elements that cannot be divided are no mistake while every replica has one.
  if (absl::StatusOr<Element> empty = EmptyLike(*real); empty.ok()) {
    empty_ = *std::move(empty);
  }
}

bool DistributedDataset::Lacks(const std::vector<Element>& pieces) const {
  return pieces.size() < static_cast<size_t>(engine_.group().local()) ||
         !std::all_of(pieces.begin(), pieces.end(), HasTensors);
}

absl::StatusOr<std::optional<PerReplica<Element>>> DistributedDataset::Step(
    bool drop_short) {
  absl::StatusOr<std::vector<Element>> pieces = Pull();
  Have have = Have::kError;
  if (pieces.ok()) {
    // A piece without tensors is one of no examples, whose shape only other
    // workers know.
    const bool some = std::any_of(pieces->begin(), pieces->end(), HasTensors);
    have = !some            ? Have::kNothing
           : Lacks(*pieces) ? Have::kSome
                            : Have::kPieces;
  }
  std::vector<Leaf> told = {Value::Of<int64_t>(ElementType::kInt64, {},
                                               {static_cast<int64_t>(have)})};
  // A worker whose own data is empty learns the shape of a batch of no examples
  // from the others.
  if (have != Have::kError) {
    told.insert(told.end(), empty_.begin(), empty_.end());
  }
  auto exchanged =
      engine_.group().FromAllWorkers("next step of data", std::move(told));
  // Only after the exchange: the other workers would wait for this one. Before
  // its error, which may be the consequence of this one.
  if (!pieces.ok()) return pieces.status();
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<Parcel> parcels,
                            std::move(exchanged));
  bool any = false;
  bool any_lacks = false;
  bool known = false;
  for (size_t w = 0; w < parcels.size(); ++w) {
    const Have theirs = HaveOf(*parcels[w]);
    if (theirs == Have::kError) {
      return absl::AbortedError(
          absl::StrCat("worker ", w, " cannot read its data"));
    }
    any = any || theirs != Have::kNothing;
    any_lacks = any_lacks || theirs != Have::kPieces;
    const Element empty = TensorsOf(*parcels[w]);
    known = known || !empty.empty();
    if (empty_.empty()) empty_ = empty;
  }
  const auto local = static_cast<size_t>(engine_.group().local());
  if (!any || (drop_short && pieces->size() < local)) return std::nullopt;
  // From what all workers have told, so that all of them decide alike.
  if (any_lacks && !known) {
    return absl::InvalidArgumentError(
        "a replica has no element in this step, and the elements cannot be "
        "divided among replicas; batch the data set");
  }
  pieces->resize(local);
  for (Element& piece : *pieces) {
    if (piece.empty()) piece = empty_;
  }
  return std::optional(
      PerReplica<Element>(*std::move(pieces), engine_.group().first_replica()));
}

absl::Status DistributedDataset::CheckContext() const {
  return engine_.Across([] { return absl::OkStatus(); });
}

absl::StatusOr<std::optional<PerReplica<Element>>>
DistributedDataset::NextIfAny() {
  LOCKSTEP_RETURN_IF_ERROR(CheckContext());
  return Step(false);
}

absl::StatusOr<PerReplica<Element>> DistributedDataset::Next() {
  LOCKSTEP_RETURN_IF_ERROR(CheckContext());
  // TensorFlow's rule: only one worker with static shapes, and kCentral, drop
  // the last step if it is not full; else replicas without data run it with no
  // examples, so that their collective calls stay aligned.
  const bool drops = HasOneCopy(engine_.kind()) ||
                     (engine_.group().workers() == 1 && static_shapes_);
  LOCKSTEP_ASSIGN_OR_RETURN(std::optional<PerReplica<Element>> step,
                            Step(drops));
  if (!step.has_value()) return absl::OutOfRangeError("the data has ended");
  return *std::move(step);
}

absl::StatusOr<DistributedDataset> Distribute(Engine& engine,
                                              const Dataset& dataset,
                                              const InputOptions& options) {
  LOCKSTEP_RETURN_IF_ERROR(CheckOptions(options));
  const InputContext context = ContextOf(engine);
  const auto open = [dataset, context, policy = options.auto_shard] {
    return OpenPieces(dataset, policy, context);
  };
  // So that a mistake fails here and not in the first Next(). A stream must not
  // be opened for that: Prefetch() begins to read at once.
  LOCKSTEP_RETURN_IF_ERROR(CheckPieces(dataset, options.auto_shard, context));
  return DistributedDataset(
      engine, open, [dataset] { return EmptyPiece(dataset); }, options,
      dataset.HasStaticShapes());
}

absl::StatusOr<DistributedDataset> DistributeFrom(Engine& engine,
                                                  const DatasetFunction& make,
                                                  const InputOptions& options) {
  LOCKSTEP_RETURN_IF_ERROR(CheckOptions(options));
  if (make == nullptr) {
    return absl::InvalidArgumentError(
        "the function that makes the data set is null; pass one");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const Dataset dataset, make(ContextOf(engine)));
  return DistributedDataset(
      engine, [dataset] { return dataset.Open(); },
      [dataset] { return dataset.Like(); }, options, dataset.HasStaticShapes());
}

}  // namespace lockstep::strategy
