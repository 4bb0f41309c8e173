#include "server/calls/respond.h"

#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/rpc/channel.h"
#include "common/rpc/server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/v1/parameter.grpc.pb.h"
#include "tests/integration/call.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::CallWithBytes;
using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

constexpr char kPull[] = "/lockstep.v1.ParameterService/Pull";

// A message without bytes, which is not the same as none.
grpc::ByteBuffer Empty() {
  const grpc::Slice slice("", 0);
  return {&slice, 1};
}

// Keeps each call until the test ends it.
class KeepingService final
    : public v1::ParameterService::WithRawCallbackMethod_Pull<
          v1::ParameterService::Service> {
 public:
  grpc::ServerUnaryReactor* Pull(grpc::CallbackServerContext* context,
                                 const grpc::ByteBuffer* request,
                                 grpc::ByteBuffer* response) override {
    return ServeLending(context, request, response,
                        [this](const Caller&, const grpc::ByteBuffer&,
                               Respond respond, BreakOff break_off) {
                          MutexLock lock(mutex_);
                          respond_ = std::move(respond);
                          break_off_ = std::move(break_off);
                          changed_.SignalAll();
                        });
  }

  void AwaitCall() {
    MutexLock lock(mutex_);
    while (!respond_) changed_.Wait(mutex_);
  }
  Respond respond() {
    MutexLock lock(mutex_);
    return respond_;
  }
  BreakOff break_off() {
    MutexLock lock(mutex_);
    return break_off_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  Respond respond_ ABSL_GUARDED_BY(mutex_);
  BreakOff break_off_ ABSL_GUARDED_BY(mutex_);
};

class RespondTest : public ::testing::Test {
 protected:
  RespondTest() {
    auto server = GrpcServer::Start("127.0.0.1:0", {&service_});
    EXPECT_OK(server);
    if (!server.ok()) return;
    server_ = *std::move(server);
    caller_ = std::thread([this] {
      status_ = CallWithBytes(
          MakeChannel(absl::StrCat("127.0.0.1:", server_->port())), kPull, "");
    });
    service_.AwaitCall();
  }
  ~RespondTest() override {
    if (caller_.joinable()) caller_.join();
  }

  // What the caller has got.
  absl::Status Answer() {
    caller_.join();
    return status_;
  }

  KeepingService service_;
  std::unique_ptr<GrpcServer> server_;
  std::thread caller_;
  absl::Status status_;
};

TEST_F(RespondTest, AnswerReachesTheCallerAndBreakingOffLaterDoesNothing) {
  service_.respond()(absl::OkStatus(), Empty());
  EXPECT_THAT(Answer(), IsOk());
  service_.break_off()(absl::UnavailableError("too late"));
}

TEST_F(RespondTest, ErrorIsTheOneOfTheAnswer) {
  service_.respond()(absl::AbortedError("another one"), Empty());
  EXPECT_THAT(Answer(),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("another one")));
}

TEST_F(RespondTest, CallThatIsBrokenOffEndsBeforeItsAnswer) {
  service_.break_off()(absl::UnavailableError("the memory is wanted"));
  EXPECT_THAT(Answer(), StatusIs(absl::StatusCode::kUnavailable));
  service_.break_off()(absl::UnavailableError("once more"));
  service_.respond()(absl::OkStatus(), Empty());
}

}  // namespace
}  // namespace lockstep::server
