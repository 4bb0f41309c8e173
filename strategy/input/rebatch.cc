#include "strategy/input/rebatch.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::strategy {
namespace {

using NextOr = absl::StatusOr<std::optional<Element>>;

// Cuts the stream of examples in these sizes, again and again.
class CutStream final : public ElementStream {
 public:
  CutStream(std::unique_ptr<ElementStream> input, std::vector<int64_t> sizes,
            const Dataset& dataset)
      : input_(std::move(input)), sizes_(std::move(sizes)), dataset_(dataset) {}

  NextOr Next() override {
    const int64_t size = sizes_[next_];
    std::vector<Element> parts;
    int64_t have = 0;
    while (have < size) {
      LOCKSTEP_RETURN_IF_ERROR(Fill());
      if (left_ == 0) break;
      const int64_t take = std::min(left_, size - have);
      LOCKSTEP_ASSIGN_OR_RETURN(parts.emplace_back(),
                                ExamplesOf(batch_, place_, take));
      place_ += take;
      left_ -= take;
      have += take;
    }
    // A size of 0 gives a piece also after the end, as in TensorFlow. The
    // stream ends nevertheless: sizes_ of a worker add up to a batch, so one is
    // above 0.
    if (size > 0 && have == 0) return std::nullopt;
    next_ = (next_ + 1) % sizes_.size();
    if (size == 0) {
      if (!empty_.has_value()) LOCKSTEP_RETURN_IF_ERROR(LearnEmpty());
      return empty_;
    }
    LOCKSTEP_ASSIGN_OR_RETURN(Element piece, JoinBatches(parts));
    return std::optional<Element>(std::move(piece));
  }

 private:
  absl::Status LearnEmpty() {
    empty_ = EmptyPiece(dataset_);
    if (empty_.has_value()) return absl::OkStatus();
    LOCKSTEP_RETURN_IF_ERROR(Fill());
    // An input without batches gives a piece that only other workers know.
    LOCKSTEP_ASSIGN_OR_RETURN(empty_, EmptyLike(batch_));
    return absl::OkStatus();
  }

  // Reads the next batch that has examples into `batch_`, if none are left in
  // it. At the end of the input leaves it as it is.
  absl::Status Fill() {
    while (left_ == 0 && !ended_) {
      LOCKSTEP_ASSIGN_OR_RETURN(std::optional<Element> next, input_->Next());
      ended_ = !next.has_value();
      if (ended_) break;
      LOCKSTEP_ASSIGN_OR_RETURN(left_, CountExamples(*next));
      batch_ = *std::move(next);
      place_ = 0;
    }
    return absl::OkStatus();
  }

  const std::unique_ptr<ElementStream> input_;
  const std::vector<int64_t> sizes_;
  const Dataset dataset_;         // that input_ reads
  std::optional<Element> empty_;  // once a piece was empty
  size_t next_ = 0;               // of sizes_
  Element batch_;                 // the newest batch of the input
  int64_t place_ = 0;
  int64_t left_ = 0;
  bool ended_ = false;
};

// Cuts each batch into `count` equal pieces.
class EqualPieces final : public ElementStream {
 public:
  EqualPieces(std::unique_ptr<ElementStream> input, int64_t count)
      : input_(std::move(input)), count_(count) {}

  NextOr Next() override {
    if (pieces_.empty()) {
      LOCKSTEP_ASSIGN_OR_RETURN(std::optional<Element> batch, input_->Next());
      if (!batch.has_value()) return batch;
      LOCKSTEP_ASSIGN_OR_RETURN(const int64_t examples, CountExamples(*batch));
      // Rounded up, as in TensorFlow: of 5 examples 4 replicas get 2, 2, 1 and
      // 0.
      const int64_t size = (examples + count_ - 1) / count_;
      for (int64_t i = 0; i < count_; ++i) {
        const int64_t first = std::min(i * size, examples);
        LOCKSTEP_ASSIGN_OR_RETURN(
            pieces_.emplace_back(),
            ExamplesOf(*batch, first, std::min(size, examples - first)));
      }
    }
    Element piece = std::move(pieces_.front());
    pieces_.pop_front();
    return std::optional<Element>(std::move(piece));
  }

