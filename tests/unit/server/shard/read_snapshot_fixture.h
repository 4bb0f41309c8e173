#ifndef LOCKSTEP_TESTS_UNIT_SERVER_SHARD_READ_SNAPSHOT_FIXTURE_H_
#define LOCKSTEP_TESTS_UNIT_SERVER_SHARD_READ_SNAPSHOT_FIXTURE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "server/shard/shard.h"

namespace lockstep::server {

// Reads a shard's snapshot. Returns its step.
inline absl::StatusOr<int64_t> ReadSnapshot(const Shard& shard,
                                            const Shard::ByteRange& range,
                                            int tensor,
                                            absl::Span<std::byte> out) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto snapshot, shard.snapshot());
  LOCKSTEP_RETURN_IF_ERROR(snapshot->Read(range, tensor, out));
  return snapshot->step();
}

}  // namespace lockstep::server

#endif  // LOCKSTEP_TESTS_UNIT_SERVER_SHARD_READ_SNAPSHOT_FIXTURE_H_
