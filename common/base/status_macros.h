#ifndef LOCKSTEP_COMMON_BASE_STATUS_MACROS_H_
#define LOCKSTEP_COMMON_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Leaves the enclosing function with the status of `expr` unless it is OK.
#define LOCKSTEP_RETURN_IF_ERROR(expr)     \
  do {                                     \
    absl::Status lockstep_status = (expr); \
    if (!lockstep_status.ok()) {           \
      return lockstep_status;              \
    }                                      \
  } while (false)

// Declares or assigns `lhs` from the value of a StatusOr, or leaves the
// enclosing function with its status. `lhs` must not contain a comma.
#define LOCKSTEP_ASSIGN_OR_RETURN(lhs, expr) \
  LOCKSTEP_ASSIGN_OR_RETURN_IMPL_(           \
      LOCKSTEP_CONCAT_(lockstep_statusor_, __LINE__), lhs, expr)

#define LOCKSTEP_ASSIGN_OR_RETURN_IMPL_(statusor, lhs, expr) \
  auto statusor = (expr);                                    \
  if (!statusor.ok()) return std::move(statusor).status();   \
  lhs = *std::move(statusor)

#define LOCKSTEP_CONCAT_(a, b) LOCKSTEP_CONCAT_IMPL_(a, b)
#define LOCKSTEP_CONCAT_IMPL_(a, b) a##b

#endif  // LOCKSTEP_COMMON_BASE_STATUS_MACROS_H_
