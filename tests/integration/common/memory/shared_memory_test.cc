#include "common/memory/shared_memory.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr uint64_t kSize = 10000;
constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr absl::StatusCode kDenied = absl::StatusCode::kPermissionDenied;
constexpr absl::StatusCode kNotFound = absl::StatusCode::kNotFound;

absl::Status Open(const SharedFile& file) {
  return PeerMemory::Open(file, PeerMemory::Require::kSealed).status();
}

absl::Span<const std::byte> Contents(const PeerMemory& memory) {
  return memory.bytes().subspan(SharedMemory::kHeaderSize);
}

class SharedMemoryTest : public ::testing::Test {
 protected:
  SharedMemoryTest() {
    auto memory = SharedMemory::Create("test", kSize);
    EXPECT_OK(memory);
    if (memory.ok()) memory_ = *std::move(memory);
    file_ = memory_->file();
  }

  std::unique_ptr<SharedMemory> memory_;
  SharedFile file_;
};

TEST_F(SharedMemoryTest, StartsWithZeros) {
  EXPECT_EQ(memory_->bytes().size(), kSize);
  EXPECT_THAT(memory_->bytes(), Each(std::byte{0}));
}

TEST_F(SharedMemoryTest, WhatIsWrittenIsSeenWhereItIsOpened) {
  auto peer = PeerMemory::Open(file_, PeerMemory::Require::kSealed);
  ASSERT_OK(peer);

  std::memset(memory_->bytes().data(), 7, kSize);

  EXPECT_EQ(Contents(**peer).size(), kSize);
  EXPECT_THAT(Contents(**peer), Each(std::byte{7}));
}

TEST_F(SharedMemoryTest, StaysReadableWhenItsOwnerIsGone) {
  std::memset(memory_->bytes().data(), 7, kSize);
  auto peer = PeerMemory::Open(file_, PeerMemory::Require::kSealed);
  ASSERT_OK(peer);

  memory_.reset();

  EXPECT_THAT(Contents(**peer), Each(std::byte{7}));
  EXPECT_THAT(Open(file_), StatusIs(kNotFound));
}

// A child process creates memory and is killed; this process has it open.
TEST(SharedMemoryOfAProcessTest, StaysReadableWhenThatIsKilled) {
  int to_parent[2];
  ASSERT_EQ(pipe(to_parent), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto memory = SharedMemory::Create("test", kSize);
    if (!memory.ok()) _exit(1);
    std::memset((*memory)->bytes().data(), 9, kSize);
    const SharedFile file = (*memory)->file();
    char said[sizeof(int) + 16];
    std::memcpy(said, &file.fd, sizeof(int));
    std::memcpy(said + sizeof(int), file.proof.data(), 16);
    if (write(to_parent[1], said, sizeof(said)) != sizeof(said)) _exit(1);
    pause();
    _exit(0);
  }
  char said[sizeof(int) + 16];
  ASSERT_EQ(read(to_parent[0], said, sizeof(said)), ssize_t{sizeof(said)});
  SharedFile file{child, 0, SharedMemory::kHeaderSize + kSize,
                  std::string(said + sizeof(int), 16), OwnPidSpace()};
  std::memcpy(&file.fd, said, sizeof(int));
  auto peer = PeerMemory::Open(file, PeerMemory::Require::kSealed);
  ASSERT_OK(peer);

  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);

  EXPECT_THAT(Contents(**peer), Each(std::byte{9}));
  close(to_parent[0]);
  close(to_parent[1]);
}

TEST_F(SharedMemoryTest, CannotShrinkWhileItIsRead) {
  EXPECT_NE(ftruncate(file_.fd, 0), 0);
  EXPECT_NE(ftruncate(file_.fd, 1 << 20), 0);
}

TEST_F(SharedMemoryTest, EachHasAProofOfItsOwn) {
  auto other = SharedMemory::Create("test", kSize);
  ASSERT_OK(other);
  SharedFile mixed = file_;
  mixed.fd = (*other)->file().fd;

  EXPECT_THAT(Open(mixed), StatusIs(kDenied, HasSubstr("other bytes")));
}

