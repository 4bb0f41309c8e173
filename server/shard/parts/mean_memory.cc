#include "server/shard/parts/mean_memory.h"

#include <utility>

#include "common/base/status_macros.h"

namespace lockstep::server {
namespace {

// Kernels read whole cache lines.
constexpr uint64_t kAlignment = 64;

}  // namespace

absl::StatusOr<std::unique_ptr<MeanMemory>> MeanMemory::MakeShared(
    absl::Span<const size_t> sizes) {
  auto means = std::make_unique<MeanMemory>();
  uint64_t end = 0;
  for (const size_t size : sizes) {
    means->offsets_.push_back(SharedMemory::kHeaderSize + end);
    end += (size + kAlignment - 1) / kAlignment * kAlignment;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(means->memory_,
                            SharedMemory::Create("lockstep-means", end));
  LOCKSTEP_ASSIGN_OR_RETURN(
      means->counters_, WriteCounters::Create(static_cast<int>(sizes.size())));
  for (size_t part = 0; part < sizes.size(); ++part) {
    if (sizes[part] == 0) {
      means->buffers_.push_back(nullptr);
      continue;
    }
    const size_t first = means->offsets_[part] - SharedMemory::kHeaderSize;
    means->buffers_.push_back(std::make_shared<Buffer>(
        Buffer{.bytes = means->memory_->bytes().subspan(first, sizes[part]),
               .shared = true,
               .mapping = means->memory_}));
  }
  return means;
}

std::shared_ptr<MeanMemory::Buffer> MeanMemory::Renew(
    int part, size_t size, std::shared_ptr<Buffer> last) {
  // Holders are answers to servers of other hosts that still send the mean.
  // Servers of this host are not waited for.
  if (last != nullptr && !last->shared && last.use_count() > 1) last = nullptr;
  if (static_cast<size_t>(part) < buffers_.size() &&
      buffers_[part] != nullptr && buffers_[part]->bytes.size() == size) {
    if (last != nullptr && last->shared) last = nullptr;
    if (buffers_[part].use_count() == 1) {
      counters_->Begin(part);
      return buffers_[part];
    }
  }
  if (last != nullptr && last->bytes.size() == size) return last;
  auto buffer = std::make_shared<Buffer>();
  buffer->memory = std::make_unique_for_overwrite<std::byte[]>(size);
  buffer->bytes = {buffer->memory.get(), size};
  return buffer;
}

std::optional<SharedPlace> MeanMemory::PlaceOf(int part,
                                               const Buffer& buffer) const {
  if (!buffer.shared) return std::nullopt;
  return SharedPlace{offsets_[part], part, counters_->Count(part)};
}

std::optional<MeanMemory::Files> MeanMemory::files() const {
  if (memory_ == nullptr) return std::nullopt;
  return Files{memory_->file(), counters_->file()};
}

}  // namespace lockstep::server
