#include "chief/events/call_errors.h"

#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

TEST(CallErrorsTest, RefusalNamesItsServer) {
  const absl::Status named = OfServer(2, absl::InternalError("no disk"));
  EXPECT_EQ(named.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(named.message(), "ps 2: no disk");
}

TEST(CallErrorsTest, WordOfANewerChiefIsNotTheServers) {
  EXPECT_EQ(OfServer(2, absl::AbortedError("newer")).message(), "newer");
  EXPECT_TRUE(OfServer(2, absl::OkStatus()).ok());
}

}  // namespace
}  // namespace lockstep::chief
