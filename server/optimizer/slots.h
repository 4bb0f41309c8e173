#ifndef LOCKSTEP_SERVER_OPTIMIZER_SLOTS_H_
#define LOCKSTEP_SERVER_OPTIMIZER_SLOTS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/job/job_config.h"

namespace lockstep {

// No optimizer keeps more slots than this for a variable.
inline constexpr size_t kMaxSlots = 2;

// How many slots each variable has: 0, 1 (Momentum) or 2 (Adam: m, then v).
// A slot has the shape and dtype of its variable and starts as zeros.
size_t NumSlots(const OptimizerConfig& config);

// What TensorFlow appends to the variable's name, in the order in which the
// slots are made: "Momentum"; "Adam" (m) and "Adam_1" (v).
std::vector<std::string> SlotNames(const OptimizerConfig& config);

// "w" and "Adam_1" make "w/Adam_1", the slot's name in a checkpoint.
std::string SlotVariableName(std::string_view variable, std::string_view slot);

}  // namespace lockstep

#endif  // LOCKSTEP_SERVER_OPTIMIZER_SLOTS_H_
