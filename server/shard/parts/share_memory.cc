#include "server/shard/parts/share_memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/numeric/dtype.h"

namespace lockstep::server {
namespace {

constexpr size_t kMebibyte = size_t{1} << 20;

size_t Mebibytes(size_t bytes) { return bytes / kMebibyte; }

}  // namespace

absl::Status CheckSharesFit(const JobConfig& job,
                            const std::vector<PartSpec>& parts, size_t memory) {
  if (!job.shares_work()) return absl::OkStatus();
  size_t gradient = 0;
  for (const PartSpec& part : parts) {
    if (part.is_table()) continue;
    gradient += static_cast<size_t>(part.count) * ElementSize(part.dtype);
  }
  const auto numbers = static_cast<size_t>(job.micro_batches_per_step);
  size_t needed = 0;
  if (!__builtin_mul_overflow(gradient, numbers, &needed) && needed <= memory) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "micro_batches_per_step is ", numbers, ", and each gradient has ",
      Mebibytes(gradient), " MiB on this server, whose host has ",
      Mebibytes(memory),
      " MiB of memory for all of them; set micro_batches_per_step to at most ",
      std::max<size_t>(1, memory / std::max<size_t>(1, gradient)),
      ", or spread the variables over more servers"));
}

}  // namespace lockstep::server
