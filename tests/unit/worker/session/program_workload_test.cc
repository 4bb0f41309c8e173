#include "worker/session/program_workload.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "absl/strings/match.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

ChiefClient::Registration External(int shard) {
  ChiefClient::Registration membership;
  membership.job.model.kind = "external";
  membership.job.batch_size = 2;
  membership.num_workers = 2;
  membership.data_shard = shard;
  return membership;
}

TEST(ProgramWorkloadTest, AJobWithABuiltInModelIsRefusedWithTheFix) {
  ProgramWorkload workload({{.name = "w"}}, {{}});
  ChiefClient::Registration membership = External(0);
  membership.job.model.kind = "mlp";
  EXPECT_THAT(workload.Begin(membership),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("model { kind: \"external\" }")));
}

// The step that such values make would be refused later, with another cause.
TEST(ProgramWorkloadTest, InitialValuesThatAreNotFiniteAreRefused) {
  const float values[] = {0, 1, -std::numeric_limits<float>::infinity()};
  const auto begin = [&](bool buffer, bool refuse) {
    ProgramWorkload workload(
        {{.name = "w", .shape = {3}, .buffer = buffer}},
        {absl::MakeConstSpan(reinterpret_cast<const std::byte*>(values),
                             sizeof(values))});
    ChiefClient::Registration membership = External(0);
    membership.job.refuse_non_finite = refuse;
    return workload.Begin(membership);
  };
  EXPECT_THAT(begin(false, true),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("variable \"w\" is NaN or infinite at element "
                                 "2")));
  EXPECT_OK(begin(true, true));
  EXPECT_OK(begin(false, false));
}

TEST(ProgramWorkloadTest, VariableThatKeepsItsValueMayHaveAny) {
  const float value = -std::numeric_limits<float>::infinity();
  const auto bytes = absl::MakeConstSpan(
      reinterpret_cast<const std::byte*>(&value), sizeof(value));
  ProgramWorkload workload({{.name = "mask"}}, {bytes});
  ChiefClient::Registration membership = External(0);
  EXPECT_THAT(workload.Begin(membership),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("name it in untrained")));
  membership.job.untrained = {"m*"};
  EXPECT_OK(workload.Begin(membership));
}

TEST(ProgramWorkloadTest, NanIsFoundInEachFloatingPointType) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto refused = [](DType dtype, auto finite, auto wrong) {
    const decltype(finite) values[] = {finite, wrong};
    const auto bytes = absl::MakeConstSpan(
        reinterpret_cast<const std::byte*>(values), sizeof(values));
    ProgramWorkload workload({{.name = "w", .shape = {2}, .dtype = dtype}},
                             {bytes});
    const absl::Status status = workload.Begin(External(0));
    return absl::StrContains(status.message(), "at element 1");
  };
  EXPECT_TRUE(refused(DType::kFloat64, 1e308, nan));
  EXPECT_TRUE(refused(DType::kFloat32, 1e38f, static_cast<float>(nan)));
  // The largest finite number, and infinity.
  EXPECT_TRUE(refused(DType::kFloat16, uint16_t{0x7bff}, uint16_t{0xfc00}));
  EXPECT_TRUE(refused(DType::kBFloat16, uint16_t{0x7f7f}, uint16_t{0x7f80}));
}

