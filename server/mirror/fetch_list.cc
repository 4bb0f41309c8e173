#include "server/mirror/fetch_list.h"

#include <algorithm>
#include <map>

#include "common/base/call_limits.h"
#include "common/numeric/dtype.h"

namespace lockstep::server {
namespace {

size_t SizeOf(const PartSpec& part) {
  return part.count * ElementSize(part.dtype);
}

}  // namespace

std::vector<Fetch> MakeFetches(absl::Span<const PartSpec> parts,
                               absl::Span<const int> wanted,
                               size_t target_bytes,
                               absl::FunctionRef<bool(int server)> is_mapped) {
  // By server, of all its parts: fetches that are repeated, some at a time,
  // must not become more calls.
  std::map<int, size_t> totals;
  for (const PartSpec& part : parts) {
    // Most rows of a table are in no mean.
    if (part.reducer < 0 || part.is_table()) continue;
    totals[part.reducer] += SizeOf(part);
  }
  std::map<int, size_t> targets;
  for (const auto& [server, total] : totals) {
    targets[server] = is_mapped(server) ? MappedCallBytes(total, target_bytes)
                                        : CallBytes(total, target_bytes);
  }
  std::vector<Fetch> fetches;
  size_t bytes = 0;  // of the last fetch
  for (const int part : wanted) {
    const size_t size = SizeOf(parts[part]);
    const auto of_server = targets.find(parts[part].reducer);
    const size_t target =
        of_server == targets.end() ? target_bytes : of_server->second;
    // A call names a range of parts of one server, so a gap begins another
    // call.
    const bool joins =
        !fetches.empty() && fetches.back().server == parts[part].reducer &&
        fetches.back().first_part + fetches.back().num_parts == part &&
        parts[part - 1].is_table() == parts[part].is_table() &&
        bytes + size <= target;
    if (!joins) {
      fetches.push_back({parts[part].reducer, part, 0});
      bytes = 0;
    }
    ++fetches.back().num_parts;
    bytes += size;
  }
  return fetches;
}

size_t BytesOf(absl::Span<const PartSpec> parts, const Fetch& fetch) {
  size_t bytes = 0;
  for (const PartSpec& part :
       parts.subspan(fetch.first_part, fetch.num_parts)) {
    bytes += part.is_table() ? std::min(SizeOf(part), kMostTableBytes)
                             : SizeOf(part);
  }
  return bytes;
}

}  // namespace lockstep::server
