#include "worker/device/device_variables.h"

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "common/numeric/bfloat16.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/compute/cpu/cpu_backend.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The CPU as if its memory were elsewhere, whose copies take a while.
class FarBackend : public CpuBackend {
 public:
  bool UsesOrdinaryMemory() const override { return false; }
  absl::StatusOr<bool> CopyIsDone(CopyId) override { return done; }
  absl::StatusOr<Buffer> Pin(absl::Span<std::byte> memory) override {
    pinned.push_back(memory);
    return Buffer();
  }

  bool done = false;
  std::vector<absl::Span<std::byte>> pinned;
};

std::vector<int32_t> Numbers(const ConstTensor& tensor) {
  return {tensor.data<int32_t>(), tensor.data<int32_t>() + tensor.size()};
}

class DeviceVariablesTest : public ::testing::Test {
 protected:
  const std::vector<VariableSpec> variables_ = {
      {"a", {2}, DType::kFloat32, {}}, {"b", {1}, DType::kFloat32, {}}};
  const ParameterMemory memory_ =
      *ParameterMemory::Make(variables_, ParameterMemory::Gradients::kPrivate);
  FarBackend far_;
  std::vector<size_t> reported_;
  const DeviceVariables::Report report_ = [this](size_t variable) {
    reported_.push_back(variable);
  };

  float* Value(size_t variable) {
    return reinterpret_cast<float*>(memory_.value(variable).data());
  }
  float* Gradient(size_t variable) {
    return reinterpret_cast<float*>(memory_.gradient(variable).data());
  }
};

TEST_F(DeviceVariablesTest, OrdinaryMemoryIsTheWorkersOwn) {
  const auto cpu = CpuBackend::Make({});
  DeviceVariables device(variables_, memory_, **cpu);

  ASSERT_OK(device.StartUpload());

  EXPECT_EQ(device.values()[1].raw(), memory_.value(1).data());
  EXPECT_EQ(device.gradients()[1].raw(), memory_.gradient(1).data());
}

TEST_F(DeviceVariablesTest, ValuesAreCopiedThere) {
  Value(0)[1] = 7;
  DeviceVariables device(variables_, memory_, far_);

  ASSERT_OK(device.Upload());

  EXPECT_NE(device.values()[0].raw(), memory_.value(0).data());
  EXPECT_EQ(device.values()[0].data<float>()[1], 7);
}

TEST_F(DeviceVariablesTest, NoPageIsPinnedTwice) {
  DeviceVariables device(variables_, memory_, far_);
  ASSERT_OK(device.StartUpload());

  const auto page = [](const std::byte& byte) {
    return reinterpret_cast<uintptr_t>(&byte) / 4096;
  };
  for (size_t i = 1; i < far_.pinned.size(); ++i) {
    EXPECT_GT(page(far_.pinned[i].front()), page(far_.pinned[i - 1].back()));
  }
  for (size_t k = 0; k < variables_.size(); ++k) {
    for (const absl::Span<std::byte> part :
         {memory_.value(k), memory_.gradient(k)}) {
      EXPECT_EQ(std::count_if(far_.pinned.begin(), far_.pinned.end(),
                              [&](const auto& range) {
                                return range.data() <= part.data() &&
                                       &part.back() <= &range.back();
                              }),
                1);
    }
  }
}

TEST_F(DeviceVariablesTest, ValueIsTakenWhenItIsToBeUsed) {
  std::vector<VariableSpec> kept = variables_;
  for (VariableSpec& variable : kept) variable.dtype = DType::kBFloat16;
  const ParameterMemory rounded =
      *ParameterMemory::Make(kept, ParameterMemory::Gradients::kPrivate);
  for (const ParameterMemory* memory : {&memory_, &rounded}) {
    DeviceVariables device(variables_, *memory, far_);
    for (int pass = 1; pass <= 2; ++pass) {
      ASSERT_OK(device.BeginPass());
      const auto set = [&](float a, float b) {
        if (memory == &memory_) {
          Value(0)[0] = a;
          Value(1)[0] = b;
        } else {
          *reinterpret_cast<BFloat16*>(memory->value(0).data()) = ToBFloat16(a);
          *reinterpret_cast<BFloat16*>(memory->value(1).data()) = ToBFloat16(b);
        }
      };
      set(pass, -1);
      ASSERT_OK(device.BeforeUse(0, 1));
      set(-1, 10 * pass);
      ASSERT_OK(device.BeforeUse(0, 2));

      EXPECT_EQ(device.values()[0].data<float>()[0], pass);
      EXPECT_EQ(device.values()[1].data<float>()[0], 10 * pass);
    }
  }
}

