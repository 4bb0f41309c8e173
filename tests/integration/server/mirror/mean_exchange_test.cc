// Two mirrors that exchange means over loopback.

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "common/memory/shared_memory.h"
#include "common/rpc/channel.h"
#include "common/rpc/server.h"
#include "common/wire/wire_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/v1/mirror.grpc.pb.h"
#include "server/mirror/mean_fetcher.h"
#include "server/mirror/mirror_service.h"
#include "server/rpc/replies.h"
#include "server/shard/chief_commands.h"
#include "server/shard/shard_host.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kJobId[] = "job-1";
constexpr int64_t kElements = 1000;
constexpr absl::Duration kPatience = absl::Seconds(60);

JobConfig Job() {
  JobConfig job;
  job.replicas_to_aggregate = 2;
  job.total_num_replicas = 2;
  job.learning_rate.base = 1;
  job.train_steps = 10;
  job.strategy.kind = StrategyKind::kMultiWorkerMirrored;
  return job;
}

// One server: part 0 is summed by mirror 0, part 1 by mirror 1.
class Mirror {
 public:
  explicit Mirror(int index)
      : index_(index),
        host_({index, 1, directory_.path()}),
        commands_(host_),
        replies_(host_, Clock::Real()),
        service_(host_, Clock::Real()) {
    host_.SetJobId(kJobId);
    replies_.set_on_means_changed([this] {
      service_.AnswerReady();
      host_.attempts().Push(0);
    });
    server_ = GrpcServer::Start("127.0.0.1:0", {&service_}).value();
    parts_[1 - index].reducer = 1 - index;
    shard_ = host_.Create(Job(), variables_, parts_).value();
  }
  ~Mirror() {
    fetcher_.reset();
    service_.EndAll(absl::UnavailableError("ended"));
    server_.reset();
  }

  std::string address() const {
    return "127.0.0.1:" + std::to_string(server_->port());
  }
  Shard& shard() { return *shard_; }
  MirrorService& service() { return service_; }

  void Connect(const std::vector<std::string>& addresses, bool shared_memory) {
    fetcher_ = std::make_unique<MeanFetcher>(
        MeanFetcher::Options{
            addresses,
            {TaskType::kPs, index_},
            1,
            shared_memory,
            [this](Shard& shard, ShardAnswers answers) {
              replies_.Send(shard, commands_.Settle(shard, std::move(answers)));
            }},
        host_);
  }

  void Activate(int64_t attempt = 0) {
    absl::StatusOr<Shard::Activated> activated =
        shard_->Activate(shard_->engine().step(), {}, attempt);
    ASSERT_OK(activated);
    replies_.Send(*shard_,
                  commands_.Settle(*shard_, std::move(activated->answers)));
  }

  // A worker's gradient of the part that this mirror sums.
  void Push(int worker, float value, int64_t attempt = 1) {
    std::vector<float> gradient(kElements, value);
    lockstep::server::Push push;
    push.pass = {worker, 1, shard_->engine().step(), 1, 0};
    push.attempt = attempt;
    push.first_part = index_;
    auto owner = std::make_shared<std::vector<float>>(std::move(gradient));
    push.gradients = {{{{reinterpret_cast<const std::byte*>(owner->data()),
                         owner->size() * sizeof(float)}},
                       owner}};
    absl::StatusOr<ShardAnswers> answers =
        shard_->engine().AddPush(1, std::move(push));
    ASSERT_OK(answers);
    replies_.Send(*shard_, commands_.Settle(*shard_, *std::move(answers)));
  }

  // Opens the state again, as for an edited job file, once a call or a fetch
  // waits.
  absl::Status Reopen() {
    const absl::Time deadline = absl::Now() + kPatience;
    while (shard_.use_count() < 3) {  // this object, the host, the call
      if (absl::Now() > deadline) return absl::DeadlineExceededError("no call");
      absl::SleepFor(absl::Milliseconds(1));
    }
    shard_ = nullptr;
    JobConfig job = Job();
    job.learning_rate.base = 2;
    return host_
        .Create(job, variables_, parts_, ShardHost::Keep::kState,
                [this] { replies_.LetGo(absl::UnavailableError("reopened")); })
        .status();
  }

