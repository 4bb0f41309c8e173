#include "server/rpc/parameter_service.h"

#include <cmath>
#include <functional>
#include <limits>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/server/rpc/served_shard.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Stub = v1::ParameterService::Stub;
constexpr char kPush[] = "/lockstep.v1.ParameterService/Push";
constexpr char kPull[] = "/lockstep.v1.ParameterService/Pull";

// Values before any step, and after one with gradient 1.
const auto kInitial = ElementsAre(1, 1, 1, 1, 1, 1, 1, 1, 2, 2);
const auto kStepped =
    ElementsAre(0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 1.5, 1.5);

class ParameterServiceTest : public ::testing::Test {
 protected:
  absl::StatusOr<v1::PushResponse> Push(const v1::PushRequest& request) {
    return Call(shard_.parameters(), &Stub::Push, request);
  }
  absl::StatusOr<v1::PullResponse> Pull(const v1::PullRequest& request) {
    return Call(shard_.parameters(), &Stub::Pull, request);
  }
  // The server is as if nothing had happened, and can make its first step.
  void ExpectUntouched() {
    EXPECT_THAT(shard_.Values(), kInitial);
    shard_.Step(0, 1);
    EXPECT_THAT(shard_.Values(), kStepped);
  }

  ServedShard shard_;
};

TEST_F(ParameterServiceTest, AStepIsSeenByAnOrdinaryGeneratedStub) {
  shard_.Open();
  EXPECT_THAT(shard_.Values(), kInitial);

  shard_.Step(0, 1);

  auto pulled = Pull(ServedShard::PullRequest(1));
  ASSERT_OK(pulled);
  EXPECT_EQ(pulled->header().step(), 1);
  EXPECT_THAT(shard_.Values(), kStepped);
}

TEST_F(ParameterServiceTest, PushedStepIsNotSeenBeforeItsCommit) {
  shard_.Open();
  shard_.Announce(0);

  auto pushed = Push(ServedShard::PushRequest(0, 1, 1));

  ASSERT_OK(pushed);
  EXPECT_THAT(pushed->header().outcomes(),
              ElementsAre(v1::ACCEPTED, v1::ACCEPTED, v1::ACCEPTED));
  EXPECT_THAT(shard_.Values(), kInitial);
}

TEST_F(ParameterServiceTest,
       PushThatAsksIsAnsweredWithWhatACommitMakesTheValues) {
  shard_.Open();
  shard_.Announce(0);
  v1::PushRequest request = ServedShard::PushRequest(0, 1, 1);
  request.mutable_header()->set_return_values(true);

  auto pushed = Push(request);
  ASSERT_OK(pushed);
  EXPECT_THAT(shard_.Values(), kInitial);
  shard_.Step(0, 1);

  auto pulled = Pull(ServedShard::PullRequest(1));
  ASSERT_OK(pulled);
  EXPECT_EQ(pushed->payload(), pulled->payload());
  EXPECT_THAT(shard_.Values(), kStepped);
}

TEST_F(ParameterServiceTest, PushesAndPullsTellHowManyBytesTheyMove) {
  constexpr size_t kBytes = 8 * sizeof(float) + 2 * sizeof(double);
  shard_.Open();
  const size_t before = shard_.moved();

  ASSERT_OK(Push(ServedShard::PushRequest(0, 1, 1)));
  EXPECT_EQ(shard_.moved() - before, kBytes);

  ASSERT_OK(Pull(ServedShard::PullRequest(0)));
  EXPECT_EQ(shard_.moved() - before, 2 * kBytes);
}

TEST_F(ParameterServiceTest, RepeatedPushCountsOnce) {
  shard_.Open();
  shard_.Announce(0);
  ASSERT_OK(Push(ServedShard::PushRequest(0, 1, 1)));

  // Other values, to tell which of the two counted.
  auto again = Push(ServedShard::PushRequest(0, 1, 100));

  ASSERT_OK(again);
  EXPECT_THAT(again->header().outcomes(), Each(v1::DUPLICATE));
  shard_.Step(0, 1);
  EXPECT_THAT(shard_.Values(), kStepped);
}

TEST_F(ParameterServiceTest, LatePushIsStaleAndChangesNothing) {
  shard_.Open();
  shard_.Step(0, 1);

  auto late = Push(ServedShard::PushRequest(0, 1, 100));

  ASSERT_OK(late);
  EXPECT_THAT(late->header().outcomes(), Each(v1::STALE));
  EXPECT_EQ(late->header().server_step(), 1);
  EXPECT_THAT(shard_.Values(), kStepped);
}

