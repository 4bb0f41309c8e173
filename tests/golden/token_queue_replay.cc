#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/sync/token_queue.h"
#include "tests/golden/replay.h"

namespace lockstep::golden {
namespace {

using Completions = TokenQueue::Completions;

void CompareCompleted(const Json& recorded, Completions actual,
                      Report& report) {
  std::stable_sort(actual.begin(), actual.end(), [](auto& a, auto& b) {
    const bool a_first = absl::IsCancelled(a.status);
    const bool b_first = absl::IsCancelled(b.status);
    return std::pair(!a_first, a.id) < std::pair(!b_first, b.id);
  });
  if (!report.Expect("number of ended requests", recorded.size(),
                     actual.size())) {
    return;
  }
  for (size_t i = 0; i < actual.size(); ++i) {
    report.Expect("id", ReadInt(recorded[i].at("id")), actual[i].id);
    const bool same = report.Expect("status", recorded[i].at("status"),
                                    StatusName(actual[i].status));
    if (!same || !actual[i].status.ok()) continue;
    report.Expect("value", ReadInt(recorded[i].at("value")), actual[i].token);
  }
}

// An operation that does not wait itself, but may end the waiting of others.
void CompareOutcome(const Json& op, const absl::StatusOr<Completions>& actual,
                    Report& report) {
  report.Expect("status", op.at("status"), StatusName(actual.status()));
  CompareCompleted(op.at("completed"), actual.value_or(Completions{}), report);
}

void RunDequeue(TokenQueue& queue, const Json& op, Report& report) {
  const auto completed = queue.Dequeue(ReadInt(op.at("id")), absl::UnixEpoch());
  CompareCompleted(op.at("completed"), {}, report);
  if (!completed.ok() || completed->empty()) {
    report.Expect("status", op.at("status"),
                  completed.ok() ? "PENDING" : StatusName(completed.status()));
  } else {
    CompareCompleted(Json::array({op}), *completed, report);
  }
}

void RunOne(TokenQueue& queue, const std::string& kind, const Json& op,
            Report& report) {
  if (kind == "enqueue") {
    CompareOutcome(op, queue.Enqueue(ReadInt(op.at("value"))), report);
  } else if (kind == "enqueue_many") {
    CompareOutcome(op, queue.EnqueueMany(ReadInts(op.at("values"))), report);
  } else if (kind == "dequeue") {
    RunDequeue(queue, op, report);
  } else if (kind == "close") {
    CompareOutcome(
        op, queue.Close(op.at("cancel_pending_enqueues").get<bool>()), report);
  } else if (kind == "cancel") {
    CompareCompleted(op.at("completed"), queue.Cancel(ReadInt(op.at("id"))),
                     report);
  } else if (kind == "size") {
    report.Expect("status", op.at("status"), "OK");
    CompareCompleted(op.at("completed"), {}, report);
  } else {
    throw BadTrace(absl::StrCat("unknown operation \"", kind, "\""));
  }
}

}  // namespace

void ReplayTokenQueue(const Json& scenario, Report& report) {
  TokenQueue queue;
  const Json& ops = scenario.at("ops");
  for (size_t i = 0; i < ops.size(); ++i) {
    const std::string kind = ops[i].at("op");
    report.Begin(i, kind);
    RunOne(queue, kind, ops[i], report);
    report.Expect("size", ReadInt(ops[i].at("size")), queue.size());
  }
}

}  // namespace lockstep::golden
