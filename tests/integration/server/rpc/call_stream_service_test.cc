#include "server/rpc/call_stream_service.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/rpc/channel.h"
#include "common/rpc/server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/server/rpc/served_shard.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kPush[] = "/lockstep.v1.ParameterService/Push";
constexpr char kPull[] = "/lockstep.v1.ParameterService/Pull";
constexpr char kAnnounce[] = "/lockstep.v1.SyncService/Announce";
constexpr char kTakeToken[] = "/lockstep.v1.SyncService/TakeToken";

// Speaks with ordinary generated code.
class CallStreamServiceTest : public ::testing::Test {
 protected:
  CallStreamServiceTest()
      : stub_(v1::CallStreamService::NewStub(shard_.channel())),
        stream_(stub_->Calls(&context_)) {
    shard_.Open();
  }

  template <typename Request>
  void Add(const std::string& method, const Request& request) {
    v1::StreamedCall& call = *calls_.add_calls();
    call.set_id(++last_id_);
    call.set_method(method);
    call.set_request(request.SerializeAsString());
  }
  void Send() {
    EXPECT_TRUE(stream_->Write(calls_));
    calls_.Clear();
  }
  v1::StreamedAnswer Next() {
    while (next_ == answers_.answers_size()) {
      next_ = 0;
      if (!stream_->Read(&answers_)) {
        ADD_FAILURE() << "the stream ended";
        return {};
      }
    }
    return answers_.answers(next_++);
  }

  ServedShard shard_;
  const std::unique_ptr<v1::CallStreamService::Stub> stub_;
  grpc::ClientContext context_;
  const std::unique_ptr<
      grpc::ClientReaderWriter<v1::StreamedCalls, v1::StreamedAnswers>>
      stream_;
  v1::StreamedCalls calls_;
  uint64_t last_id_ = 0;

 private:
  v1::StreamedAnswers answers_;
  int next_ = 0;
};

TEST_F(CallStreamServiceTest, AnswerIsThatOfTheMethod) {
  Add(kPull, ServedShard::PullRequest(0));
  Send();

  const v1::StreamedAnswer answer = Next();
  EXPECT_EQ(answer.id(), 1u);
  EXPECT_EQ(answer.code(), 0);
  v1::PullResponse response;
  ASSERT_TRUE(response.ParseFromString(answer.response()));
  EXPECT_EQ(response.payload().size(), 8 * sizeof(float) + 2 * sizeof(double));
}

TEST_F(CallStreamServiceTest, CallsThatWaitDoNotHoldUpOthers) {
  Add(kTakeToken, ServedShard::TokenRequest(1, 0));  // waits for step 1
  Add(kAnnounce, ServedShard::AnnounceRequest(0, 0));
  Add(kPush, ServedShard::PushRequest(0, 1, 2));
  Send();

  const v1::StreamedAnswer announced = Next();
  EXPECT_EQ(announced.id(), 2u);
  const v1::StreamedAnswer pushed = Next();
  EXPECT_EQ(pushed.id(), 3u);
  shard_.FinishStep(0);
  const v1::StreamedAnswer token = Next();
  EXPECT_EQ(token.id(), 1u);
  v1::TakeTokenResponse response;
  ASSERT_TRUE(response.ParseFromString(token.response()));
  EXPECT_EQ(response.outcome(), v1::TOKEN);
  EXPECT_EQ(response.step(), 1);
}

// Waits for a step in a thread, as the chief does.
class Take {
 public:
  explicit Take(ServedShard& shard)
      : thread_([this, &shard] {
          answer_ = Call(shard.control(),
                         &v1::ShardControlService::Stub::TakeAndApply,
                         shard.TakeRequest(0));
          done_ = true;
        }) {}
  ~Take() { thread_.join(); }

  bool done() const { return done_; }
  const absl::StatusOr<v1::TakeAndApplyResponse>& answer() const {
    return answer_;
  }

 private:
  std::atomic<bool> done_ = false;
  absl::StatusOr<v1::TakeAndApplyResponse> answer_;
  std::thread thread_;  // last: it uses the others
};