TEST_F(DeviceVariablesTest, GradientsAreReportedInOrderOnceTheyAreHere) {
  DeviceVariables device(variables_, memory_, far_);
  ASSERT_OK(device.Upload());
  device.gradients()[1].data<float>()[0] = 5;
  ASSERT_OK(device.StartDownload(1));
  ASSERT_OK(device.StartDownload(0));

  ASSERT_OK(device.Arrived(/*wait=*/false, report_));
  EXPECT_THAT(reported_, IsEmpty());
  ASSERT_OK(device.Arrived(/*wait=*/true, report_));

  EXPECT_THAT(reported_, ElementsAre(1, 0));
  EXPECT_EQ(Gradient(1)[0], 5);
}

TEST_F(DeviceVariablesTest, WhatHasArrivedIsReportedWithoutWaiting) {
  DeviceVariables device(variables_, memory_, far_);
  ASSERT_OK(device.Upload());
  far_.done = true;

  ASSERT_OK(device.StartDownload(0));
  ASSERT_OK(device.Arrived(/*wait=*/false, report_));

  EXPECT_THAT(reported_, ElementsAre(0));
}

TEST_F(DeviceVariablesTest, BFloat16IsComputedWithInFloat32) {
  std::vector<VariableSpec> kept = variables_;
  for (VariableSpec& variable : kept) variable.dtype = DType::kBFloat16;
  const ParameterMemory memory =
      *ParameterMemory::Make(kept, ParameterMemory::Gradients::kPrivate);
  const auto bits = [](absl::Span<std::byte> bytes) {
    return reinterpret_cast<BFloat16*>(bytes.data());
  };
  bits(memory.value(0))[1] = ToBFloat16(7.f);
  far_.done = true;
  const auto cpu = CpuBackend::Make({});
  for (ComputeBackend* backend :
       std::initializer_list<ComputeBackend*>{&far_, cpu->get()}) {
    DeviceVariables device(variables_, memory, *backend);
    ASSERT_OK(device.Upload());
    EXPECT_EQ(device.values()[0].data<float>()[1], 7);
    device.gradients()[0].data<float>()[0] = 1.0f + 0x1p-8f;
    bits(memory.gradient(0))[0] = BFloat16{};
    ASSERT_OK(device.StartDownload(0));
    ASSERT_OK(device.Arrived(/*wait=*/true, [&](size_t variable) {
      // It is there by the time that anybody hears of it.
      EXPECT_EQ(ToFloat(bits(memory.gradient(variable))[0]), 1);
      reported_.push_back(variable);
    }));
  }
  EXPECT_THAT(reported_, ElementsAre(0, 0));
}

TEST_F(DeviceVariablesTest, PartOfABatchIsViewed) {
  Batch batch;
  batch.size = 3;
  batch.images = {1, 2, 3, 4, 5, 6};
  batch.labels = {0, 1, 2};
  BatchStage stage(far_, {1, 2, 1, 3});

  const absl::StatusOr<BatchView> view = stage.View(batch, 1, 2);

  ASSERT_OK(view);
  EXPECT_THAT(Numbers(view->labels), ElementsAre(1, 2));
  EXPECT_EQ(view->labels.bound(), 3);
  EXPECT_EQ(view->images.shape(), Shape({2, 1, 2, 1}));
  EXPECT_EQ(view->images.data<float>()[0], 3);
}

TEST_F(DeviceVariablesTest, PartOfATextIsViewed) {
  Batch batch;
  batch.size = 2;
  batch.tokens = {1, 2, 3, 4};
  batch.labels = {2, 3, 4, 5};
  BatchStage stage(far_, {.classes = 256, .tokens = 2});

  const absl::StatusOr<BatchView> view = stage.View(batch, 1, 1);

  ASSERT_OK(view);
  EXPECT_THAT(Numbers(view->labels), ElementsAre(4, 5));
  EXPECT_THAT(Numbers(view->tokens), ElementsAre(3, 4));
  EXPECT_EQ(view->tokens.shape(), Shape({1, 2}));
}

TEST_F(DeviceVariablesTest, ViewsOfEquallyManyExamplesLieInOnePlace) {
  Batch batch;
  batch.size = 2;
  batch.images = {1, 2};
  batch.labels = {0, 1};
  BatchStage stage(far_, {1, 1, 1, 3});

  const BatchView first = *stage.View(batch, 0, 1);
  const BatchView second = *stage.View(batch, 1, 1);

  EXPECT_EQ(first.images.raw(), second.images.raw());
  EXPECT_EQ(first.labels.raw(), second.labels.raw());
}

TEST_F(DeviceVariablesTest, NumbersThatAreNoClassAreRefused) {
  Batch batch;
  batch.size = 1;
  batch.images = {1};
  batch.labels = {3};
  BatchStage images(far_, {1, 1, 1, 3});
  EXPECT_THAT(images.View(batch, 0, 1),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "labels[0] must be in [0, 3), got 3"));

  batch.tokens = {2, -1};
  batch.labels = {0, 1};
  BatchStage text(far_, {.classes = 3, .tokens = 2});
  EXPECT_THAT(text.View(batch, 0, 1),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "tokens[1] must be in [0, 3), got -1"));
}

}  // namespace
}  // namespace lockstep::worker
