#include "chief/plan/placement.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kMebibyte = 1 << 20;
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

// Variables of the given shapes, named v0, v1, ...
std::vector<VariableSpec> Variables(
    const std::vector<std::vector<int64_t>>& shapes,
    DType dtype = DType::kFloat32) {
  std::vector<VariableSpec> variables;
  for (size_t i = 0; i < shapes.size(); ++i) {
    variables.push_back({absl::StrCat("v", i), shapes[i], dtype, {}});
  }
  return variables;
}

std::vector<int> Servers(const Plan& plan) {
  std::vector<int> servers;
  for (const Part& part : plan.parts) servers.push_back(part.server);
  return servers;
}

TEST(PlacementTest, EqualVariablesGoRoundRobin) {
  const auto plan = MakePlan(Variables({{4}, {4}, {4}, {4}}), 2, kMebibyte);

  ASSERT_OK(plan);
  EXPECT_THAT(Servers(*plan), ElementsAre(0, 1, 0, 1));
}

TEST(PlacementTest, NextVariableGoesToTheServerWithTheFewestBytes) {
  const auto plan =
      MakePlan(Variables({{2, 2}, {2, 1}, {2, 2}, {1, 3}}), 2, kMebibyte);

  ASSERT_OK(plan);
  EXPECT_THAT(Servers(*plan), ElementsAre(0, 1, 1, 0));
}

TEST(PlacementTest, RoundRobinAsksNobodysSize) {
  const auto plan = MakePlan(Variables({{100}, {1}, {1}, {1}}), 2, kMebibyte,
                             {PlacementConfig::Strategy::kRoundRobin});

  ASSERT_OK(plan);
  EXPECT_THAT(Servers(*plan), ElementsAre(0, 1, 0, 1));
}

TEST(PlacementTest, PlaceByNameDependsOnNoOtherVariable) {
  const PlacementConfig by_name{PlacementConfig::Strategy::kNameHash, 3};
  const auto all = MakePlan(Variables({{4}, {9}, {1}}), 5, kMebibyte, by_name);
  std::vector<VariableSpec> last = Variables({{4}, {9}, {1}});
  last.erase(last.begin(), last.begin() + 2);
  const auto alone = MakePlan(last, 5, kMebibyte, by_name);

  ASSERT_OK(all);
  ASSERT_OK(alone);
  EXPECT_EQ(all->parts[2].server, alone->parts[0].server);
}

TEST(PlacementTest, PartitionersCutWholeRows) {
  PartitionerConfig partitioner;
  partitioner.kind = PartitionerConfig::Kind::kFixedSize;
  partitioner.num_shards = 3;
  const auto plan =
      MakePlan(Variables({{13, 2}, {2, 5}, {}}), 2, kMebibyte, {}, partitioner);

  ASSERT_OK(plan);
  std::vector<int64_t> counts;
  for (const Part& part : plan->parts) counts.push_back(part.count);
  EXPECT_THAT(counts, ElementsAre(10, 8, 8, 5, 5, 1));
  EXPECT_EQ(plan->parts[2].offset, 18);
}

TEST(PlacementTest, PartsThatAreTooLargeOrTooManyAreRefused) {
  PartitionerConfig partitioner;
  partitioner.kind = PartitionerConfig::Kind::kMinMax;
  partitioner.max_partitions = 1;
  EXPECT_THAT(
      MakePlan(Variables({{1 << 20, 1 << 10}}), 1, kMebibyte, {}, partitioner),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("cut it into more parts")));
  partitioner.max_partitions = kMax;
  partitioner.min_slice_bytes = 1;
  EXPECT_THAT(MakePlan(Variables({{1 << 30}}), 1, kMebibyte, {}, partitioner),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("at most 1048576")));
}

TEST(PlacementTest, BytesCountAndNotElements) {
  std::vector<VariableSpec> variables = Variables({{3}, {4}, {1}, {1}});
  variables[0].dtype = DType::kFloat64;  // 24 bytes against 16

  const auto plan = MakePlan(variables, 2, kMebibyte);

  ASSERT_OK(plan);
  EXPECT_THAT(Servers(*plan), ElementsAre(0, 1, 1, 1));
}

