#include "worker/compute/cpu/serial_device.h"

#include <new>

#include "absl/strings/str_cat.h"

namespace lockstep::worker::cpu {
namespace {

constexpr std::align_val_t kAlignment{64};
// A larger request is a mistake in a shape; the sanitizers' allocators would
// abort.
constexpr size_t kMaxBytes = size_t{1} << 40;

void Release(void* data) { ::operator delete(data, kAlignment); }

}  // namespace

absl::StatusOr<Buffer> SerialDevice::Allocate(size_t bytes) {
  if (bytes == 0) return Buffer();
  void* data = bytes > kMaxBytes
                   ? nullptr
                   : ::operator new(bytes, kAlignment, std::nothrow);
  if (data == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for a tensor of ", bytes, " bytes"));
  }
  return Buffer(data, bytes, Release);
}

}  // namespace lockstep::worker::cpu
