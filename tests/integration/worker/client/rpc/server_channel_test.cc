#include "worker/client/rpc/server_channel.h"

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/rpc/server.h"
#include "common/wire/tensor_message.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

using Size = worker::ServerChannel::Size;
using Answer = std::pair<absl::Status, std::string>;

// Answers what it was asked, but for "wait", which it leaves unanswered, and
// "break", which ends the stream.
class EchoStream final
    : public grpc::ServerBidiReactor<v1::StreamedCalls, v1::StreamedAnswers> {
 public:
  EchoStream() { StartRead(&calls_); }
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    answers_.Clear();
    for (const v1::StreamedCall& call : calls_.calls()) {
      if (call.request() == "break") {
        return Finish({grpc::StatusCode::INTERNAL, "broken"});
      }
      if (call.request() == "wait") continue;
      v1::StreamedAnswer& answer = *answers_.add_answers();
      answer.set_id(call.id());
      answer.set_response(absl::StrCat(calls_.calls_size(), " ", call.method(),
                                       " ", call.request()));
    }
    StartWrite(&answers_);
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    StartRead(&calls_);
  }
  void OnDone() override { delete this; }

 private:
  v1::StreamedCalls calls_;
  v1::StreamedAnswers answers_;
};

class EchoService final : public v1::CallStreamService::CallbackService {
 public:
  grpc::ServerBidiReactor<v1::StreamedCalls, v1::StreamedAnswers>* Calls(
      grpc::CallbackServerContext* /*context*/) override {
    return new EchoStream;
  }
};

grpc::ByteBuffer Bytes(const std::string& text) {
  const grpc::Slice slice(text);
  return grpc::ByteBuffer(&slice, 1);
}

std::future<Answer> Start(worker::ServerChannel& channel,
                          const std::string& text,
                          absl::Duration deadline = absl::Minutes(1),
                          Size size = Size::kSmall) {
  auto promise = std::make_shared<std::promise<Answer>>();
  channel.Call(size, "m", Bytes(text), deadline,
               [promise](absl::Status status, grpc::ByteBuffer response) {
                 promise->set_value({std::move(status), CopyBytes(response)});
               });
  return promise->get_future();
}

class ServerChannelTest : public ::testing::Test {
 protected:
  ServerChannelTest() : server_(*GrpcServer::Start("127.0.0.1:0", {&echo_})) {}
  std::string address() const {
    return absl::StrCat("127.0.0.1:", server_->port());
  }

  EchoService echo_;
  std::unique_ptr<GrpcServer> server_;
  worker::CallPoller poller_;
};

TEST_F(ServerChannelTest, SmallCallsAreAnsweredOnTheStream) {
  worker::ServerChannel channel(poller_, address(), 1);
  EXPECT_EQ(Start(channel, "a").get(), Answer(absl::OkStatus(), "1 m a"));
  EXPECT_EQ(Start(channel, "b").get(), Answer(absl::OkStatus(), "1 m b"));
}

TEST_F(ServerChannelTest, CallsMadeTogetherTravelTogether) {
  worker::ServerChannel channel(poller_, address(), 1);
  std::future<Answer> first;
  std::future<Answer> second;
  {
    const worker::ServerChannel::Together together(channel);
    first = Start(channel, "a");
    second = Start(channel, "b");
  }
  EXPECT_EQ(first.get(), Answer(absl::OkStatus(), "2 m a"));
  EXPECT_EQ(second.get(), Answer(absl::OkStatus(), "2 m b"));
}

// A server ends a stream whose messages have more than 1024 calls.
TEST_F(ServerChannelTest, MessageHasAtMostAsManyCallsAsServersAccept) {
  worker::ServerChannel channel(poller_, address(), 1);
  std::vector<std::future<Answer>> calls;
  {
    const worker::ServerChannel::Together together(channel);
    for (int i = 0; i < 2500; ++i) {
      calls.push_back(Start(channel, absl::StrCat(i)));
    }
  }
  EXPECT_EQ(calls[0].get(), Answer(absl::OkStatus(), "1024 m 0"));
  EXPECT_EQ(calls[1023].get(), Answer(absl::OkStatus(), "1024 m 1023"));
  EXPECT_EQ(calls[1024].get(), Answer(absl::OkStatus(), "1024 m 1024"));
  EXPECT_EQ(calls[2048].get(), Answer(absl::OkStatus(), "452 m 2048"));
  EXPECT_EQ(calls[2499].get(), Answer(absl::OkStatus(), "452 m 2499"));
}