TEST(PlacementTest, LargeVariableIsCutIntoPartsOfTheLimit) {
  const auto plan = MakePlan(Variables({{5, 2}}), 2, 16);

  ASSERT_OK(plan);
  EXPECT_THAT(plan->parts, ElementsAre(Part{0, 0, 4, 0, 0}, Part{0, 4, 4, 1, 0},
                                       Part{0, 8, 2, 0, 1}));
}

TEST(PlacementTest, PartsHoldWholeElements) {
  const auto plan = MakePlan(Variables({{3}}, DType::kFloat64), 1, 23);

  ASSERT_OK(plan);
  EXPECT_THAT(plan->parts,
              ElementsAre(Part{0, 0, 2, 0, 0}, Part{0, 2, 1, 0, 1}));
}

TEST(PlacementTest, ScalarIsOnePart) {
  const auto plan = MakePlan(Variables({{}}), 3, 4);

  ASSERT_OK(plan);
  EXPECT_THAT(plan->parts, ElementsAre(Part{0, 0, 1, 0, 0}));
  EXPECT_EQ(plan->variables, Variables({{}}));
}

TEST(PlacementTest, VariableThatJustFitsIsNotCut) {
  const auto plan = MakePlan(Variables({{262'144}, {262'145}}), 1, kMebibyte);

  ASSERT_OK(plan);
  EXPECT_THAT(plan->parts,
              ElementsAre(Part{0, 0, 262'144, 0, 0}, Part{1, 0, 262'144, 0, 1},
                          Part{1, 262'144, 1, 0, 2}));
}

TEST(PlacementTest, MoreServersThanPartsLeaveSomeEmpty) {
  const auto plan = MakePlan(Variables({{1}, {1}}), 5, kMebibyte);

  ASSERT_OK(plan);
  EXPECT_THAT(Servers(*plan), ElementsAre(0, 1));
}

TEST(PlacementTest, RandomModelsAreCutWithoutGapsAndBalanced) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const int servers = 1 + static_cast<int>(random() % 5);
    const int64_t limit = 8 + static_cast<int64_t>(random() % 200);
    std::vector<std::vector<int64_t>> shapes(1 + random() % 20);
    for (auto& shape : shapes) {
      for (size_t dims = random() % 3; dims > 0; --dims) {
        shape.push_back(1 + static_cast<int64_t>(random() % 30));
      }
    }

    const auto plan = MakePlan(Variables(shapes), servers, limit);

    ASSERT_OK(plan);
    std::vector<int64_t> end(shapes.size(), 0);  // by variable, in elements
    std::vector<int64_t> load(servers, 0);       // by server, in bytes
    std::vector<int> count(servers, 0);
    for (const Part& part : plan->parts) {
      EXPECT_EQ(part.offset, end[part.variable]);
      EXPECT_GT(part.count, 0);
      EXPECT_LE(part.count * 4, limit);
      EXPECT_EQ(part.index, count[part.server]++);
      end[part.variable] += part.count;
      load[part.server] += part.count * 4;
    }
    for (size_t i = 0; i < shapes.size(); ++i) {
      EXPECT_EQ(end[i], NumElements(shapes[i]));
    }
    // No server has more than the largest part beyond the emptiest.
    const auto [least, most] = std::minmax_element(load.begin(), load.end());
    EXPECT_LE(*most - *least, limit);
  }
}

TEST(PlacementTest, BadModelsAreRefusedByName) {
  const auto invalid = [](const std::string& part) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(part));
  };
  EXPECT_THAT(MakePlan({}, 1, kMebibyte), invalid("no variables"));
  EXPECT_THAT(MakePlan(Variables({{1}}), 0, kMebibyte), invalid("no ps task"));
  std::vector<VariableSpec> unnamed = Variables({{1}});
  unnamed[0].name = "";
  EXPECT_THAT(MakePlan(unnamed, 1, kMebibyte), invalid("no name"));
  std::vector<VariableSpec> twins = Variables({{1}, {2}});
  twins[1].name = "v0";
  EXPECT_THAT(MakePlan(twins, 1, kMebibyte), invalid("\"v0\""));
  std::vector<VariableSpec> odd = Variables({{1}});
  odd[0].dtype = static_cast<DType>(77);
  EXPECT_THAT(MakePlan(odd, 1, kMebibyte), invalid("unknown dtype, 77"));
}