TEST(ProgramWorkloadTest, WorkersShareAnEpochsExamplesAndRepeatThem) {
  std::vector<int64_t> all;
  for (const int shard : {0, 1}) {
    ProgramWorkload workload({{.name = "w"}}, {{}});
    ASSERT_OK(workload.Begin(External(shard)));
    for (const int64_t batch : {0, 1}) {
      const auto rows = workload.Examples(8, batch);
      ASSERT_OK(rows.status());
      EXPECT_EQ(*workload.Examples(8, batch), *rows);
      all.insert(all.end(), rows->begin(), rows->end());
    }
  }
  std::sort(all.begin(), all.end());
  EXPECT_THAT(all, ::testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(ProgramWorkloadTest, NoPassIsOfferedBehindTheLastEpoch) {
  ProgramWorkload workload({{.name = "w"}}, {{}});
  ChiefClient::Registration membership = External(0);
  membership.job.data.epochs = 1;
  ASSERT_OK(workload.Begin(membership));
  const auto prepare = [&](int64_t batch) {
    return (*workload.MakeSource(nullptr))->Prepare({}, batch);
  };
  EXPECT_OK(prepare(2));  // the number of examples is not known yet
  ASSERT_OK(workload.Examples(8, 1).status());
  EXPECT_OK(prepare(1));
  EXPECT_THAT(prepare(2), StatusIs(absl::StatusCode::kOutOfRange));
  // A worker that joins again has as many.
  ASSERT_OK(workload.Begin(membership));
  EXPECT_THAT(prepare(2), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(workload.Examples(8, 2).status(),
              StatusIs(absl::StatusCode::kOutOfRange));
}

TEST(ProgramWorkloadTest, EpochsAreThoseOfTheFirstSetOfAProgramWithSeveral) {
  ProgramWorkload workload({{.name = "w"}}, {{}});
  ChiefClient::Registration membership = External(0);
  membership.job.data.epochs = 1;
  ASSERT_OK(workload.Begin(membership));
  const auto out_of_range = StatusIs(absl::StatusCode::kOutOfRange);

  ASSERT_OK(workload.Examples(16, 0).status());
  // Four batches of the first set are eight of the second, which has two.
  EXPECT_OK(workload.Examples(8, 3).status());
  EXPECT_OK((*workload.MakeSource(nullptr))->Prepare({}, 3));
  EXPECT_THAT(workload.Examples(16, 4).status(), out_of_range);
  EXPECT_OK(workload.Examples(8, 4).status());
  EXPECT_THAT((*workload.MakeSource(nullptr))->Prepare({}, 4), out_of_range);
}

TEST(ProgramWorkloadTest, BatchesOfManySetsAreTheSameInEveryCall) {
  ProgramWorkload alternating({{.name = "w"}}, {{}});
  ASSERT_OK(alternating.Begin(External(0)));
  for (const int64_t batch : {0, 1, 5}) {
    for (int64_t examples = 8; examples < 8 + 7; ++examples) {
      ProgramWorkload alone({{.name = "w"}}, {{}});
      ASSERT_OK(alone.Begin(External(0)));
      EXPECT_EQ(*alternating.Examples(examples, batch),
                *alone.Examples(examples, batch))
          << batch << " of " << examples;
    }
  }
}

// The program may free them once it is asked for rows.
TEST(ProgramWorkloadTest, InitialValuesAreNotReadAfterAnOfferOfRows) {
  const float value = 3;
  const auto bytes = absl::MakeConstSpan(
      reinterpret_cast<const std::byte*>(&value), sizeof(value));
  ProgramWorkload workload(
      {{.name = "w"}, {.name = "t", .shape = {4, 1}, .row_cut = RowCut::kMod}},
      {bytes, {}});
  ASSERT_OK(workload.Begin(External(0)));
  auto memory = ParameterMemory::Make(workload.variables());
  ASSERT_OK(memory.status());
  auto source = workload.MakeSource(
      std::make_shared<ParameterMemory>(*std::move(memory)));
  ASSERT_OK(source.status());
  workload.Cancel();  // the offer does not wait
  EXPECT_THAT((*source)->Prepare({}, 0),
              StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(workload.initial_value(0).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(ProgramWorkloadTest, PassesBeginEarlyWhereTheProgramCanAwaitTheirValues) {
  const auto may = [](std::vector<VariableSpec> variables, int replicas,
                      bool early) {
    const size_t count = variables.size();
    ProgramWorkload workload(std::move(variables),
                             std::vector<absl::Span<const std::byte>>(count),
                             early);
    ChiefClient::Registration membership = External(0);
    membership.job.strategy.replicas_per_worker = replicas;
    EXPECT_OK(workload.Begin(membership));
    auto source = workload.MakeSource(nullptr);
    EXPECT_OK(source.status());
    return source.ok() && (*source)->MayBeginEarly();
  };
  const VariableSpec table = {
      .name = "t", .shape = {4, 1}, .row_cut = RowCut::kMod};
  EXPECT_TRUE(may({{.name = "w"}}, 1, true));
  EXPECT_FALSE(may({{.name = "w"}}, 1, false));
  EXPECT_FALSE(may({{.name = "w"}}, 2, true));
  EXPECT_FALSE(may({{.name = "w"}, table}, 1, true));
}

TEST(ProgramWorkloadTest, APassBeginsWithoutTheRowsOfThePassBefore) {
  ProgramWorkload workload(
      {{.name = "w"}, {.name = "t", .shape = {4, 1}, .row_cut = RowCut::kMod}},
      {{}, {}});
  ASSERT_OK(workload.Begin(External(0)));
  auto made = ParameterMemory::Make(workload.variables());
  ASSERT_OK(made.status());
  const auto memory = std::make_shared<ParameterMemory>(*std::move(made));
  auto source = workload.MakeSource(memory);
  ASSERT_OK(source.status());
  ASSERT_OK(memory->ChooseRows(1, {1, 3}));
  memory->SetRowSum(1, {{1, 3}, std::vector<std::byte>(8), {1, 1}});
  workload.Cancel();  // the offer does not wait
  EXPECT_THAT((*source)->Prepare({}, 0),
              StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(memory->rows(1).ids, ::testing::IsEmpty());
  EXPECT_EQ(memory->row_sum(1), nullptr);
}

ChiefClient::Registration WithReplicas(int shard, int replicas) {
  ChiefClient::Registration membership = External(shard);
  membership.job.strategy.replicas_per_worker = replicas;
  return membership;
}

TEST(ProgramWorkloadTest, ReplicasHaveTheBatchesOfAsManyWorkers) {
  ProgramWorkload replicas({{.name = "w"}}, {{}});
  ASSERT_OK(replicas.Begin(WithReplicas(1, 3)));
  EXPECT_EQ(replicas.turns(), 3);

  for (const int replica : {0, 1, 2}) {
    ChiefClient::Registration alone = External(1 * 3 + replica);
    alone.num_workers = 2 * 3;
    ProgramWorkload worker({{.name = "w"}}, {{}});
    ASSERT_OK(worker.Begin(alone));
    for (const int64_t batch : {0, 1, 7}) {
      EXPECT_EQ(*replicas.Examples(40, 3 * batch + replica),
                *worker.Examples(40, batch))
          << batch << " of replica " << replica;
    }
  }
}

TEST(ProgramWorkloadTest, NoReplicaHasAPassBehindTheLastEpoch) {
  ProgramWorkload workload({{.name = "w"}}, {{}});
  ChiefClient::Registration membership = WithReplicas(0, 2);
  membership.job.data.epochs = 1;
  ASSERT_OK(workload.Begin(membership));

  // 16 examples are two batches of each of the four replicas.
  EXPECT_OK(workload.Examples(16, 3).status());
  EXPECT_THAT(workload.Examples(16, 4).status(),
              StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT((*workload.MakeSource(nullptr))->Prepare({}, 4),
              StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(workload.Examples(16, -1).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ProgramWorkloadTest, TablesOfSeveralReplicasAreRefused) {
  ProgramWorkload workload(
      {{.name = "t", .shape = {4, 1}, .row_cut = RowCut::kMod}}, {{}});

  // The kind that has several replicas has one worker.
  EXPECT_THAT(workload.Begin(WithReplicas(0, 2)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("strategy.replicas_per_worker is 2"),
                             HasSubstr("strategy.kind PARAMETER_SERVER"))));
}

TEST(ProgramWorkloadTest, TooFewExamplesForTheWorkersAreRefused) {
  ProgramWorkload workload({{.name = "w"}}, {{}});
  ASSERT_OK(workload.Begin(External(0)));
  EXPECT_THAT(workload.Examples(3, 0).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ProgramWorkloadTest, JobWithoutABatchSizeChoosesNoExamples) {
  ProgramWorkload workload({{.name = "w"}}, {{}});
  ChiefClient::Registration membership = External(0);
  membership.job.batch_size = 0;
  ASSERT_OK(workload.Begin(membership));
  EXPECT_THAT(workload.Examples(8, 0).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--set batch_size=N")));
}

TEST(ProgramWorkloadTest, InitialValuesAreThereUntilTheFirstPass) {
  const float value = 3;
  const auto bytes = absl::MakeConstSpan(
      reinterpret_cast<const std::byte*>(&value), sizeof(value));
  ProgramWorkload workload({{.name = "w"}, {.name = "drawn"}}, {bytes, {}});
  ASSERT_OK(workload.Begin(External(0)));
  EXPECT_EQ(workload.initial_value(0)->data(), bytes.data());
  EXPECT_THAT(workload.initial_value(1).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  auto memory = ParameterMemory::Make(workload.variables());
  ASSERT_OK(memory.status());
  auto source = workload.MakeSource(
      std::make_shared<ParameterMemory>(*std::move(memory)));
  ASSERT_OK(source.status());
  ASSERT_OK((*source)->Prepare({}, 0));
  EXPECT_THAT(workload.initial_value(0).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("checkpoint.directory")));
}

}  // namespace
}  // namespace lockstep::worker
