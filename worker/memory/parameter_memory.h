#ifndef LOCKSTEP_WORKER_MEMORY_PARAMETER_MEMORY_H_
#define LOCKSTEP_WORKER_MEMORY_PARAMETER_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/memory/shared_memory.h"
#include "common/plan/variable_spec.h"

namespace lockstep::worker {

// The rows of a table that a pass uses, with their gradients.
struct TableRows {
  std::vector<int64_t> ids;  // in the table, or keys; ascending, each once
  // Row after row, in the order of `ids`; bytes of the table's elements.
  std::vector<std::byte> values;
  std::vector<std::byte> gradients;
};

// The sum of the gradients of several passes over a table.
struct RowSum {
  std::vector<int64_t> ids;  // as in TableRows
  std::vector<std::byte> gradients;
  std::vector<int64_t> counts;  // the passes that have a gradient of each row
};

// ParameterMemory is a worker's copy of all variables and the memory of the
// gradients that it computes, allocated once. It holds only those rows of a
// table that the current pass has chosen, so a table may be larger than the
// memory.
//
// Threads: not thread-safe. A variable belongs to the pass until the pass
//          reports it, then to pushes and pulls until the next pass begins.
// Units:   bytes; every variable starts at a multiple of 64.
class ParameterMemory {
 public:
  // kShared: servers of this host can map the gradients and read them in place.
  // If the system has no such memory, kShared means kPrivate.
  enum class Gradients { kPrivate, kShared };

  //   kInvalidArgument    a shape is not valid, or the bytes of all variables
  //                       exceed the address space
  //   kResourceExhausted  more than this process may use, or is left
  static absl::StatusOr<ParameterMemory> Make(
      const std::vector<VariableSpec>& variables,
      Gradients gradients = Gradients::kShared);

  // Returns the values of this object, which must outlive the result, with
  // other gradients: for another computation on the same values. There must be
  // no tables.
  //
  //   kInvalidArgument    there is a table
  //   kResourceExhausted  as Make()
  absl::StatusOr<ParameterMemory> WithOwnGradients() const;

  // The type of a variable's elements, values and gradients.
  DType dtype(size_t variable) const { return dtypes_[variable]; }

  // The memory of a variable; for a table, that of the chosen rows.
  absl::Span<std::byte> value(size_t variable) const {
    if (tables_[variable] != nullptr) {
      return absl::MakeSpan(tables_[variable]->rows.values);
    }
    return {values_at_[variable], spans_[variable].size};
  }
  absl::Span<std::byte> gradient(size_t variable) const {
    if (tables_[variable] != nullptr) {
      return absl::MakeSpan(tables_[variable]->rows.gradients);
    }
    return gradients_.subspan(spans_[variable].offset, spans_[variable].size);
  }

  // Leaves the memory of value(variable) to the caller: its contents stay until
  // the next call for that variable. From now on value(variable) is other
  // memory, with undefined contents, which the first call allocates. Both stay
  // valid as long as this object.
  //
  //   kInvalidArgument    a table, whose rows move in each pass anyway
  //   kResourceExhausted  as Make()
  absl::Status TakeValue(size_t variable);
  // How often TakeValue() has succeeded for the variable.
  int64_t times_taken(size_t variable) const { return taken_[variable].times; }

  // Chooses the rows of a table that the next pass uses; repeated ids count
  // once. The rows' values are undefined until they are pulled; the gradients
  // are zeros, and there is no sum.
  //
  //   kInvalidArgument  no table, or a row that it does not have
  absl::Status ChooseRows(size_t variable, std::vector<int64_t> ids);

  // The chosen rows. `variable` must be a table.
  const TableRows& rows(size_t variable) const {
    return tables_[variable]->rows;
  }

  // Sets the gradient to push in place of that of the chosen rows, which stay
  // as they are. `variable` must be a table, and the rows of `sum` be in it.
  void SetRowSum(size_t variable, RowSum sum) {
    tables_[variable]->sum = std::move(sum);
  }
  // Null unless SetRowSum() was called since the rows were chosen.
  const RowSum* row_sum(size_t variable) const {
    const std::optional<RowSum>& sum = tables_[variable]->sum;
    return sum.has_value() ? &*sum : nullptr;
  }

  // The file that servers map; null unless the gradients are shared.
  const SharedMemory* shared_gradients() const { return shared_.get(); }
  // Offset of a variable's gradient in that file, bytes.
  uint64_t shared_offset(size_t variable) const {
    return SharedMemory::kHeaderSize + spans_[variable].offset;
  }

 private:
  ParameterMemory() = default;

  struct Range {
    size_t offset;
    size_t size;
  };
  struct Block {
    struct Free {
      void operator()(std::byte* memory) const;
    };
    std::unique_ptr<std::byte[], Free> memory;
    absl::Span<std::byte> At(const Range& range) const {
      return {memory.get() + range.offset, range.size};
    }
  };
  static absl::StatusOr<Block> Allocate(size_t size);
  // Places a variable behind the first `total` bytes, and adds its size,
  // rounded up, to `total`.
  //
  //   kInvalidArgument  as Make()
  absl::Status Add(const VariableSpec& variable, size_t& total);
  struct Table {
    std::string name;
    int64_t num_rows = 0;  // of a growing table, keys below which all are
    size_t row_size = 0;   // bytes
    TableRows rows;
    std::optional<RowSum> sum = {};
  };

  struct Taken {
    Block block;  // for the variable alone; null until it is first needed
    std::byte* at = nullptr;
    int64_t times = 0;
  };

  std::vector<DType> dtypes_;
  std::vector<Range> spans_;
  std::vector<std::unique_ptr<Table>> tables_;  // by variable; null: no table
  Block values_;                       // null where they are another object's
  std::vector<std::byte*> values_at_;  // by variable; of tables unused
  std::vector<Taken> taken_;           // by variable
  std::unique_ptr<SharedMemory> shared_;
  Block private_;  // in its place
  absl::Span<std::byte> gradients_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_MEMORY_PARAMETER_MEMORY_H_
