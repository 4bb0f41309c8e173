#include "common/rpc/tcp_listener.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ctime>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "spdlog/logger.h"
#include "spdlog/sinks/ostream_sink.h"
#include "spdlog/spdlog.h"
#include "tests/testing/raw_socket.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::RawSocket;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kPatienceMillis = 60'000;

// Keeps the sockets that it receives.
class Keeper {
 public:
  ~Keeper() { CloseAll(); }

  TcpListener::Take Take() {
    return [this](int, int socket) {
      MutexLock lock(mutex_);
      thread_ = pthread_self();
      sockets_.push_back(socket);
      changed_.SignalAll();
    };
  }
  // Waits until it has `count` sockets.
  bool Has(size_t count) {
    MutexLock lock(mutex_);
    const auto deadline = std::chrono::steady_clock::now() +
                          std::chrono::milliseconds(kPatienceMillis);
    while (sockets_.size() < count) {
      const auto left = deadline - std::chrono::steady_clock::now();
      if (left.count() <= 0) return false;
      changed_.WaitFor(mutex_, left);
    }
    return true;
  }
  // Shuts a socket down and keeps it open, as gRPC does while calls on its
  // connection run.
  void ShutDown(size_t index) {
    MutexLock lock(mutex_);
    shutdown(sockets_[index], SHUT_RDWR);
  }
  // The processor time of the thread that passed the sockets on.
  absl::Duration ThreadTime() {
    MutexLock lock(mutex_);
    clockid_t clock = {};
    timespec used = {};
    pthread_getcpuclockid(thread_, &clock);
    clock_gettime(clock, &used);
    return absl::DurationFromTimespec(used);
  }
  // Closes sockets as gRPC does.
  void CloseAll() {
    MutexLock lock(mutex_);
    for (const int socket : sockets_) {
      shutdown(socket, SHUT_RDWR);
      close(socket);
    }
    sockets_.clear();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<int> sockets_ ABSL_GUARDED_BY(mutex_);
  pthread_t thread_ ABSL_GUARDED_BY(mutex_) = {};
};

bool Becomes(const TcpListener& listener, size_t connections) {
  for (int i = 0; i < kPatienceMillis / 10; ++i) {
    if (listener.connections() == connections) return true;
    absl::SleepFor(absl::Milliseconds(10));
  }
  return false;
}

// During its life, this process opens only files with numbers below a limit.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(int limit) {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit lower = before_;
    lower.rlim_cur = static_cast<rlim_t>(limit);
    setrlimit(RLIMIT_NOFILE, &lower);
  }
  ~DescriptorLimit() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_ = {};
};