  bool WaitUntilPrepared(int64_t attempt = 1) {
    const absl::Time deadline = absl::Now() + kPatience;
    const int64_t step = shard_->engine().step() + 1;
    while (!shard_->engine().CheckCommit(step, attempt).ok()) {
      if (absl::Now() > deadline) return false;
      absl::SleepFor(absl::Milliseconds(1));
    }
    return true;
  }
  void Commit(int64_t attempt = 1) {
    ASSERT_OK(shard_->engine().Commit(shard_->engine().step() + 1, attempt));
  }
  std::vector<float> Values() {
    const Shard::Values values =
        shard_->Pull(0, 2, shard_->engine().step()).value();
    std::vector<float> firsts;
    for (const LentBytes& part : values.parts) {
      firsts.push_back(*reinterpret_cast<const float*>(part.bytes.data()));
    }
    return firsts;
  }

 private:
  const int index_;
  const std::vector<VariableSpec> variables_ = {
      {"w",
       {2 * kElements},
       DType::kFloat32,
       {Initializer::Kind::kConstant, 0, 0}}};
  std::vector<PartSpec> parts_ = {{0, 0, kElements, DType::kFloat32},
                                  {0, kElements, kElements, DType::kFloat32}};
  const TempDir directory_;
  ShardHost host_;
  ChiefCommands commands_;
  Replies replies_;
  MirrorService service_;
  std::unique_ptr<GrpcServer> server_;
  std::shared_ptr<Shard> shard_;
  std::unique_ptr<MeanFetcher> fetcher_;
};

class MeanExchangeTest : public ::testing::Test {
 protected:
  void Connect(bool shared_memory = true) {
    for (Mirror* mirror : {&a_, &b_}) {
      mirror->Connect({a_.address(), b_.address()}, shared_memory);
      mirror->Activate();
    }
  }
  void PushAll(int64_t attempt = 1) {
    for (const int worker : {0, 1}) {
      a_.Push(worker, worker == 0 ? 1 : 3, attempt);
      b_.Push(worker, worker == 0 ? 2 : 6, attempt);
    }
  }
  // A call as one of another server.
  grpc::Status Fetch(v1::FetchMeansRequest request) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
    return v1::MirrorService::NewStub(MakeChannel(a_.address()))
        ->FetchMeans(&context, request, &response_);
  }
  static v1::FetchMeansRequest Request() {
    v1::FetchMeansRequest request;
    *request.mutable_identity() =
        ToProto(Sender{kJobId, {TaskType::kPs, 1}, 1});
    request.set_attempt(1);
    request.mutable_parts()->set_num_parts(1);
    return request;
  }

  std::atomic<bool> answered_ = false;
  v1::FetchMeansResponse response_;  // of Fetch()
  Mirror a_{0};
  Mirror b_{1};
};

class MeanExchangeOverTest : public MeanExchangeTest,
                             public ::testing::WithParamInterface<bool> {};

INSTANTIATE_TEST_SUITE_P(MeanExchange, MeanExchangeOverTest, ::testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "SharedMemory" : "TheWire";
                         });

TEST_P(MeanExchangeOverTest, BothMirrorsMakeTheSameSteps) {
  Connect(/*shared_memory=*/GetParam());
  for (int step = 1; step <= 5; ++step) {
    PushAll();
    ASSERT_TRUE(a_.WaitUntilPrepared());
    ASSERT_TRUE(b_.WaitUntilPrepared());
    a_.Commit();
    b_.Commit();

    const auto steps = static_cast<float>(step);
    EXPECT_THAT(a_.Values(), ElementsAre(-2 * steps, -4 * steps));
    EXPECT_EQ(a_.Values(), b_.Values());
  }
}

TEST_F(MeanExchangeTest, OnlyServersOfThisHostAreToldPlaces) {
  a_.Activate();
  a_.Push(0, 1);
  a_.Push(1, 3);

  v1::FetchMeansRequest request = Request();
  ASSERT_TRUE(Fetch(request).ok());
  EXPECT_EQ(response_.payload().size(), kElements * sizeof(float));
  EXPECT_FALSE(response_.header().has_means());

  request.set_pid_space("another host");
  ASSERT_TRUE(Fetch(request).ok());
  EXPECT_EQ(response_.payload().size(), kElements * sizeof(float));

  request.set_pid_space(OwnPidSpace());
  ASSERT_TRUE(Fetch(request).ok());
  EXPECT_THAT(response_.payload(), IsEmpty());
  EXPECT_EQ(response_.header().places_size(), 1);
}

