// The values that readers in threads of their own see of a shard.

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "server/shard/shard.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/shard/parts/shard_fixture.h"

namespace lockstep {
namespace {

// Readers in threads of their own, while steps are made: every element of a
// value tells its step.
class ViewThreadsTest : public server::ShardFixture {
 protected:
  static constexpr int64_t kSteps = 300;
  static constexpr int kReaders = 3;

  // Every element loses a half in a step.
  static double ValueAt(int64_t step, double initial) {
    return initial - 0.5 * static_cast<double>(step);
  }
  static bool IsAllOf(const server::Shard::Values& values) {
    for (size_t part = 0; part < values.parts.size(); ++part) {
      const absl::Span<const std::byte> bytes = values.parts[part].bytes;
      if (part < 2) {
        for (float value : server::FromBytes<float>(bytes)) {
          if (value != ValueAt(values.step, 1)) return false;
        }
      } else {
        for (double value : server::FromBytes<double>(bytes)) {
          if (value != ValueAt(values.step, 2)) return false;
        }
      }
    }
    return true;
  }
  void ReadUntilDone() {
    while (!done_) {
      const auto values = shard_->Pull(0, kParts, -1);
      if (!values.ok() || !IsAllOf(*values)) ++wrong_;
      std::this_thread::yield();
      if (values.ok() && !IsAllOf(*values)) ++wrong_;  // while it is lent
      ++reads_;
    }
  }
  void MakeStep(int64_t step) {
    for (int worker : {0, 1}) {
      server::Push push;
      push.pass = {worker, 1, step, step + 1, 0};
      push.attempt = 1;
      push.gradients = Gradients(1);
      ASSERT_OK(shard_->engine().AddPush(++tickets_, std::move(push)));
    }
    // A reader that let go before the update asked has nothing to tell.
    while (!shard_->engine().CheckCommit(step + 1, 1).ok()) {
      for (int part = 0; part < kParts; ++part) {
        shard_->engine().PartReturned(part);
      }
      std::this_thread::yield();
    }
    ASSERT_OK(shard_->engine().Commit(step + 1, 1));
  }

  std::unique_ptr<server::Shard> shard_ =
      server::Shard::Create(options_).value();
  std::atomic<bool> done_ = false;
  std::atomic<int64_t> reads_ = 0;
  std::atomic<int64_t> wrong_ = 0;
  uint64_t tickets_ = 0;
};

TEST_F(ViewThreadsTest, ReadersSeeOneWholeStepAsLongAsTheyKeepIt) {
  ASSERT_OK(shard_->Activate(0, {}));
  std::vector<std::thread> readers;
  for (int i = 0; i < kReaders; ++i) {
    readers.emplace_back([this] { ReadUntilDone(); });
  }

  for (int64_t step = 0; step < kSteps; ++step) {
    MakeStep(step);
    // Values are read at all times of the job, and not only at one.
    while (reads_ < step) std::this_thread::yield();
  }
  done_ = true;
  for (std::thread& reader : readers) reader.join();

  EXPECT_EQ(wrong_, 0);
  EXPECT_EQ(shard_->engine().step(), kSteps);
}

}  // namespace
}  // namespace lockstep
