// Memory of a server that has been killed: its successor may write there.

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "common/memory/write_counters.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/client/mapped_values.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;

// The parts of SharedFile that differ from process to process.
struct Told {
  int64_t pid = 0;
  int fd = -1;
  uint64_t size = 0;
  char proof[64] = {};
  size_t proof_size = 0;
};

Told Tell(const SharedFile& file) {
  Told told{file.pid, file.fd, file.size};
  told.proof_size = file.proof.size();
  std::memcpy(told.proof, file.proof.data(), told.proof_size);
  return told;
}

SharedFile Hear(const Told& told) {
  return {told.pid,
          told.fd,
          told.size,
          {told.proof, told.proof_size},
          OwnPidSpace()};
}

TEST(MappedValuesDeathTest, CopyFromAServerThatHasEndedDoesNotCount) {
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  const pid_t server = fork();
  if (server == 0) {
    const auto values = SharedMemory::Create("values", 4096);
    const auto counters = WriteCounters::Create(1);
    const Told told[2] = {Tell((*values)->file()), Tell((*counters)->file())};
    if (write(pipes[1], told, sizeof(told)) != sizeof(told)) _exit(1);
    while (true) pause();
  }
  Told told[2];
  ASSERT_EQ(read(pipes[0], told, sizeof(told)),
            static_cast<ssize_t>(sizeof(told)));
  const auto mapped = MappedValues::Open(Hear(told[0]), Hear(told[1]));
  ASSERT_OK(mapped);
  std::vector<std::byte> out(16);
  const SharedPlace place{SharedMemory::kHeaderSize, 0, 0};
  EXPECT_THAT(mapped->Copy(place, absl::MakeSpan(out)), IsOk());

  kill(server, SIGKILL);
  siginfo_t ended;
  ASSERT_EQ(waitid(P_PID, server, &ended, WEXITED), 0);

  EXPECT_THAT(mapped->Copy(place, absl::MakeSpan(out)),
              StatusIs(absl::StatusCode::kAborted));
  close(pipes[0]);
  close(pipes[1]);
}

}  // namespace
}  // namespace lockstep::worker