TEST_F(CallStreamServiceTest, ChiefLearnsAtOnceThatAMembersConnectionHasEnded) {
  Add(kAnnounce, ServedShard::AnnounceRequest(0, 0));
  Send();
  EXPECT_EQ(Next().code(), 0);
  {
    const Take take(shard_);
    context_.TryCancel();
    while (!take.done()) shard_.AnswerEarly();

    ASSERT_OK(take.answer());
    EXPECT_FALSE(take.answer()->prepared());
    EXPECT_THAT(take.answer()->announced_workers(), ElementsAre(0));
    EXPECT_THAT(take.answer()->lost_workers(), ElementsAre(0));
  }
  // Nothing has changed since.
  const Take again(shard_);
  for (int i = 0; i < 100; ++i) {
    shard_.AnswerEarly();
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_FALSE(again.done());

  // The worker lives, and calls again.
  EXPECT_OK(Call(shard_.sync(), &v1::SyncService::Stub::Announce,
                 ServedShard::AnnounceRequest(0, 0)));
  while (!again.done()) shard_.AnswerEarly();
  EXPECT_EQ(again.answer()->lost_workers_size(), 0);
}

TEST_F(CallStreamServiceTest, WorkerOutsideOfTheSetMayEndItsConnection) {
  Call(shard_.sync(), &v1::SyncService::Stub::Announce,
       ServedShard::AnnounceRequest(1, 0))
      .IgnoreError();
  Add(kAnnounce, ServedShard::AnnounceRequest(0, 0));
  Send();
  EXPECT_EQ(Next().code(), 0);
  const Take take(shard_);
  context_.TryCancel();

  for (int i = 0; i < 100; ++i) {
    shard_.AnswerEarly();
    absl::SleepFor(absl::Milliseconds(1));
  }

  EXPECT_FALSE(take.done());
  while (!take.done()) shard_.AnswerWaits();
  EXPECT_THAT(take.answer()->announced_workers(), ElementsAre(1));
}

TEST_F(CallStreamServiceTest, CallerThatWaitsIsReadFromOnceItIsAnswered) {
  Add(kTakeToken, ServedShard::TokenRequest(1, 0));
  calls_.set_waits(true);
  Send();
  Add(kPull, ServedShard::PullRequest(0));  // against its word
  Send();
  std::atomic<bool> done = false;
  std::thread ticks([&] {
    while (!done) shard_.AnswerWaits();
  });

  EXPECT_EQ(Next().id(), 1u);
  EXPECT_EQ(Next().id(), 2u);
  done = true;
  ticks.join();
}

TEST_F(CallStreamServiceTest, CallerThatWaitsForNothingIsReadFrom) {
  calls_.set_waits(true);
  Send();
  Add(kPull, ServedShard::PullRequest(0));
  Send();

  EXPECT_EQ(Next().id(), 1u);
}

TEST_F(CallStreamServiceTest, FailureOfACallIsItsAnswerAndLeavesTheStream) {
  v1::PullRequest bad = ServedShard::PullRequest(0);
  bad.mutable_parts()->set_num_parts(1000);
  Add(kPull, bad);
  Add("/lockstep.v1.ShardControlService/Commit", ServedShard::PullRequest(0));
  Send();

  const v1::StreamedAnswer refused = Next();
  EXPECT_EQ(refused.code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.message(), HasSubstr("parts"));
  const v1::StreamedAnswer unknown = Next();
  EXPECT_EQ(unknown.code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(unknown.message(), HasSubstr("is not for streams"));
  Add(kPull, ServedShard::PullRequest(0));
  Send();
  EXPECT_EQ(Next().code(), 0);
}

TEST_F(CallStreamServiceTest, ManyUnansweredCallsAreAllAnsweredInTheEnd) {
  constexpr int kCalls = 200;  // more than are read before one is answered
  for (int i = 0; i < kCalls; ++i) {
    Add(kTakeToken, ServedShard::TokenRequest(1, 0));
    Send();
  }
  std::atomic<bool> done = false;
  std::thread ticks([&] {
    while (!done) shard_.AnswerWaits();
  });
  for (int i = 0; i < kCalls; ++i) EXPECT_EQ(Next().code(), 0);
  done = true;
  ticks.join();
}

TEST_F(CallStreamServiceTest, CallerThatGoesAwayLeavesNothingBehind) {
  Add(kTakeToken, ServedShard::TokenRequest(1, 0));
  Send();
  context_.TryCancel();
  v1::StreamedAnswers none;
  EXPECT_FALSE(stream_->Read(&none));
  EXPECT_EQ(stream_->Finish().error_code(), grpc::StatusCode::CANCELLED);

  shard_.AnswerWaits();  // no caller is left
  shard_.Step(0, 2);
}

TEST_F(CallStreamServiceTest, ClosedStreamEndsWithOk) {
  EXPECT_TRUE(stream_->WritesDone());
  v1::StreamedAnswers none;
  EXPECT_FALSE(stream_->Read(&none));
  EXPECT_TRUE(stream_->Finish().ok());
}

// Serves streams whose calls are answered with bytes of the test's.
class CallStreamLimitsTest : public ::testing::Test {
 protected:
  // The answer to "m" has so many bytes.
  void Start(size_t bytes) {
    service_ = std::make_unique<server::CallStreamService>(
        server::CallStreamService::Handlers{
            {"m",
             [this, bytes](const Caller&, const grpc::ByteBuffer&,
                           const server::Respond& respond) {
               ++handled_;
               const grpc::Slice slice(std::string(bytes, 'x'));
               respond(absl::OkStatus(), grpc::ByteBuffer(&slice, 1));
             }}},
        [](uint64_t) {});
    auto server = GrpcServer::Start("127.0.0.1:0", {service_.get()});
    ASSERT_OK(server);
    server_ = *std::move(server);
    stub_ = v1::CallStreamService::NewStub(
        MakeChannel(absl::StrCat("127.0.0.1:", server_->port())));
    stream_ = stub_->Calls(&context_);
  }
  static v1::StreamedCalls Calls(int count) {
    v1::StreamedCalls calls;
    for (int i = 0; i < count; ++i) {
      calls.add_calls()->set_id(i);
      calls.mutable_calls(i)->set_method("m");
    }
    return calls;
  }

  // A further stream on the connection, cancelled at the end of its life.
  struct OpenStream {
    explicit OpenStream(v1::CallStreamService::Stub& stub)
        : stream(stub.Calls(&context)) {}
    ~OpenStream() { context.TryCancel(); }

    // Makes a call. Returns OK if it is answered, else the end of the stream.
    grpc::Status Call() {
      v1::StreamedAnswers answers;
      if (stream->Write(Calls(1)) && stream->Read(&answers)) return {};
      return stream->Finish();
    }

    grpc::ClientContext context;
    std::unique_ptr<
        grpc::ClientReaderWriter<v1::StreamedCalls, v1::StreamedAnswers>>
        stream;
  };

  std::atomic<int> handled_ = 0;
  std::unique_ptr<server::CallStreamService> service_;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<v1::CallStreamService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<
      grpc::ClientReaderWriter<v1::StreamedCalls, v1::StreamedAnswers>>
      stream_;
};

TEST_F(CallStreamLimitsTest, CallsWaitForACallerThatDoesNotRead) {
  constexpr int kCalls = 200;
  Start(size_t{1} << 20);
  ASSERT_TRUE(stream_->Write(Calls(kCalls)));
  while (handled_ == 0) absl::SleepFor(absl::Milliseconds(1));
  for (int before = 0; before != handled_;) {
    before = handled_;
    absl::SleepFor(absl::Milliseconds(200));
  }
  EXPECT_LE(handled_, 17);  // 16 MiB, and what the last one began

  v1::StreamedAnswers answers;
  int answered = 0;
  while (answered < kCalls && stream_->Read(&answers)) {
    for (const v1::StreamedAnswer& answer : answers.answers()) {
      EXPECT_EQ(answer.code(), 0);
      EXPECT_EQ(answer.id(), static_cast<uint64_t>(answered++));
    }
  }
  EXPECT_EQ(answered, kCalls);
  EXPECT_EQ(handled_, kCalls);
}

TEST_F(CallStreamLimitsTest, TooManyCallsInAMessageEndTheStream) {
  Start(1);
  ASSERT_TRUE(stream_->Write(Calls(1025)));

  EXPECT_THAT(FromGrpcStatus(stream_->Finish()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("send at most 1024")));
  EXPECT_EQ(handled_, 0);
}

TEST_F(CallStreamLimitsTest, StreamsOfAConnectionAreLimited) {
  constexpr size_t kMost = server::CallStreamService::kStreamsOfAConnection;
  Start(1);
  std::vector<std::unique_ptr<OpenStream>> streams;
  // The fixture has opened the first one; its answer shows that it is counted.
  ASSERT_TRUE(stream_->Write(Calls(1)));
  v1::StreamedAnswers answers;
  ASSERT_TRUE(stream_->Read(&answers));
  for (size_t i = 1; i < kMost; ++i) {
    streams.push_back(std::make_unique<OpenStream>(*stub_));
    EXPECT_EQ(streams.back()->Call().error_code(), grpc::StatusCode::OK);
  }

  OpenStream further(*stub_);
  EXPECT_THAT(FromGrpcStatus(further.Call()),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("has 4 open streams")));

  // A stream that has ended leaves its place to another.
  streams.clear();
  while (!OpenStream(*stub_).Call().ok()) {
    absl::SleepFor(absl::Milliseconds(1));
  }
}

TEST_F(CallStreamLimitsTest, LargeAnswerIsForACallOfItsOwn) {
  Start((size_t{4} << 20) + 1);
  ASSERT_TRUE(stream_->Write(Calls(1)));

  v1::StreamedAnswers answers;
  ASSERT_TRUE(stream_->Read(&answers));
  EXPECT_THAT(answers.answers(0).message(),
              HasSubstr("make this a call of its own"));
  EXPECT_NE(answers.answers(0).code(), 0);
}

// A server of one part, of a variable or a table, with an open stream.
class CallStreamEffectTest : public ::testing::Test {
 protected:
  void Open(const VariableSpec& variable, const server::PartSpec& part) {
    server_.set_workers(1);
    server_.host().SetJobId(kJobId);
    const auto shard = server_.host().Create(server_.Job(), {variable}, {part});
    ASSERT_OK(shard);
    ASSERT_OK((*shard)->Activate(0, {}));
  }
  template <typename Request>
  v1::StreamedAnswer Stream(const std::string& method, const Request& request) {
    v1::StreamedCalls calls;
    calls.add_calls()->set_method(method);
    calls.mutable_calls(0)->set_request(request.SerializeAsString());
    const auto stream = stub_->Calls(&context_);
    EXPECT_TRUE(stream->Write(calls));
    v1::StreamedAnswers answers;
    EXPECT_TRUE(stream->Read(&answers));
    context_.TryCancel();
    stream->Finish();
    return answers.answers_size() == 1 ? answers.answers(0)
                                       : v1::StreamedAnswer();
  }

  ServedShard server_;
  const std::unique_ptr<v1::CallStreamService::Stub> stub_ =
      v1::CallStreamService::NewStub(server_.channel());
  grpc::ClientContext context_;
};

TEST_F(CallStreamEffectTest, PullWhoseAnswerIsTooLargeMakesNoRows) {
  constexpr int64_t kWidth = 1024;
  constexpr int64_t kLimit = 1300;
  constexpr int kKeys = 1280;  // 5 MiB
  ASSERT_NO_FATAL_FAILURE(
      Open({"t", {kLimit, kWidth}, DType::kFloat32, {}, RowCut::kKey},
           {0, 0, kLimit * kWidth, DType::kFloat32, kWidth, 1, true}));
  v1::PullRequest request = ServedShard::PullRequest(0);
  request.mutable_parts()->set_num_parts(1);
  for (int i = 0; i < kKeys; ++i) request.mutable_rows()->add_ids(i);

  const v1::StreamedAnswer refused = Stream(kPull, request);

  EXPECT_EQ(refused.code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.message(), HasSubstr("make this a call of its own"));
  // There is room for as many others.
  for (int i = 0; i < kKeys; ++i) request.mutable_rows()->set_ids(i, kKeys + i);
  EXPECT_OK(
      Call(server_.parameters(), &v1::ParameterService::Stub::Pull, request));
}

TEST_F(CallStreamEffectTest, PushWhoseAnswerIsTooLargeDoesNotCount) {
  constexpr int64_t kElements = 5 << 18;  // 5 MiB
  ASSERT_NO_FATAL_FAILURE(Open({"w", {kElements}, DType::kFloat32, {}},
                               {0, 0, kElements, DType::kFloat32}));
  v1::PushRequest request = ServedShard::PushRequest(0, 1, 1);
  request.mutable_header()->mutable_parts()->set_num_parts(1);
  request.mutable_header()->set_return_values(true);
  request.set_payload(std::string(kElements * sizeof(float), 0));

  const v1::StreamedAnswer refused = Stream(kPush, request);

  EXPECT_EQ(refused.code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.message(), HasSubstr("make this a call of its own"));
  EXPECT_THAT((*server_.host().shard())->engine().CheckCommit(1, 1),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace lockstep::testing
