#include "server/state/file/state_layout.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/fingerprint.h"
#include "common/base/status_macros.h"
#include "server/state/tables/row_directory.h"
#include "server/state/tables/row_log.h"

namespace lockstep::server {
namespace {

// File offsets are signed.
constexpr uint64_t kMaxSize = std::numeric_limits<int64_t>::max();

absl::Status TooLarge() {
  return absl::InvalidArgumentError(
      "the parts of this server need more bytes than a file can have; place "
      "fewer or smaller variables on it");
}

// sum = a + b * c, unless that exceeds kMaxSize.
bool AddProduct(uint64_t a, uint64_t b, uint64_t c, uint64_t& sum) {
  return !__builtin_mul_overflow(b, c, &sum) &&
         !__builtin_add_overflow(sum, a, &sum) && sum <= kMaxSize;
}

// `size` is at most kMaxSize.
uint64_t RoundUp(uint64_t size, uint64_t alignment) {
  return (size + alignment - 1) / alignment * alignment;
}

absl::Status CheckPart(size_t index, const PartSpec& part, int num_buffers) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  const bool rows_fit =
      part.row_stride >= 1 &&
      (part.is_table() ? part.count % part.row_width == 0
                       : part.row_width == 0 && part.row_stride == 1);
  if (part.variable >= 0 && part.offset >= 0 && part.count > 0 &&
      part.offset <= kMax - part.count && rows_fit) {
    if (!part.grows || (part.is_table() && num_buffers == 2)) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat("part ", index, " (variable ", part.variable,
                     ") grows: it must be a table, updated in two buffers"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "part ", index, " (variable ", part.variable, ", offset ", part.offset,
      ", count ", part.count, ", rows of ", part.row_width, " and ",
      part.row_stride,
      " apart): variable and offset must be at least 0, count at least 1, and "
      "a table has whole rows"));
}

}  // namespace

absl::StatusOr<StateLayout> StateLayout::Make(std::vector<PartSpec> parts,
                                              std::vector<size_t> num_tensors,
                                              int num_buffers) {
  if (parts.empty() || parts.size() != num_tensors.size() || num_buffers < 1 ||
      num_buffers > 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(parts.size(), " parts, ", num_tensors.size(),
                     " numbers of tensors and ", num_buffers,
                     " buffers; a server needs 1 part, a number for each part, "
                     "and 1 or 2 buffers"));
  }
  StateLayout layout;
  layout.parts_ = std::move(parts);
  layout.num_tensors_ = std::move(num_tensors);
  layout.num_buffers_ = num_buffers;
  for (size_t i = 0; i < layout.parts_.size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(CheckPart(i, layout.parts_[i], num_buffers));
  }
  const size_t most =
      *std::max_element(layout.num_tensors_.begin(), layout.num_tensors_.end());
  // A region holds one tensor of all parts, so that reads of consecutive parts
  // touch consecutive memory.
  for (size_t tensor = 0; tensor < most; ++tensor) {
    LOCKSTEP_RETURN_IF_ERROR(layout.PlaceRegion(tensor));
  }
  if (!AddProduct(RoundUp(kHeaderSize, kRegionAlignment), layout.buffer_size_,
                  static_cast<uint64_t>(num_buffers), layout.file_size_)) {
    return TooLarge();
  }
  LOCKSTEP_RETURN_IF_ERROR(layout.PlaceLogs());
  LOCKSTEP_RETURN_IF_ERROR(layout.PlaceDirectories());
  LOCKSTEP_RETURN_IF_ERROR(layout.PlaceCounters());
  return layout;
}

absl::Status StateLayout::PlaceRegion(size_t tensor) {
  std::vector<uint64_t>& offsets = offsets_.emplace_back();
  uint64_t end = buffer_size_;
  for (size_t i = 0; i < parts_.size(); ++i) {
    const uint64_t start = RoundUp(end, kPartAlignment);
    // Also for a part without this tensor: offsets are found by the part's
    // index.
    offsets.push_back(start);
    if (tensor >= num_tensors_[i]) continue;
    if (!AddProduct(start, static_cast<uint64_t>(parts_[i].count),
                    ElementSize(parts_[i].dtype), end)) {
      return TooLarge();
    }
  }
  buffer_size_ = RoundUp(end, kRegionAlignment);
  return absl::OkStatus();
}

absl::Status StateLayout::PlaceLogs() {
  log_offsets_.assign(parts_.size(), 0);
  // A step that is updated in place cannot be redone, so it has no log.
  if (num_buffers_ < 2) return absl::OkStatus();
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (!parts_[i].is_table()) continue;
    log_offsets_[i] = RoundUp(file_size_, kPartAlignment);
    if (!AddProduct(log_offsets_[i], LogSize(i), 1, file_size_)) {
      return TooLarge();
    }
  }
  return absl::OkStatus();
}

absl::Status StateLayout::PlaceDirectories() {
  directory_offsets_.assign(parts_.size(), 0);
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (!parts_[i].grows) continue;
    directory_offsets_[i] = RoundUp(file_size_, kPartAlignment);
    if (!AddProduct(directory_offsets_[i], DirectorySize(i), 1, file_size_)) {
      return TooLarge();
    }
  }
  return absl::OkStatus();
}

absl::Status StateLayout::PlaceCounters() {
  counters_offset_ = RoundUp(file_size_, kPartAlignment);
  return AddProduct(counters_offset_, 2 * sizeof(uint64_t), parts_.size(),
                    file_size_)
             ? absl::OkStatus()
             : TooLarge();
}

uint64_t StateLayout::DirectorySize(size_t part) const {
  return RowDirectory::Size(parts_[part].num_rows());
}

uint64_t StateLayout::LogSize(size_t part) const {
  return RowLog::Size(parts_[part].num_rows());
}

uint64_t StateLayout::TensorSize(size_t part) const {
  return static_cast<uint64_t>(parts_[part].count) *
         ElementSize(parts_[part].dtype);
}

uint64_t StateLayout::TensorOffset(size_t part, size_t tensor,
                                   int buffer) const {
  return RoundUp(kHeaderSize, kRegionAlignment) +
         static_cast<uint64_t>(buffer) * buffer_size_ + offsets_[tensor][part];
}

uint64_t LayoutHash(absl::Span<const VariableSpec> variables,
                    const StateLayout& layout) {
  Fingerprint hash;
  hash.Add(uint64_t(layout.num_buffers()));
  hash.Add(uint64_t{variables.size()});
  for (const VariableSpec& variable : variables) {
    hash.Add(variable.name).Add(uint64_t{variable.shape.size()});
    for (const int64_t dim : variable.shape) hash.Add(uint64_t(dim));
    // Neither initial values nor the reducer of a part are included: they do
    // not change the meaning of the bytes.
    hash.Add(uint64_t(variable.dtype));
  }
  for (size_t i = 0; i < layout.parts().size(); ++i) {
    const PartSpec& part = layout.parts()[i];
    hash.Add(uint64_t{layout.num_tensors(i)});
    hash.Add(uint64_t(part.variable)).Add(uint64_t(part.offset));
    hash.Add(uint64_t(part.count)).Add(uint64_t(part.dtype));
    hash.Add(uint64_t(part.row_width)).Add(uint64_t(part.row_stride));
    if (part.grows) hash.Add("grows");
  }
  return hash.value();
}

}  // namespace lockstep::server
