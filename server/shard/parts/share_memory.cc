#include "server/shard/parts/share_memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/numeric/dtype.h"
#include "common/plan/number_tree.h"

namespace lockstep::server {
namespace {

constexpr size_t kMebibyte = size_t{1} << 20;

size_t Mebibytes(size_t bytes) { return bytes / kMebibyte; }

}  // namespace

absl::Status CheckSharesFit(const JobConfig& job,
                            const std::vector<PartSpec>& parts, size_t memory) {
  if (!job.shares_work()) return absl::OkStatus();
  const int per_push = std::max(job.micro_batches_per_push, 1);
  size_t gradient = 0;
  for (const PartSpec& part : parts) {
    if (per_push > 1 && part.dtype == DType::kBFloat16) {
      return absl::InvalidArgumentError(absl::StrCat(
          "micro_batches_per_push is ", per_push,
          ", but the job has a variable of bfloat16, which servers add in "
          "float32; set micro_batches_per_push to 1, or leave it out"));
    }
    if (part.is_table()) continue;
    gradient += static_cast<size_t>(part.count) * ElementSize(part.dtype);
  }
  const auto pushes =
      static_cast<size_t>(BlocksOf(job.micro_batches_per_step, per_push));
  size_t needed = 0;
  if (!__builtin_mul_overflow(gradient, pushes, &needed) && needed <= memory) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "micro_batches_per_step is ", job.micro_batches_per_step,
      ", and each gradient has ", Mebibytes(gradient),
      " MiB on this server, which may use ", Mebibytes(memory),
      " MiB of memory for all of them; set micro_batches_per_step to at most ",
      std::max<size_t>(1, memory / std::max<size_t>(1, gradient)) *
          static_cast<size_t>(per_push),
      ", or spread the variables over more servers"));
}

}  // namespace lockstep::server