// Lets a connection come while there is one descriptor, so that accepting it
// succeeds and watching it does not. Returns what the listener logs.
std::string LoggedWithOneDescriptor() {
  std::ostringstream log;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
  auto listener = TcpListener::Listen("127.0.0.1:0", {});
  EXPECT_OK(listener);
  Keeper keeper;
  (*listener)->Start(keeper.Take());
  const RawSocket late((*listener)->port(), "127.0.0.1",
                       /*connect_now=*/false);
  const int lowest = dup(STDERR_FILENO);
  close(lowest);
  {
    const DescriptorLimit one(lowest + 1);
    EXPECT_TRUE(late.Connect());
    late.IsClosedWithin(2'000);
    (*listener)->Stop();
  }
  spdlog::set_default_logger(before);
  return log.str();
}

// Returns an error if the port of a listener that has stopped is not free.
absl::Status StopAndListenAgain() {
  auto stopped = TcpListener::Listen("127.0.0.1:0", {10, 10});
  if (!stopped.ok()) return stopped.status();
  const int port = (*stopped)->port();
  Keeper keeper;
  (*stopped)->Start(keeper.Take());

  (*stopped)->Stop();

  const RawSocket refused(port, "127.0.0.1", /*connect_now=*/false);
  if (refused.Connect()) {
    return absl::AlreadyExistsError("it still takes connections");
  }
  return TcpListener::Listen(absl::StrCat("127.0.0.1:", port), {10, 10})
      .status();
}

TEST(TcpListenerTest, PortIsFreeOnceItHasStopped) {
  // The system may give a port that is free to another process at once.
  absl::Status status = StopAndListenAgain();
  for (int i = 1; i < 5 && !status.ok(); ++i) status = StopAndListenAgain();
  EXPECT_OK(status);
}

TEST(TcpListenerTest, ConnectionsAreCountedUntilTheyAreClosed) {
  auto listener = TcpListener::Listen("127.0.0.1:0", {});
  ASSERT_OK(listener);
  Keeper keeper;
  (*listener)->Start(keeper.Take());

  const RawSocket one((*listener)->port());
  const RawSocket two((*listener)->port());
  ASSERT_TRUE(keeper.Has(2));
  EXPECT_EQ((*listener)->connections(), 2u);

  keeper.CloseAll();
  EXPECT_TRUE(Becomes(**listener, 0));
  EXPECT_TRUE(one.IsClosedWithin(kPatienceMillis));
}

TEST(TcpListenerTest, ConnectionThatIsShutDownButOpenIsForgotten) {
  auto listener = TcpListener::Listen("127.0.0.1:0", {});
  ASSERT_OK(listener);
  Keeper keeper;
  (*listener)->Start(keeper.Take());
  // Two descriptors below those of the first connection.
  const int low[] = {dup(STDERR_FILENO), dup(STDERR_FILENO)};
  const RawSocket one((*listener)->port());
  ASSERT_TRUE(keeper.Has(1));
  keeper.ShutDown(0);
  ASSERT_TRUE(Becomes(**listener, 0));

  // The thread sleeps, although the socket is still open.
  const absl::Duration before = keeper.ThreadTime();
  absl::SleepFor(absl::Milliseconds(200));
  EXPECT_LT(keeper.ThreadTime() - before, absl::Milliseconds(50));

  // The sockets of the next connection take the low descriptors, so the
  // duplicate takes the number of the first connection's duplicate. An event of
  // the first connection would make the listener forget the second one.
  for (const int descriptor : low) close(descriptor);
  const RawSocket two((*listener)->port());
  ASSERT_TRUE(keeper.Has(2));
  const RawSocket three((*listener)->port());
  ASSERT_TRUE(keeper.Has(3));
  keeper.ShutDown(2);
  ASSERT_TRUE(Becomes(**listener, 1));  // all events so far are handled
  const RawSocket four((*listener)->port());
  ASSERT_TRUE(keeper.Has(4));
  EXPECT_EQ((*listener)->connections(), 2u);
  keeper.CloseAll();
  EXPECT_TRUE(Becomes(**listener, 0));
}

TEST(TcpListenerTest, ConnectionBeyondTheLimitIsClosedAtOnce) {
  auto listener = TcpListener::Listen("127.0.0.1:0", {2, 2});
  ASSERT_OK(listener);
  Keeper keeper;
  (*listener)->Start(keeper.Take());
  const RawSocket one((*listener)->port());
  const RawSocket two((*listener)->port());
  ASSERT_TRUE(keeper.Has(2));

  const RawSocket three((*listener)->port());
  EXPECT_TRUE(three.IsClosedWithin(kPatienceMillis));
  EXPECT_FALSE(one.IsClosedWithin(0));

  keeper.CloseAll();
  ASSERT_TRUE(Becomes(**listener, 0));
  const RawSocket four((*listener)->port());
  EXPECT_TRUE(keeper.Has(1));
}

TEST(TcpListenerTest, OneAddressLeavesRoomForOthers) {
  auto listener = TcpListener::Listen("127.0.0.1:0", {8, 2});
  ASSERT_OK(listener);
  Keeper keeper;
  (*listener)->Start(keeper.Take());
  const RawSocket one((*listener)->port());
  const RawSocket two((*listener)->port());
  ASSERT_TRUE(keeper.Has(2));

  const RawSocket three((*listener)->port());
  EXPECT_TRUE(three.IsClosedWithin(kPatienceMillis));
  const RawSocket other((*listener)->port(), "127.0.0.2");
  EXPECT_TRUE(keeper.Has(3));
}

TEST(TcpListenerTest, GoesOnWhenDescriptorsAreBack) {
  auto listener = TcpListener::Listen("127.0.0.1:0", {});
  ASSERT_OK(listener);
  Keeper keeper;
  (*listener)->Start(keeper.Take());
  const RawSocket early((*listener)->port());
  ASSERT_TRUE(keeper.Has(1));
  const RawSocket late((*listener)->port(), "127.0.0.1",
                       /*connect_now=*/false);
  {
    // Not the next free number: gRPC's threads of an earlier test may still
    // close files, whose numbers are lower.
    const DescriptorLimit none(3);
    ASSERT_TRUE(late.Connect());  // the system accepts it, this process cannot
    absl::SleepFor(absl::Milliseconds(200));
    EXPECT_EQ((*listener)->connections(), 1u);
  }
  EXPECT_TRUE(keeper.Has(2));
}

TEST(TcpListenerTest, DescriptorThatIsMissingForTheWatchIsLogged) {
  // gRPC's threads of an earlier test may free descriptors meanwhile, and log.
  std::string log = LoggedWithOneDescriptor();
  for (int i = 1; i < 5 && log.find("LimitNOFILE") == log.npos; ++i) {
    log = LoggedWithOneDescriptor();
  }
  EXPECT_THAT(log, AllOf(HasSubstr("takes no new connections: Too many open"),
                         HasSubstr("LimitNOFILE")));
}

TEST(TcpListenerTest, PortThatIsTakenIsRefused) {
  const auto first = TcpListener::Listen("127.0.0.1:0", {});
  ASSERT_OK(first);
  const int port = (*first)->port();
  for (const char* host : {"127.0.0.1", "localhost", "[::]"}) {
    EXPECT_THAT(TcpListener::Listen(absl::StrCat(host, ":", port), {}),
                StatusIs(absl::StatusCode::kUnavailable,
                         HasSubstr("the port is taken")))
        << host;
  }
}

TEST(TcpListenerTest, AddressOfAnotherMachineIsRefused) {
  EXPECT_THAT(TcpListener::Listen("192.0.2.1:0", {}),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("the host is not this machine")));
  EXPECT_THAT(TcpListener::Listen("[2001:db8::1]:0", {}),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("cannot listen on [2001:db8::1]:0: ")));
  EXPECT_THAT(TcpListener::Listen("127.0.0.1", {}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(TcpListenerTest, LimitsFollowTheNumberOfDescriptors) {
  EXPECT_EQ(ConnectionLimits::For(1024).all, 384u);
  EXPECT_EQ(ConnectionLimits::For(1024).of_one_address, 192u);
  EXPECT_EQ(ConnectionLimits::For(1 << 20).all, 8192u);
  EXPECT_EQ(ConnectionLimits::For(0).all, 32u);
}

}  // namespace
}  // namespace lockstep
