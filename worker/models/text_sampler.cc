#include "worker/models/text_sampler.h"

#include <algorithm>
#include <cmath>

#include "common/base/status_macros.h"
#include "worker/compute/backend/indices.h"
#include "worker/compute/kernels/counter_random.h"

namespace lockstep::worker {
namespace {

// Returns the weights in the order of the logits; a logit that is NaN has
// weight 0. `largest` is taken off, so that no exponential overflows.
std::vector<double> Weights(absl::Span<const float> logits, float largest,
                            double temperature) {
  std::vector<double> weights;
  for (const float logit : logits) {
    weights.push_back(
        std::isnan(logit) ? 0 : std::exp((logit - largest) / temperature));
  }
  return weights;
}

}  // namespace

int32_t DrawClass(absl::Span<const float> logits, double temperature,
                  double uniform) {
  size_t best = 0;
  for (size_t i = 1; i < logits.size(); ++i) {
    const bool first = std::isnan(logits[best]) && !std::isnan(logits[i]);
    if (first || logits[i] > logits[best]) best = i;
  }
  // An infinite logit would make all weights NaN or 0.
  if (temperature <= 0 || !std::isfinite(logits[best])) {
    return static_cast<int32_t>(best);
  }
  const std::vector<double> weights =
      Weights(logits, logits[best], temperature);
  double total = 0;
  for (const double weight : weights) total += weight;
  double left = uniform * total;
  for (size_t i = 0; i < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0) return static_cast<int32_t>(i);
  }
  return static_cast<int32_t>(best);  // rounding ate the last class
}

absl::Status TextSampler::Extend(std::string& text) {
  if (text.empty()) {
    return absl::InvalidArgumentError(
        "a text to go on from must have at least one byte");
  }
  const size_t length =
      std::min(text.size(), static_cast<size_t>(options_.window));
  std::vector<int32_t> tokens;
  for (const char c : text.substr(text.size() - length)) {
    tokens.push_back(static_cast<unsigned char>(c));
  }
  constexpr int64_t kBytes = 256;
  BatchView batch;
  LOCKSTEP_ASSIGN_OR_RETURN(
      batch.tokens, StageIndices("tokens",
                                 ConstTensor::Of<int32_t>(
                                     tokens, {1, static_cast<int64_t>(length)}),
                                 kBytes, backend_, tokens_));
  LOCKSTEP_ASSIGN_OR_RETURN(const Tensor logits,
                            model_.Logits(backend_, batch, variables_));
  std::vector<float> all(static_cast<size_t>(logits.size()));
  LOCKSTEP_RETURN_IF_ERROR(backend_.Download(
      logits, Tensor::Of<float>(absl::MakeSpan(all), logits.shape())));
  // The position in the text is the counter, so equal keys draw equal texts.
  const double uniform = kernels::RandomBits(options_.key, drawn_) * 0x1p-32;
  // The model returns logits after each position of the window; only those
  // after the last one matter.
  const absl::Span<const float> last =
      absl::MakeSpan(all).last(all.size() / length);
  text.push_back(
      static_cast<char>(DrawClass(last, options_.temperature, uniform)));
  ++drawn_;
  return absl::OkStatus();
}

}  // namespace lockstep::worker
