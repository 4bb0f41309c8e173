#include "server/rpc/shard_control_service.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/server/rpc/shard_control_fixture.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

using Stub = v1::ShardControlService::Stub;
constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr absl::StatusCode kPrecondition =
    absl::StatusCode::kFailedPrecondition;

using ShardControlServiceTest = ShardControlFixture;

TEST_F(ShardControlServiceTest, CallsAreRefusedBeforeTheJobIsKnown) {
  EXPECT_THAT(TakeEpoch(), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(ShardControlServiceTest, EpochsRise) {
  shard_.Open();  // has taken one

  auto newer = TakeEpoch();

  ASSERT_OK(newer);
  EXPECT_GT(*newer, shard_.Chief().epoch());
}

// An RPC that a chief calls, with what would change something.
struct ChiefCall {
  std::string name;
  std::function<absl::Status(ServedShard&, const v1::ChiefIdentity&)> call;
};

template <typename Request, typename Response>
ChiefCall CallOf(std::string name,
                 grpc::Status (Stub::*rpc)(grpc::ClientContext*, const Request&,
                                           Response*),
                 Request request = {}) {
  return {std::move(name),
          [=](ServedShard& shard, const v1::ChiefIdentity& chief) {
            Request as_chief = request;
            *as_chief.mutable_chief() = chief;
            return Call(shard.control(), rpc, as_chief).status();
          }};
}

v1::ExpireWorkerRequest ExpireRequest() {
  v1::ExpireWorkerRequest request;
  request.set_worker(0);
  request.set_incarnation(1);
  return request;
}

std::vector<ChiefCall> ChiefCalls() {
  const auto write = [](ServedShard& shard, const v1::ChiefIdentity& chief) {
    v1::WritePartsRequest request = shard.WriteRequest();
    *request.mutable_header()->mutable_chief() = chief;
    return Call(shard.control(), &Stub::WriteParts, request).status();
  };
  v1::CommitRequest commit;
  commit.set_step(1);
  commit.set_attempt(1);
  return {CallOf("Activate", &Stub::Activate),
          CallOf("BeginSnapshot", &Stub::BeginSnapshot),
          CallOf("CloseTokens", &Stub::CloseTokens),
          CallOf("Commit", &Stub::Commit, commit),
          CallOf("CreateShard", &Stub::CreateShard),
          CallOf("EndSnapshot", &Stub::EndSnapshot),
          CallOf("ExpireWorker", &Stub::ExpireWorker, ExpireRequest()),
          CallOf("ReadSnapshot", &Stub::ReadSnapshot),
          CallOf("ReplaceMember", &Stub::ReplaceMember),
          CallOf("TakeAndApply", &Stub::TakeAndApply),
          {"WriteParts", write}};
}

class ChiefCallTest : public ShardControlFixture,
                      public ::testing::WithParamInterface<ChiefCall> {};

TEST_P(ChiefCallTest, IsRefusedUnlessItIsOfTheNewestChiefOfTheJob) {
  shard_.Open();
  auto epoch = TakeEpoch();
  ASSERT_OK(epoch);
  const v1::ChiefIdentity replaced = shard_.Chief();
  shard_.set_epoch(*epoch);
  v1::ChiefIdentity no_epoch = shard_.Chief();
  no_epoch.clear_epoch();
  v1::ChiefIdentity other_job = shard_.Chief();
  other_job.mutable_identity()->set_job_id("other");
  v1::ChiefIdentity nobody = shard_.Chief();
  nobody.clear_identity();
  const auto call = GetParam().call;

  EXPECT_THAT(call(shard_, replaced),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("epoch")));
  EXPECT_THAT(call(shard_, no_epoch),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("epoch")));
  EXPECT_THAT(call(shard_, other_job),
              StatusIs(kPrecondition, HasSubstr("\"other\"")));
  EXPECT_THAT(call(shard_, nobody), StatusIs(kInvalid));

  ExpectUntouched();
}

