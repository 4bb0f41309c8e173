#include "common/observe/status_server.h"

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/raw_socket.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::RawSocket;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kPatienceMillis = 20'000;

StatusServer::Options OnePage() {
  return {.pages = {{.path = "/metrics",
                     .type = "text/plain; version=0.0.4",
                     .body = [] { return "m 1\n"; }}}};
}

// Returns everything that the server answers until it closes the connection.
std::string Ask(int port, const std::string& request) {
  const RawSocket socket(port);
  socket.Send(request);
  std::string answer;
  while (true) {
    const std::string more = socket.Receive(kPatienceMillis);
    if (more.empty()) return answer;
    answer += more;
  }
}

std::string Get(int port, const std::string& path) {
  return Ask(
      port, absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"));
}

// Pages of one path that count how often they are made.
StatusServer::Options Counting(int& made, absl::Duration lasts) {
  return {
      .pages = {{.path = "/count",
                 .type = "text/plain",
                 .body = [&made] { return absl::StrCat(++made, " made\n"); },
                 .lasts = lasts}}};
}

TEST(StatusServerTest, APageIsMadeAnewForEachRequestUnlessItLasts) {
  int made = 0;
  auto server =
      StatusServer::Start("127.0.0.1:0", Counting(made, absl::ZeroDuration()));
  ASSERT_OK(server);
  for (const char* expected : {"\r\n\r\n1 made\n", "\r\n\r\n2 made\n"}) {
    const std::string answer = Get((*server)->port(), "/count");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_THAT(answer, HasSubstr("Content-Type: text/plain\r\n"));
    EXPECT_THAT(answer, HasSubstr(expected));
  }

  made = 0;
  server = StatusServer::Start("127.0.0.1:0", Counting(made, absl::Hours(1)));
  ASSERT_OK(server);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(Get((*server)->port(), "/count"), EndsWith("1 made\n"));
  }
}

TEST(StatusServerTest, HealthIsToldWithoutMakingPages) {
  int made = 0;
  auto server =
      StatusServer::Start("127.0.0.1:0", Counting(made, absl::ZeroDuration()));
  ASSERT_OK(server);
  for (const char* path : {"/healthz", "/healthz?verbose"}) {
    const std::string answer = Get((*server)->port(), path);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n")) << path;
    EXPECT_THAT(answer, EndsWith("\r\n\r\nok\n")) << path;
  }
  EXPECT_EQ(made, 0);
}

