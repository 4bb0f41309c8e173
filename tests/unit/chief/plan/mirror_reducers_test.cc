#include "chief/plan/mirror_reducers.h"

#include <map>
#include <vector>

#include "chief/plan/placement.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

std::vector<VariableSpec> Variables(int count) {
  std::vector<VariableSpec> variables;
  for (int i = 0; i < count; ++i) {
    variables.push_back({std::string("v") + static_cast<char>('a' + i),
                         {8},
                         DType::kFloat32,
                         {}});
  }
  return variables;
}

Plan Mirrored(int variables, int servers) {
  return *MirrorPlan(*MakePlan(Variables(variables), servers, 1 << 20),
                     servers);
}

// By server, how many parts it sums.
std::map<int, int> Sums(const Plan& plan) {
  std::map<int, int> sums;
  for (const Part& part : plan.parts) ++sums[part.server];
  return sums;
}

TEST(MirrorReducersTest, AllServersSumWhatThePlanSays) {
  const Plan plan = Mirrored(6, 3);

  EXPECT_EQ(PlanAmong(plan, {0, 1, 2}).parts, plan.parts);
}

TEST(MirrorReducersTest, PartsOfAnAbsentMirrorAreDividedAmongTheOthers) {
  const Plan plan = Mirrored(12, 3);

  const Plan among = PlanAmong(plan, {0, 2});

  EXPECT_THAT(Sums(among), ElementsAre(Pair(0, 6), Pair(2, 6)));
}

TEST(MirrorReducersTest, IndicesStaySoThatStateFilesFit) {
  const Plan plan = Mirrored(12, 3);

  const Plan among = PlanAmong(plan, {0, 1});

  for (size_t i = 0; i < plan.parts.size(); ++i) {
    EXPECT_EQ(among.parts[i].index, plan.parts[i].index);
    EXPECT_EQ(among.parts[i].variable, plan.parts[i].variable);
  }
}

TEST(MirrorReducersTest, EachServerGetsAStretchOfConsecutiveParts) {
  const Plan plan = Mirrored(12, 3);

  const Plan among = PlanAmong(plan, {0, 1});

  // The parts 8 to 11, which mirror 2 has summed.
  std::map<int, int> servers;
  for (const Part& part : among.parts) {
    if (part.index >= 8) servers[part.index] = part.server;
  }
  EXPECT_THAT(servers,
              ElementsAre(Pair(8, 0), Pair(9, 0), Pair(10, 1), Pair(11, 1)));
}

TEST(MirrorReducersTest, OneServerSumsAll) {
  EXPECT_THAT(Sums(PlanAmong(Mirrored(5, 4), {0})), ElementsAre(Pair(0, 5)));
}

TEST(MirrorReducersTest, SpreadPartsStayWhereTheyAre) {
  const Plan plan = *MakePlan(Variables(6), 3, 1 << 20);

  EXPECT_EQ(PlanAmong(plan, {0}).parts, plan.parts);
}

}  // namespace
}  // namespace lockstep::chief
