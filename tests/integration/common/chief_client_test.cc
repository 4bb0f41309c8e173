#include "common/chief_client.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/grpc_server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Where nobody listens any more.
std::string EndedChief() {
  const auto server = GrpcServer::Start("127.0.0.1:0", {});
  EXPECT_OK(server);
  return absl::StrCat("127.0.0.1:", (*server)->port());
}

TEST(ChiefClientTest, ChiefThatHasEndedForGoodIsNotWaitedForForEver) {
  const std::string address = EndedChief();
  ChiefClient::Options options;
  options.address = address;
  options.task = {TaskType::kWorker, 0};
  options.chief_wait = absl::Milliseconds(200);
  ChiefClient client(options);

  // Repeated as by one who was refused and wants to join again.
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_THAT(client.Register(),
                StatusIs(absl::StatusCode::kUnavailable,
                         AllOf(HasSubstr(address), HasSubstr("TF_CONFIG"))));
  }
}

TEST(ChiefClientTest, WaitForTheChiefEndsWhenToldSo) {
  ChiefClient::Options options;
  options.address = EndedChief();
  options.task = {TaskType::kWorker, 0};
  ChiefClient client(options);
  client.Stop();

  EXPECT_THAT(client.Register(), StatusIs(absl::StatusCode::kCancelled));
}

}  // namespace
}  // namespace lockstep
