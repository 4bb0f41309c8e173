#include "chief/traces/trace_service.h"

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "grpcpp/test/default_reactor_test_peer.h"
#include "gtest/gtest.h"
#include "tests/testing/manual_clock.h"

namespace lockstep::chief {
namespace {

using ::testing::ElementsAre;

TEST(TraceServiceTest, WorkerThatRegistersAgainIsAskedForItsSpans) {
  testing::ManualClock clock;
  const TaskId worker{TaskType::kWorker, 0};
  MembershipTable members({worker, {TaskType::kWorker, 1}}, absl::Seconds(10));
  TraceTable table;
  SpanRecorder spans(8, clock);
  TraceService service("job", JobConfig(), members, table, spans, clock);
  ASSERT_TRUE(members.Register(worker, 1, clock.Now()).ok());
  members.ExpireAll(TaskType::kWorker, "the workers of the job change",
                    clock.Now());

  grpc::CallbackServerContext context;
  grpc::testing::DefaultReactorTestPeer peer(&context);
  v1::BeginTraceResponse begun;
  service.BeginTrace(&context, nullptr, &begun);

  ASSERT_TRUE(peer.test_status().ok());
  EXPECT_THAT(begun.tasks(), ElementsAre("chief 0", "worker 0"));
}

}  // namespace
}  // namespace lockstep::chief
