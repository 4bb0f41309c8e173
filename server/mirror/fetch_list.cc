#include "server/mirror/fetch_list.h"

#include "common/numeric/dtype.h"

namespace lockstep::server {

std::vector<Fetch> MakeFetches(absl::Span<const PartSpec> parts,
                               absl::Span<const int> wanted,
                               size_t target_bytes) {
  std::vector<Fetch> fetches;
  size_t bytes = 0;  // of the last fetch
  for (const int part : wanted) {
    const size_t size = parts[part].count * ElementSize(parts[part].dtype);
    // A call names a range of parts of one server, so a gap begins another
    // call.
    const bool joins =
        !fetches.empty() && fetches.back().server == parts[part].reducer &&
        fetches.back().first_part + fetches.back().num_parts == part &&
        bytes + size <= target_bytes;
    if (!joins) {
      fetches.push_back({parts[part].reducer, part, 0});
      bytes = 0;
    }
    ++fetches.back().num_parts;
    bytes += size;
  }
  return fetches;
}

}  // namespace lockstep::server