TEST(StatusServerTest, HealthIsThatOfItsSource) {
  absl::Status health = absl::UnavailableError("the server is deaf");
  StatusServer::Options options = OnePage();
  options.health = [&] { return health; };
  auto server = StatusServer::Start("127.0.0.1:0", options);
  ASSERT_OK(server);
  EXPECT_THAT(Get((*server)->port(), "/healthz"),
              AllOf(StartsWith("HTTP/1.1 503 Service Unavailable\r\n"),
                    EndsWith("\r\n\r\nthe server is deaf\n")));
  health = absl::OkStatus();
  EXPECT_THAT(Get((*server)->port(), "/healthz"),
              StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST(StatusServerTest, AnswersLoadNothingFromElsewhere) {
  StatusServer::Options options = OnePage();
  options.pages[0].policy = "; script-src 'sha256-x'";
  auto server = StatusServer::Start("127.0.0.1:0", options);
  ASSERT_OK(server);
  EXPECT_THAT(
      Get((*server)->port(), "/metrics"),
      AllOf(HasSubstr("\r\nContent-Security-Policy: default-src 'none'; "),
            HasSubstr("; script-src 'sha256-x'\r\n"),
            HasSubstr("\r\nX-Content-Type-Options: nosniff\r\n"),
            HasSubstr("\r\nReferrer-Policy: no-referrer\r\n")));
}

TEST(StatusServerTest, RequestsForAnotherHostAreRefused) {
  StatusServer::Options options = OnePage();
  options.host_names = {"chief.example"};
  auto server = StatusServer::Start("127.0.0.1:0", options);
  ASSERT_OK(server);
  const auto ask = [&](const std::string& host) {
    return Ask(
        (*server)->port(),
        absl::StrCat("GET /metrics HTTP/1.1\r\nHost: ", host, "\r\n\r\n"));
  };
  for (const char* own : {"127.0.0.1:80", "localhost:80", "Chief.example:9100",
                          "[::1]:80", "10.0.0.7"}) {
    EXPECT_THAT(ask(own), StartsWith("HTTP/1.1 200")) << own;
  }
  for (const char* other : {"evil.example", "127.0.0.1.evil.example:80"}) {
    EXPECT_THAT(ask(other), StartsWith("HTTP/1.1 421")) << other;
  }
}

TEST(StatusServerTest, PrivatePagesAreForTheOwnUserOfThisMachine) {
  StatusServer::Options options = OnePage();
  options.guard = true;
  options.pages.push_back({.path = "/private",
                           .type = "text/plain",
                           .body = [] { return "secret"; },
                           .is_private = true});
  auto server = StatusServer::Start("127.0.0.1:0", options);
  ASSERT_OK(server);
  EXPECT_THAT(Get((*server)->port(), "/private"), EndsWith("\r\n\r\nsecret"));
  if (geteuid() != 0) {
    GTEST_SKIP() << "SKIPPED, NOTHING WAS PROVED: another user takes root";
  }

  // Another user of this machine, in a process of its own.
  int ends[2] = {};
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    std::string answers = "no other user";
    if (setresuid(kNobody, kNobody, kNobody) == 0) {
      answers = Get((*server)->port(), "/private") +
                Get((*server)->port(), "/metrics");
    }
    const ssize_t written = write(ends[1], answers.data(), answers.size());
    _exit(written == static_cast<ssize_t>(answers.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string answers;
  char buffer[4096];
  for (ssize_t count; (count = read(ends[0], buffer, sizeof(buffer))) > 0;) {
    answers.append(buffer, static_cast<size_t>(count));
  }
  close(ends[0]);
  waitpid(child, nullptr, 0);
  EXPECT_THAT(answers, AllOf(StartsWith("HTTP/1.1 403"), EndsWith("m 1\n"),
                             ::testing::Not(HasSubstr("secret"))));
}

TEST(StatusServerTest, NothingElseIsServed) {
  auto server = StatusServer::Start("127.0.0.1:0", OnePage());
  ASSERT_OK(server);
  for (const char* path :
       {"/", "/etc/passwd", "/metrics/../x", "/metricsx", "/healthzx",
        "//metrics", "/./metrics", "/%6detrics", "/metrics/", "/metrics%00",
        "/../metrics", "/METRICS"}) {
    EXPECT_THAT(Get((*server)->port(), path), StartsWith("HTTP/1.1 404"))
        << path;
  }
}

TEST(StatusServerTest, OnlyGetIsServed) {
  auto server = StatusServer::Start("127.0.0.1:0", OnePage());
  ASSERT_OK(server);
  for (const char* method :
       {"HEAD", "POST", "PUT", "DELETE", "OPTIONS", "get"}) {
    EXPECT_THAT(Ask((*server)->port(),
                    absl::StrCat(method, " /metrics HTTP/1.1\r\n\r\n")),
                StartsWith("HTTP/1.1 405"))
        << method;
  }
}

TEST(StatusServerTest, MalformedRequestIsRefused) {
  auto server = StatusServer::Start("127.0.0.1:0", OnePage());
  ASSERT_OK(server);
  for (const char* text :
       {"\r\n\r\n", "GET /metrics\r\n\r\n", "GET /metrics SPDY/3\r\n\r\n",
        "GET  /metrics HTTP/1.1\r\n\r\n",
        "GET http://x/metrics HTTP/1.1\r\n\r\n",
        "GET /metrics HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"}) {
    EXPECT_THAT(Ask((*server)->port(), text), StartsWith("HTTP/1.1 400"))
        << text;
  }
}

TEST(StatusServerTest, EndlessBodyIsNotRead) {
  auto server = StatusServer::Start("127.0.0.1:0", OnePage());
  ASSERT_OK(server);
  for (const char* how :
       {"Content-Length: 600000000", "Transfer-Encoding: chunked"}) {
    const RawSocket socket((*server)->port());
    ASSERT_TRUE(socket.Send(
        absl::StrCat("POST /metrics HTTP/1.1\r\n", how, "\r\n\r\n")));
    EXPECT_THAT(socket.Receive(), StartsWith("HTTP/1.1 405")) << how;
    EXPECT_FALSE(socket.Send(std::string(32 << 20, 'x'))) << how;
  }
}

TEST(StatusServerTest, EndlessLineIsNotRead) {
  auto server = StatusServer::Start("127.0.0.1:0", OnePage());
  ASSERT_OK(server);
  const RawSocket socket((*server)->port());

  EXPECT_FALSE(socket.Send("GET /" + std::string(32 << 20, 'x')));
}

TEST(StatusServerTest, IdleConnectionsDoNotStopAScrape) {
  auto server = StatusServer::Start("127.0.0.1:0", OnePage());
  ASSERT_OK(server);
  std::vector<RawSocket> idle;
  for (int i = 0; i < 8; ++i) idle.emplace_back((*server)->port());
  idle.front().Send("GET /met");

  EXPECT_THAT(Get((*server)->port(), "/metrics"), HasSubstr("m 1\n"));
  for (const RawSocket& socket : idle) {
    EXPECT_TRUE(socket.IsClosedWithin(kPatienceMillis));
  }
}

TEST(StatusServerTest, SilentConnectionsThatKeepComingStopNoProbe) {
  auto server = StatusServer::Start("127.0.0.1:0", OnePage());
  ASSERT_OK(server);
  const int port = (*server)->port();
  std::atomic<bool> over = false;
  std::thread peer([port, &over] {
    std::list<RawSocket> silent;
    while (!over) {
      silent.remove_if(
          [](const RawSocket& socket) { return socket.HasEnded(); });
      while (silent.size() < 23) silent.emplace_back(port);
      absl::SleepFor(absl::Milliseconds(1));
    }
  });
  absl::SleepFor(absl::Milliseconds(200));
  // From another address, as those of a kubelet: a peer has its own limit.
  int healthy = 0;
  for (int i = 0; i < 20; ++i) {
    const RawSocket probe(port, "127.0.0.2");
    probe.Send("GET /healthz HTTP/1.1\r\n\r\n");
    if (probe.Receive(kPatienceMillis).starts_with("HTTP/1.1 200")) ++healthy;
  }
  over = true;
  peer.join();

  // Where a probe is slow, more than 16 other connections may come before its
  // request.
  EXPECT_GE(healthy, 15);
}

TEST(StatusServerTest, ConnectionsBeyondTheQueueAreClosed) {
  auto server = StatusServer::Start("127.0.0.1:0", OnePage());
  ASSERT_OK(server);
  std::vector<RawSocket> idle;
  for (int i = 0; i < 200; ++i) idle.emplace_back((*server)->port());

  EXPECT_TRUE(idle.back().IsClosedWithin(kPatienceMillis));
}

TEST(StatusServerTest, PortThatIsTakenIsRefused) {
  auto first = StatusServer::Start("127.0.0.1:0", OnePage());
  ASSERT_OK(first);
  EXPECT_THAT(StatusServer::Start(absl::StrCat("127.0.0.1:", (*first)->port()),
                                  OnePage()),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("the status"), HasSubstr("is taken"),
                             HasSubstr("free the port"))));
}

TEST(StatusServerTest, AddressWithoutHostOrPortIsRefused) {
  for (const char* address :
       {"", "9100", ":9100", "host:", "host:x", "host:-1", "host:65536"}) {
    EXPECT_THAT(StatusServer::Start(address, OnePage()),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("expected host:port")))
        << address;
  }
}

TEST(StatusServerTest, ServerThatWasNeverAskedEnds) {
  for (int i = 0; i < 10; ++i) {
    ASSERT_OK(StatusServer::Start("127.0.0.1:0", OnePage()));
  }
}

}  // namespace
}  // namespace lockstep