TEST_P(ChiefCallTest, IsRefusedUnlessItIsOfTheChief) {
  shard_.Open();
  v1::ChiefIdentity other = shard_.Chief();
  for (const char* type : {"worker", "ps", "evaluator"}) {
    other.mutable_identity()->set_task_type(type);
    EXPECT_THAT(GetParam().call(shard_, other),
                StatusIs(absl::StatusCode::kPermissionDenied,
                         HasSubstr("steered by chief 0 alone")))
        << type;
  }
  v1::ChiefIdentity without_end = shard_.Chief();
  without_end.mutable_identity()->set_incarnation(~uint64_t{0});
  EXPECT_THAT(GetParam().call(shard_, without_end),
              StatusIs(kInvalid, HasSubstr("identity.incarnation")));

  ExpectUntouched();
}

TEST_P(ChiefCallTest, IsRefusedBeforeTheJobIsKnown) {
  EXPECT_THAT(GetParam().call(shard_, shard_.Chief()),
              StatusIs(absl::StatusCode::kUnavailable));
  shard_.Open();
}

INSTANTIATE_TEST_SUITE_P(Rpcs, ChiefCallTest, ::testing::ValuesIn(ChiefCalls()),
                         [](const auto& info) { return info.param.name; });

TEST_F(ShardControlServiceTest, OnlyTheChiefTakesAnEpoch) {
  shard_.Open();
  v1::TakeEpochRequest request;
  *request.mutable_chief() = shard_.Chief();
  request.mutable_chief()->mutable_identity()->set_task_type("worker");
  request.mutable_chief()->mutable_identity()->set_incarnation(1000);

  EXPECT_THAT(Call(shard_.control(), &Stub::TakeEpoch, request),
              StatusIs(absl::StatusCode::kPermissionDenied));
  request.mutable_chief()->mutable_identity()->set_task_type("chief");
  request.mutable_chief()->mutable_identity()->set_incarnation(~uint64_t{0});
  EXPECT_THAT(Call(shard_.control(), &Stub::TakeEpoch, request),
              StatusIs(kInvalid, HasSubstr("identity.incarnation")));

  ExpectUntouched();
}

TEST_F(ShardControlServiceTest, ExpiredIncarnationsMustHaveSuccessors) {
  shard_.Open();
  v1::ExpireWorkerRequest expire = ExpireRequest();
  *expire.mutable_chief() = shard_.Chief();
  expire.set_incarnation(~uint64_t{0});
  v1::ActivateRequest activate;
  *activate.mutable_chief() = shard_.Chief();
  activate.add_expired()->set_incarnation(~uint64_t{0});

  EXPECT_THAT(Call(shard_.control(), &Stub::ExpireWorker, expire),
              StatusIs(kInvalid, HasSubstr("18446744073709551615")));
  EXPECT_THAT(Call(shard_.control(), &Stub::Activate, activate),
              StatusIs(kInvalid, HasSubstr("expired.incarnation")));

  ExpectUntouched();
}

TEST_F(ShardControlServiceTest, WithoutAShardThereIsNothingToBeDone) {
  shard_.host().SetJobId(kJobId);
  auto epoch = TakeEpoch();
  ASSERT_OK(epoch);
  shard_.set_epoch(*epoch);

  for (const ChiefCall& rpc : ChiefCalls()) {
    if (rpc.name == "CreateShard") continue;
    EXPECT_THAT(
        rpc.call(shard_, shard_.Chief()),
        StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no shard yet")))
        << rpc.name;
  }
}

TEST_F(ShardControlServiceTest, BytesThatAreNoMessageAreRefused) {
  shard_.Open();

  for (const char* method :
       {"TakeEpoch", "CreateShard", "WriteParts", "Activate", "TakeAndApply",
        "Commit", "ExpireWorker", "ReplaceMember", "BeginSnapshot",
        "ReadSnapshot", "EndSnapshot", "CloseTokens"}) {
    const std::string path =
        std::string("/lockstep.v1.ShardControlService/") + method;
    const absl::Status garbage =
        CallWithBytes(shard_.channel(), path, std::string(64, '\xff'));
    EXPECT_THAT(
        garbage.code(),
        AnyOf(kInvalid, absl::StatusCode::kUnimplemented))  // ours, gRPC's
        << method;
    EXPECT_THAT(CallWithBytes(shard_.channel(), path, ""), StatusIs(kInvalid))
        << method;
  }
  ExpectUntouched();
}

}  // namespace
}  // namespace lockstep::testing
