#include "server/calls/receive_memory.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace lockstep::server {
namespace {

constexpr size_t kMebibyte = size_t{1} << 20;

JobConfig JobOf(int workers) {
  JobConfig job;
  job.total_num_replicas = workers;
  return job;
}

PartSpec Part(int64_t count, int64_t row_width = 0, bool grows = false) {
  PartSpec part;
  part.count = count;
  part.row_width = row_width;
  part.grows = grows;
  return part;
}

TEST(ReceiveMemoryTest, WorkersHaveTwiceTheirWindows) {
  EXPECT_EQ(ReceiveMemory(JobOf(2), {Part(100)}),
            (256 + 2 * 4 * 2) * kMebibyte);
  EXPECT_EQ(ReceiveMemory(JobOf(64), {}), (256 + 64 * 4 * 2) * kMebibyte);
}

TEST(ReceiveMemoryTest, LargePartIsAChunkOfItsOwn) {
  const int64_t elements = 16 << 20;  // of four bytes

  EXPECT_EQ(ReceiveMemory(JobOf(1), {Part(100), Part(elements)}),
            (256 + 4 * 64 * 2) * kMebibyte);
}

TEST(ReceiveMemoryTest, RowsOfATableHaveKeysAndAnEnd) {
  EXPECT_EQ(ReceiveMemory(JobOf(1), {Part(1 << 20, 4)}),
            256 * kMebibyte + 8 * (4 * kMebibyte + (10 << 18)));
  EXPECT_EQ(ReceiveMemory(JobOf(1), {Part(1 << 30, 4)}),
            (256 + 8 * 256) * kMebibyte);
  EXPECT_EQ(ReceiveMemory(JobOf(1), {Part(4, 4, true)}),
            (256 + 8 * 256) * kMebibyte);
}

TEST(ReceiveMemoryTest, AnyWorkerMayJoinAnElasticJob) {
  JobConfig job = JobOf(2);
  job.elastic_workers = true;

  EXPECT_EQ(ReceiveMemory(job, {}), (256 + 1024 * 8) * kMebibyte);
}

TEST(ReceiveMemoryTest, GradientsThatWaitForTheirStepHaveRoom) {
  JobConfig job = JobOf(2);
  job.replicas_to_aggregate = 8;
  const std::vector<PartSpec> parts = {Part(1 << 18), Part(1 << 18)};
  const size_t calls = (256 + 2 * 4 * 2) * kMebibyte;

  EXPECT_EQ(ReceiveMemory(job, parts), calls + 8 * 2 * kMebibyte);
  job.work = Work::kShared;
  job.micro_batches_per_step = job.replicas_to_aggregate = 2;
  EXPECT_EQ(ReceiveMemory(job, parts), calls + 2 * 2 * kMebibyte);
}

TEST(ReceiveMemoryTest, HugePartIsNoOverflow) {
  EXPECT_EQ(ReceiveMemory(JobOf(1 << 20), {Part(int64_t{1} << 56)}), SIZE_MAX);
}

}  // namespace
}  // namespace lockstep::server