TEST(PlacementTest, ImpossibleShapesAreRefused) {
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{0},
                                         {3, 0},
                                         {-1},
                                         {kMax},
                                         {kMax, kMax},
                                         {int64_t{1} << 32, int64_t{1} << 32},
                                         {(int64_t{1} << 56) + 1},
                                         {-kMax - 1, 2}}) {
    EXPECT_THAT(
        MakePlan(Variables({{1}, shape}), 2, kMax),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 AllOf(HasSubstr("\"v1\""), HasSubstr(ShapeString(shape)))));
  }
}

TEST(PlacementTest, ModelAsAWholeHasALimitToo) {
  const std::vector<int64_t> half = {int64_t{1} << 55};

  EXPECT_OK(MakePlan(Variables({half, half}), 1, kMax));
  EXPECT_THAT(MakePlan(Variables({half, half, {1}}), 1, kMax),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("v2")));
}

TEST(PlacementTest, TooManyPartsAreRefusedBeforeTheyAreMade) {
  EXPECT_THAT(MakePlan(Variables({{int64_t{1} << 50}}), 1, kMebibyte),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("max_part_bytes is 1048576")));
}

TEST(PlacementTest, GradientsOfEveryVariableMustFitTheJob) {
  std::vector<VariableSpec> variables = Variables({{4}, {2}});
  EXPECT_OK(CheckGradientType(variables, GradientType::kBFloat16));
  variables[1].dtype = DType::kFloat64;

  EXPECT_OK(CheckGradientType(variables, GradientType::kVariable));
  EXPECT_THAT(CheckGradientType(variables, GradientType::kBFloat16),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("gradient_wire_type"),
                             HasSubstr("\"v1\""), HasSubstr("float64"))));
}

TEST(PlacementTest, PartLimitMustHoldAnElement) {
  for (int64_t limit : {int64_t{-8}, int64_t{0}, int64_t{3}}) {
    EXPECT_THAT(MakePlan(Variables({{1}}), 1, limit),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(absl::StrCat("max_part_bytes is ", limit))));
  }
}

TEST(PlacementTest, TablesAreCutByRowsOverAllServers) {
  std::vector<VariableSpec> variables = Variables({{7, 100000}, {7, 2}});
  variables[0].row_cut = RowCut::kDiv;
  variables[1].row_cut = RowCut::kMod;

  const auto plan = MakePlan(variables, 3, 1 << 20);

  ASSERT_OK(plan);
  const std::vector<Part> parts = {
      {0, 0, 300000, 0, 0},      {0, 300000, 200000, 1, 0},
      {0, 500000, 200000, 2, 0}, {1, 0, 6, 1, 1, 3},
      {1, 2, 4, 2, 1, 3},        {1, 4, 4, 2, 2, 3}};
  EXPECT_EQ(plan->parts, parts);
}

TEST(PlacementTest, ATableHasNoMorePartsThanRows) {
  std::vector<VariableSpec> variables = Variables({{2, 4}});
  variables[0].row_cut = RowCut::kMod;
  const auto plan = MakePlan(variables, 3, 1 << 20);
  ASSERT_OK(plan);
  EXPECT_EQ(plan->parts.size(), 2u);
}

TEST(PlacementTest, ATableHasRows) {
  std::vector<VariableSpec> variables = Variables({{}});
  variables[0].row_cut = RowCut::kDiv;
  EXPECT_THAT(MakePlan(variables, 1, 1 << 20),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("table without rows")));
}

TEST(PlacementTest, ModelTooLargeIsRefusedBeforeItIsCut) {
  const int64_t mebibyte = 1 << 20;
  EXPECT_OK(CheckModelSize({{"w", {int64_t{1} << 38}, DType::kFloat32, {}}},
                           mebibyte));
  EXPECT_THAT(CheckModelSize({{"w", {int64_t{1} << 40}, DType::kFloat32, {}}},
                             mebibyte),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("at most 1048576")));
  EXPECT_THAT(CheckModelSize({{"a", {int64_t{1} << 37}, DType::kFloat32, {}},
                              {"b", {int64_t{1} << 37}, DType::kFloat32, {}},
                              {"c", {1}, DType::kFloat32, {}}},
                             mebibyte),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"c\"")));
}

