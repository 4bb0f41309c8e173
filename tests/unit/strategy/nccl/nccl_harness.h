#ifndef LOCKSTEP_TESTS_UNIT_STRATEGY_NCCL_NCCL_HARNESS_H_
#define LOCKSTEP_TESTS_UNIT_STRATEGY_NCCL_NCCL_HARNESS_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/collective/local_group.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strategy/nccl/nccl_group.h"
#include "tests/cuda_on_cpu/control.h"
#include "tests/nccl_on_cpu/control.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::strategy {

// LeavingGroup tells the other members when it is destroyed, as a group of
// processes does.
class LeavingGroup final : public Collective {
 public:
  // The rank of the first member that has left; below 0: none.
  using Left = std::shared_ptr<std::atomic<int>>;

  LeavingGroup(std::unique_ptr<Collective> group, Left left)
      : group_(std::move(group)), left_(std::move(left)) {}
  ~LeavingGroup() override {
    int none = -1;
    left_->compare_exchange_strong(none, rank());
  }

  int rank() const override { return group_->rank(); }
  int members() const override { return group_->members(); }
  absl::StatusOr<std::vector<Parcel>> Exchange(
      const std::string& description, std::vector<Leaf> mine) override {
    if (absl::Status ended = Ended(); !ended.ok()) return ended;
    return group_->Exchange(description, std::move(mine));
  }
  absl::Status Ended() const override {
    const int left = *left_;
    if (left < 0) return absl::OkStatus();
    return absl::AbortedError(absl::StrCat("rank ", left, " has left"));
  }
  void SetTimeout(std::optional<absl::Duration> timeout) override {
    group_->SetTimeout(timeout);
  }

 private:
  const std::unique_ptr<Collective> group_;
  const Left left_;
};

// Members in threads, each with a simulated GPU.
class NcclFixture : public ::testing::Test {
 protected:
  using Made = absl::StatusOr<std::unique_ptr<Collective>>;
  using Leaves = std::vector<Leaf>;

  NcclFixture() {
    // Made before the threads: the sanitizer does not see it being made.
    spdlog::default_logger_raw();
    cuda_on_cpu::Settings gpus;
    gpus.devices = 4;
    cuda_on_cpu::Configure(gpus);
    nccl_on_cpu::Configure({});
  }
  ~NcclFixture() override {
    EXPECT_EQ(nccl_on_cpu::Mistake(), "");
    EXPECT_EQ(nccl_on_cpu::LiveCommunicators(), 0);
    EXPECT_EQ(cuda_on_cpu::AllocatedBytes(), 0u);
  }

  static LibraryNames Simulated() {
    LibraryNames names;
    names.cuda = {LOCKSTEP_SIMULATED_CUDA};
    names.nccl = {LOCKSTEP_SIMULATED_NCCL};
    return names;
  }
  // Leaves of 64 bytes travel by NCCL, 1000 bytes at once.
  static NcclGroup::Options Small() {
    NcclGroup::Options options;
    options.required = true;
    options.timeout = absl::Seconds(60);
    options.grace = absl::Milliseconds(100);
    options.small_bytes = 64;
    options.round_bytes = 1000;
    options.host = "a";
    options.libraries = Simulated();
    return options;
  }

  // Calls work(0), ..., work(number - 1), each in a thread of its own.
  static void ForEach(size_t number, const std::function<void(size_t)>& work) {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < number; ++i) threads.emplace_back(work, i);
    for (std::thread& thread : threads) thread.join();
  }

  // A member for each of the options; exchanges wait for `patience`.
  static std::vector<Made> Make(const std::vector<NcclGroup::Options>& options,
                                absl::Duration patience = absl::Seconds(60)) {
    auto locals = MakeLocalGroup(static_cast<int>(options.size()), patience);
    const auto left = std::make_shared<std::atomic<int>>(-1);
    std::vector<Made> made(options.size());
    ForEach(options.size(), [&](size_t r) {
      made[r] = NcclGroup::Make(
          std::make_unique<LeavingGroup>(std::move(locals[r]), left),
          options[r]);
    });
    return made;
  }
  static std::vector<Made> MakeAlike(size_t members,
                                     const NcclGroup::Options& options) {
    return Make(std::vector<NcclGroup::Options>(members, options));
  }

  static bool UsesNccl(const Made& made) {
    return made.ok() && dynamic_cast<NcclGroup*>(made->get()) != nullptr;
  }

  // Elements that no others are like.
  static Value Numbers(ElementType type, std::vector<int64_t> shape,
                       size_t seed) {
    Value made = *Value::Zeros(type, std::move(shape));
    uint64_t state = seed * 7919 + 1;
    for (std::byte& each : made.mutable_bytes()) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      each = static_cast<std::byte>(state >> 56);
    }
    return made;
  }

  // One exchange of all members, whose leaves are leaves(rank).
  static void ExpectExchange(const std::vector<Made>& group,
                             const std::function<Leaves(size_t)>& leaves) {
    ForEach(group.size(), [&](size_t r) {
      ASSERT_OK(group[r]);
      const auto parcels = (*group[r])->Exchange("x", leaves(r));
      ASSERT_OK(parcels);
      ASSERT_EQ(parcels->size(), group.size());
      for (size_t from = 0; from < group.size(); ++from) {
        EXPECT_EQ(*(*parcels)[from], leaves(from)) << r << " from " << from;
      }
    });
  }

  // An exchange that fails at all members, and the errors.
  static std::vector<absl::Status> Fail(
      const std::vector<Made>& group,
      const std::function<Leaves(size_t)>& leaves) {
    std::vector<absl::Status> errors(group.size());
    ForEach(group.size(), [&](size_t r) {
      ASSERT_OK(group[r]);
      errors[r] = (*group[r])->Exchange("sum", leaves(r)).status();
      EXPECT_FALSE(errors[r].ok());
      EXPECT_EQ((*group[r])->Exchange("next", {}).status().code(),
                errors[r].code());
      EXPECT_FALSE((*group[r])->Ended().ok());
    });
    return errors;
  }
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_TESTS_UNIT_STRATEGY_NCCL_NCCL_HARNESS_H_
