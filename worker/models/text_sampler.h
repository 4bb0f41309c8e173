#ifndef LOCKSTEP_WORKER_MODELS_TEXT_SAMPLER_H_
#define LOCKSTEP_WORKER_MODELS_TEXT_SAMPLER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "worker/compute/backend/compute_backend.h"
#include "worker/compute/backend/scratch.h"
#include "worker/models/model.h"

namespace lockstep::worker {

// Returns the class that `uniform`, in [0, 1), picks when class i has the
// weight exp(logits[i] / temperature). At temperature 0 it is the likeliest
// class, the first one of equals. Classes whose logit is NaN are never picked,
// unless all are NaN.
int32_t DrawClass(absl::Span<const float> logits, double temperature,
                  double uniform);

// TextSampler continues a text with a language model of bytes.
//
// Threads: not thread-safe.
// Borrows: model, backend and variables.
class TextSampler {
 public:
  struct Options {
    int64_t window = 0;      // ModelInput::tokens: bytes that the model reads
    double temperature = 1;  // >= 0
    uint64_t key = 0;        // equal keys draw equal texts
  };

  TextSampler(Model& model, ComputeBackend& backend,
              absl::Span<const ConstTensor> variables, const Options& options)
      : model_(model),
        backend_(backend),
        variables_(variables.begin(), variables.end()),
        options_(options) {}

  // Draws a byte from the model's logits after the last `window` bytes of
  // `text`, and appends it. On failure `text` is unchanged.
  //
  //   kInvalidArgument  `text` is empty
  //   others            as the model and the backend
  absl::Status Extend(std::string& text);

 private:
  Model& model_;
  ComputeBackend& backend_;
  const std::vector<ConstTensor> variables_;
  const Options options_;
  Scratch tokens_;
  uint64_t drawn_ = 0;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_MODELS_TEXT_SAMPLER_H_
