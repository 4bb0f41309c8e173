// A caller of a server must not speak for another task, in a call of its own or
// in a call stream.

#include "common/rpc/security/transport/transport_security.h"
#include "gmock/gmock.h"
#include "grpcpp/client_context.h"
#include "gtest/gtest.h"
#include "lockstep/v1/call_stream.grpc.pb.h"
#include "tests/integration/common/rpc/security/raw_credentials.h"
#include "tests/integration/server/rpc/served_shard.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/testing/test_certificates.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;
constexpr absl::StatusCode kDenied = absl::StatusCode::kPermissionDenied;

class BindingTest : public ::testing::Test {
 protected:
  BindingTest() {
    WriteTlsFiles(directory_.path(), authority_.Files("ps/0"));
    SetOwnSecurity(TransportSecurity::Load({directory_.path(), ""}).value());
    shard_ = std::make_unique<ServedShard>();
  }
  ~BindingTest() override {
    shard_.reset();
    SetOwnSecurity(nullptr);
  }

  std::shared_ptr<grpc::Channel> As(const std::string& name) {
    return UncheckedChannel(shard_->address(), authority_.certificate(),
                            authority_.Issue(name));
  }

  template <typename Service, typename Request, typename Response>
  absl::Status CallAs(const std::string& name,
                      grpc::Status (Service::Stub::*rpc)(grpc::ClientContext*,
                                                         const Request&,
                                                         Response*),
                      const Request& request) {
    return Call(*Service::NewStub(As(name)), rpc, request).status();
  }

  const TestAuthority authority_;
  const TempDir directory_;
  std::unique_ptr<ServedShard> shard_;
};

TEST_F(BindingTest, WorkerCannotSpeakInAnothersName) {
  using Parameters = v1::ParameterService;
  using Sync = v1::SyncService;
  const std::string other = "worker/1";  // the requests are worker 0's
  EXPECT_THAT(CallAs<Parameters>(other, &Parameters::Stub::Pull,
                                 ServedShard::PullRequest(0)),
              StatusIs(kDenied, HasSubstr("from worker 0")));
  EXPECT_THAT(CallAs<Parameters>(other, &Parameters::Stub::Push,
                                 ServedShard::PushRequest(0, 0, 1)),
              StatusIs(kDenied, HasSubstr("from worker 0")));
  v1::OpenSharedMemoryRequest open;
  *open.mutable_identity() = ServedShard::Worker(0);
  EXPECT_THAT(
      CallAs<Parameters>(other, &Parameters::Stub::OpenSharedMemory, open),
      StatusIs(kDenied, HasSubstr("from worker 0")));
  EXPECT_THAT(CallAs<Sync>(other, &Sync::Stub::Announce,
                           ServedShard::AnnounceRequest(0, 0)),
              StatusIs(kDenied, HasSubstr("from worker 0")));
  EXPECT_THAT(CallAs<Sync>(other, &Sync::Stub::TakeToken,
                           ServedShard::TokenRequest(0, -1)),
              StatusIs(kDenied, HasSubstr("from worker 0")));
}

TEST_F(BindingTest, WorkerSpeaksForItself) {
  using Sync = v1::SyncService;
  const absl::Status own = CallAs<Sync>("worker/0", &Sync::Stub::Announce,
                                        ServedShard::AnnounceRequest(0, 0));
  // The shard is not there yet, which only a caller that was let in is told.
  EXPECT_THAT(own.message(), HasSubstr("has not registered with its chief"))
      << own;
}

TEST_F(BindingTest, CallInAStreamIsBoundToo) {
  const auto stub = v1::CallStreamService::NewStub(As("worker/1"));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kCallTimeout));
  const auto stream = stub->Calls(&context);
  v1::StreamedCalls calls;
  for (const int worker : {0, 1}) {
    v1::StreamedCall& call = *calls.add_calls();
    call.set_id(static_cast<uint64_t>(worker));
    call.set_method("/lockstep.v1.SyncService/Announce");
    call.set_request(
        ServedShard::AnnounceRequest(worker, 0).SerializeAsString());
  }
  ASSERT_TRUE(stream->Write(calls));
  int answered = 0;
  v1::StreamedAnswers answers;
  while (answered < 2 && stream->Read(&answers)) {
    for (const v1::StreamedAnswer& answer : answers.answers()) {
      ++answered;
      EXPECT_EQ(answer.code() == grpc::StatusCode::PERMISSION_DENIED,
                answer.id() == 0)
          << answer.message();
    }
  }
  EXPECT_EQ(answered, 2);
  stream->WritesDone();
  stream->Finish();
}

TEST_F(BindingTest, WorkerCommitsNothing) {
  using Control = v1::ShardControlService;
  EXPECT_THAT(CallAs<Control>("worker/0", &Control::Stub::Commit,
                              shard_->CommitRequest(0, 0)),
              StatusIs(kDenied, HasSubstr("worker 0 of job fashion must not")));
}

}  // namespace
}  // namespace lockstep::testing
