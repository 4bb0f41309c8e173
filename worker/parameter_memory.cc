#include "worker/parameter_memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

constexpr size_t kAlignment = 64;

size_t RoundUp(size_t size) {
  return (size + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

void ParameterMemory::Block::Free::operator()(std::byte* memory) const {
  std::free(memory);
}

ParameterMemory::Block ParameterMemory::Allocate(size_t size) {
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kAlignment, size));
  // Touched now, so that the first step need not.
  std::memset(memory, 0, size);
  return Block{std::unique_ptr<std::byte[], Block::Free>(memory)};
}

ParameterMemory::ParameterMemory(const std::vector<VariableSpec>& variables,
                                 Gradients gradients) {
  size_t total = 0;
  for (const VariableSpec& variable : variables) {
    dtypes_.push_back(variable.dtype);
    tables_.push_back(nullptr);
    if (variable.is_table()) {
      spans_.push_back({total, 0});
      tables_.back() = std::make_unique<Table>(
          Table{variable.name,
                variable.grows() ? std::numeric_limits<int64_t>::max()
                                 : variable.shape[0],
                RowWidth(variable.shape) * ElementSize(variable.dtype),
                {}});
      continue;
    }
    const size_t size =
        NumElements(variable.shape) * ElementSize(variable.dtype);
    spans_.push_back({total, size});
    total += RoundUp(size);
  }
  total = std::max(total, kAlignment);
  values_ = Allocate(total);
  if (gradients == Gradients::kShared) {
    auto shared = SharedMemory::Create("lockstep-gradients", total);
    if (shared.ok()) shared_ = *std::move(shared);
  }
  if (shared_ != nullptr) {
    gradients_ = shared_->bytes();
  } else {
    private_ = Allocate(total);
    gradients_ = private_.At({0, total});
  }
}

absl::Status ParameterMemory::ChooseRows(size_t variable,
                                         std::vector<int64_t> ids) {
  if (variable >= tables_.size() || tables_[variable] == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("variable ", variable, " is no table"));
  }
  Table& table = *tables_[variable];
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  if (!ids.empty() && (ids.front() < 0 || ids.back() >= table.num_rows)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "row ", ids.front() < 0 ? ids.front() : ids.back(), " of table \"",
        table.name, "\" must be at least 0 and less than ", table.num_rows));
  }
  table.rows.values.resize(ids.size() * table.row_size);
  table.rows.gradients.assign(ids.size() * table.row_size, std::byte{0});
  table.rows.ids = std::move(ids);
  return absl::OkStatus();
}

}  // namespace lockstep
