#ifndef LOCKSTEP_CHIEF_SERVERS_SHARD_ACCESS_H_
#define LOCKSTEP_CHIEF_SERVERS_SHARD_ACCESS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace lockstep::chief {

// The description of a server's snapshot: its state at one committed step.
struct ShardSnapshot {
  int64_t global_step = 0;
  std::vector<float> scalars;  // of the optimizer at that step
  // By part of the server, rows of a growing table; 0 for other parts.
  std::vector<int64_t> rows = {};
};

// Some elements of one part of a server.
struct ElementRange {
  int part = 0;    // among those of the server
  int tensor = 0;  // 0: the value; k: the k-th slot
  int64_t first = 0;
  int64_t count = 0;
};

// ShardAccess moves the state of one server's parts to and from a checkpoint.
//
// Threads: safe to share.
// Errors: those of ShardControlService, and kDeadlineExceeded.
class ShardAccess {
 public:
  virtual ~ShardAccess() = default;

  // Fills `bytes` with little-endian elements of the snapshot begun last.
  //
  //   kUnavailable  also: another snapshot has replaced that one
  virtual absl::Status ReadSnapshot(const ElementRange& range,
                                    absl::Span<char> bytes) = 0;

  // Overwrites elements with little-endian ones. The server must not be open
  // for workers.
  virtual absl::Status WriteParts(const ElementRange& range,
                                  absl::Span<const char> bytes) = 0;

  // As above, for a part of a growing table. ReadKeys() reads the keys of the
  // snapshot's rows, ascending, from row `first` on. WriteRows() writes tensor
  // `tensor` of the rows with `keys`, and creates the rows that do not exist.
  // `bytes` has as many rows as there are keys, one after the other.
  virtual absl::Status ReadKeys(int part, int64_t first,
                                absl::Span<int64_t> keys) = 0;
  virtual absl::Status WriteRows(int part, int tensor,
                                 absl::Span<const int64_t> keys,
                                 absl::Span<const char> bytes) = 0;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVERS_SHARD_ACCESS_H_
