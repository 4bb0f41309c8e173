#include "python/native/memory.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace lockstep::worker {
namespace {

// The structures of DLPack 0.x, github.com/dmlc/dlpack, whose layout is fixed.
struct DLDevice {
  int32_t device_type;
  int32_t device_id;
};
struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};
// kDLCPU and kDLUInt of DLPack.
constexpr int32_t kCpu = 1;
constexpr uint8_t kUnsigned = 1;
constexpr char kName[] = "dltensor";

struct Managed {
  Memory memory;
  int64_t size;
  DLManagedTensor tensor;
};

}  // namespace

py::buffer_info Memory::Buffer() const {
  static uint8_t none = 0;
  return {data == nullptr ? &none : reinterpret_cast<uint8_t*>(data),
          static_cast<py::ssize_t>(size)};
}

py::capsule Memory::DLPack() const {
  auto managed = std::make_unique<Managed>();
  managed->memory = *this;
  managed->size = static_cast<int64_t>(size);
  managed->tensor = {.dl_tensor = {.data = data,
                                   .device = {kCpu, 0},
                                   .ndim = 1,
                                   .dtype = {kUnsigned, 8, 1},
                                   .shape = &managed->size,
                                   .strides = nullptr,
                                   .byte_offset = 0},
                     .manager_ctx = managed.get(),
                     .deleter = [](DLManagedTensor* self) {
                       delete static_cast<Managed*>(self->manager_ctx);
                     }};
  PyObject* const made =
      PyCapsule_New(&managed->tensor, kName, [](PyObject* capsule) {
        // The tensor that takes the memory over gives the capsule another name.
        if (PyCapsule_IsValid(capsule, kName) == 0) return;
        auto* tensor =
            static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kName));
        tensor->deleter(tensor);
      });
  if (made == nullptr) throw py::error_already_set();
  managed.release();
  return py::reinterpret_steal<py::capsule>(made);
}

Memory CopyOf(const std::byte* data, size_t size) {
  auto copy = std::make_shared<std::vector<std::byte>>(data, data + size);
  std::byte* const first = copy->data();
  return {std::move(copy), first, size};
}

}  // namespace lockstep::worker
