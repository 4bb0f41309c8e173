#ifndef LOCKSTEP_SERVER_UPDATE_SLOTS_H_
#define LOCKSTEP_SERVER_UPDATE_SLOTS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "common/job/job_config.h"
#include "common/numeric/dtype.h"

namespace lockstep::server {

// No optimizer keeps more slots than this for a variable.
inline constexpr size_t kMaxSlots = 3;

// One slot of each variable. A slot has the shape and dtype of its variable.
struct SlotSpec {
  std::string key;   // what TensorFlow's get_slot() calls it: "accumulator"
  std::string name;  // suffix of the variable's name: "Adagrad"
  double initial_value = 0;      // each element's
  bool starts_as_value = false;  // as the variable's value instead

  bool operator==(const SlotSpec&) const = default;
};

// In the order in which TensorFlow makes them, which numbers their names:
// "Adam" (m) and "Adam_1" (v).
std::vector<SlotSpec> Slots(const OptimizerConfig& config);

// The slot of a variable with a moving average, after those of its optimizer.
SlotSpec MovingAverageSlot();

// How many there are.
size_t NumSlots(const OptimizerConfig& config);

// Their names.
std::vector<std::string> SlotNames(const OptimizerConfig& config);

// Sets whole elements of `dtype` to `value`, rounded to it once.
void FillElements(DType dtype, double value, absl::Span<std::byte> elements);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_UPDATE_SLOTS_H_
