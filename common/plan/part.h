#ifndef LOCKSTEP_COMMON_PLAN_PART_H_
#define LOCKSTEP_COMMON_PLAN_PART_H_

#include <cstdint>

namespace lockstep {

// Part is a slice of a variable, the unit of placement, transfer and update,
// and the server that holds it.
//
// Units: offset and count are elements of the flattened variable.
struct Part {
  int variable = 0;  // index in Plan::variables
  int64_t offset = 0;
  int64_t count = 0;
  int server = 0;  // index of the ps task
  int index = 0;   // among the parts of that server, from 0
  // Distance from one row of the part to its next, in rows of the table; above
  // 1 where a table is cut by RowCut::kMod. `offset` is that of the first row.
  // In a growing table it is the number of parts, and `offset` counts parts.
  int64_t row_stride = 1;

  bool operator==(const Part&) const = default;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PLAN_PART_H_
