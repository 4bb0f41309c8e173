// `lockstep trace` and `lockstep explain` of a chief whose members hand spans
// in.

#include "deploy/cli/trace/trace_command.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "chief/traces/trace_demand.h"
#include "chief/traces/trace_service.h"
#include "common/base/clock.h"
#include "common/membership/coordinator_calls.h"
#include "common/membership/trace_reporter.h"
#include "common/rpc/server.h"
#include "common/trace/codec/trace_codec.h"
#include "common/wire/sender.h"
#include "common/wire/wire_codec.h"
#include "deploy/cli/tasks/log_files.h"
#include "deploy/cli/trace/trace_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::cli {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr char kJob[] = "job-1";
const TaskId kServer = {TaskType::kPs, 0};
const TaskId kWorker = {TaskType::kWorker, 0};

JobConfig CompatibleJob() {
  JobConfig job;
  job.mode = SyncMode::kCompatible;
  job.heartbeat_interval = absl::Milliseconds(20);
  return job;
}

// A chief with one server and one worker, of which those in `reporting` answer
// its heartbeats as real members do.
class TraceCommandTest : public ::testing::Test {
 protected:
  explicit TraceCommandTest(const JobConfig& job = CompatibleJob())
      : service_(kJob, job, members_, table_, spans_, Clock::Real()) {
    for (const TaskId& task : {kServer, kWorker}) {
      EXPECT_OK(members_.Register(task, 7, Clock::Real().Now()));
    }
    auto server = GrpcServer::Start("127.0.0.1:0", {&service_});
    EXPECT_OK(server);
    server_ = *std::move(server);
    address_ = absl::StrCat("127.0.0.1:", server_->port());
  }
  ~TraceCommandTest() override {
    done_ = true;
    for (std::thread& member : threads_) member.join();
  }

  void Reports(const TaskId& task, SpanRecorder& spans) {
    threads_.emplace_back([this, task, &spans] {
      CoordinatorCalls calls(address_);
      TraceReporter reporter({task, &spans});
      while (!done_) {
        v1::HeartbeatResponse answer;
        const absl::Time sent = Clock::Real().Now();
        chief::AddTraceDemand(table_, task, Clock::Real(), answer);
        reporter.OnHeartbeat(answer, sent, Clock::Real().Now());
        if (reporter.due() < Clock::Real().Now()) {
          EXPECT_OK(calls.ReportTrace(
              reporter.TakeReport(ToProto(Sender{kJob, task, 7}))));
        }
        absl::SleepFor(absl::Milliseconds(5));
      }
    });
  }

