#include "common/process/forked_children.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "gtest/gtest.h"

namespace lockstep {
namespace {

// True if `holds` is true in a child of this process.
bool InChild(const std::function<bool()>& holds) {
  const pid_t child = fork();
  if (child == 0) _exit(holds() ? 0 : 1);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool IsOpen(int descriptor) { return fcntl(descriptor, F_GETFD) >= 0; }

int Listen(int& port) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(listener, 1), 0);
  EXPECT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size),
            0);
  port = ntohs(address.sin_port);
  return listener;
}

TEST(ForkedChildrenTest, DescriptorsAreClosedUntilTheyAreKept) {
  const int one = open("/dev/null", O_RDONLY);
  const int other = open("/dev/null", O_RDONLY);
  CloseInChildren(one);
  EXPECT_TRUE(InChild([&] { return !IsOpen(one) && IsOpen(other); }));
  EXPECT_TRUE(IsOpen(one));

  KeepInChildren(one);
  EXPECT_TRUE(InChild([&] { return IsOpen(one); }));
  close(one);
  close(other);
}

TEST(ForkedChildrenTest, SocketsOfAPortAreClosedAndOthersStay) {
  int port = 0;
  int other_port = 0;
  const int listener = Listen(port);
  const int other = Listen(other_port);
  CloseSocketsInChildren(port);

  EXPECT_TRUE(InChild([&] { return !IsOpen(listener) && IsOpen(other); }));
  EXPECT_TRUE(IsOpen(listener));
  close(listener);
  close(other);
}

}  // namespace
}  // namespace lockstep
