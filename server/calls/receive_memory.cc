#include "server/calls/receive_memory.h"

#include <algorithm>

#include "common/numeric/dtype.h"
#include "common/plan/run_settings.h"

namespace lockstep::server {
namespace {

// Calls that a worker has under way to one server.
constexpr size_t kWindow = 4;
constexpr size_t kBase = size_t{256} << 20;
constexpr size_t kLargestOfTable = size_t{256} << 20;
// The longest encoding of a row's key in a message.
constexpr size_t kKeyBytes = 10;

size_t LargestPush(const PartSpec& part) {
  // Its size is that of the row limit, which says nothing of a push.
  if (part.grows) return kLargestOfTable;
  const size_t bytes =
      static_cast<size_t>(part.count) * ElementSize(part.dtype);
  if (!part.is_table()) return bytes;
  return std::min(kLargestOfTable,
                  bytes + static_cast<size_t>(part.num_rows()) * kKeyBytes);
}

}  // namespace

size_t ReceiveMemory(const JobConfig& job, const std::vector<PartSpec>& parts) {
  auto largest = static_cast<size_t>(job.max_part_bytes);
  for (const PartSpec& part : parts) {
    largest = std::max(largest, LargestPush(part));
  }
  const size_t workers = job.elastic_workers
                             ? RunSettings::kMaxWorkers
                             : static_cast<size_t>(job.total_num_replicas);
  // If a worker may push several gradients of a step, the server keeps those of
  // each part until the last one has arrived.
  size_t kept = 0;
  if (job.shares_work() || job.total_num_replicas < job.replicas_to_aggregate) {
    for (const PartSpec& part : parts) kept += LargestPush(part);
    if (__builtin_mul_overflow(
            kept, static_cast<size_t>(job.replicas_to_aggregate), &kept)) {
      return SIZE_MAX;
    }
  }
  size_t bytes = 0;
  if (__builtin_mul_overflow(workers * kWindow * 2, largest, &bytes) ||
      __builtin_add_overflow(bytes, kBase, &bytes) ||
      __builtin_add_overflow(bytes, kept, &bytes)) {
    return SIZE_MAX;
  }
  return bytes;
}

}  // namespace lockstep::server