  // Records steps of 1 ms, in which the worker computes for nearly all of it.
  void RecordSteps(int count) {
    int64_t at = of_worker_.Now() - int64_t{count} * 1'000'000;
    for (int step = 0; step < count; ++step) {
      const auto span = [step](SpanKind kind, int64_t begin, int64_t end) {
        return Span{.kind = kind,
                    .attempt = 1,
                    .part = 0,
                    .peer = 0,
                    .step = step,
                    .begin = begin,
                    .end = end};
      };
      of_worker_.Add(span(SpanKind::kBackward, at, at + 900'000));
      of_worker_.Add(span(SpanKind::kPush, at + 900'000, at + 960'000));
      of_server_.Add(span(SpanKind::kReceive, at + 900'000, at + 940'000));
      of_server_.Add(span(SpanKind::kUpdate, at + 940'000, at + 950'000));
      of_server_.Add(span(SpanKind::kPrepare, at + 950'000, at + 950'000));
      of_server_.Add(span(SpanKind::kCommit, at + 950'000, at + 1'000'000));
      at += 1'000'000;
    }
  }

  // Runs `lockstep` with these words; returns its output and its errors.
  std::string Shown(std::vector<std::string> words, int code) {
    CLI::App app;
    CLI::App& explain = *app.add_subcommand("explain");
    explain.add_option("field", field_);
    const TraceCommand trace(app);
    const ExplainJobCommand explain_job(explain);
    std::reverse(words.begin(), words.end());
    app.parse(words);
    int fds[2];
    EXPECT_EQ(pipe(fds), 0);
    std::ostringstream err;
    Terminal terminal(fds[1], nullptr, nullptr);
    const int got = trace.chosen()         ? trace.Run(terminal, err)
                    : explain_job.chosen() ? explain_job.Run(terminal, err)
                                           : -1;
    EXPECT_EQ(got, code) << err.str();
    close(fds[1]);
    std::string out = err.str();
    char buffer[4096];
    for (ssize_t n = 0; (n = read(fds[0], buffer, sizeof(buffer))) > 0;) {
      out.append(buffer, static_cast<size_t>(n));
    }
    close(fds[0]);
    return out;
  }

  testing::TempDir dir_;
  std::string field_;
  chief::MembershipTable members_{{kServer, kWorker}, absl::Hours(1)};
  SpanRecorder spans_{64, Clock::Real()};
  SpanRecorder of_worker_{4096, Clock::Real()};
  SpanRecorder of_server_{4096, Clock::Real()};
  chief::TraceTable table_;
  chief::TraceService service_;
  std::unique_ptr<GrpcServer> server_;
  std::string address_;
  std::atomic<bool> done_ = false;
  std::vector<std::thread> threads_;
};

TEST_F(TraceCommandTest, CollectsTheSpansOfAllTasks) {
  RecordSteps(10);
  Reports(kServer, of_server_);
  Reports(kWorker, of_worker_);
  spans_.Add({.kind = SpanKind::kTake, .step = 3});
  const absl::StatusOr<JobTrace> trace = CollectTrace(address_, kPatience);
  ASSERT_OK(trace);
  EXPECT_TRUE(trace->limits.no_bfloat16);
  EXPECT_FALSE(trace->limits.no_servers);
  ASSERT_EQ(trace->tasks.size(), 3u);
  std::map<std::string, TaskTrace> by_task;
  for (const TaskTrace& task : trace->tasks) by_task[task.task] = task;
  EXPECT_TRUE(by_task["chief 0"].spans == spans_.Newest(64));
  EXPECT_TRUE(by_task["ps 0"].spans == of_server_.Newest(4096));
  EXPECT_TRUE(by_task["worker 0"].spans == of_worker_.Newest(4096));
  EXPECT_GE(by_task["worker 0"].clock.error, 0);
  EXPECT_TRUE(trace->silent.empty());
}

TEST_F(TraceCommandTest, ATaskThatHandsNothingInIsSilent) {
  RecordSteps(10);
  Reports(kServer, of_server_);
  const absl::StatusOr<JobTrace> trace =
      CollectTrace(address_, absl::Seconds(5));
  ASSERT_OK(trace);
  EXPECT_THAT(trace->silent, ElementsAre("worker 0"));
}

TEST_F(TraceCommandTest, NoChiefIsAnError) {
  EXPECT_THAT(
      CollectTrace("127.0.0.1:1", absl::Milliseconds(50)).status(),
      StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("127.0.0.1:1")));
}

class SeldomHeartbeatsTest : public TraceCommandTest {
 protected:
  SeldomHeartbeatsTest() : TraceCommandTest(Job()) {}
  static JobConfig Job() {
    JobConfig job = CompatibleJob();
    job.heartbeat_interval = absl::Seconds(10);
    return job;
  }
};

TEST_F(SeldomHeartbeatsTest, TooShortATimeoutIsToldBeforeTheWait) {
  EXPECT_THAT(
      CollectTrace(address_, absl::Seconds(5)).status(),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               HasSubstr("after 20s, twice the job's heartbeat_interval, and "
                         "--timeout is 5s; give --timeout 20 or more")));
}

TEST_F(TraceCommandTest, WritesAFileForPerfetto) {
  RecordSteps(100);
  Reports(kServer, of_server_);
  Reports(kWorker, of_worker_);
  const std::string path = dir_.path() + "/trace.json";
  EXPECT_THAT(Shown({"trace", "--chief", address_, "--steps", "10", "--out",
                     path, "--timeout", "60"},
                    0),
              HasSubstr("steps 91 to 100 of 3 tasks"));
  const auto text = ReadTextFile(path);
  ASSERT_OK(text);
  int commits = 0;
  const auto json = nlohmann::json::parse(*text);
  for (const auto& event : json.at("traceEvents")) {
    if (event.at("name") == "commit") ++commits;
  }
  EXPECT_EQ(commits, 10);
}

TEST_F(TraceCommandTest, AFolderIsNoFile) {
  RecordSteps(10);
  Reports(kServer, of_server_);
  Reports(kWorker, of_worker_);
  EXPECT_THAT(Shown({"trace", "--chief", address_, "--out", dir_.path(),
                     "--timeout", "60"},
                    1),
              HasSubstr("--out is " + dir_.path() +
                        ", which cannot be written: Is a directory; name "
                        "another file"));
}

TEST_F(TraceCommandTest, AJobWithoutStepsIsToldSo) {
  Reports(kServer, of_server_);
  Reports(kWorker, of_worker_);
  EXPECT_THAT(Shown({"trace", "--chief", address_, "--timeout", "60"}, 1),
              HasSubstr("no step yet"));
  EXPECT_THAT(Shown({"explain", "--chief", address_, "--timeout", "60"}, 1),
              HasSubstr("too few steps"));
}

TEST_F(TraceCommandTest, ExplainsTheJob) {
  RecordSteps(100);
  Reports(kServer, of_server_);
  Reports(kWorker, of_worker_);
  EXPECT_THAT(Shown({"explain", "--chief", address_, "--timeout", "60"}, 0),
              HasSubstr("% of the time): faster computing"));
  const auto json = nlohmann::json::parse(
      Shown({"explain", "--chief", address_, "--json", "--timeout", "60"}, 0));
  EXPECT_EQ(json.at("last_step"), 100);
  const auto& first = json.at("advice")[0];
  EXPECT_EQ(first.at("remedy"), "more_compute");
  // 900 of 1,000 us; the error of the measured clocks moves a few of them.
  EXPECT_NEAR(first.at("share").get<double>(), 0.9, 0.05);
}

TEST_F(TraceCommandTest, AFieldAndAJobAreOneTooMany) {
  EXPECT_THAT(Shown({"explain", "batch_size", "--chief", address_}, 2),
              HasSubstr("a field and a running job"));
  EXPECT_THAT(Shown({"explain", "--json"}, 2),
              HasSubstr("--chief, --cluster and --log_dir"));
}

// Another job's member, and spans that cannot be.
TEST_F(TraceCommandTest, TheChiefRefusesSpansThatAreNotItsOwn) {
  CoordinatorCalls calls(address_);
  v1::ReportTraceRequest request;
  *request.mutable_identity() = ToProto(Sender{"other", kWorker, 7});
  EXPECT_THAT(calls.ReportTrace(request),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  *request.mutable_identity() = ToProto(Sender{kJob, kWorker, 7});
  request.mutable_trace()->set_offset_error(-9);
  EXPECT_THAT(
      calls.ReportTrace(request),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("offset_error")));
}

}  // namespace
}  // namespace lockstep::cli