TEST(PlacementTest, TooManyVariablesAreRefused) {
  std::vector<VariableSpec> variables;
  for (int i = 0; i <= kMaxVariables; ++i) {
    variables.push_back({absl::StrCat("v", i), {1}, DType::kFloat32, {}});
  }

  EXPECT_THAT(
      CheckModelSize(variables, 1 << 20),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at most 65536")));
}

TEST(MirrorPlanTest, IndicesCountThePartsOfAllServers) {
  const auto plan =
      MakePlan(Variables({{4}, {4}, {4}, {4}, {4}}), 2, kMebibyte);
  ASSERT_OK(plan);

  const auto mirrored = MirrorPlan(*plan, 2);

  ASSERT_OK(mirrored);
  EXPECT_TRUE(mirrored->mirrored);
  EXPECT_THAT(Servers(*mirrored), ElementsAre(0, 1, 0, 1, 0));
  std::vector<int> indices;
  for (const Part& part : mirrored->parts) indices.push_back(part.index);
  EXPECT_THAT(indices, ElementsAre(0, 3, 1, 4, 2));
  for (const int server : {0, 1}) {
    const std::vector<Part> parts = PartsOf(*mirrored, server);
    ASSERT_EQ(parts.size(), 5U);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(parts[i].index, i);
  }
}

TEST(MirrorPlanTest, TablesThatGrowNeedServers) {
  std::vector<VariableSpec> variables = Variables({{4, 2}});
  for (const RowCut cut : {RowCut::kDiv, RowCut::kMod, RowCut::kKey}) {
    variables[0].row_cut = cut;
    const auto plan = MakePlan(variables, 2, kMebibyte);
    ASSERT_OK(plan);
    const auto mirrored = MirrorPlan(*plan, 2);
    if (cut != RowCut::kKey) {
      ASSERT_OK(mirrored);
      EXPECT_THAT(Servers(*mirrored), ElementsAre(0, 1));
      continue;
    }
    EXPECT_THAT(mirrored, StatusIs(absl::StatusCode::kInvalidArgument,
                                   AllOf(HasSubstr("\"v0\" is a table that"),
                                         HasSubstr("PARAMETER_SERVER"))));
  }
}

// By the hashes of this seed, both variables go to ps 1 of 2.
TEST(PlanOfJobTest, ServerZeroMustGetAPartUnlessAllServersAreMirrors) {
  JobConfig job;
  job.placement = {PlacementConfig::Strategy::kNameHash, 3};
  const std::vector<VariableSpec> variables = Variables({{4}, {2}});

  EXPECT_THAT(
      PlanOfJob(job, variables, 2),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("placement.seed is 3, with which ps 0 gets no")));

  EXPECT_OK(PlanOfJob(job, variables, 1));
  job.strategy.kind = StrategyKind::kMultiWorkerMirrored;
  const auto mirrored = PlanOfJob(job, variables, 2);
  ASSERT_OK(mirrored);
  EXPECT_THAT(Servers(*mirrored), ElementsAre(1, 1));
  EXPECT_EQ(PartsOf(*mirrored, 0).size(), 2U);
}

TEST(PlanOfJobTest, TablesThatGrowNeedTheStrategyOfServers) {
  std::vector<VariableSpec> variables = Variables({{4, 2}});
  variables[0].row_cut = RowCut::kKey;
  JobConfig job;
  EXPECT_OK(PlanOfJob(job, variables, 1));
  for (const auto& [kind, name] :
       {std::pair{StrategyKind::kMirrored, " MIRRORED,"},
        {StrategyKind::kOneDevice, " ONE_DEVICE,"},
        {StrategyKind::kMultiWorkerMirrored, " MULTI_WORKER_MIRRORED,"}}) {
    job.strategy.kind = kind;
    EXPECT_THAT(PlanOfJob(job, variables, 1),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(name),
                               HasSubstr("\"v0\" is a table that grows"),
                               HasSubstr("PARAMETER_SERVER"))));
  }
}

TEST(PlanOfJobTest, TheOnlyPartIsOfServerZero) {
  JobConfig job;
  for (const auto strategy : {PlacementConfig::Strategy::kGreedy,
                              PlacementConfig::Strategy::kRoundRobin}) {
    job.placement.strategy = strategy;
    const auto plan = PlanOfJob(job, Variables({{}}), 3);
    ASSERT_OK(plan);
    EXPECT_THAT(Servers(*plan), ElementsAre(0));
  }
}

}  // namespace
}  // namespace lockstep::chief