TEST_F(ParameterServiceTest, SomePartsCanBePulled) {
  shard_.Open();
  v1::PullRequest request = ServedShard::PullRequest(0);
  request.mutable_parts()->set_first_part(2);
  request.mutable_parts()->set_num_parts(1);

  auto pulled = Pull(request);

  ASSERT_OK(pulled);
  EXPECT_EQ(pulled->payload().size(), 2 * sizeof(double));
}

TEST_F(ParameterServiceTest, CallsAreRefusedBeforeThereAreValues) {
  EXPECT_THAT(Pull(ServedShard::PullRequest(-1)),
              StatusIs(absl::StatusCode::kUnavailable));
  shard_.Create();

  EXPECT_THAT(Pull(ServedShard::PullRequest(-1)),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(Push(ServedShard::PushRequest(0, 1, 1)),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(ParameterServiceTest, ExpiredIncarnationIsRefused) {
  shard_.Open();
  shard_.host().ExpireWorker(0, 1);

  EXPECT_THAT(Push(ServedShard::PushRequest(0, 1, 1)),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(Pull(ServedShard::PullRequest(0)),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

struct BadPush {
  std::string name;
  absl::StatusCode code;
  std::function<void(v1::PushRequest&)> spoil;
};

class BadPushTest : public ParameterServiceTest,
                    public ::testing::WithParamInterface<BadPush> {};

TEST_P(BadPushTest, IsAnErrorAndChangesNothing) {
  shard_.Open();
  v1::PushRequest request = ServedShard::PushRequest(0, 1, 100);
  GetParam().spoil(request);

  EXPECT_THAT(Push(request), StatusIs(GetParam().code));

  ExpectUntouched();
}

void SetFirst(v1::PushRequest& request, float value) {
  request.mutable_payload()->replace(
      0, sizeof(value), reinterpret_cast<const char*>(&value), sizeof(value));
}

using R = v1::PushRequest&;
constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr absl::StatusCode kPrecondition =
    absl::StatusCode::kFailedPrecondition;

INSTANTIATE_TEST_SUITE_P(
    Identities, BadPushTest,
    ::testing::Values(
        BadPush{"OfAnotherJob", kPrecondition,
                [](R r) {
                  r.mutable_header()->mutable_identity()->set_job_id("other");
                }},
        BadPush{"OfNobody", kInvalid,
                [](R r) { r.mutable_header()->clear_identity(); }},
        BadPush{"OfAServer", kInvalid,
                [](R r) {
                  r.mutable_header()->mutable_identity()->set_task_type("ps");
                }},
        BadPush{"OfAnUnknownTask", kInvalid,
                [](R r) {
                  r.mutable_header()->mutable_identity()->set_task_type("x");
                }},
        BadPush{"OfAWorkerTooMany", kInvalid,
                [](R r) {
                  r.mutable_header()->mutable_identity()->set_task_index(2);
                }},
        BadPush{"OfAShareThatIsNotTheWorkers", kInvalid,
                [](R r) { r.mutable_header()->set_slot(1); }},
        BadPush{"OfAShareBelowNought", kInvalid,
                [](R r) { r.mutable_header()->set_slot(-1); }},
        BadPush{"MeantForAnotherServer", kInvalid,
                [](R r) { r.mutable_header()->set_server(1); }},
        BadPush{"OfNoPass", kInvalid,
                [](R r) { r.mutable_header()->clear_pass(); }},
        BadPush{"OfAPassThatCannotBe", kInvalid,
                [](R r) {
                  r.mutable_header()->set_pass(
                      std::numeric_limits<int64_t>::min());
                }},
        BadPush{"WithoutIncarnation", kInvalid,
                [](R r) {
                  r.mutable_header()->mutable_identity()->set_incarnation(0);
                }}),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Parts, BadPushTest,
    ::testing::Values(
        BadPush{"BeyondTheLast", kInvalid,
                [](R r) {
                  r.mutable_header()->mutable_parts()->set_first_part(1);
                }},
        BadPush{"BeforeTheFirst", kInvalid,
                [](R r) {
                  r.mutable_header()->mutable_parts()->set_first_part(-1);
                }},
        BadPush{
            "None", kInvalid,
            [](R r) { r.mutable_header()->mutable_parts()->set_num_parts(0); }},
        BadPush{"TooManyByFar", kInvalid,
                [](R r) {
                  r.mutable_header()->mutable_parts()->set_num_parts(
                      std::numeric_limits<int32_t>::max());
                }},
        BadPush{"NoneSaid", kInvalid,
                [](R r) { r.mutable_header()->clear_parts(); }}),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Payloads, BadPushTest,
    ::testing::Values(
        BadPush{"OneByteShort", kInvalid,
                [](R r) { r.mutable_payload()->pop_back(); }},
        BadPush{"OneByteLong", kInvalid,
                [](R r) { r.mutable_payload()->push_back('x'); }},
        BadPush{"Missing", kInvalid, [](R r) { r.clear_payload(); }},
        BadPush{"OfFloatsWhereDoublesAre", kInvalid,
                [](R r) { r.mutable_payload()->resize(10 * sizeof(float)); }},
        BadPush{"OfDoublesWhereFloatsAre", kInvalid,
                [](R r) { r.mutable_payload()->resize(10 * sizeof(double)); }},
        BadPush{"NaNInTheLastPart", kInvalid,
                [](R r) {
                  const double nan = std::numeric_limits<double>::quiet_NaN();
                  r.mutable_payload()->replace(
                      r.payload().size() - sizeof(nan), sizeof(nan),
                      reinterpret_cast<const char*>(&nan), sizeof(nan));
                }},
        BadPush{
            "NaN", kInvalid,
            [](R r) { SetFirst(r, std::numeric_limits<float>::quiet_NaN()); }},
        BadPush{
            "Infinity", kInvalid,
            [](R r) { SetFirst(r, -std::numeric_limits<float>::infinity()); }},
        BadPush{"OfAStepToCome", kPrecondition,
                [](R r) { r.mutable_header()->set_local_step(1); }}),
    [](const auto& info) { return info.param.name; });

TEST_F(ParameterServiceTest, NaNInAPushOfOnePartLeavesNoTrace) {
  shard_.Open();
  shard_.Announce(0);
  v1::PushRequest request = ServedShard::PushRequest(0, 1, 1);
  request.mutable_header()->mutable_parts()->set_num_parts(1);
  request.mutable_payload()->resize(4 * sizeof(float));
  SetFirst(request, std::numeric_limits<float>::quiet_NaN());

  EXPECT_THAT(Push(request), StatusIs(kInvalid, HasSubstr("part 0")));

  ExpectUntouched();
}

TEST_F(ParameterServiceTest, BytesThatAreNoMessageAreRefused) {
  shard_.Open();
  const std::string garbage[] = {
      std::string(1, '\xff'), std::string(1000, '\x07'),
      std::string("\x0a\x7f", 2), std::string(11, '\xff'),
      std::string("\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10)};

  for (const std::string& bytes : garbage) {
    EXPECT_THAT(CallWithBytes(shard_.channel(), kPush, bytes),
                StatusIs(kInvalid));
    EXPECT_THAT(CallWithBytes(shard_.channel(), kPull, bytes),
                StatusIs(kInvalid));
  }
  EXPECT_THAT(CallWithBytes(shard_.channel(), kPush, ""), StatusIs(kInvalid));
  ExpectUntouched();
}

TEST_F(ParameterServiceTest, TruncatedPushIsRefusedWhereverItEnds) {
  shard_.Open();
  const std::string whole =
      ServedShard::PushRequest(0, 1, 1).SerializeAsString();

  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_THAT(CallWithBytes(shard_.channel(), kPush, whole.substr(0, length)),
                StatusIs(kInvalid))
        << length << " of " << whole.size() << " bytes";
  }
  ExpectUntouched();
}

TEST_F(ParameterServiceTest, HugeHeaderIsRefused) {
  shard_.Open();
  v1::PushRequest request = ServedShard::PushRequest(0, 1, 1);
  request.mutable_header()->mutable_identity()->set_job_id(
      std::string(2 << 20, 'j'));

  EXPECT_THAT(Push(request), StatusIs(kPrecondition));
  ExpectUntouched();
}

TEST_F(ParameterServiceTest, HugeHeaderOfAPullIsRefused) {
  shard_.Open();
  v1::PullRequest request = ServedShard::PullRequest(0);
  request.mutable_identity()->set_job_id(std::string(2 << 20, 'j'));

  EXPECT_THAT(Pull(request), StatusIs(kPrecondition));
  ExpectUntouched();
}

// As where a worker's TF_CONFIG has the servers in another order.
TEST_F(ParameterServiceTest, PullMeantForAnotherServerIsRefused) {
  shard_.Open();
  v1::PullRequest request = ServedShard::PullRequest(0);
  request.set_server(0);
  EXPECT_OK(Pull(request));

  request.set_server(2);

  EXPECT_THAT(Pull(request),
              StatusIs(kInvalid, HasSubstr("ps 0 was taken for ps 2")));
}

TEST_F(ParameterServiceTest, PullOfAStepThatCannotBeIsRefused) {
  shard_.Open();
  EXPECT_OK(Pull(ServedShard::PullRequest(-1)));
  for (const int64_t step :
       {int64_t{-2}, std::numeric_limits<int64_t>::min()}) {
    EXPECT_THAT(Pull(ServedShard::PullRequest(step)),
                StatusIs(kInvalid, HasSubstr(absl::StrCat("step is ", step))));
  }
}

TEST_F(ParameterServiceTest, PullOfOtherPartsJobOrStepIsRefused) {
  shard_.Open();
  v1::PullRequest beyond = ServedShard::PullRequest(0);
  beyond.mutable_parts()->set_num_parts(4);
  v1::PullRequest none = ServedShard::PullRequest(0);
  none.clear_parts();
  v1::PullRequest before = ServedShard::PullRequest(0);
  before.mutable_parts()->set_first_part(-1);
  v1::PullRequest other_job = ServedShard::PullRequest(0);
  other_job.mutable_identity()->set_job_id("other");
  v1::PullRequest nobody = ServedShard::PullRequest(0);
  nobody.clear_identity();

  EXPECT_THAT(Pull(before), StatusIs(kInvalid));
  EXPECT_THAT(Pull(other_job), StatusIs(kPrecondition));
  EXPECT_THAT(Pull(nobody), StatusIs(kInvalid));
  EXPECT_THAT(Pull(beyond), StatusIs(kInvalid));
  EXPECT_THAT(Pull(none), StatusIs(kInvalid));
  EXPECT_THAT(Pull(ServedShard::PullRequest(7)), StatusIs(kPrecondition));
  ExpectUntouched();
}

class CompatibleParameterServiceTest : public ::testing::Test {
 protected:
  CompatibleParameterServiceTest() { shard_.Open(); }

  absl::StatusOr<v1::PushResponse> Push(const v1::PushRequest& request) {
    return Call(shard_.parameters(), &Stub::Push, request);
  }

  ServedShard shard_{/*task_index=*/0, SyncMode::kCompatible};
};

TEST_F(CompatibleParameterServiceTest, GradientCountsOnceAndOnlyForItsStep) {
  auto first = Push(ServedShard::PushRequest(0, 0, 1));
  auto again = Push(ServedShard::PushRequest(0, 0, 100));
  shard_.Step(0, 100);  // its push is one more repetition
  v1::PushRequest late_pass = ServedShard::PushRequest(0, 0, 100);
  late_pass.mutable_header()->set_pass(2);
  auto late = Push(late_pass);

  ASSERT_OK(first);
  ASSERT_OK(again);
  ASSERT_OK(late);
  EXPECT_THAT(first->header().outcomes(), Each(v1::ACCEPTED));
  EXPECT_THAT(again->header().outcomes(), Each(v1::DUPLICATE));
  EXPECT_THAT(late->header().outcomes(), Each(v1::STALE));
  EXPECT_EQ(late->header().server_step(), 1);
  EXPECT_THAT(shard_.Values(), kStepped);
}

TEST_F(CompatibleParameterServiceTest, BadPushesAreRefusedAndDoNotCount) {
  v1::PushRequest cut = ServedShard::PushRequest(0, 0, 100);
  cut.mutable_payload()->pop_back();
  v1::PushRequest no_pass = ServedShard::PushRequest(0, 0, 100);
  no_pass.mutable_header()->set_pass(std::numeric_limits<int64_t>::min());
  v1::PushRequest too_many = ServedShard::PushRequest(0, 0, 100);
  *too_many.mutable_header()->mutable_identity() = ServedShard::Worker(2);

  EXPECT_THAT(Push(cut), StatusIs(kInvalid));
  EXPECT_THAT(Push(no_pass), StatusIs(kInvalid));
  EXPECT_THAT(Push(too_many), StatusIs(kInvalid));

  EXPECT_THAT(shard_.Values(), kInitial);
  shard_.Step(0, 1);
  EXPECT_THAT(shard_.Values(), kStepped);
}

}  // namespace
}  // namespace lockstep::testing
