#include "worker/device/pass_numbers.h"

#include <algorithm>
#include <new>
#include <utility>

#include "common/base/status_macros.h"

namespace lockstep::worker {
namespace {

// Memory is pinned by the page, and a page only once: these numbers must share
// none with other memory.
constexpr std::align_val_t kPage{4096};

size_t BytesOf(size_t count) {
  const auto page = static_cast<size_t>(kPage);
  return (count * sizeof(double) + page - 1) / page * page;
}

}  // namespace

void PassNumbers::Free::operator()(double* memory) const {
  ::operator delete(memory, kPage);
}

PassNumbers::PassNumbers(size_t count, ComputeBackend& backend)
    : count_(count),
      backend_(backend),
      here_(static_cast<double*>(::operator new(BytesOf(count), kPage))),
      copies_(count) {
  std::fill_n(here_.get(), count_, 0.0);
}

PassNumbers::~PassNumbers() {
  // A copy that is under way writes to `here_`, so it must end first; its
  // result is not needed any more.
  for (size_t i = 0; i < count_; ++i) Finish(i).IgnoreError();
}

absl::Status PassNumbers::Prepare() {
  // A late copy of the last pass must not overwrite a number of the next one.
  for (size_t i = 0; i < count_; ++i) LOCKSTEP_RETURN_IF_ERROR(Finish(i));
  if (there_.raw() != nullptr) return absl::OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(there_,
                            memory_.Reserve(backend_, ElementType::kFloat64,
                                            {static_cast<int64_t>(count_)}));
  absl::StatusOr<Buffer> pin = backend_.Pin(
      {reinterpret_cast<std::byte*>(here_.get()), BytesOf(count_)});
  if (pin.ok()) pin_ = *std::move(pin);  // otherwise copies are slower
  return absl::OkStatus();
}

Tensor PassNumbers::At(size_t index) const {
  return Tensor(there_.type(), {1}, there_.data<double>() + index);
}

Tensor PassNumbers::Here(size_t first, size_t count) const {
  return Tensor(there_.type(), {static_cast<int64_t>(count)},
                here_.get() + first);
}

absl::Status PassNumbers::StartDownload(size_t index) {
  LOCKSTEP_RETURN_IF_ERROR(Finish(index));
  LOCKSTEP_ASSIGN_OR_RETURN(copies_[index],
                            backend_.StartDownload(At(index), Here(index, 1)));
  return absl::OkStatus();
}

absl::Status PassNumbers::Finish(size_t index) {
  // Forgotten before the wait: a copy may be finished only once.
  const std::optional<CopyId> copy =
      std::exchange(copies_[index], std::nullopt);
  return copy.has_value() ? backend_.FinishCopy(*copy) : absl::OkStatus();
}

absl::Status PassNumbers::Download() {
  return backend_.Download(there_, Here(0, count_));
}

}  // namespace lockstep::worker
