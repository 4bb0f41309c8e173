#include "worker/compute/backend/indices.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace lockstep::worker {
namespace {

absl::Status CheckRange(const char* name, const ConstTensor& host,
                        int64_t bound) {
  const int32_t* numbers = host.data<int32_t>();
  for (int64_t i = 0; i < host.size(); ++i) {
    if (numbers[i] >= 0 && numbers[i] < bound) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        name, "[", i, "] must be in [0, ", bound, "), got ", numbers[i]));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ConstTensor> StageIndices(const char* name,
                                         const ConstTensor& host, int64_t bound,
                                         ComputeBackend& backend,
                                         Scratch& memory) {
  if (host.type() != ElementType::kInt32) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, " must be int32, got ", ElementTypeName(host.type())));
  }
  if (absl::Status s = CheckRange(name, host, bound); !s.ok()) return s;
  if (backend.UsesOrdinaryMemory()) return host.WithBound(bound);
  absl::StatusOr<Tensor> there =
      memory.Reserve(backend, host.type(), host.shape());
  if (!there.ok()) return there.status();
  if (absl::Status s = backend.Upload(host, *there); !s.ok()) return s;
  return there->WithBound(bound);
}

}  // namespace lockstep::worker
