#include "common/rpc/grpc_setup.h"

#include <functional>
#include <memory>
#include <sstream>
#include <string>

#include "common/base/log.h"
#include "google/protobuf/stubs/logging.h"
#include "grpc/support/log.h"
#include "grpc/support/sync.h"
#include "gtest/gtest.h"
#include "spdlog/sinks/ostream_sink.h"

namespace lockstep {
namespace {

void LockBoth(gpr_mu& first, gpr_mu& second) {
  gpr_mu_lock(&first);
  gpr_mu_lock(&second);
  gpr_mu_unlock(&second);
  gpr_mu_unlock(&first);
}

// With the checks on, as by default in Debian, this order ends the process.
TEST(GrpcSetupTest, LocksAreNotCheckedForDeadlocks) {
  SetUpGrpc();
  gpr_mu a, b;
  gpr_mu_init(&a);
  gpr_mu_init(&b);
  LockBoth(a, b);
  LockBoth(b, a);
  gpr_mu_destroy(&a);
  gpr_mu_destroy(&b);
}

// Returns what `write` adds to our log.
std::string Logged(const std::function<void()>& write) {
  std::ostringstream text;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text)));
  spdlog::set_level(spdlog::level::debug);
  write();
  spdlog::set_default_logger(before);
  return text.str();
}

TEST(GrpcSetupTest, LinesOfGrpcGoToOurLog) {
  SetUpGrpc();
  const std::string text = Logged([] {
    gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);  // as grpc_init() does
    gpr_log(GPR_ERROR, "the handshake of %d failed", 7);
  });
  EXPECT_NE(text.find("gRPC: the handshake of 7 failed"), std::string::npos)
      << text;
}

TEST(GrpcSetupTest, LinesOfProtobufGoToOurLogAsDetails) {
  SetUpGrpc();
  const std::string text =
      Logged([] { GOOGLE_LOG(ERROR) << "a text is no UTF-8"; });
  EXPECT_NE(text.find("[debug] protobuf: a text is no UTF-8"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace lockstep
