// A stand-in for server/state/file/mapped_file.cc that the simulation is linked
// with in its place: files are memory, which outlives the objects that map it.
// All above, headers and step records too, is the product's.

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/memory/shared_memory.h"
#include "server/state/file/mapped_file.h"

namespace lockstep {
namespace {

// One simulation per thread; the path tells its servers apart.
class File {
 public:
  // Zeros that cost nothing until they are used: most of a state file is what
  // lies between its regions.
  // `shared`: MappedValues can map it too, which takes several times as long.
  File(uint64_t of_size, bool shared)
      : size(of_size),
        fd(shared ? memfd_create("simulated", MFD_CLOEXEC) : -1) {
    if (shared && (fd < 0 || ftruncate(fd, static_cast<off_t>(size)) != 0)) {
      std::abort();
    }
    void* memory =
        mmap(nullptr, size, PROT_READ | PROT_WRITE,
             shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
             fd, 0);
    if (memory == MAP_FAILED) std::abort();
    (void)madvise(memory, size, MADV_NOHUGEPAGE);
    bytes = static_cast<std::byte*>(memory);
  }
  ~File() {
    munmap(bytes, size);
    if (fd >= 0) close(fd);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  std::byte* bytes = nullptr;
  const uint64_t size;
  const int fd;  // -1: of this process alone
  bool in_use = false;
};
std::map<std::string, std::shared_ptr<File>>& Files() {
  thread_local std::map<std::string, std::shared_ptr<File>> files;
  return files;
}

// By descriptor: the file that is mapped.
std::map<int, std::shared_ptr<File>>& Mapped() {
  thread_local std::map<int, std::shared_ptr<File>> mapped;
  return mapped;
}
int MapAgain(const std::shared_ptr<File>& file) {
  thread_local int last = 0;
  Mapped()[++last] = file;
  file->in_use = true;
  return last;
}
absl::Span<std::byte> BytesOf(File& file) { return {file.bytes, file.size}; }

}  // namespace

absl::StatusOr<std::unique_ptr<server::MappedFile>> server::MappedFile::Create(
    const std::string& path, uint64_t size, server::FillProgress*) {
  if (Files().count(path) > 0) {
    return absl::AlreadyExistsError(absl::StrCat(path, " exists already"));
  }
  auto file = std::make_shared<File>(size, absl::StartsWith(path, "/shared"));
  std::unique_ptr<server::MappedFile> mapped(
      new server::MappedFile(path, "", MapAgain(file), std::nullopt));
  mapped->bytes_ = BytesOf(*file);
  return mapped;
}

// Servers of the simulation have a directory.
absl::StatusOr<std::unique_ptr<server::MappedFile>>
server::MappedFile::InOwnMemory(uint64_t, server::FillProgress*) {
  return absl::UnimplementedError("every simulated server has a directory");
}

absl::StatusOr<std::unique_ptr<server::MappedFile>> server::MappedFile::Open(
    const std::string& path, uint64_t min_size) {
  const auto found = Files().find(path);
  if (found == Files().end()) {
    return absl::NotFoundError(absl::StrCat("no file ", path));
  }
  if (found->second->in_use) {
    return absl::UnavailableError(absl::StrCat(path, " is in use"));
  }
  if (found->second->size < min_size) return absl::DataLossError("too short");
  std::unique_ptr<server::MappedFile> mapped(
      new server::MappedFile(path, "", MapAgain(found->second), std::nullopt));
  mapped->bytes_ = BytesOf(*found->second);
  return mapped;
}

void server::MappedFile::Load() {}  // it is in memory

server::MappedFile::~MappedFile() {
  const auto found = Mapped().find(fd_);
  found->second->in_use = false;
  Mapped().erase(found);
}

absl::Status server::MappedFile::Publish() {
  Files()[path_] = Mapped()[fd_];
  return absl::OkStatus();
}

absl::Status server::MappedFile::Remove(const std::string& path) {
  Files().erase(path);
  return absl::OkStatus();
}

SharedFile server::MappedFile::Share(size_t proof_size) const {
  return OwnSharedFile(Mapped().at(fd_)->fd, bytes_, proof_size);
}

}  // namespace lockstep
