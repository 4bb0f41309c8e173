#ifndef LOCKSTEP_COMMON_PLAN_EXAMPLE_SHAPE_H_
#define LOCKSTEP_COMMON_PLAN_EXAMPLE_SHAPE_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"

namespace lockstep {

// ExampleShape is the input that a job's model is built for: the shape of one
// example, and the number of classes.
//
// Units: pixels; values per pixel; labels; bytes of a text.
struct ExampleShape {
  int64_t height = 1;
  int64_t width = 1;
  int64_t channels = 1;
  int64_t classes = 0;
  int64_t tokens = 0;  // bytes of each text; 0: pictures

  bool operator==(const ExampleShape&) const = default;

  // "28x28x1, 10 classes", for messages.
  std::string ToString() const {
    if (tokens > 0) return absl::StrCat("texts of ", tokens, " bytes");
    return absl::StrCat(height, "x", width, "x", channels, ", ", classes,
                        " classes");
  }
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PLAN_EXAMPLE_SHAPE_H_
