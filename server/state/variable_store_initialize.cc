// The part of VariableStore that writes initial values.

#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/algorithm/container.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "server/state/init/initializer.h"
#include "server/state/variable_store.h"
#include "server/update/parallel_blocks.h"
#include "server/update/slots.h"

namespace lockstep {
namespace {

// Few enough bytes that writing them does not take long.
constexpr size_t kStretch = size_t{4} << 20;

}  // namespace

absl::Status VariableStore::FillPart(size_t i, const InitialValues& values,
                                     absl::Span<std::byte> out) {
  // Rows may be apart, in the variable.
  const bool apart = part(i).row_stride != 1;
  const size_t element = ElementSize(part(i).dtype);
  const size_t stretch = apart ? RowSize(i) : kStretch;
  const int64_t from_one_to_the_next =
      apart ? part(i).row_stride * part(i).row_width
            : static_cast<int64_t>(stretch / element);
  int64_t offset = part(i).offset;
  size_t told = 0;
  for (size_t first = 0; first < out.size(); first += stretch) {
    const size_t size = std::min(stretch, out.size() - first);
    LOCKSTEP_RETURN_IF_ERROR(values.Fill(offset, out.subspan(first, size)));
    offset += from_one_to_the_next;
    if (first + size - told < kStretch && first + size < out.size()) continue;
    LOCKSTEP_RETURN_IF_ERROR(Advance(first + size - told));
    told = first + size;
  }
  return absl::OkStatus();
}

absl::Status VariableStore::Initialize(uint64_t seed) {
  LOCKSTEP_RETURN_IF_ERROR(CheckNotActive("initialise"));
  std::vector<size_t> first_elements;
  size_t elements = 0;
  for (size_t i = 0; i < num_parts(); ++i) {
    first_elements.push_back(elements);
    elements += static_cast<size_t>(part(i).count);
  }
  const auto part_at = [&](size_t element) {
    return static_cast<size_t>(absl::c_lower_bound(first_elements, element) -
                               first_elements.begin());
  };
  Mutex mutex;
  absl::Status status;
  ForEachBlock(elements, [&](size_t first, size_t count) {
    const absl::Status filled =
        InitializeParts(part_at(first), part_at(first + count), seed);
    MutexLock lock(mutex);
    status.Update(filled);
  });
  return status;
}

absl::Status VariableStore::InitializeParts(size_t first, size_t end,
                                            uint64_t seed) {
  std::optional<InitialValues> values;  // of the variable of the part before
  for (size_t i = first; i < end; ++i) {
    if (i == first || part(i).variable != part(i - 1).variable) {
      LOCKSTEP_ASSIGN_OR_RETURN(
          values, InitialValues::Make(variables_[part(i).variable], seed));
    }
    LOCKSTEP_RETURN_IF_ERROR(InitializePart(i, *values));
  }
  return absl::OkStatus();
}

absl::Status VariableStore::InitializePart(size_t i,
                                           const InitialValues& values) {
  const int buffer = static_cast<int>(record().current_buffer);
  if (directories_[i] != nullptr) {
    directories_[i]->Clear();  // rows have values when they come to be
    LOCKSTEP_RETURN_IF_ERROR(Advance(layout_.TensorSize(i)));
  } else {
    LOCKSTEP_RETURN_IF_ERROR(FillPart(i, values, Tensor(i, 0, buffer)));
  }
  const std::vector<SlotSpec>& slots = slots_[part(i).variable];
  for (size_t tensor = 1; tensor < num_tensors(i); ++tensor) {
    const SlotSpec& slot = slots[tensor - 1];
    const absl::Span<std::byte> to = Tensor(i, tensor, buffer);
    FillElements(part(i).dtype, slot.initial_value, to);
    if (slot.starts_as_value) {
      std::memcpy(to.data(), Tensor(i, 0, buffer).data(), to.size());
    }
    LOCKSTEP_RETURN_IF_ERROR(Advance(to.size()));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