 private:
  const std::unique_ptr<ElementStream> input_;
  const int64_t count_;
  std::deque<Element> pieces_;
};

AutoShardPolicy PolicyFor(const Dataset& dataset, AutoShardPolicy policy) {
  if (policy != AutoShardPolicy::kAuto) return policy;
  return dataset.ReadsFiles() ? AutoShardPolicy::kFile : AutoShardPolicy::kData;
}

// Returns the part of the data set that the worker reads, which can be opened.
// `policy` must not be kAuto.
absl::StatusOr<Dataset> PartOfWorker(const Dataset& dataset,
                                     AutoShardPolicy policy,
                                     const InputContext& context) {
  LOCKSTEP_RETURN_IF_ERROR(context.Check());
  Dataset mine = dataset;
  if (policy == AutoShardPolicy::kFile && context.num_input_pipelines > 1) {
    LOCKSTEP_ASSIGN_OR_RETURN(mine,
                              dataset.ShardFiles(context.num_input_pipelines,
                                                 context.input_pipeline_id));
  }
  if (context.num_replicas_in_sync > 1 && !dataset.IsBatched()) {
    return absl::InvalidArgumentError(
        "the data set has no Batch(): give it one, of the examples of a step "
        "of all replicas, which are then divided among them; if its elements "
        "are batches already, follow Batch(1) by a MapBatches() that takes the "
        "new first axis away");
  }
  LOCKSTEP_RETURN_IF_ERROR(mine.Check());
  return mine;
}

}  // namespace

absl::Status InputContext::Check() const {
  const bool counts = num_input_pipelines >= 1 && num_replicas_in_sync >= 1;
  if (counts && input_pipeline_id >= 0 &&
      input_pipeline_id < num_input_pipelines &&
      num_replicas_in_sync % num_input_pipelines == 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the input context has pipeline ", input_pipeline_id, " of ",
      num_input_pipelines, " for ", num_replicas_in_sync,
      " replicas; there must be at least 1 of each, pipelines count from 0, "
      "and each must feed as many replicas"));
}

absl::StatusOr<int64_t> InputContext::PerReplicaBatchSize(
    int64_t global_batch) const {
  LOCKSTEP_RETURN_IF_ERROR(Check());
  if (global_batch % num_replicas_in_sync == 0) {
    return global_batch / num_replicas_in_sync;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the global batch is ", global_batch, ", but must be a multiple of ",
      num_replicas_in_sync, ", the number of replicas"));
}

absl::StatusOr<std::vector<int64_t>> BatchSizesForWorker(int64_t global_batch,
                                                         int workers,
                                                         int replicas,
                                                         int worker) {
  if (workers < 1 || replicas < 1 || worker < 0 || worker >= workers ||
      global_batch < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "worker ", worker, " of ", workers, " with ", replicas,
        " replicas each and a batch of ", global_batch,
        "; workers count from 0, there must be at least one worker and replica,"
        " and no batch is negative"));
  }
  const int64_t count = int64_t{workers} * replicas;
  std::vector<int64_t> sizes(static_cast<size_t>(count), global_batch / count);
  for (int64_t i = 0; i < global_batch % count; ++i) {
    ++sizes[static_cast<size_t>(i)];
  }
  // Each worker cuts its own stream in all these sizes, `replicas` of them a
  // step. By the rotation the workers use different ones in a step, which add
  // up to a batch.
  std::rotate(sizes.begin(), sizes.begin() + int64_t{worker} * replicas,
              sizes.end());
  return sizes;
}

std::optional<Element> EmptyPiece(const Dataset& dataset) {
  const std::optional<Element> batch = dataset.Like();
  if (!batch.has_value()) return batch;
  // Pieces differ in their number of examples.
  absl::StatusOr<Element> piece = EmptyLike(*batch);
  return piece.ok() ? std::optional(*std::move(piece)) : std::nullopt;
}

absl::Status CheckPieces(const Dataset& dataset, AutoShardPolicy policy,
                         const InputContext& context) {
  return PartOfWorker(dataset, PolicyFor(dataset, policy), context).status();
}

StreamOr OpenPieces(const Dataset& dataset, AutoShardPolicy policy,
                    const InputContext& context) {
  const int workers = context.num_input_pipelines;
  const int count = context.num_replicas_in_sync;
  policy = PolicyFor(dataset, policy);
  LOCKSTEP_ASSIGN_OR_RETURN(const Dataset mine,
                            PartOfWorker(dataset, policy, context));
  LOCKSTEP_ASSIGN_OR_RETURN(auto stream, mine.Open());
  if (count == 1) return stream;
  const std::optional<int64_t> size = dataset.BatchSize();
  // TensorFlow cuts equal pieces under kData also with one worker.
  if (size.has_value() && policy != AutoShardPolicy::kData) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        std::vector<int64_t> sizes,
        BatchSizesForWorker(*size, workers, count / workers,
                            context.input_pipeline_id));
    return std::make_unique<CutStream>(std::move(stream), std::move(sizes),
                                       dataset);
  }
  auto pieces = std::make_unique<EqualPieces>(std::move(stream), count);
  if (policy != AutoShardPolicy::kData || workers == 1) return pieces;
  // Worker w keeps pieces w, w + workers, ...: replicas of one worker do not
  // get neighbouring pieces.
  return SelectStream(std::move(pieces), context.input_pipeline_id, workers,
                      std::nullopt);
}

}  // namespace lockstep::strategy
