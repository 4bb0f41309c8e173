#include "server/state/variable_store.h"

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/state/init/initializer.h"
#include "tests/unit/server/state/variable_store_fixture.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

using VariableStoreTest = VariableStoreFixture;

TEST_F(VariableStoreTest, NewStoreIsNotActive) {
  auto store = Create();

  EXPECT_FALSE(store->is_active());
  EXPECT_EQ(store->num_parts(), 3u);
  EXPECT_EQ(store->num_tensors(0), 3u);
  EXPECT_EQ(store->part(1).offset, 3);
}

TEST_F(VariableStoreTest, InitialValuesDoNotDependOnTheCut) {
  auto cut = Create();
  ASSERT_OK(cut->Initialize(7));
  std::vector<float> joined = Floats(cut->Committed(0, 0));
  for (const float v : Floats(cut->Committed(1, 0))) joined.push_back(v);
  options_.parts = {{0, 0, 6, DType::kFloat32}};
  options_.task_index = 1;
  auto whole = Create();

  ASSERT_OK(whole->Initialize(7));

  EXPECT_EQ(Floats(whole->Committed(0, 0)), joined);
}

// So many elements that several threads make them.
TEST_F(VariableStoreTest, InitialValuesDoNotDependOnTheNumberOfThreads) {
  constexpr int64_t kPart = 1 << 18;
  constexpr int64_t kParts = 5;
  options_.variables[0].shape = {kParts * kPart};
  options_.variables[1].shape = {kPart};
  options_.parts.clear();
  for (int64_t i = 0; i < kParts; ++i) {
    options_.parts.push_back({0, i * kPart, kPart, DType::kFloat32});
  }
  options_.parts.push_back({1, 0, kPart, DType::kFloat64});
  auto store = Create();

  ASSERT_OK(store->Initialize(7));

  for (size_t part = 0; part < options_.parts.size(); ++part) {
    const PartSpec& spec = options_.parts[part];
    const auto values =
        InitialValues::Make(options_.variables[spec.variable], 7);
    ASSERT_OK(values);
    std::vector<std::byte> wanted(store->Committed(part, 0).size());
    ASSERT_OK(values->Fill(spec.offset, absl::MakeSpan(wanted)));
    EXPECT_TRUE(store->Committed(part, 0) == absl::MakeConstSpan(wanted));
  }
}

TEST_F(VariableStoreTest, InitializeClearsSlots) {
  auto store = Create();
  ASSERT_OK(
      store->WriteStretch(0, 1, 0, std::vector<std::byte>(12, std::byte{7})));

  ASSERT_OK(store->Initialize(1));

  EXPECT_THAT(Floats(store->Committed(0, 1)), ElementsAre(0, 0, 0));
  EXPECT_THAT(Floats(store->Committed(0, 2)), ElementsAre(0, 0, 0));
}

TEST_F(VariableStoreTest, TensorsOfAllPartsAreApart) {
  auto store = Create();
  for (size_t part = 0; part < store->num_parts(); ++part) {
    for (size_t tensor = 0; tensor < store->num_tensors(part); ++tensor) {
      const auto mark = static_cast<std::byte>(1 + part * 10 + tensor);
      const size_t size = store->Committed(part, tensor).size();
      ASSERT_OK(store->WriteStretch(part, tensor, 0,
                                    std::vector<std::byte>(size, mark)));
    }
  }

  for (size_t part = 0; part < store->num_parts(); ++part) {
    for (size_t tensor = 0; tensor < store->num_tensors(part); ++tensor) {
      EXPECT_THAT(store->Committed(part, tensor),
                  Each(static_cast<std::byte>(1 + part * 10 + tensor)));
    }
  }
}

TEST_F(VariableStoreTest, RestoredTensorsSurviveTheProcess) {
  const std::vector<std::byte> bytes(16, std::byte{9});
  {
    auto store = Create();
    ASSERT_OK(store->Initialize(1));
    ASSERT_OK(store->WriteStretch(2, 2, 0, bytes));
    ASSERT_OK(store->Activate(500, {{{0.5f, 0.25f}}}));
  }

  auto store = Open();

  EXPECT_EQ(store->committed_step(), 500);
  EXPECT_EQ(store->committed_powers()[0], (AdamPowers{0.5f, 0.25f}));
  EXPECT_THAT(store->Committed(2, 2), ElementsAreArray(bytes));
}

