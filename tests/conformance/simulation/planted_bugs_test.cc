// Each promise is broken on purpose, and the simulation has to find it.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/conformance/simulation/simulation.h"

namespace lockstep::simulation {
namespace {

using ::testing::AnyOfArray;
using ::testing::Contains;
using ::testing::Value;

constexpr uint64_t kSchedules = 20000;  // enough for each
constexpr uint64_t kSchedulesWithout = 100;

struct Planted {
  std::string name;
  PlantedBug bug = PlantedBug::kNone;
  // A report names one of these first; "P1" is not "P11".
  std::vector<std::string> promises;
  Options options;
  // The search begins with this schedule, where few of them find the mistake.
  uint64_t first = 1;
};

// Returns the promises that a report names: "P3" and "P11" of "P3, P11: step".
std::vector<std::string> PromisesOf(const std::string& report) {
  return absl::StrSplit(report.substr(0, report.find(':')), ", ");
}

class PlantedBugsTest : public ::testing::TestWithParam<Planted> {};

TEST_P(PlantedBugsTest, IsFound) {
  Options options = GetParam().options;
  options.bug = GetParam().bug;
  std::string other;  // the first report that names none of the promises
  for (uint64_t i = 0; i < kSchedules; ++i) {
    const uint64_t seed = GetParam().first + i;
    const Simulation::Result result = Simulation(options, seed).Run();
    if (result.broken.empty()) continue;
    if (!Value(PromisesOf(result.broken[0]),
               Contains(AnyOfArray(GetParam().promises)))) {
      if (other.empty()) other = result.broken[0];
      continue;
    }
    RecordProperty("schedules", static_cast<int>(i + 1));
    return;
  }
  ADD_FAILURE() << "not found in " << kSchedules << " schedules"
                << (other.empty() ? "" : ", but " + other);
}

TEST_P(PlantedBugsTest, NothingIsFoundWithoutIt) {
  const Options& options = GetParam().options;
  for (uint64_t seed = 1; seed <= kSchedulesWithout; ++seed) {
    const Simulation::Result result = Simulation(options, seed).Run();
    ASSERT_THAT(result.broken, ::testing::IsEmpty())
        << "seed " << seed << ":\n"
        << absl::StrJoin(Simulation(options, seed, true).Run().trace, "\n");
  }
}

const Options kAll{2, 2, {2, 1}};
const Options kBackup{2, 3, {2, 1}};
const Options kSteered{2, 3, {2, 1}, 4, 2, /*elastic=*/false, /*steered=*/600};
const Options kElastic{2, 2, {2, 1}, 4, 2, /*elastic=*/true, /*steered=*/600};

Options LimitsMean(Options options) {
  options.limits_mean = true;
  return options;
}

Options Sparse(Options options) {
  options.sparse = true;
  return options;
}

Options Mirrored(Options options) {
  options.mirrored = true;
  return options;
}

// Workers come and go with their mirrors; passes are slow, so that those come
// back before the job is over.
Options ElasticMirrors(Options options) {
  options.mirrored = options.elastic = true;
  options.steps = 8;
  options.pass_times.assign(options.total_num_replicas, absl::Seconds(3));
  return options;
}

Options Hasty(Options options) {
  options.hasty = true;
  return options;
}

Options Shared(Options options) {
  options.replicas_to_aggregate = 3;
  options.shared = true;
  return options;
}

Options Compatible(Options options) {
  options.mode = SyncMode::kCompatible;
  options.initial_tokens = options.replicas_to_aggregate;
  return options;
}

Options OnOneHost(Options options) {
  options.shared_memory = true;
  return options;
}

Options EndsWith(Ending ending, Options options = kAll) {
  options.ending = ending;
  return options;
}

INSTANTIATE_TEST_SUITE_P(
    Promises, PlantedBugsTest,
    ::testing::Values(
        Planted{
            "TokenBeforeCommit", PlantedBug::kTokenBeforeCommit, {"P1"}, kAll},
        Planted{"StaleGradientCounts",
                PlantedBug::kStaleGradientCounts,
                {"P2", "P3", "P4"},
                kBackup},
        Planted{"RepeatedPushCounts",
                PlantedBug::kRepeatedPushCounts,
                {"P2", "P3"},
                kAll},
        Planted{"PullOfHalfAnUpdate",
                PlantedBug::kPullOfHalfAnUpdate,
                {"P4"},
                kBackup},
        Planted{"ValuesAreNotAwaited",
                PlantedBug::kValuesAreNotAwaited,
                {"P4"},
                kAll},
        Planted{
            "OldChiefIsObeyed", PlantedBug::kOldChiefIsObeyed, {"P5"}, kAll},
        Planted{"InitialisedAnew",
                PlantedBug::kInitialisedAnew,
                {"P3", "P5"},
                kAll},
        Planted{
            "ServesBeforeOpen", PlantedBug::kServesBeforeOpen, {"P5"}, kAll},
        Planted{"DeadWorkerKeepsItsPlace",
                PlantedBug::kDeadWorkerKeepsItsPlace,
                {"P6"},
                kAll},
        Planted{
            "MembersAreNotTold", PlantedBug::kMembersAreNotTold, {"P7"}, kAll},
        Planted{
            "NoLastCheckpoint", PlantedBug::kNoLastCheckpoint, {"P7"}, kAll},
        Planted{
            "DataFollowsPasses", PlantedBug::kDataFollowsPasses, {"P11"}, kAll},
        Planted{"ResumeIsLost", PlantedBug::kResumeIsLost, {"P6"}, kSteered},
        Planted{"RateOfOneServerStays",
                PlantedBug::kRateOfOneServerStays,
                {"P4", "P11"},
                kSteered},
        Planted{"SetKeepsItsSize",
                PlantedBug::kSetKeepsItsSize,
                {"P6", "P11"},
                kSteered},
        Planted{"SumsOfOldSettingsCount",
                PlantedBug::kSumsOfOldSettingsCount,
                {"P11"},
                kSteered},
        Planted{"LeaverStaysAMember",
                PlantedBug::kLeaverStaysAMember,
                {"P6"},
                kElastic},
        Planted{"StopWithoutCheckpoint",
                PlantedBug::kStopWithoutCheckpoint,
                {"P7"},
                EndsWith(Ending::kStop)},
        Planted{"WaitsForEver",
                PlantedBug::kWaitsForEver,
                {"P6"},
                EndsWith(Ending::kNoWorkers)},
        Planted{"EndOfInputIsForgotten",
                PlantedBug::kEndOfInputIsForgotten,
                {"P6"},
                EndsWith(Ending::kInput, kBackup)},
        Planted{"NormIsNotAwaited",
                PlantedBug::kNormIsNotAwaited,
                {"P11"},
                LimitsMean(kBackup)},
        Planted{"NormOfOneServer",
                PlantedBug::kNormOfOneServer,
                {"P11"},
                LimitsMean(kAll)},
        Planted{"OldMeanCounts",
                PlantedBug::kOldMeanCounts,
                {"P3"},
                Mirrored(kAll)},
        Planted{"CopyLacksSlots",
                PlantedBug::kCopyLacksSlots,
                {"P11"},
                Mirrored(kAll)},
        Planted{"CopiesAreGivenUp",
                PlantedBug::kCopiesAreGivenUp,
                {"P5"},
                Mirrored(kAll)},
        Planted{"ReturnedMirrorKeepsItsStep",
                PlantedBug::kReturnedMirrorKeepsItsStep,
                {"P11"},
                ElasticMirrors({3, 3, {1, 1, 1}})},
        Planted{"BrokenMirrorIsAwaited",
                PlantedBug::kBrokenMirrorIsAwaited,
                {"P6"},
                ElasticMirrors({3, 3, {1, 1, 1}})},
        Planted{"WorkersWordCommits",
                PlantedBug::kWorkersWordCommits,
                {"P1"},
                Hasty(kAll)},
        Planted{"WorkersWordCommitsOnAMirror",
                PlantedBug::kWorkersWordCommits,
                {"P1"},
                Hasty(Mirrored(kAll))},
        Planted{"DataFollowsWorker",
                PlantedBug::kDataFollowsWorker,
                {"P12"},
                Shared(kAll)},
        Planted{"GradientOfAnotherNumber",
                PlantedBug::kGradientOfAnotherNumber,
                {"P6", "P12"},
                Shared(kAll)},
        Planted{"DoneBeforePushed",
                PlantedBug::kDoneBeforePushed,
                {"P6"},
                Shared(kAll)},
        Planted{"ReadersAreNotCounted",
                PlantedBug::kReadersAreNotCounted,
                {"P4"},
                kAll},
        Planted{"OldCopyCounts",
                PlantedBug::kOldCopyCounts,
                {"P4"},
                OnOneHost(kBackup)},
        Planted{"HalfAStepIsKept",
                PlantedBug::kHalfAStepIsKept,
                {"P5"},
                Compatible(kAll)},
        Planted{"TokenBeforeCommitInCompatibleMode",
                PlantedBug::kTokenBeforeCommit,
                {"P1"},
                Compatible(kAll)},
        Planted{"StaleGradientCountsInCompatibleMode",
                PlantedBug::kStaleGradientCounts,
                {"P2"},
                Compatible(kBackup)},
        Planted{"RepeatedPushCountsInCompatibleMode",
                PlantedBug::kRepeatedPushCounts,
                {"P2", "P3"},
                Compatible(kAll)},
        Planted{"AbsentIsZero",
                PlantedBug::kAbsentIsZero,
                {"P4", "P11"},
                Sparse(kAll)},
        Planted{"FullTableIsNotTold",
                PlantedBug::kFullTableIsNotTold,
                {"P6"},
                EndsWith(Ending::kFullTable)}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace lockstep::simulation