TEST_P(MeanExchangeOverTest, NewAttemptTakesNewMeans) {
  Connect(/*shared_memory=*/GetParam());
  a_.Push(0, 100);
  a_.Push(1, 100);
  for (Mirror* mirror : {&a_, &b_}) mirror->Activate(/*attempt=*/2);

  PushAll(2);

  ASSERT_TRUE(a_.WaitUntilPrepared(2));
  ASSERT_TRUE(b_.WaitUntilPrepared(2));
  b_.Commit(2);
  EXPECT_THAT(b_.Values(), ElementsAre(-2, -4));
}

TEST_F(MeanExchangeTest, CallThatWaitsForLongIsToldToRepeat) {
  a_.Activate();
  std::thread later([this] {
    // The call is filed when a look at it finds something to answer.
    const absl::Time deadline = absl::Now() + kPatience;
    while (!answered_ && absl::Now() < deadline) {
      a_.service().AnswerOld(absl::Now() + absl::Hours(1));
      absl::SleepFor(absl::Milliseconds(1));
    }
  });

  const grpc::Status status = Fetch(Request());
  answered_ = true;
  later.join();

  // A caller forgets that it cannot map a server's memory if the server is
  // gone.
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(status.error_message(), HasSubstr("2 gradients of 1 part"));
}

TEST_F(MeanExchangeTest, CallsOfOthersAndForOthersAreRefused) {
  a_.Activate();
  v1::FetchMeansRequest from_worker = Request();
  *from_worker.mutable_identity() =
      ToProto(Sender{kJobId, {TaskType::kWorker, 1}, 1});
  const auto refuses = [this](const v1::FetchMeansRequest& request,
                              grpc::StatusCode code, const char* why) {
    const grpc::Status status = Fetch(request);
    EXPECT_EQ(status.error_code(), code) << why;
    EXPECT_THAT(status.error_message(), HasSubstr(why));
  };
  refuses(from_worker, grpc::StatusCode::PERMISSION_DENIED, "not for worker 1");
  v1::FetchMeansRequest of_another_part = Request();
  of_another_part.mutable_parts()->set_first_part(1);
  refuses(of_another_part, grpc::StatusCode::INVALID_ARGUMENT,
          "part 1 is summed by another server");
  v1::FetchMeansRequest beyond = Request();
  beyond.mutable_parts()->set_num_parts(3);
  refuses(beyond, grpc::StatusCode::INVALID_ARGUMENT,
          "parts 0 to 2 are not all among the 2 parts");
  v1::FetchMeansRequest to_another_server = Request();
  to_another_server.set_server(1);
  refuses(to_another_server, grpc::StatusCode::INVALID_ARGUMENT,
          "ps 0 was taken for ps 1");
  v1::FetchMeansRequest of_another_job = Request();
  of_another_job.mutable_identity()->set_job_id("job-2");
  refuses(of_another_job, grpc::StatusCode::FAILED_PRECONDITION, "job-2");
}

TEST_F(MeanExchangeTest, CallThatWaitsInAShardThatIsDiscardedIsEnded) {
  a_.Activate();
  grpc::Status status;
  std::thread waits([&] { status = Fetch(Request()); });

  EXPECT_OK(a_.Reopen());

  waits.join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(MeanExchangeTest, FetchForAShardThatIsDiscardedIsCancelled) {
  b_.Activate();
  a_.Connect({a_.address(), b_.address()}, /*shared_memory=*/true);
  a_.Activate();
  const absl::Time begin = absl::Now();

  EXPECT_OK(a_.Reopen());

  EXPECT_LT(absl::Now() - begin, absl::Seconds(8));  // its deadline is 10 s
}

// Without that a server that ends would wait for the call for ever.
TEST_F(MeanExchangeTest, CallThatComesAfterTheEndIsEnded) {
  a_.Activate();
  a_.service().EndAll(absl::UnavailableError("this ps has ended"));

  const grpc::Status status = Fetch(Request());

  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("this ps has ended"));
}

TEST_F(MeanExchangeTest, AttemptThatIsOverIsAborted) {
  a_.Activate();
  a_.Activate(/*attempt=*/2);

  const grpc::Status status = Fetch(Request());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_THAT(status.error_message(), HasSubstr("that attempt is over here"));
}

}  // namespace
}  // namespace lockstep::server
