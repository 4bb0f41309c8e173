#ifndef LOCKSTEP_PYTHON_NATIVE_MEMORY_H_
#define LOCKSTEP_PYTHON_NATIVE_MEMORY_H_

#include <pybind11/pybind11.h>

#include <cstddef>
#include <memory>

namespace lockstep::worker {

// Bytes of the session that Python reads and writes: through the buffer
// protocol, which does not depend on a version of numpy, or through DLPack.
struct Memory {
  std::shared_ptr<const void> owner;
  std::byte* data = nullptr;
  size_t size = 0;

  pybind11::buffer_info Buffer() const;

  // A capsule "dltensor" of `size` elements of uint8, which owns the memory.
  // Unlike a tensor on an array of numpy, a tensor made of it can be freed
  // without the interpreter: PyTorch frees some after that has ended, and would
  // wait for it without end.
  pybind11::capsule DLPack() const;
};

Memory CopyOf(const std::byte* data, size_t size);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_PYTHON_NATIVE_MEMORY_H_
