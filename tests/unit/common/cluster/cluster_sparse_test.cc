// Clusters with gaps in the indices of their tasks.

#include <string>

#include "absl/strings/str_cat.h"
#include "common/cluster/cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr char kSparsePs[] =
    R"({"chief": ["c:1"], "worker": ["w:1"], "ps": {"0": "p:1", "2": "p:2"}})";
constexpr char kSparseWorkers[] =
    R"({"chief": ["c:1"], "worker": {"0": "w:1", "5": "w:2"}, "ps": ["p:1"]})";

// Whether the cluster can train with parameter servers, as `self` sees it.
absl::Status Validate(absl::string_view cluster, const TaskId& self) {
  const absl::StatusOr<TfConfig> config = ParseTfConfig(
      absl::StrCat("{\"cluster\": ", cluster, ", \"task\": {\"type\": \"",
                   TaskTypeName(self.type), "\", \"index\": ", self.index,
                   "}}"),
      "TF_CONFIG");
  if (!config.ok()) return config.status();
  const absl::StatusOr<Cluster> made = Cluster::Make(*config);
  return made.ok() ? made->ValidateForParameterServers() : made.status();
}

TEST(ClusterSparseTest, ChiefMustSeeAllServers) {
  EXPECT_THAT(
      Validate(kSparsePs, {TaskType::kChief, 0}),
      StatusIs(kInvalid, HasSubstr("cluster.ps lacks tasks below 2; list every "
                                   "ps task, with indices from 0 on")));
}

TEST(ClusterSparseTest, WorkerMustSeeAllServers) {
  EXPECT_THAT(Validate(kSparsePs, {TaskType::kWorker, 0}),
              StatusIs(kInvalid, HasSubstr("cluster.ps lacks tasks below 2")));
}

TEST(ClusterSparseTest, ServerNeedNotSeeOthers) {
  EXPECT_OK(Validate(kSparsePs, {TaskType::kPs, 2}));
}

TEST(ClusterSparseTest, ChiefMustSeeAllWorkers) {
  EXPECT_THAT(
      Validate(kSparseWorkers, {TaskType::kChief, 0}),
      StatusIs(kInvalid, HasSubstr("cluster.worker lacks tasks below 5")));
  // Worker 0 runs the chief.
  EXPECT_THAT(
      Validate(R"({"worker": {"0": "w:1", "5": "w:2"}, "ps": ["p:1"]})",
               {TaskType::kWorker, 0}),
      StatusIs(kInvalid, HasSubstr("cluster.worker lacks tasks below 5")));
}

TEST(ClusterSparseTest, OtherWorkersNeedNotSeeEachOther) {
  EXPECT_OK(Validate(kSparseWorkers, {TaskType::kWorker, 5}));
  EXPECT_OK(Validate(R"({"worker": {"5": "w:2"}, "ps": ["p:1"]})",
                     {TaskType::kWorker, 5}));
}

}  // namespace
}  // namespace lockstep
