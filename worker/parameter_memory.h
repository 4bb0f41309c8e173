#ifndef LOCKSTEP_WORKER_PARAMETER_MEMORY_H_
#define LOCKSTEP_WORKER_PARAMETER_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/shared_memory.h"
#include "common/variable_spec.h"

namespace lockstep {

// ParameterMemory is a worker's copy of all variables and the gradients that
// it computes, allocated once.
//
// Threads: not guarded: a variable belongs to the pass until that reports it,
//          and then to pushes and pulls until the next pass begins.
// Units:   bytes; every variable starts at a multiple of 64.
class ParameterMemory {
 public:
  // Whether servers of this host can read the gradients in place. Where the
  // system has no such memory, kShared is as kPrivate.
  enum class Gradients { kPrivate, kShared };

  explicit ParameterMemory(const std::vector<VariableSpec>& variables,
                           Gradients gradients = Gradients::kShared);

  absl::Span<std::byte> value(size_t variable) const {
    return values_.At(spans_[variable]);
  }
  absl::Span<std::byte> gradient(size_t variable) const {
    return gradients_.subspan(spans_[variable].offset, spans_[variable].size);
  }

  // Null unless the gradients can be shared.
  const SharedMemory* shared_gradients() const { return shared_.get(); }
  // Of a variable's gradient, in the file that is shared.
  uint64_t shared_offset(size_t variable) const {
    return SharedMemory::kHeaderSize + spans_[variable].offset;
  }

 private:
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
  static Block Allocate(size_t size);

  std::vector<Range> spans_;
  Block values_;
  std::unique_ptr<SharedMemory> shared_;
  Block private_;  // in its place
  absl::Span<std::byte> gradients_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_WORKER_PARAMETER_MEMORY_H_
