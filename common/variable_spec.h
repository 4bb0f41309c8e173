#ifndef LOCKSTEP_COMMON_VARIABLE_SPEC_H_
#define LOCKSTEP_COMMON_VARIABLE_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/dtype.h"

namespace lockstep {

// Initializer says how the elements of a variable start. The value of element
// i follows from (job seed, variable name, i) alone, so that it does not
// depend on how the variable is cut or placed.
struct Initializer {
  enum class Kind : int {
    kConstant = 0,         // every element is `a`
    kUniform = 1,          // uniform in [a, b)
    kNormal = 2,           // mean `a`, standard deviation `b`
    kGlorotUniform = 3,    // uniform within sqrt(6 / (fan_in + fan_out))
    kHeNormal = 4,         // normal, standard deviation sqrt(2 / fan_in)
    kTruncatedNormal = 5,  // as kNormal, but within 2 deviations of the mean
    kGlorotNormal = 6,     // within 2 deviations, which are in the end
                           // sqrt(2 / (fan_in + fan_out))
    kHeUniform = 7,        // uniform within sqrt(6 / fan_in)
    kOrthogonal = 8,       // an orthogonal matrix times `a`, of rank 2 or more
  };
  Kind kind = Kind::kConstant;
  double a = 0;
  double b = 0;

  bool operator==(const Initializer&) const = default;
};

// VariableSpec is what must be known of a variable before it exists.
//
// Units: shapes count elements; a scalar has the empty shape.
struct VariableSpec {
  std::string name;            // unique in the job, e.g. "hidden1/weights"
  std::vector<int64_t> shape;  // every dimension > 0, row-major
  DType dtype = DType::kFloat32;
  Initializer initializer;

  bool operator==(const VariableSpec&) const = default;
};

// Product of the dimensions, 1 for a scalar.
int64_t NumElements(const std::vector<int64_t>& shape);

// "[3,2]", for messages.
std::string ShapeString(const std::vector<int64_t>& shape);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_VARIABLE_SPEC_H_
