#ifndef LOCKSTEP_STRATEGY_INPUT_REBATCH_H_
#define LOCKSTEP_STRATEGY_INPUT_REBATCH_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "strategy/input/dataset.h"

namespace lockstep::strategy {

// How a worker gets its share of a data set that all workers name.
enum class AutoShardPolicy {
  kAuto,  // kFile if the data set reads files, else kData
  kFile,  // files w, w + W, ... of W workers
  kData,  // all read everything and keep their pieces
  kOff,   // every worker gets everything
};

// One of the pipelines that feed the replicas; there is one for each worker.
struct InputContext {
  int num_input_pipelines = 1;
  int input_pipeline_id = 0;
  int num_replicas_in_sync = 1;

  //   kInvalidArgument  the replicas do not divide the batch
  absl::StatusOr<int64_t> PerReplicaBatchSize(int64_t global_batch) const;
};

// The sizes of the pieces that a worker gets of each global batch, for each
// replica of all workers in turn: G mod N times G / N + 1, then G / N, rotated
// left by worker * replicas. All steps together use G examples.
std::vector<int64_t> BatchSizesForWorker(int64_t global_batch, int workers,
                                         int replicas, int worker);

// The pieces of a data set that the replicas of one worker get, in their turn.
// With one replica in all, the elements stay as they are. A known size of a
// batch and the policies kOff and kFile: the stream of examples is cut anew, in
// sizes BatchSizesForWorker(); a size of 0 is an empty piece, also after the
// end. Otherwise each batch is cut into equal pieces, one for each replica, of
// which the last may be short or empty; under kData workers take turns.
//
//   kInvalidArgument  the data set is not batched
//   kNotFound         kFile, and the data set reads no files
StreamOr OpenPieces(const Dataset& dataset, AutoShardPolicy policy,
                    const InputContext& context);

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_STRATEGY_INPUT_REBATCH_H_
