#include "deploy/cli/status/status_poller.h"

#include <poll.h>

#include "gtest/gtest.h"
#include "tests/integration/deploy/cli/status/fake_coordinator_service.h"

namespace lockstep::cli {
namespace {

using ::lockstep::testing::FakeCoordinator;
using ::lockstep::testing::TrainingResponse;

constexpr absl::Duration kTimeout = absl::Seconds(30);
constexpr StatusPoller::Options kOptions = {.interval = absl::Milliseconds(10),
                                            .timeout = kTimeout};
// Makes one call, unless it is asked to stop.
constexpr StatusPoller::Options kOnce = {.interval = absl::Hours(1),
                                         .timeout = kTimeout};
constexpr int kPatienceMillis = 60'000;

// False if there is no news for a long time.
bool HasNews(const StatusPoller& poller) {
  pollfd readable = {poller.event_fd(), POLLIN, 0};
  return poll(&readable, 1, kPatienceMillis) == 1;
}

TEST(StatusPollerTest, BringsTheNewestAnswer) {
  FakeCoordinator chief;
  v1::GetStatusResponse response = TrainingResponse();
  chief.Say(response);
  StatusPoller poller(chief.address(), kOptions);

  ASSERT_TRUE(HasNews(poller));
  EXPECT_EQ(poller.TakeNews().status->step, 7);

  response.set_global_step(8);
  chief.Say(response);
  int64_t step = 7;
  while (step == 7 && HasNews(poller)) step = poller.TakeNews().status->step;
  EXPECT_EQ(step, 8);
}

TEST(StatusPollerTest, NewsIsTakenOnce) {
  FakeCoordinator chief;
  chief.Say(TrainingResponse());
  StatusPoller poller(chief.address(), kOnce);
  ASSERT_TRUE(HasNews(poller));

  EXPECT_TRUE(poller.TakeNews().status.has_value());
  EXPECT_FALSE(poller.TakeNews().status.has_value());
}

TEST(StatusPollerTest, AStopReachesTheChiefAtOnce) {
  FakeCoordinator chief;
  chief.Say(TrainingResponse());
  StatusPoller poller(chief.address(), kOnce);
  ASSERT_TRUE(HasNews(poller));
  poller.TakeNews();

  poller.AskToStop("enough");

  ASSERT_TRUE(HasNews(poller));  // the next answer follows the stop
  EXPECT_EQ(chief.stop_reason(), "enough");
  EXPECT_FALSE(poller.TakeNews().stop_refused);
}

TEST(StatusPollerTest, ARefusedStopIsNews) {
  FakeCoordinator chief;
  chief.RefuseToStop();
  StatusPoller poller(chief.address(), kOptions);

  poller.AskToStop("enough");

  bool refused = false;
  while (!refused && HasNews(poller)) refused = poller.TakeNews().stop_refused;
  EXPECT_TRUE(refused);
}

TEST(StatusPollerTest, AnAbsentChiefRefusesToStop) {
  StatusPoller poller("127.0.0.1:1", {.interval = absl::Milliseconds(10),
                                      .timeout = absl::Milliseconds(10)});

  poller.AskToStop("enough");

  ASSERT_TRUE(HasNews(poller));
  const StatusPoller::News news = poller.TakeNews();
  EXPECT_TRUE(news.stop_refused);
  EXPECT_FALSE(news.status.has_value());
}

}  // namespace
}  // namespace lockstep::cli
