#ifndef LOCKSTEP_WORKER_MODELS_MODEL_LIMITS_H_
#define LOCKSTEP_WORKER_MODELS_MODEL_LIMITS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/plan/variable_spec.h"
#include "worker/models/model.h"

// Limits that models of every kind share. Each function returns OK or
// kInvalidArgument, naming the field as the job file spells it, the value and
// the allowed range.
namespace lockstep::worker {

// The sizes must be within limits that fit any machine, and their products
// within those of BLAS.
absl::Status CheckModelInput(const ModelInput& input);

// The type must be float32 or float64.
absl::Status CheckModelType(ElementType type);

// Layer sizes such as model.hidden_units; may be empty.
absl::Status CheckLayerSizes(const char* field,
                             absl::Span<const int64_t> sizes);

// The variable must have at most kMaxVariableElements elements.
inline constexpr int64_t kMaxVariableElements = int64_t{1} << 31;
absl::Status CheckVariableSize(const VariableSpec& variable);

// `value`, such as model.layers, must be in [1, largest].
absl::Status CheckSetting(const char* field, int64_t value, int64_t largest);

// The input must be pictures, not text.
absl::Status CheckPictures(const char* kind, const ModelInput& input);

// The field must have entries for this kind of model.
absl::Status CheckGiven(const char* kind, const char* field,
                        absl::Span<const int64_t> sizes);

// The field must be empty for this kind of model.
absl::Status CheckNotGiven(const char* kind, const char* field,
                           absl::Span<const int64_t> sizes);

// The size must be in [1, 63], and odd, so that the kernel has a centre.
absl::Status CheckKernelSize(int64_t kernel_size);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_MODELS_MODEL_LIMITS_H_
