#ifndef LOCKSTEP_STRATEGY_INPUT_REBATCH_H_
#define LOCKSTEP_STRATEGY_INPUT_REBATCH_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "strategy/input/dataset.h"

namespace lockstep::strategy {

// How a data set is divided among W workers; w is the index of a worker.
enum class AutoShardPolicy {
  kAuto,  // kFile if the data set reads files, else kData
  kFile,  // worker w reads files w, w + W, ...
  kData,  // each worker reads everything and keeps its pieces
  kOff,   // each worker reads and keeps everything
};

// The input pipeline of one worker.
struct InputContext {
  int num_input_pipelines = 1;
  int input_pipeline_id = 0;
  int num_replicas_in_sync = 1;

  //   kInvalidArgument  a number is below 1; the id is not that of a pipeline;
  //                     pipelines have different numbers of replicas
  absl::Status Check() const;

  // Returns `global_batch` divided by the number of replicas.
  //
  //   kInvalidArgument  the division has a remainder; as Check()
  absl::StatusOr<int64_t> PerReplicaBatchSize(int64_t global_batch) const;
};

// Returns the sizes of the pieces into which a worker cuts its stream, one for
// each of the N replicas of all workers. With G = `global_batch`, the first
// G mod N sizes are G / N + 1, the others G / N; the list is then rotated left
// by worker * replicas. So the pieces of one step have G examples on all
// workers together.
//
//   kInvalidArgument  `workers` or `replicas` is below 1, `worker` is not below
//                     `workers`, or `global_batch` is negative
absl::StatusOr<std::vector<int64_t>> BatchSizesForWorker(int64_t global_batch,
                                                         int workers,
                                                         int replicas,
                                                         int worker);

// Returns a piece of no examples; nullopt if Dataset::Like() is unknown.
std::optional<Element> EmptyPiece(const Dataset& dataset);

// Returns the pieces of a data set for the replicas of one worker: the pieces
// of the first step by replica, then those of the second, and so on.
//
//   one replica in all   the elements, unchanged
//   kOff and kFile, if   the stream of examples, cut anew into the sizes of
//   BatchSize() is       BatchSizesForWorker(), again and again. A size of 0
//   known                gives an empty piece, also after the end. The empty
//                        piece has no tensors if Dataset::Like() is unknown and
//                        this worker has no batches: its shape is not known
//   all else             each batch, cut into equal pieces for all replicas of
//                        a step; the last may be short or empty. Under kData a
//                        worker keeps its own pieces of each batch
//
//   kInvalidArgument  no step of the data set is Batch(). TensorFlow divides
//                     the first axis of its elements, which of examples that
//                     were never batched is one of their features
//   kNotFound         the policy is kFile, and the data set reads no files
//   and the errors of Dataset::Open() and InputContext::Check()
StreamOr OpenPieces(const Dataset& dataset, AutoShardPolicy policy,
                    const InputContext& context);
// OK if OpenPieces() would succeed. Reads nothing.
absl::Status CheckPieces(const Dataset& dataset, AutoShardPolicy policy,
                         const InputContext& context);

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_INPUT_REBATCH_H_
