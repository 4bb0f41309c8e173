#ifndef LOCKSTEP_SERVER_MIRROR_FETCH_LIST_H_
#define LOCKSTEP_SERVER_MIRROR_FETCH_LIST_H_

#include <cstddef>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "server/state/file/state_layout.h"

namespace lockstep::server {

// Consecutive parts whose means one call fetches from the server that reduces
// them.
struct Fetch {
  int server = 0;
  int first_part = 0;
  int num_parts = 0;
};

// The bytes of a table's mean for which a call waits. A call for a larger mean
// that ends too early is repeated.
constexpr size_t kMostTableBytes = size_t{16} << 20;

// Packs the parts `wanted`, ascending, into calls of about `target_bytes`: many
// small parts per call, or one part of at least that size. Calls to a server
// are larger if its memory is mapped. They are also larger if it reduces so
// much that one connection could not carry all of them at once: the others
// would wait for the first parts, whose gradients arrive last. `parts` must be
// all parts of the server. A call has tables only, or none: the means of tables
// have no place in shared memory.
std::vector<Fetch> MakeFetches(absl::Span<const PartSpec> parts,
                               absl::Span<const int> wanted,
                               size_t target_bytes,
                               absl::FunctionRef<bool(int server)> is_mapped);

// The bytes of a fetch's means, of the types of the parts; of each table at
// most kMostTableBytes, as most of its rows are in no mean.
size_t BytesOf(absl::Span<const PartSpec> parts, const Fetch& fetch);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_MIRROR_FETCH_LIST_H_
