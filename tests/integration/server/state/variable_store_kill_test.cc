// The state that a killed process leaves.

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdint>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/state/variable_store.h"
#include "tests/unit/server/state/variable_store_fixture.h"

namespace lockstep::server {
namespace {

using VariableStoreKillTest = VariableStoreFixture;

// Makes steps until it is killed, and writes a byte to `progress` before each.
// In step s every byte of every tensor is s.
[[noreturn]] void MakeStepsForEver(VariableStore& store, int progress) {
  for (int64_t step = store.committed_step() + 1;; ++step) {
    if (write(progress, "", 1) != 1) _exit(1);
    for (size_t part = 0; part < store.num_parts(); ++part) {
      for (size_t tensor = 0; tensor < store.num_tensors(part); ++tensor) {
        for (std::byte& b : store.Next(part, tensor)) {
          b = static_cast<std::byte>(step);
        }
      }
    }
    if (!store.MarkPrepared(step, 0).ok() || !store.Commit(step).ok()) _exit(1);
  }
}

// Starts a process that makes steps and kills it once it has begun `steps`.
void KillAfter(const VariableStore::Options& options, int steps) {
  int progress[2];
  ASSERT_EQ(pipe(progress), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto store = VariableStore::Open(options);
    if (store.ok()) MakeStepsForEver(**store, progress[1]);
    _exit(1);
  }
  close(progress[1]);
  char byte = 0;
  for (int i = 0; i < steps; ++i) EXPECT_EQ(read(progress[0], &byte, 1), 1);
  kill(child, SIGKILL);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  close(progress[0]);
}

TEST_F(VariableStoreKillTest, KilledAtAnyInstantItsCommittedStepIsWhole) {
  CreateActive();
  int64_t steps_before = 0;
  for (int round = 0; round < 30; ++round) {
    KillAfter(options_, 2 + 7 * round);

    auto store = Open();
    EXPECT_GT(store->committed_step(), steps_before);
    steps_before = store->committed_step();
    const auto mark = static_cast<std::byte>(store->committed_step());
    for (size_t part = 0; part < store->num_parts(); ++part) {
      for (size_t tensor = 0; tensor < store->num_tensors(part); ++tensor) {
        EXPECT_THAT(store->Committed(part, tensor), ::testing::Each(mark));
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::server
