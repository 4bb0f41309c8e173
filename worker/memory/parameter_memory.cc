#include "worker/memory/parameter_memory.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/memory/usable_memory.h"

namespace lockstep::worker {
namespace {

constexpr size_t kAlignment = 64;
// Limit of the bytes of all variables: no sum of two such sizes overflows.
constexpr int64_t kMaxBytes = int64_t{1} << 60;

size_t RoundUp(size_t size) {
  return (size + kAlignment - 1) / kAlignment * kAlignment;
}

// Returns the bytes of the variable, or of one row if it is a table.
absl::StatusOr<size_t> SizeOf(const VariableSpec& variable) {
  auto bytes = static_cast<int64_t>(ElementSize(variable.dtype));
  for (size_t i = variable.is_table() ? 1 : 0; i < variable.shape.size(); ++i) {
    const int64_t dim = variable.shape[i];
    if (dim < 1 || dim > kMaxBytes / bytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "variable \"", variable.name, "\" has shape ",
          ShapeString(variable.shape),
          "; dimensions must be positive, and all of it at most 2^60 bytes"));
    }
    bytes *= dim;
  }
  return static_cast<size_t>(bytes);
}

// Allocations succeed beyond the memory of the host, and the kernel kills the
// process when it writes them. Since the memory is written at once, its size is
// checked against what the process may use instead.
absl::Status CheckFits(size_t size) {
  const UsableMemory usable = UsableMemory::OfThisProcess();
  if (size <= usable.bytes / 2) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the model's values and gradients take twice ", size,
                   " bytes; ", usable.source,
                   ": choose a smaller model, or give the worker more memory"));
}

}  // namespace

void ParameterMemory::Block::Free::operator()(std::byte* memory) const {
  std::free(memory);
}

absl::StatusOr<ParameterMemory::Block> ParameterMemory::Allocate(size_t size) {
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kAlignment, size));
  if (memory == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no ", size,
                     " bytes of memory for the model's variables: choose a "
                     "smaller model, or a host with more memory"));
  }
  // Writes each page now, so that the first step does not wait for page faults.
  std::memset(memory, 0, size);
  return Block{std::unique_ptr<std::byte[], Block::Free>(memory)};
}

absl::Status ParameterMemory::Add(const VariableSpec& variable, size_t& total) {
  if (variable.is_table() &&
      (variable.shape.empty() || variable.shape[0] < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("table \"", variable.name, "\" of shape ",
                     ShapeString(variable.shape), " has no rows"));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const size_t size, SizeOf(variable));
  dtypes_.push_back(variable.dtype);
  if (variable.is_table()) {
    // The rows of a table lie elsewhere: ChooseRows() makes room in each pass.
    spans_.push_back({total, 0});
    tables_.push_back(std::make_unique<Table>(
        Table{variable.name,
              variable.grows() ? std::numeric_limits<int64_t>::max()
                               : variable.shape[0],
              size,
              {}}));
    return absl::OkStatus();
  }
  tables_.push_back(nullptr);
  spans_.push_back({total, size});
  // Variables begin at multiples of kAlignment, for vector instructions.
  total += RoundUp(size);
  if (total <= static_cast<size_t>(kMaxBytes)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the variables up to \"", variable.name,
                   "\" have more than 2^60 bytes; choose a smaller model"));
}

absl::StatusOr<ParameterMemory> ParameterMemory::Make(
    const std::vector<VariableSpec>& variables, Gradients gradients) {
  ParameterMemory made;
  size_t total = 0;
  for (const VariableSpec& variable : variables) {
    LOCKSTEP_RETURN_IF_ERROR(made.Add(variable, total));
  }
  // A job of tables alone: an allocation or mapping of 0 bytes may fail.
  total = std::max(total, kAlignment);
  LOCKSTEP_RETURN_IF_ERROR(CheckFits(total));
  LOCKSTEP_ASSIGN_OR_RETURN(made.values_, Allocate(total));
  for (const Range& range : made.spans_) {
    made.values_at_.push_back(made.values_.At(range).data());
  }
  made.taken_.resize(variables.size());
  if (gradients == Gradients::kShared) {
    auto shared = SharedMemory::Create("lockstep-gradients", total);
    // Not an error: without it gradients travel over connections.
    if (shared.ok()) made.shared_ = *std::move(shared);
  }
  if (made.shared_ != nullptr) {
    made.gradients_ = made.shared_->bytes();
  } else {
    LOCKSTEP_ASSIGN_OR_RETURN(made.private_, Allocate(total));
    made.gradients_ = made.private_.At({0, total});
  }
  return made;
}

absl::StatusOr<ParameterMemory> ParameterMemory::WithOwnGradients() const {
  ParameterMemory made;
  for (const auto& table : tables_) {
    if (table != nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("table \"", table->name,
                       "\": the rows of a table belong to one computation"));
    }
    made.tables_.push_back(nullptr);
  }
  made.dtypes_ = dtypes_;
  made.spans_ = spans_;
  made.values_at_ = values_at_;
  made.taken_.resize(taken_.size());
  const size_t size = gradients_.size();
  LOCKSTEP_ASSIGN_OR_RETURN(made.private_, Allocate(size));
  made.gradients_ = made.private_.At({0, size});
  return made;
}

absl::Status ParameterMemory::TakeValue(size_t variable) {
  if (variable >= tables_.size() || tables_[variable] != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("variable ", variable,
                     " is a table, or is not; only the values of other "
                     "variables can be taken"));
  }
  Taken& taken = taken_[variable];
  if (taken.at == nullptr) {
    const size_t size = spans_[variable].size;
    LOCKSTEP_ASSIGN_OR_RETURN(taken.block, Allocate(RoundUp(size)));
    taken.at = taken.block.At({0, size}).data();
  }
  std::swap(taken.at, values_at_[variable]);
  ++taken.times;
  return absl::OkStatus();
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
  // Not cleared: a pull writes every row that was chosen.
  table.rows.values.resize(ids.size() * table.row_size);
  table.rows.gradients.assign(ids.size() * table.row_size, std::byte{0});
  table.rows.ids = std::move(ids);
  table.sum.reset();
  return absl::OkStatus();
}

}  // namespace lockstep::worker
