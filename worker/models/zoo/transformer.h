#ifndef LOCKSTEP_WORKER_MODELS_ZOO_TRANSFORMER_H_
#define LOCKSTEP_WORKER_MODELS_ZOO_TRANSFORMER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/job/job_config.h"
#include "worker/models/model.h"

namespace lockstep::worker {

// A decoder-only transformer language model over bytes, as GPT-2 (Radford et
// al. 2019) but for the vocabulary: embeddings of bytes and positions;
// `layers` blocks, each x + attention(norm(x)) and then x + mlp(norm(x)) with
// 4 `width` hidden GELU units; a last norm; one logit per byte. `dropout`
// follows both branches. 4 layers, 4 heads of width 128 are 0.9 million
// parameters; 12, 12 of 768 are 85 million; 12, 14 of 896 are 116 million; 13,
// 14 of 896 are 126 million.
//
//   kInvalidArgument  model.layers, model.heads, model.width or model.dropout
//                     out of range, heads that do not divide the width, fields
//                     of other models, or data that is no text
absl::StatusOr<std::unique_ptr<Model>> MakeTransformer(
    const ModelConfig& config, const ModelInput& input, ElementType type);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_MODELS_ZOO_TRANSFORMER_H_
