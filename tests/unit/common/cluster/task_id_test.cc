#include "common/cluster/task_id.h"

#include <optional>
#include <sstream>

#include "absl/container/flat_hash_set.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

TEST(TaskIdTest, TypesKeepTheirNameThroughParsing) {
  for (TaskType type : {TaskType::kChief, TaskType::kWorker, TaskType::kPs,
                        TaskType::kEvaluator}) {
    EXPECT_THAT(ParseTaskType(TaskTypeName(type)), IsOkAndHolds(type));
  }
}

TEST(TaskIdTest, MasterIsTheOldNameOfChief) {
  EXPECT_THAT(ParseTaskType("master"), IsOkAndHolds(TaskType::kChief));
}

TEST(TaskIdTest, OtherNamesAreRefusedWithTheChoice) {
  for (const char* name : {"", "foo", "Worker", "workers", "ps ", "123456"}) {
    EXPECT_THAT(ParseTaskType(name),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("chief, worker, ps, evaluator")))
        << name;
  }
}

TEST(TaskIdTest, NumberThatIsNoTypeHasAHarmlessName) {
  EXPECT_EQ(TaskTypeName(static_cast<TaskType>(7)), "invalid");
}

TEST(TaskIdTest, PrintsForPeopleAndForKeys) {
  const TaskId task{TaskType::kWorker, 1};
  std::ostringstream out;
  out << task;

  EXPECT_EQ(task.ToString(), "worker 1");
  EXPECT_EQ(task.ToKey(), "worker:1");
  EXPECT_EQ(out.str(), "worker 1");
}

TEST(TaskIdTest, ReadsWhatItPrintsForPeopleAndNothingElse) {
  for (const TaskId& task :
       {TaskId{TaskType::kWorker, 1}, TaskId{TaskType::kPs, 12},
        TaskId{TaskType::kEvaluator, 0}}) {
    EXPECT_EQ(TaskId::FromString(task.ToString()), task);
  }
  for (const char* text : {"", "worker", "worker ", "worker x", "worker -1",
                           "worker:1", "workers 1", "worker 1 2", "worker 01",
                           "worker  1", "worker +1", "master 0"}) {
    EXPECT_EQ(TaskId::FromString(text), std::nullopt) << text;
  }
}

TEST(TaskIdTest, OrdersByTypeThenIndex) {
  EXPECT_LT((TaskId{TaskType::kChief, 9}), (TaskId{TaskType::kWorker, 0}));
  EXPECT_LT((TaskId{TaskType::kWorker, 2}), (TaskId{TaskType::kWorker, 10}));
  EXPECT_EQ((TaskId{TaskType::kPs, 3}), (TaskId{TaskType::kPs, 3}));
  EXPECT_NE((TaskId{TaskType::kPs, 3}), (TaskId{TaskType::kWorker, 3}));
}

TEST(TaskIdTest, HashAgreesWithEquality) {
  const absl::flat_hash_set<TaskId> tasks = {
      {TaskType::kWorker, 1}, {TaskType::kPs, 1}, {TaskType::kWorker, 1}};

  EXPECT_EQ(tasks.size(), 2u);
  EXPECT_TRUE(tasks.contains({TaskType::kPs, 1}));
  EXPECT_FALSE(tasks.contains({TaskType::kPs, 0}));
}

}  // namespace
}  // namespace lockstep
