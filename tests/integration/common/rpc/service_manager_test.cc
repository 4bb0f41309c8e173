#include "common/rpc/service_manager.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/rpc/server.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "tests/testing/raw_socket.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

constexpr int kPatienceMillis = 20'000;

// A stand-in for systemd: the socket that services send to.
class ServiceManagerClientTest : public ::testing::Test {
 protected:
  ServiceManagerClientTest()
      : socket_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    const std::string path = directory_.Join("notify");
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(socket_, reinterpret_cast<const sockaddr*>(&address),
                   sizeof(address)),
              0);
    setenv("NOTIFY_SOCKET", path.c_str(), 1);
    auto server = GrpcServer::Start("127.0.0.1:0", {});
    EXPECT_OK(server);
    server_ = *std::move(server);
  }
  ~ServiceManagerClientTest() override {
    for (const char* name :
         {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) {
      unsetenv(name);
    }
    close(socket_);
  }

  std::string address() const {
    return absl::StrCat("127.0.0.1:", server_->port());
  }

  // Nothing if no message arrives.
  std::optional<std::string> NextMessage(int patience_millis) const {
    pollfd readable = {socket_, POLLIN, 0};
    if (poll(&readable, 1, patience_millis) != 1) return std::nullopt;
    char buffer[512];
    const ssize_t got = recv(socket_, buffer, sizeof(buffer), 0);
    return std::string(buffer, got > 0 ? got : 0);
  }

  testing::TempDir directory_;
  int socket_;
  std::unique_ptr<GrpcServer> server_;
};

TEST_F(ServiceManagerClientTest, SaysWhenItIsReadyAndWhenItLeaves) {
  {
    const ServiceManagerClient client(address());
    EXPECT_THAT(NextMessage(kPatienceMillis), Optional(HasSubstr("READY=1")));
  }
  EXPECT_THAT(NextMessage(kPatienceMillis), Optional(HasSubstr("STOPPING=1")));
  EXPECT_EQ(NextMessage(0), std::nullopt);
}

TEST_F(ServiceManagerClientTest, IsAliveWhileItsServerAnswers) {
  setenv("WATCHDOG_USEC", "100000", 1);
  setenv("WATCHDOG_PID", absl::StrCat(getpid()).c_str(), 1);
  const ServiceManagerClient client(address());
  EXPECT_THAT(NextMessage(kPatienceMillis), Optional(HasSubstr("READY=1")));

  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(NextMessage(kPatienceMillis),
                Optional(HasSubstr("WATCHDOG=1")));
  }
}

TEST_F(ServiceManagerClientTest, IsSilentOnceItsServerDoesNot) {
  setenv("WATCHDOG_USEC", "100000", 1);
  setenv("WATCHDOG_PID", absl::StrCat(getpid()).c_str(), 1);
  server_->Shutdown(absl::ZeroDuration());
  {
    const ServiceManagerClient client(address());
    EXPECT_THAT(NextMessage(kPatienceMillis), Optional(HasSubstr("READY=1")));
    EXPECT_EQ(NextMessage(500), std::nullopt);
  }
  EXPECT_THAT(NextMessage(kPatienceMillis), Optional(HasSubstr("STOPPING=1")));
}

TEST_F(ServiceManagerClientTest, IsSilentWhileItsServerSaysItDoesNotServe) {
  setenv("WATCHDOG_USEC", "100000", 1);
  setenv("WATCHDOG_PID", absl::StrCat(getpid()).c_str(), 1);
  server_->SetServing(false);
  const ServiceManagerClient client(address());
  EXPECT_THAT(NextMessage(kPatienceMillis), Optional(HasSubstr("READY=1")));
  EXPECT_EQ(NextMessage(1'000), std::nullopt);

  server_->SetServing(true);
  EXPECT_THAT(NextMessage(kPatienceMillis), Optional(HasSubstr("WATCHDOG=1")));
}

TEST_F(ServiceManagerClientTest, IsSilentWhileItsServerTakesNoConnections) {
  setenv("WATCHDOG_USEC", "300000", 1);
  setenv("WATCHDOG_PID", absl::StrCat(getpid()).c_str(), 1);
  GrpcServer::Options few;
  few.connections = {4, 4};
  const auto server = GrpcServer::Start("127.0.0.1:0", {}, few);
  ASSERT_OK(server);
  const int port = (*server)->port();
  const ServiceManagerClient client(absl::StrCat("127.0.0.1:", port));
  EXPECT_THAT(NextMessage(kPatienceMillis), Optional(HasSubstr("READY=1")));
  EXPECT_THAT(NextMessage(kPatienceMillis), Optional(HasSubstr("WATCHDOG=1")));
  {
    // Another connection may take one of the four places for a moment.
    std::vector<testing::RawSocket> idle;
    do {
      for (int i = 0; i < 8; ++i) idle.emplace_back(port);
    } while (NextMessage(300).has_value() && idle.size() < 400);

    EXPECT_EQ(NextMessage(1'000), std::nullopt);
  }
  EXPECT_THAT(NextMessage(kPatienceMillis), Optional(HasSubstr("WATCHDOG=1")));
}

// Answers that it serves, but leaves the second call without an answer.
class SilentOnceService final : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext*) override {
    class Reactor final : public grpc::ServerGenericBidiReactor {
     public:
      explicit Reactor(bool answers) : answers_(answers) {
        if (!answers) return;
        const grpc::Slice serving("\x08\x01");
        answer_ = grpc::ByteBuffer(&serving, 1);
        StartWriteAndFinish(&answer_, {}, grpc::Status::OK);
      }
      // The caller does not wait any longer.
      void OnCancel() override {
        if (!answers_) Finish(grpc::Status::CANCELLED);
      }
      void OnDone() override { delete this; }

     private:
      const bool answers_;
      grpc::ByteBuffer answer_;
    };
    return new Reactor(++calls_ != 2);
  }
  int calls() const { return calls_; }

 private:
  std::atomic<int> calls_ = 0;
};

TEST_F(ServiceManagerClientTest, OneCheckWithoutAnAnswerCausesNoRestart) {
  constexpr int kWatchdogMillis = 3'000;
  setenv("WATCHDOG_USEC", absl::StrCat(kWatchdogMillis * 1000).c_str(), 1);
  setenv("WATCHDOG_PID", absl::StrCat(getpid()).c_str(), 1);
  SilentOnceService service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterCallbackGenericService(&service);
  // gRPC's own health service would answer before the generic one.
  const bool has_own = grpc::DefaultHealthCheckServiceEnabled();
  grpc::EnableDefaultHealthCheckService(false);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  grpc::EnableDefaultHealthCheckService(has_own);
  ASSERT_NE(server, nullptr);
  {
    const ServiceManagerClient client(absl::StrCat("127.0.0.1:", port));
    EXPECT_THAT(NextMessage(kPatienceMillis), Optional(HasSubstr("READY=1")));
    EXPECT_THAT(NextMessage(kPatienceMillis),
                Optional(HasSubstr("WATCHDOG=1")));

    EXPECT_THAT(NextMessage(kWatchdogMillis),
                Optional(HasSubstr("WATCHDOG=1")));
    EXPECT_EQ(service.calls(), 3);
  }
  server->Shutdown();
}

TEST_F(ServiceManagerClientTest, DoesNothingWithoutAServiceManager) {
  unsetenv("NOTIFY_SOCKET");
  { const ServiceManagerClient client(address()); }
  EXPECT_EQ(NextMessage(0), std::nullopt);
}

}  // namespace
}  // namespace lockstep
