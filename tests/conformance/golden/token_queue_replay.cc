#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "server/sync/token_queue.h"
#include "tests/conformance/golden/replay.h"

namespace lockstep::golden {
namespace {

using Completions = TokenQueue::Completions;

void CompareCompleted(const Json& recorded, Completions actual) {
  std::stable_sort(actual.begin(), actual.end(), [](auto& a, auto& b) {
    const bool a_first = absl::IsCancelled(a.status);
    const bool b_first = absl::IsCancelled(b.status);
    return std::pair(!a_first, a.id) < std::pair(!b_first, b.id);
  });
  ASSERT_EQ(actual.size(), recorded.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_EQ(actual[i].id, recorded[i].at("id").get<uint64_t>());
    EXPECT_EQ(StatusName(actual[i].status), recorded[i].at("status"));
    ASSERT_EQ(actual[i].status.ok(), recorded[i].contains("value"));
    if (!actual[i].status.ok()) continue;
    EXPECT_EQ(actual[i].token, recorded[i].at("value").get<int64_t>());
  }
}

// An operation that does not wait itself, but may end the waiting of others.
void CompareOutcome(const Json& op, const absl::StatusOr<Completions>& actual) {
  EXPECT_EQ(StatusName(actual.status()), op.at("status"));
  CompareCompleted(op.at("completed"), actual.value_or(Completions{}));
}

void RunDequeue(TokenQueue& queue, const Json& op) {
  const auto completed = queue.Dequeue(op.at("id"), absl::UnixEpoch());
  CompareCompleted(op.at("completed"), {});
  if (!completed.ok()) {
    EXPECT_EQ(StatusName(completed.status()), op.at("status"));
  } else if (completed->empty()) {
    EXPECT_EQ(op.at("status"), "PENDING");
  } else {
    CompareCompleted(Json::array({op}), *completed);
  }
}

void RunOne(TokenQueue& queue, const Json& op) {
  const std::string kind = op.at("op");
  if (kind == "enqueue")
    return CompareOutcome(op, queue.Enqueue(op.at("value")));
  if (kind == "enqueue_many") {
    const auto values = op.at("values").get<std::vector<int64_t>>();
    return CompareOutcome(op, queue.EnqueueMany(values));
  }
  if (kind == "dequeue") return RunDequeue(queue, op);
  if (kind == "close") {
    return CompareOutcome(op, queue.Close(op.at("cancel_pending_enqueues")));
  }
  if (kind == "cancel") {
    return CompareCompleted(op.at("completed"), queue.Cancel(op.at("id")));
  }
  EXPECT_EQ(kind, "size") << "unknown operation";
  CompareCompleted(op.at("completed"), {});
}

}  // namespace

void ReplayTokenQueue(const Json& scenario) {
  const int64_t capacity = scenario.at("capacity");
  if (capacity != -1) {
    GTEST_SKIP() << "a queue of capacity " << capacity
                 << ": the token queue is unbounded and has no pending "
                    "enqueues";
  }
  TokenQueue queue;
  const Json& ops = scenario.at("ops");
  for (size_t i = 0; i < ops.size(); ++i) {
    SCOPED_TRACE(absl::StrCat("operation ", i, ": ", ops[i].dump()));
    RunOne(queue, ops[i]);
    EXPECT_EQ(queue.size(), ops[i].at("size").get<size_t>());
  }
}

}  // namespace lockstep::golden
