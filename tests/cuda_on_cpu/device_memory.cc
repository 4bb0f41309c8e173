#include "tests/cuda_on_cpu/device_memory.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LOCKSTEP_CUDA_ON_CPU_ASAN 1
#include <sanitizer/asan_interface.h>
#endif
#endif

namespace lockstep::cuda_on_cpu {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kAlignment = 256;  // as CUDA's
constexpr unsigned char kNan = 0xff;
constexpr size_t kNanBytes = size_t{64} << 20;

size_t RoundUp(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

void* Reserve(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("cuda_on_cpu: no room for the memory of devices");
    std::abort();
  }
  return memory;
}

// A file of NaN, of which all new memory is a private copy.
int NanFile() {
  static const int file = [] {
    const int made = memfd_create("cuda_on_cpu", MFD_CLOEXEC);
    const std::vector<unsigned char> block(size_t{1} << 20, kNan);
    for (size_t i = 0; i < kNanBytes / block.size(); ++i) {
      if (write(made, block.data(), block.size()) !=
          static_cast<ssize_t>(block.size())) {
        std::perror("cuda_on_cpu: no memory for new memory");
        std::abort();
      }
    }
    return made;
  }();
  return file;
}

void MapNan(std::byte* place, size_t bytes) {
  for (size_t done = 0; done < bytes; done += kNanBytes) {
    const size_t part = std::min(kNanBytes, bytes - done);
    if (mmap(place + done, part, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_FIXED, NanFile(), 0) == MAP_FAILED) {
      std::perror("cuda_on_cpu: cannot map the memory of a device");
      std::abort();
    }
  }
}

void Unmap(std::byte* place, size_t bytes) {
  mmap(place, bytes, PROT_NONE,
       MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

struct sigaction before[2];
constexpr int kSignals[] = {SIGSEGV, SIGBUS};

void OnFault(int signal, siginfo_t* info, void*) {
  if (const char* words = WordsOfFault(info->si_addr); words != nullptr) {
    [[maybe_unused]] const ssize_t written =
        write(STDERR_FILENO, words, std::strlen(words));
  }
  // The instruction faults again, for the handler of before.
  sigaction(signal, &before[signal == SIGBUS ? 1 : 0], nullptr);
}

[[maybe_unused]] void SetPoison([[maybe_unused]] void* place,
                                [[maybe_unused]] size_t bytes,
                                [[maybe_unused]] bool poisoned) {
#ifdef LOCKSTEP_CUDA_ON_CPU_ASAN
  if (poisoned) {
    __asan_poison_memory_region(place, bytes);
  } else {
    __asan_unpoison_memory_region(place, bytes);
  }
#endif
}

}  // namespace

AddressSpace::AddressSpace()
    : outside_(reinterpret_cast<uintptr_t>(Reserve(kBytes))),
      inside_(reinterpret_cast<uintptr_t>(Reserve(kBytes))) {
  struct sigaction action = {};
  action.sa_sigaction = OnFault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (int i = 0; i < 2; ++i) sigaction(kSignals[i], &action, &before[i]);
}

const AddressSpace& AddressSpace::Get() {
  static const AddressSpace space;
  return space;
}

const char* WordsOfFault(const void* address) {
  const AddressSpace& space = AddressSpace::Get();
  if (space.IsDevice(address)) {
    return "cuda_on_cpu: the host touched memory of a device; it must be "
           "copied\n";
  }
  const auto inside = reinterpret_cast<uintptr_t>(
      space.Inside(static_cast<const std::byte*>(space.outside(0))));
  if (reinterpret_cast<uintptr_t>(address) - inside < AddressSpace::kBytes) {
    return "cuda_on_cpu: a kernel, copy or product touched memory of a device "
           "that is freed, or beyond its end\n";
  }
  return nullptr;
}

void DeviceMemory::Configure(int devices, size_t bytes, uint64_t seed) {
  bytes_ = bytes;
  allocated_.resize(std::max<size_t>(allocated_.size(), devices));
  random_.seed(seed);
}

// The first pages of the space are never used, so that the address of a device
// is not the start of the space.
size_t DeviceMemory::TakeSlot(size_t mapped) {
  const auto fitting = free_slots_.find(mapped);
  // Half of the time the address is one of before, which a caller may have
  // kept too long; half of the time it is not.
  if (fitting != free_slots_.end() &&
      (random_() % 2 == 0 || used_ > AddressSpace::kBytes / 2)) {
    const size_t slot = fitting->second;
    free_slots_.erase(fitting);
    return slot;
  }
  const size_t slot = used_;
  if (slot + mapped > AddressSpace::kBytes) return SIZE_MAX;
  used_ += mapped;
  return slot;
}

cudaError_t DeviceMemory::Allocate(int device, size_t bytes, void** data) {
  if (bytes == 0) {
    *data = nullptr;
    return cudaSuccess;
  }
  if (bytes > bytes_ || allocated_[device] > bytes_ - bytes) {
    return cudaErrorMemoryAllocation;
  }
  const AddressSpace& space = AddressSpace::Get();
  const size_t pages = RoundUp(bytes, kPage);
  const size_t slot = TakeSlot(pages + kPage);
  if (slot == SIZE_MAX) return cudaErrorMemoryAllocation;
  std::byte* first = space.outside(slot);
  MapNan(space.Inside(first), pages);
  std::byte* begin = first + (pages - RoundUp(bytes, kAlignment));
  SetPoison(space.Inside(first), pages + kPage, true);
  SetPoison(space.Inside(begin), bytes, false);
  blocks_[reinterpret_cast<uintptr_t>(begin)] = {device, bytes, slot,
                                                 pages + kPage};
  allocated_[device] += bytes;
  *data = begin;
  return cudaSuccess;
}

cudaError_t DeviceMemory::Free(void* data) {
  if (data == nullptr) return cudaSuccess;
  const auto found = blocks_.find(reinterpret_cast<uintptr_t>(data));
  if (found == blocks_.end()) return cudaErrorInvalidValue;
  const Block block = found->second;
  const AddressSpace& space = AddressSpace::Get();
  std::byte* inside = space.Inside(static_cast<std::byte*>(data));
  const size_t slack = RoundUp(block.bytes, kAlignment) - block.bytes;
  SetPoison(inside + block.bytes, slack, false);
  const bool intact =
      std::all_of(inside + block.bytes, inside + block.bytes + slack,
                  [](std::byte b) { return b == std::byte{kNan}; });
  if (!intact) {
    std::fprintf(stderr,
                 "cuda_on_cpu: a kernel, copy or product wrote beyond the end "
                 "of %zu bytes of device memory\n",
                 block.bytes);
    std::abort();
  }
  SetPoison(space.Inside(space.outside(block.slot)), block.mapped, true);
  Unmap(space.Inside(space.outside(block.slot)), block.mapped);
  allocated_[block.device] -= block.bytes;
  free_slots_.emplace(block.mapped, block.slot);
  blocks_.erase(found);
  return cudaSuccess;
}

bool DeviceMemory::Holds(const void* data, size_t bytes) const {
  const auto found = Find(data);
  if (found == blocks_.end()) return false;
  const auto& [begin, block] = *found;
  const uintptr_t offset = reinterpret_cast<uintptr_t>(data) - begin;
  return bytes <= block.bytes - offset;
}

int DeviceMemory::DeviceOf(const void* data) const {
  const auto found = Find(data);
  return found == blocks_.end() ? -1 : found->second.device;
}

DeviceMemory::Blocks::const_iterator DeviceMemory::Find(
    const void* data) const {
  const auto address = reinterpret_cast<uintptr_t>(data);
  const auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return blocks_.end();
  const auto before = std::prev(after);
  return address - before->first <= before->second.bytes ? before
                                                         : blocks_.end();
}

}  // namespace lockstep::cuda_on_cpu
