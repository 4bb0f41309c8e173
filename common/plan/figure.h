#ifndef LOCKSTEP_COMMON_PLAN_FIGURE_H_
#define LOCKSTEP_COMMON_PLAN_FIGURE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace lockstep {

// A number with a name that a user's program has chosen, such as
// "test_accuracy".
struct NamedFigure {
  std::string name;
  double value = 0;

  bool operator==(const NamedFigure&) const = default;
};

inline constexpr size_t kMostFigures = 16;  // in one report

// Checks the figures of one report.
//
//   kInvalidArgument  more than kMostFigures; a name that is empty, longer than
//                     64 characters, there twice, or has other characters than
//                     letters, digits, '_', '-', '.' and '/'; a value that is
//                     not finite
absl::Status CheckFigures(const std::vector<NamedFigure>& figures);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PLAN_FIGURE_H_
