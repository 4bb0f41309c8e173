#include "deploy/cli/run/port_reservation.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <set>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::cli {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;

// Listens on `port` of 127.0.0.1 as gRPC does. Returns the socket, or -1.
int Listen(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 &&
      listen(fd, 1) == 0) {
    return fd;
  }
  close(fd);
  return -1;
}

TEST(PortReservationTest, NoTwoAreTheSame) {
  std::vector<PortReservation> held;
  std::set<int> ports;
  for (int i = 0; i < 200; ++i) {
    absl::StatusOr<PortReservation> port = PortReservation::Create();
    ASSERT_THAT(port, IsOk());
    EXPECT_GT(port->port(), 0);
    EXPECT_TRUE(ports.insert(port->port()).second);
    held.push_back(*std::move(port));
  }
}

TEST(PortReservationTest, AServerCanListenWhileItLasts) {
  absl::StatusOr<PortReservation> port = PortReservation::Create();
  ASSERT_THAT(port, IsOk());

  const int server = Listen(port->port());

  EXPECT_GE(server, 0);
  close(server);
}

TEST(PortReservationTest, AServerCanListenAgain) {
  absl::StatusOr<PortReservation> port = PortReservation::Create();
  ASSERT_THAT(port, IsOk());
  close(Listen(port->port()));

  const int again = Listen(port->port());

  EXPECT_GE(again, 0);
  close(again);
}

TEST(PortReservationTest, AGivenPortIsKeptForItsServer) {
  const int port = PortReservation::Create()->port();

  const auto taken = PortReservation::Take("127.0.0.1", port);

  ASSERT_THAT(taken, IsOk());
  ASSERT_EQ(taken->size(), 1u);
  EXPECT_EQ(taken->front().port(), port);
  const int server = Listen(port);
  EXPECT_GE(server, 0);
  close(server);
}

TEST(PortReservationTest, APortWhereAProcessListensIsRefused) {
  const int port = PortReservation::Create()->port();
  const int server = Listen(port);
  ASSERT_GE(server, 0);

  for (const char* host : {"127.0.0.1", "localhost"}) {
    EXPECT_THAT(PortReservation::Take(host, port).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         ::testing::HasSubstr("the port is taken")))
        << host;
  }
  close(server);
}

TEST(PortReservationTest, TwoServersCannotListenAtOneAddress) {
  const absl::StatusOr<PortReservation> any = PortReservation::Create();
  ASSERT_THAT(any, IsOk());
  const int port = any->port();
  const auto all = PortReservation::Take("0.0.0.0", port);
  const auto first = PortReservation::Take("127.0.0.1", port);
  const auto again = PortReservation::Take("127.0.0.1", port);
  const auto second = PortReservation::Take("127.0.0.2", port);
  const auto other = PortReservation::Create();
  for (const auto* taken : {&all, &first, &again, &second}) {
    ASSERT_THAT(*taken, IsOk());
    ASSERT_EQ((*taken)->size(), 1u);
    EXPECT_TRUE((*taken)->front().Collides(*any));
    EXPECT_TRUE((*taken)->front().Collides(all->front()));
    EXPECT_TRUE(all->front().Collides((*taken)->front()));
  }
  EXPECT_TRUE(first->front().Collides(again->front()));
  EXPECT_FALSE(first->front().Collides(second->front()));
  ASSERT_THAT(other, IsOk());
  EXPECT_FALSE(other->Collides(*any));
}

TEST(PortReservationTest, WhatANameMeansIsLeftToTheProgram) {
  EXPECT_THAT(PortReservation::Take("no.such.host.invalid", 80), IsOk());
}

}  // namespace
}  // namespace lockstep::cli
