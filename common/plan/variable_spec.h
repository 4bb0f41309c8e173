#ifndef LOCKSTEP_COMMON_PLAN_VARIABLE_SPEC_H_
#define LOCKSTEP_COMMON_PLAN_VARIABLE_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/numeric/dtype.h"

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

// RowCut says whether a variable is a table, and how its rows are spread over
// its parts. Gradients of a table are of some of its rows, and workers read
// only the rows that they need, so that a table may be larger than their
// memory. Parts of other variables are cut anywhere and travel whole.
enum class RowCut : int {
  kNone = 0,  // no table
  kDiv = 1,   // a part has rows that follow one another
  kMod = 2,   // part p of n has the rows p, p + n, p + 2n, ...
  // A growing table: rows have keys, any numbers from 0 on, and come to be when
  // their key is first read; the first dimension is how many there may be. Part
  // p of n is as long as with kMod, and has the keys of which PartOfKey() is p.
  kKey = 3,
};

// VariableSpec is what must be known of a variable before it exists.
//
// Units: shapes count elements; a scalar has the empty shape.
struct VariableSpec {
  std::string name;            // unique in the job, e.g. "hidden1/weights"
  std::vector<int64_t> shape;  // every dimension > 0, row-major
  DType dtype = DType::kFloat32;
  Initializer initializer;
  RowCut row_cut = RowCut::kNone;  // of a rank of 1 or more, if it is a table

  bool is_table() const { return row_cut != RowCut::kNone; }
  bool grows() const { return row_cut == RowCut::kKey; }

  bool operator==(const VariableSpec&) const = default;
};

// Product of the dimensions, 1 for a scalar.
int64_t NumElements(const std::vector<int64_t>& shape);

// Elements of a row, which is what the first dimension counts; `shape` has one.
int64_t RowWidth(const std::vector<int64_t>& shape);

// A part of a variable.
//
// Units: offset and count are elements, the stride is as in PlannedPart.
struct VariableSlice {
  int64_t offset = 0;
  int64_t count = 0;
  int64_t row_stride = 1;
};

// Whether the variable has such a part: not empty, within it, and of a table
// whole rows, further apart than 1 only where they are not cut by RowCut::kDiv.
bool IsSlice(const VariableSpec& variable, const VariableSlice& slice);

// Which of `num_parts` > 0 parts of a growing table has a key. Keys that follow
// one another, or have a divisor in common, are spread like any others. Part of
// state files: never change it.
int64_t PartOfKey(int64_t key, int64_t num_parts);

// "[3,2]", for messages.
std::string ShapeString(const std::vector<int64_t>& shape);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PLAN_VARIABLE_SPEC_H_
