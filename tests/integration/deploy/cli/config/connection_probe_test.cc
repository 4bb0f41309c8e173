#include "deploy/cli/config/connection_probe.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "deploy/cli/run/port_reservation.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::cli {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(20);

// A listening socket with a free port.
class Listener {
 public:
  Listener() : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address_);
    auto* const address = reinterpret_cast<sockaddr*>(&address_);
    EXPECT_EQ(bind(fd_, address, size), 0);
    EXPECT_EQ(listen(fd_, 1), 0);
    EXPECT_EQ(getsockname(fd_, address, &size), 0);
  }
  ~Listener() { close(fd_); }

  int port() const { return ntohs(address_.sin_port); }

 private:
  int fd_;
  sockaddr_in address_ = {};
};

TEST(ConnectionProbeTest, AListenerIsReached) {
  const Listener listener;

  for (const char* host : {"127.0.0.1", "localhost"}) {
    const ProbeResult result =
        ProbeConnection({host, listener.port()}, kTimeout);
    EXPECT_TRUE(result.reached) << host;
    EXPECT_EQ(result.text, "yes");
  }
}

TEST(ConnectionProbeTest, APortWithoutAListenerRefuses) {
  const absl::StatusOr<PortReservation> port = PortReservation::Create();
  ASSERT_OK(port);

  const ProbeResult result =
      ProbeConnection({"127.0.0.1", port->port()}, kTimeout);

  EXPECT_FALSE(result.reached);
  EXPECT_EQ(result.text, "refused");
}

TEST(ConnectionProbeTest, ANameThatCannotBeIsNotResolved) {
  const ProbeResult result = ProbeConnection({"a..b", 1}, kTimeout);

  EXPECT_FALSE(result.reached);
  EXPECT_FALSE(result.text.empty());
}

}  // namespace
}  // namespace lockstep::cli