TEST_F(SharedMemoryTest, MoreThanThereCanBeIsRefused) {
  const auto exhausted = StatusIs(absl::StatusCode::kResourceExhausted);

  EXPECT_THAT(SharedMemory::Create("test", std::numeric_limits<uint64_t>::max())
                  .status(),
              exhausted);
  EXPECT_THAT(SharedMemory::Create("test", uint64_t{1} << 60).status(),
              exhausted);
}

TEST_F(SharedMemoryTest, ImpossibleDescriptionIsRefused) {
  const auto spoilt = [&](auto spoil) {
    SharedFile file = file_;
    spoil(file);
    return Open(file);
  };

  EXPECT_THAT(spoilt([](auto& f) { f.pid = 0; }), StatusIs(kInvalid));
  EXPECT_THAT(spoilt([](auto& f) { f.pid = -1; }), StatusIs(kInvalid));
  EXPECT_THAT(spoilt([](auto& f) { f.pid = int64_t{1} << 40; }),
              StatusIs(kInvalid));
  EXPECT_THAT(spoilt([](auto& f) { f.fd = -1; }), StatusIs(kInvalid));
  EXPECT_THAT(spoilt([](auto& f) { f.proof.clear(); }), StatusIs(kInvalid));
  EXPECT_THAT(spoilt([](auto& f) { f.proof.resize(15); }), StatusIs(kInvalid));
  EXPECT_THAT(spoilt([](auto& f) { f.proof.resize(5000); }),
              StatusIs(kInvalid));
  EXPECT_THAT(spoilt([](auto& f) { f.size = 0; }), StatusIs(kInvalid));
}

TEST_F(SharedMemoryTest, MissingDescriptorOrProcessIsNotFound) {
  SharedFile file = file_;
  file.fd = 1000000;
  EXPECT_THAT(Open(file), StatusIs(kNotFound, HasSubstr("another host")));
  file = file_;
  file.pid = std::numeric_limits<pid_t>::max();
  EXPECT_THAT(Open(file), StatusIs(kNotFound));
}

// All other fields would fit, so only the pid space can differ.
TEST_F(SharedMemoryTest, PidOfAnotherSpaceIsNotLookedFor) {
  for (const std::string& space :
       {std::string(), OwnPidSpace() + "1", std::string("another host")}) {
    file_.pid_space = space;

    EXPECT_THAT(Open(file_), StatusIs(kNotFound, HasSubstr("another host")));
  }
}

// Its first process has pid 1, like the first one of any container.
TEST_F(SharedMemoryTest, NamespaceOfProcessesIsASpaceOfItsOwn) {
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWPID) != 0) _exit(77);
    const pid_t inside = fork();
    if (inside == 0) {
      _exit(getpid() == 1 && absl::IsNotFound(Open(file_)) ? 0 : 1);
    }
    int code = 1;
    waitpid(inside, &code, 0);
    _exit(WIFEXITED(code) ? WEXITSTATUS(code) : 1);
  }
  int code = 1;
  ASSERT_EQ(waitpid(child, &code, 0), child);
  ASSERT_TRUE(WIFEXITED(code));
  if (WEXITSTATUS(code) == 77) {
    GTEST_SKIP() << "SKIPPED, NOTHING WAS PROVED: namespaces of processes "
                    "cannot be made here";
  }

  EXPECT_EQ(WEXITSTATUS(code), 0);
}

TEST_F(SharedMemoryTest, AnotherLengthIsRefused) {
  file_.size -= 1;
  EXPECT_THAT(Open(file_), StatusIs(kDenied, HasSubstr("bytes, not")));
  file_.size = std::numeric_limits<uint64_t>::max();
  EXPECT_THAT(Open(file_), StatusIs(kDenied, HasSubstr("bytes, not")));
}

