#include "worker/device/pass_numbers.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/compute/cpu/cpu_backend.h"

namespace lockstep::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The CPU as if its memory were elsewhere; copies arrive when they are
// finished.
class FarBackend : public CpuBackend {
 public:
  bool UsesOrdinaryMemory() const override { return false; }
  absl::Status FinishCopy(CopyId copy) override {
    finished.push_back(copy);
    return CpuBackend::Download(pending[copy].first, pending[copy].second);
  }

  absl::StatusOr<CopyId> StartDownload(const ConstTensor& values,
                                       const Tensor& host) override {
    pending.emplace_back(values, host);
    return pending.size() - 1;
  }

  std::vector<std::pair<ConstTensor, Tensor>> pending;
  std::vector<CopyId> finished;
};

class PassNumbersTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(numbers_.Prepare()); }

  FarBackend far_;
  PassNumbers numbers_{3, far_};
};

TEST_F(PassNumbersTest, AllComeAtOnce) {
  for (size_t i = 0; i < 3; ++i) {
    numbers_.At(i).data<double>()[0] = static_cast<double>(i) + 5;
  }

  ASSERT_OK(numbers_.Download());

  EXPECT_EQ(numbers_.value(0), 5);
  EXPECT_EQ(numbers_.value(2), 7);
}

TEST_F(PassNumbersTest, OneComesWhenItIsFinished) {
  numbers_.At(1).data<double>()[0] = 4;

  ASSERT_OK(numbers_.StartDownload(1));
  EXPECT_EQ(numbers_.value(1), 0);
  ASSERT_OK(numbers_.Finish(1));

  EXPECT_EQ(numbers_.value(1), 4);
}

TEST_F(PassNumbersTest, FinishWaitsOnlyForADownloadUnderWay) {
  ASSERT_OK(numbers_.StartDownload(1));
  ASSERT_OK(numbers_.Finish(0));
  EXPECT_THAT(far_.finished, IsEmpty());

  ASSERT_OK(numbers_.Finish(1));
  ASSERT_OK(numbers_.Finish(1));

  EXPECT_THAT(far_.finished, ElementsAre(0));
}

TEST_F(PassNumbersTest, NextPassWaitsForWhatTheOneBeforeHasLeft) {
  ASSERT_OK(numbers_.StartDownload(2));
  const void* place = numbers_.At(2).raw();

  ASSERT_OK(numbers_.Prepare());

  EXPECT_THAT(far_.finished, ElementsAre(0));
  EXPECT_EQ(numbers_.At(2).raw(), place);
}

TEST_F(PassNumbersTest, CopyUnderWayIsOverBeforeItsMemoryIsFreed) {
  {
    PassNumbers gone(2, far_);
    ASSERT_OK(gone.Prepare());
    ASSERT_OK(gone.StartDownload(0));
  }

  EXPECT_THAT(far_.finished, ElementsAre(0));
}

}  // namespace
}  // namespace lockstep::worker
