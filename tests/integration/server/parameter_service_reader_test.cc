// A client that asks for values and does not read the answer.

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/server/served_shard.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

// More than all buffers between two processes hold.
constexpr int64_t kElements = int64_t{8} << 20;
constexpr absl::Duration kPatience = absl::Seconds(60);

// Fields of HTTP/2, most significant byte first.
std::string BigEndian(uint32_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) {
    text.push_back(static_cast<char>(value >> (8 * i) & 0xff));
  }
  return text;
}

std::string Frame(uint32_t type, uint32_t flags, uint32_t stream,
                  absl::string_view payload) {
  return absl::StrCat(BigEndian(static_cast<uint32_t>(payload.size()), 3),
                      BigEndian(type, 1), BigEndian(flags, 1),
                      BigEndian(stream, 4), payload);
}

// A header that no table has.
std::string Header(absl::string_view name, absl::string_view value) {
  return absl::StrCat(absl::string_view("\0", 1),
                      BigEndian(static_cast<uint32_t>(name.size()), 1), name,
                      BigEndian(static_cast<uint32_t>(value.size()), 1), value);
}

// All that a client sends for one call, with windows as large as can be, so
// that nothing but its not reading holds the answer up.
std::string CallBytes(const std::string& path, const std::string& message) {
  constexpr uint32_t kWindow = 0x7fffffff;
  constexpr uint32_t kDefaultWindow = 65535;
  const std::string headers =
      Header(":method", "POST") + Header(":scheme", "http") +
      Header(":path", path) + Header(":authority", "localhost") +
      Header("content-type", "application/grpc") + Header("te", "trailers");
  const std::string body = absl::StrCat(
      absl::string_view("\0", 1),
      BigEndian(static_cast<uint32_t>(message.size()), 4), message);
  return absl::StrCat(
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      Frame(4, 0, 0, BigEndian(4, 2) + BigEndian(kWindow, 4)),  // SETTINGS
      Frame(8, 0, 0, BigEndian(kWindow - kDefaultWindow, 4)),   // WINDOW_UPDATE
      Frame(1, 4, 1, headers), Frame(0, 1, 1, body));
}

// A connection on which nobody ever reads.
class DeafClient {
 public:
  explicit DeafClient(int port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    const int small = 4096;
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_, reinterpret_cast<const sockaddr*>(&address),
                      sizeof(address)),
              0);
  }
  ~DeafClient() { close(fd_); }
  DeafClient(const DeafClient&) = delete;
  DeafClient& operator=(const DeafClient&) = delete;

  void Call(const std::string& path, const std::string& message) {
    const std::string bytes = CallBytes(path, message);
    EXPECT_EQ(send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

 private:
  const int fd_;
};

// A server of one variable in one part, which one worker's gradient updates.
class ReaderTest : public ::testing::Test {
 protected:
  ReaderTest() {
    server_.host().SetJobId(kJobId);
    JobConfig job = server_.Job();
    job.total_num_replicas = 1;
    const std::vector<VariableSpec> variables = {
        {"w",
         {kElements},
         DType::kFloat32,
         {Initializer::Kind::kConstant, 1, 0}}};
    shard_ = server_.host()
                 .Create(job, variables, {{0, 0, kElements, DType::kFloat32}})
                 .value();
    shard_->Activate(0, {}).value();
  }

  static v1::PullRequest PullRequest(int64_t step) {
    v1::PullRequest request = ServedShard::PullRequest(step);
    request.mutable_parts()->set_num_parts(1);
    return request;
  }
  // The step's only gradient; its update may have to wait.
  void Push(int64_t step) {
    lockstep::Push push;
    push.pass = {0, 1, step, step + 1, 0};
    push.attempt = 1;
    push.gradients = {{{{reinterpret_cast<const std::byte*>(gradient_.data()),
                         gradient_.size() * sizeof(float)}},
                       nullptr}};
    ASSERT_OK(shard_->engine().AddPush(1, std::move(push)));
  }
  bool WaitsFor(const char* what) const {
    return shard_->engine().WaitsFor().find(what) != std::string::npos;
  }
  bool IsPrepared(int64_t step) {
    shard_->engine().PartReturned(0);  // as the server's own thread does
    return shard_->engine().CheckCommit(step, 1).ok();
  }
  void Commit(int64_t step) { ASSERT_OK(shard_->engine().Commit(step, 1)); }

  int port() const {
    const std::string address = server_.address();
    return std::stoi(address.substr(address.find(':') + 1));
  }

  ServedShard server_;
  std::shared_ptr<Shard> shard_;
  const std::vector<float> gradient_ = std::vector<float>(kElements, 1);
};

TEST_F(ReaderTest, WhoDoesNotReadLosesItsConnectionAndHoldsUpNobodyForEver) {
  DeafClient deaf(port());
  deaf.Call("/lockstep.v1.ParameterService/Pull",
            PullRequest(0).SerializeAsString());
  const absl::Time deadline = absl::Now() + kPatience;
  // Once it has been answered it is in the way of a step, and then no more.
  int64_t blocked_step = -1;
  while (blocked_step < 0 || shard_->engine().step() < blocked_step + 2) {
    const int64_t step = shard_->engine().step();
    if (WaitsFor("gradients")) Push(step);
    if (WaitsFor("readers")) blocked_step = step;
    if (IsPrepared(step + 1)) Commit(step + 1);
    ASSERT_LT(absl::Now(), deadline) << shard_->engine().WaitsFor();
    std::this_thread::yield();
  }

  auto pulled = Call(server_.parameters(), &v1::ParameterService::Stub::Pull,
                     PullRequest(1));

  ASSERT_OK(pulled);
  EXPECT_EQ(pulled->header().step(), shard_->engine().step());
  EXPECT_EQ(pulled->payload().size(), kElements * sizeof(float));
}

}  // namespace
}  // namespace lockstep::testing