TEST_F(SharedMemoryTest, OfAnotherUserIsRefused) {
  if (fchown(file_.fd, 65534, 65534) != 0) {
    GTEST_SKIP()
        << "SKIPPED, NOTHING WAS PROVED: only root can give a file away";
  }

  EXPECT_THAT(Open(file_), StatusIs(kDenied, HasSubstr("another user")));
}

TEST_F(SharedMemoryTest, PipeIsRefusedWithoutWaiting) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  SharedFile file = file_;
  file.fd = ends[0];

  EXPECT_THAT(Open(file), StatusIs(kDenied, HasSubstr("regular file")));

  close(ends[0]);
  close(ends[1]);
}

// Files on disk, and files that may shrink, are accepted from a trusted holder.
TEST(PeerMemoryTest, UnsealedFileIsRefusedOnlyIfASealIsRequired) {
  const testing::TempDir directory;
  const std::string text(kSize, 'x');
  const int fd = open(directory.Join("file").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(write(fd, text.data(), kSize), ssize_t{kSize});
  const SharedFile file{getpid(), fd, kSize, text.substr(0, 20), OwnPidSpace()};

  EXPECT_THAT(Open(file), StatusIs(kDenied, HasSubstr("not sealed")));
  auto peer = PeerMemory::Open(file, PeerMemory::Require::kAnyFile);
  ASSERT_OK(peer);
  EXPECT_THAT((*peer)->bytes(), Each(std::byte{'x'}));

  close(fd);
}

// Memory of three pages, as a peer may offer it.
class OfferedMemory {
 public:
  OfferedMemory(int seals, bool whole)
      : fd_(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    constexpr off_t kBytes = 3 * 4096;
    EXPECT_EQ(ftruncate(fd_, kBytes), 0);
    const std::string text(whole ? kBytes : 4096, 'x');
    EXPECT_EQ(write(fd_, text.data(), text.size()), ssize_t(text.size()));
    EXPECT_EQ(fcntl(fd_, F_ADD_SEALS, seals), 0);
    file_ = {getpid(), fd_, uint64_t{kBytes}, text.substr(0, 16),
             OwnPidSpace()};
  }
  ~OfferedMemory() { close(fd_); }
  OfferedMemory(const OfferedMemory&) = delete;
  OfferedMemory& operator=(const OfferedMemory&) = delete;

  const SharedFile& file() const { return file_; }

 private:
  const int fd_;
  SharedFile file_;
};

TEST(PeerMemoryTest, SealsMustHoldTheLength) {
  EXPECT_OK(
      Open(OfferedMemory(F_SEAL_SHRINK | F_SEAL_GROW, /*whole=*/true).file()));
  for (const int seals : {0, F_SEAL_SHRINK, F_SEAL_GROW}) {
    EXPECT_THAT(Open(OfferedMemory(seals, /*whole=*/true).file()),
                StatusIs(kDenied, HasSubstr("not sealed")))
        << seals;
  }
}

// A server that reads it would have to allocate the memory.
TEST(PeerMemoryTest, MemoryWithHolesIsRefused) {
  EXPECT_THAT(
      Open(OfferedMemory(F_SEAL_SHRINK | F_SEAL_GROW, /*whole=*/false).file()),
      StatusIs(kDenied, HasSubstr("only 4096 of 12288 bytes have memory")));
}

TEST_F(SharedMemoryTest, HoldsRangesThatEndInside) {
  auto peer = PeerMemory::Open(file_, PeerMemory::Require::kSealed);
  ASSERT_OK(peer);
  const uint64_t size = file_.size;

  EXPECT_TRUE((*peer)->Holds(0, size));
  EXPECT_TRUE((*peer)->Holds(size, 0));
  EXPECT_FALSE((*peer)->Holds(1, size));
  EXPECT_FALSE((*peer)->Holds(size + 1, 0));
  EXPECT_FALSE((*peer)->Holds(std::numeric_limits<uint64_t>::max(), 2));
  EXPECT_FALSE((*peer)->Holds(2, std::numeric_limits<uint64_t>::max()));
}

}  // namespace
}  // namespace lockstep