TEST_F(VariableStoreTest, ActiveStoreIsNeverInitialisedOrOverwritten) {
  auto store = CreateActive();
  const std::vector<float> before = Floats(store->Committed(0, 0));

  EXPECT_THAT(store->Initialize(2),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("they are in use, at step 0")));
  EXPECT_THAT(
      store->WriteStretch(0, 0, 0, std::vector<std::byte>(12)),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("at step 0")));

  EXPECT_EQ(Floats(store->Committed(0, 0)), before);
}

TEST_F(VariableStoreTest, ActivateMayBeRepeated) {
  auto store = CreateActive();

  EXPECT_OK(store->Activate(0, {}));

  EXPECT_EQ(store->committed_powers()[0], (AdamPowers{0.9f, 0.999f}));
  EXPECT_THAT(store->Activate(3, {}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(store->Activate(-1, {}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(VariableStoreTest, WrongTensorOrRangeIsRefused) {
  auto store = Create();
  std::vector<std::byte> bytes(12);

  EXPECT_OK(store->WriteStretch(0, 0, 0, bytes));
  EXPECT_THAT(store->WriteStretch(3, 0, 0, bytes),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("part 3: this server has 3 parts")));
  EXPECT_THAT(store->WriteStretch(0, 3, 0, bytes),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("tensor 3: part 0 has 3")));
  EXPECT_THAT(store->WriteStretch(0, 0, 4, bytes),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("part 0 has 12 bytes, not 12 from byte 4")));
}

TEST_F(VariableStoreTest, StateOfAnotherModelIsRefused) {
  Create();
  options_.variables[0].shape = {2, 3};

  EXPECT_THAT(
      VariableStore::Open(options_),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("layout")));
}

TEST_F(VariableStoreTest, DiscardedStateIsGone) {
  Create();

  ASSERT_OK(VariableStore::Discard(options_));

  EXPECT_THAT(VariableStore::Open(options_),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(VariableStoreTest, PartsThatAreNoSlicesAreRefused) {
  const PartSpec good = options_.parts[0];
  for (const PartSpec& part :
       {PartSpec{2, 0, 1, DType::kFloat32}, PartSpec{-1, 0, 1, DType::kFloat32},
        PartSpec{0, 4, 3, DType::kFloat32}, PartSpec{0, 0, 0, DType::kFloat32},
        PartSpec{0, -1, 3, DType::kFloat32},
        PartSpec{0, 0, 3, DType::kFloat64}}) {
    options_.parts = {good, part};
    EXPECT_THAT(
        VariableStore::Create(options_),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("part 1")));
  }
}

TEST_F(VariableStoreTest, SlotsStartAtTheValueThatTheirOptimizerSays) {
  options_.optimizers[0].kind = OptimizerConfig::Kind::kAdagrad;
  options_.optimizers[0].initial_accumulator_value = 0.25;
  auto store = VariableStore::Create(options_);
  ASSERT_OK(store);
  ASSERT_OK((*store)->Initialize(1));

  EXPECT_THAT(Floats((*store)->Committed(0, 1)), Each(0.25f));
}

TEST_F(VariableStoreTest, RunSettingsSurviveTheProcess) {
  const RunSettings settings = {.revision = 4,
                                .replicas_to_aggregate = 3,
                                .learning_rate_scale = 0.5,
                                .paused = true,
                                .workers = {0, 2, 63, 64, 1023}};
  {
    auto store = CreateActive();
    store->OpenWith(settings);
    ASSERT_OK(store->SetEpoch(8));
  }
  options_.incarnation = 2;

  auto store = Open();

  EXPECT_EQ(store->settings(), settings);
  EXPECT_EQ(store->record().epoch, 8u);
  EXPECT_EQ(store->record().incarnation, 2u);
}

TEST_F(VariableStoreTest, OldChiefIsFencedOff) {
  auto store = CreateActive();
  ASSERT_OK(store->SetEpoch(5));
  ASSERT_OK(store->SetEpoch(5));

  EXPECT_THAT(store->SetEpoch(4),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("epoch 4 is older than epoch 5")));

  EXPECT_EQ(store->record().epoch, 5u);
}

}  // namespace
}  // namespace lockstep::server
