#include "common/rpc/own_server.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/rpc/server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;

constexpr absl::Duration kPatience = absl::Seconds(30);

TEST(OwnServerTest, IsWellWhileItServes) {
  auto server = GrpcServer::Start("127.0.0.1:0", {});
  ASSERT_OK(server);
  const std::string address = absl::StrCat("127.0.0.1:", (*server)->port());

  EXPECT_THAT(CheckOwnServer(address, kPatience), IsOk());

  (*server)->SetServing(false);
  EXPECT_THAT(CheckOwnServer(address, kPatience),
              StatusIs(absl::StatusCode::kUnavailable));

  // A new connection each time: the one before does not answer for it.
  (*server)->SetServing(true);
  EXPECT_THAT(CheckOwnServer(address, kPatience), IsOk());
  server->reset();
  EXPECT_THAT(CheckOwnServer(address, absl::Milliseconds(200)),
              StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace lockstep
