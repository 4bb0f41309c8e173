#include "worker/parameter_memory.h"

#include <cstdlib>
#include <cstring>

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
    const size_t size =
        NumElements(variable.shape) * ElementSize(variable.dtype);
    spans_.push_back({total, size});
    total += RoundUp(size);
  }
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

}  // namespace lockstep