TEST_F(ServerChannelTest, CallsOfABrokenStreamHaveFailedAndTheNextHasANewOne) {
  worker::ServerChannel channel(poller_, address(), 1);
  auto waiting = Start(channel, "wait");
  auto breaking = Start(channel, "break");
  EXPECT_THAT(waiting.get().first, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(breaking.get().first, StatusIs(absl::StatusCode::kUnavailable));
  Answer answer;
  do {  // the stream ends after its calls
    answer = Start(channel, "a").get();
  } while (!answer.first.ok());
  EXPECT_EQ(answer.second, "1 m a");
}

TEST_F(ServerChannelTest, CallWithoutAnAnswerFailsAfterItsDeadline) {
  worker::ServerChannel channel(poller_, address(), 1);
  EXPECT_THAT(Start(channel, "wait", absl::Milliseconds(1)).get().first,
              StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST_F(ServerChannelTest, CancelEndsCallsAtHandAndLaterOnes) {
  worker::ServerChannel channel(poller_, address(), 1);
  auto waiting = Start(channel, "wait");
  channel.Cancel();
  EXPECT_THAT(waiting.get().first, StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(Start(channel, "a").get().first,
              StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(ServerChannelTest, ServerThatIsGoneMakesCallsUnavailable) {
  worker::ServerChannel channel(poller_, address(), 1);
  auto waiting = Start(channel, "wait");
  server_.reset();
  EXPECT_THAT(waiting.get().first, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(Start(channel, "a").get().first,
              StatusIs(absl::StatusCode::kUnavailable));
}

// Refuses streams, answers any other method with "alone", and remembers the
// peers.
class OldService final : public grpc::CallbackGenericService {
 public:
  std::set<std::string> peers() {
    MutexLock lock(mutex_);
    return peers_;
  }
  // The code of the refusal; by default that of a server without streams.
  void RefuseWith(grpc::StatusCode code) { refusal_ = code; }
  // Cancels all later calls, as a server does that shuts down.
  void Cancel() { cancels_ = true; }

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    {
      MutexLock lock(mutex_);
      peers_.insert(context->peer());
    }
    class Reactor final : public grpc::ServerGenericBidiReactor {
     public:
      Reactor(std::optional<grpc::StatusCode> refusal, bool cancels) {
        if (refusal.has_value()) {
          Finish({*refusal, "no stream"});
        } else if (cancels) {
          Finish({grpc::StatusCode::CANCELLED, "CANCELLED"});
        } else {
          answer_ = Bytes("alone");
          StartWriteAndFinish(&answer_, {}, grpc::Status::OK);
        }
      }
      void OnDone() override { delete this; }

     private:
      grpc::ByteBuffer answer_;
    };
    std::optional<grpc::StatusCode> refusal;
    if (absl::StrContains(context->method(), "CallStream")) refusal = refusal_;
    return new Reactor(refusal, cancels_);
  }

 private:
  std::atomic<grpc::StatusCode> refusal_ = grpc::StatusCode::UNIMPLEMENTED;
  std::atomic<bool> cancels_ = false;
  Mutex mutex_;
  std::set<std::string> peers_ ABSL_GUARDED_BY(mutex_);
};

TEST(ServerChannelToAnotherTaskTest, CallNamesItsAddress) {
  const auto server = GrpcServer::Start("127.0.0.1:0", {}).value();
  const std::string address = absl::StrCat("127.0.0.1:", server->port());
  worker::CallPoller poller;
  worker::ServerChannel channel(poller, address, 1);

  EXPECT_THAT(
      Start(channel, "a", absl::Minutes(1), Size::kLarge).get().first,
      StatusIs(absl::StatusCode::kUnimplemented,
               HasSubstr(absl::StrCat(address, " does not serve this call"))));
}

class ServerChannelWithoutStreamsTest : public ::testing::Test {
 protected:
  ServerChannelWithoutStreamsTest() {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterCallbackGenericService(&service_);
    server_ = builder.BuildAndStart();
    address_ = absl::StrCat("127.0.0.1:", port);
  }
  ~ServerChannelWithoutStreamsTest() override { server_->Shutdown(); }

  OldService service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
  worker::CallPoller poller_;
};

TEST_F(ServerChannelWithoutStreamsTest, SmallCallsTravelAlone) {
  for (const auto code : {grpc::StatusCode::UNIMPLEMENTED,
                          grpc::StatusCode::RESOURCE_EXHAUSTED}) {
    service_.RefuseWith(code);
    worker::ServerChannel channel(poller_, address_, 1);
    Answer answer;
    do {  // the first says that there are no streams
      answer = Start(channel, "a").get();
    } while (absl::IsUnavailable(answer.first));
    EXPECT_EQ(answer, Answer(absl::OkStatus(), "alone"));
  }
}

TEST_F(ServerChannelWithoutStreamsTest, LargeCallsTakeTurnsOnTheConnections) {
  worker::ServerChannel channel(poller_, address_, 3);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(Start(channel, "a", absl::Minutes(1), Size::kLarge).get(),
              Answer(absl::OkStatus(), "alone"));
  }
  EXPECT_THAT(service_.peers(), SizeIs(3));
}

TEST_F(ServerChannelWithoutStreamsTest, CallThatTheServerCancelsMayBeRepeated) {
  service_.Cancel();
  worker::ServerChannel channel(poller_, address_, 1);

  EXPECT_THAT(Start(channel, "a", absl::Minutes(1), Size::kLarge).get().first,
              StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace lockstep::testing
