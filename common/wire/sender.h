#ifndef LOCKSTEP_COMMON_WIRE_SENDER_H_
#define LOCKSTEP_COMMON_WIRE_SENDER_H_

#include <cstdint>
#include <string>

#include "common/cluster/task_id.h"

namespace lockstep {

// The process that a request is from.
struct Sender {
  std::string job_id;
  TaskId task;
  uint64_t incarnation = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_WIRE_SENDER_H_
