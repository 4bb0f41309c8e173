#include "strategy/workers/peer_probes.h"

#include <chrono>
#include <utility>

#include "gmock/gmock.h"
#include "tests/integration/strategy/workers/group_fixture.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PeerProbesTest : public GroupFixture {
 protected:
  void SetUp() override {
    Reserve(2);
    server_ = *GrpcServer::Start(addresses_[1], {&service_});
  }

  PeerProbes::Options Fast() {
    PeerProbes::Options options;
    options.self = {0, 10, 2, "one replica"};
    options.addresses = addresses_;
    options.every = absl::Milliseconds(20);
    options.timeout = absl::Seconds(5);
    options.on_lost = [this](int rank, const absl::Status& why) {
      MutexLock lock(mutex_);
      lost_.push_back(rank);
      why_ = why;
      changed_.SignalAll();
    };
    return options;
  }

  std::vector<int> lost() {
    MutexLock lock(mutex_);
    return lost_;
  }
  // Waits until a member is lost, and returns why.
  absl::Status Loss() {
    MutexLock lock(mutex_);
    while (lost_.empty()) changed_.Wait(mutex_);
    return why_;
  }
  void WaitForAnswers(int number) {
    while (answerer_.heard < number) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  Answerer answerer_;
  GroupService service_{answerer_};
  std::unique_ptr<GrpcServer> server_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<int> lost_ ABSL_GUARDED_BY(mutex_);
  absl::Status why_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(PeerProbesTest, AMemberThatAnswersIsNotLost) {
  PeerProbes probes(Fast());
  ASSERT_TRUE(probes.Begin().ok());
  WaitForAnswers(5);
  answerer_.refuses = true;
  WaitForAnswers(answerer_.heard + 5);
  EXPECT_THAT(lost(), IsEmpty());
}

TEST_F(PeerProbesTest, AMemberThatIsSilentIsLostOnce) {
  PeerProbes::Options options = Fast();
  options.timeout = absl::Milliseconds(100);
  server_->Shutdown(absl::ZeroDuration());
  server_.reset();
  PeerProbes probes(std::move(options));
  ASSERT_TRUE(probes.Begin().ok());
  EXPECT_FALSE(Loss().ok());
  // Several rounds later.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_THAT(lost(), ElementsAre(1));
}

TEST_F(PeerProbesTest, AnotherProgramAtItsAddressIsNotTheMember) {
  server_->Shutdown(absl::ZeroDuration());
  server_.reset();
  server_ = *GrpcServer::Start(addresses_[1], {});
  PeerProbes probes(Fast());
  ASSERT_TRUE(probes.Begin().ok());
  EXPECT_THAT(Loss(), StatusIs(absl::StatusCode::kUnimplemented,
                               HasSubstr("another program")));
}

TEST_F(PeerProbesTest, AMemberOfAnotherGroupIsLost) {
  answerer_.joins = false;
  PeerProbes probes(Fast());
  ASSERT_TRUE(probes.Begin().ok());
  EXPECT_THAT(Loss(),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("another group")));
  EXPECT_GE(answerer_.heard, PeerProbes::kTries);
}

// The end does not wait for the timeout of the probe.
TEST_F(PeerProbesTest, AProbeInFlightIsCancelledAtTheEnd) {
  server_->Shutdown(absl::ZeroDuration());
  server_.reset();
  PeerProbes::Options options = Fast();
  options.timeout = absl::Minutes(10);
  {
    PeerProbes probes(std::move(options));
    ASSERT_TRUE(probes.Begin().ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  EXPECT_THAT(lost(), IsEmpty());
}

}  // namespace
}  // namespace lockstep::strategy
