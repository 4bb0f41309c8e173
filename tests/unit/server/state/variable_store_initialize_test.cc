// Initial values, and how far they are.

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/state/file/fill_progress.h"
#include "server/state/init/initializer.h"
#include "server/state/variable_store.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/state/variable_store_fixture.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::StatusIs;

class VariableStoreInitializeTest : public VariableStoreFixture {
 protected:
  VariableStoreInitializeTest() {
    options_.progress = std::make_shared<FillProgress>();
  }
  // A variable of one part that is written in several ranges.
  void MakeLarge() {
    options_.variables = {{"w",
                           {kElements},
                           DType::kFloat32,
                           {Initializer::Kind::kTruncatedNormal, 0, 1}}};
    options_.parts = {{0, 0, kElements, DType::kFloat32}};
    options_.settings.resize(1);
  }

  static constexpr int64_t kElements = (int64_t{5} << 20) + 3;
};

TEST_F(VariableStoreInitializeTest, StretchesOfAPartHaveTheValuesOfTheWhole) {
  MakeLarge();
  auto store = Create();
  std::vector<float> expected(kElements);
  const auto values = InitialValues::Make(options_.variables[0], 7);
  ASSERT_OK(values);
  ASSERT_OK(values->Fill(
      0, absl::MakeSpan(reinterpret_cast<std::byte*>(expected.data()),
                        kElements * sizeof(float))));

  ASSERT_OK(store->Initialize(7));

  EXPECT_EQ(Floats(store->Committed(0, 0)), expected);
}

TEST_F(VariableStoreInitializeTest, ProgressEndsWithTheLastValue) {
  for (const bool large : {false, true}) {
    if (large) MakeLarge();
    options_.progress = std::make_shared<FillProgress>();
    options_.job_id = large ? "large" : "small";
    auto store = Create();
    EXPECT_GT(options_.progress->done(), 0u);
    EXPECT_LT(options_.progress->done(), options_.progress->total());

    ASSERT_OK(store->Initialize(7));

    EXPECT_EQ(options_.progress->done(), options_.progress->total());
  }
}

TEST_F(VariableStoreInitializeTest, EachOfThemEndsWhenItIsNotWanted) {
  auto store = Create();
  options_.progress->Stop();

  EXPECT_THAT(store->Initialize(7), StatusIs(absl::StatusCode::kCancelled));
  options_.job_id = "other";
  EXPECT_THAT(VariableStore::Create(options_),
              StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(VariableStoreInitializeTest, StateThatWasNeverOpenedIsCountedAnew) {
  Create();
  options_.progress = std::make_shared<FillProgress>();

  auto store = Open();
  ASSERT_OK(store->Initialize(7));

  EXPECT_GT(options_.progress->total(), 0u);
  EXPECT_EQ(options_.progress->done(), options_.progress->total());
}

}  // namespace
}  // namespace lockstep::server
