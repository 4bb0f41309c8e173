#include "worker/tables/model_kinds.h"

#include "common/job/job_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/tables/table_workload.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Matches;

TEST(ModelKindsTest, ModelsWithAndWithoutTablesAreKinds) {
  EXPECT_THAT(AllModelKinds(), IsSupersetOf({"mlp", "transformer", "skip_gram",
                                             "wide_and_deep"}));
  for (const std::string& kind : AllModelKinds()) {
    EXPECT_THAT(CheckModelKind(kind), IsOk()) << kind;
  }
}

TEST(ModelKindsTest, JobsKnowThoseWithTables) {
  for (const std::string& kind : AllModelKinds()) {
    ModelConfig model;
    model.kind = kind;
    EXPECT_EQ(HasTables(model), Matches(Contains(kind))(TableModelKinds()))
        << kind;
  }
}

TEST(ModelKindsTest, AnUnknownKindIsRefusedWithAllThatThereAre) {
  EXPECT_THAT(CheckModelKind("skipgram"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("model.kind is \"skipgram\""),
                             HasSubstr("cnn, logistic_regression, mlp"),
                             HasSubstr("did you mean skip_gram?"))));
}

}  // namespace
}  // namespace lockstep::worker
