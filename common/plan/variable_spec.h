#ifndef LOCKSTEP_COMMON_PLAN_VARIABLE_SPEC_H_
#define LOCKSTEP_COMMON_PLAN_VARIABLE_SPEC_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/numeric/dtype.h"
#include "common/plan/part.h"

namespace lockstep {

// Initializer defines the first values of a variable. The value of element i
// depends on (job seed, variable name, i) alone, and therefore not on how the
// variable is cut or placed.
struct Initializer {
  enum class Kind : int {
    kConstant = 0,         // every element is `a`
    kUniform = 1,          // uniform in [a, b)
    kNormal = 2,           // mean `a`, standard deviation `b`
    kGlorotUniform = 3,    // uniform within sqrt(6 / (fan_in + fan_out))
    kHeNormal = 4,         // normal, standard deviation sqrt(2 / fan_in)
    kTruncatedNormal = 5,  // as kNormal, but within 2 deviations of the mean
    kGlorotNormal = 6,     // within 2 deviations; resulting deviation
                           // sqrt(2 / (fan_in + fan_out))
    kHeUniform = 7,        // uniform within sqrt(6 / fan_in)
    kOrthogonal = 8,       // an orthogonal matrix times `a`; rank 2 or more
    kGiven = 9,            // by a worker; zeros until then
  };
  Kind kind = Kind::kConstant;
  double a = 0;
  double b = 0;

  bool operator==(const Initializer&) const = default;
};

// The most bytes of given initial values in one message.
inline constexpr size_t kMaxGivenBlock = size_t{1} << 20;

// The most elements of a variable, and of a model: no sum of their bytes
// overflows.
inline constexpr int64_t kMaxElements = int64_t{1} << 56;

// RowCut says if a variable is a table, and how its rows are spread over its
// parts. A gradient of a table holds some of its rows, and workers read only
// the rows that they need, so a table may be larger than their memory. Parts of
// other variables are cut anywhere and travel whole.
enum class RowCut : int {
  kNone = 0,  // no table
  kDiv = 1,   // each part has consecutive rows
  kMod = 2,   // part p of n has the rows p, p + n, p + 2n, ...
  // A growing table: a row has a key, any number from 0, and is created when
  // its key is first read; the first dimension is the limit of rows. Part p of
  // n is as long as with kMod, and holds the keys with PartOfKey() == p.
  kKey = 3,
};

// VariableSpec describes a variable before it exists.
//
// Units: shapes count elements; a scalar has the empty shape.
struct VariableSpec {
  std::string name;                 // unique in the job, e.g. "hidden1/weights"
  std::vector<int64_t> shape = {};  // every dimension > 0, row-major
  DType dtype = DType::kFloat32;
  Initializer initializer = {};
  RowCut row_cut = RowCut::kNone;  // if not kNone, the rank must be 1 or more

  // Not trained, but changed by passes, such as the running averages of a
  // layer: in place of a gradient workers push the value before a pass minus
  // that after it, and a step subtracts the mean. No optimizer, clipping,
  // constraint or moving average; never a table.
  bool buffer = false;

  bool is_table() const { return row_cut != RowCut::kNone; }
  bool grows() const { return row_cut == RowCut::kKey; }

  bool operator==(const VariableSpec&) const = default;
};

// Returns the product of the dimensions; 1 for a scalar.
int64_t NumElements(const std::vector<int64_t>& shape);

// Returns the elements of one row, i.e. of one first index; `shape` must not be
// empty.
int64_t RowWidth(const std::vector<int64_t>& shape);

// True if the slice that `part` names is one of `variable`: not empty, within
// the variable, and for a table made of whole rows, with a stride above 1 only
// where the cut is not RowCut::kDiv.
bool IsPartOf(const VariableSpec& variable, const Part& part);

// Returns the index of the part that holds `key`, among the `num_parts` > 0
// parts of a growing table. Consecutive keys, and keys with a common divisor,
// are spread like any others. State files depend on it: it must never change.
int64_t PartOfKey(int64_t key, int64_t num_parts);

// "[3,2]", for messages.
std::string ShapeString(const std::vector<int64_t>& shape);

// Returns all that tells a variable from another, for messages:
//
//   "hidden1/weights" float32 [784,128], glorot_uniform
//   "scale" float32 [3], first values of a worker, a buffer
std::string VariableString(const VariableSpec& variable);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PLAN_VARIABLE_SPEC_H_
