#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/golden/bounded_queue.h"
#include "tests/golden/replay.h"

namespace lockstep::golden {
namespace {

using Completions = BoundedQueue::Completions;

// Sorts by id; the operations that a cancel ended come first.
void CompareCompleted(const Json& op, Completions actual, Report& report) {
  const Json& recorded = op.at("completed");
  const int64_t first = op.at("op") == "cancel" ? ReadInt(op.at("id")) : -1;
  std::sort(actual.begin(), actual.end(), [first](auto& a, auto& b) {
    const auto rank = [first](uint64_t id) {
      return static_cast<int64_t>(id) == first ? -1 : static_cast<int64_t>(id);
    };
    return rank(a.id) < rank(b.id);
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
    report.Expect("value", ReadInt(recorded[i].value("value", Json(0))),
                  actual[i].token);
  }
}

// Adding and closing may wait if the queue has a capacity.
void CompareAdding(const BoundedQueue& queue, const Json& op, uint64_t id,
                   const absl::StatusOr<Completions>& actual, Report& report) {
  const bool waits = id != 0 && queue.IsAdding(id);
  report.Expect("status", op.at("status"),
                waits ? "PENDING" : StatusName(actual.status()));
  CompareCompleted(op, actual.value_or(Completions{}), report);
}

void RunDequeue(BoundedQueue& queue, const Json& op, Report& report) {
  const auto id = static_cast<uint64_t>(ReadInt(op.at("id")));
  const auto answered = queue.Dequeue(id);
  Completions others = answered.value_or(Completions{});
  const auto own = std::find_if(others.begin(), others.end(),
                                [id](const auto& c) { return c.id == id; });
  if (!answered.ok()) {
    report.Expect("status", op.at("status"), StatusName(answered.status()));
  } else if (own == others.end()) {
    report.Expect("status", op.at("status"), "PENDING");
  } else {
    if (report.Expect("status", op.at("status"), StatusName(own->status)) &&
        own->status.ok()) {
      report.Expect("value", ReadInt(op.at("value")), own->token);
    }
    others.erase(own);
  }
  CompareCompleted(op, others, report);
}

void RunOne(BoundedQueue& queue, const std::string& kind, const Json& op,
            Report& report) {
  const auto id = static_cast<uint64_t>(ReadInt(op.value("id", Json(0))));
  if (kind == "enqueue") {
    CompareAdding(queue, op, id, queue.Enqueue({ReadInt(op.at("value"))}, id),
                  report);
  } else if (kind == "enqueue_many") {
    CompareAdding(queue, op, id, queue.Enqueue(ReadInts(op.at("values")), id),
                  report);
  } else if (kind == "dequeue") {
    RunDequeue(queue, op, report);
  } else if (kind == "close") {
    const bool cancel = op.at("cancel_pending_enqueues").get<bool>();
    CompareAdding(queue, op, id, queue.Close(cancel, id), report);
  } else if (kind == "cancel") {
    CompareCompleted(op, queue.Cancel(id), report);
  } else if (kind == "size") {
    report.Expect("status", op.at("status"), "OK");
    CompareCompleted(op, {}, report);
  } else {
    throw BadTrace(absl::StrCat("unknown operation \"", kind, "\""));
  }
}

}  // namespace

void ReplayTokenQueue(const Json& scenario, Report& report) {
  const int64_t capacity = ReadInt(scenario.at("capacity"));
  if (capacity != BoundedQueue::kNoLimit && capacity < 1) {
    throw BadTrace(absl::StrCat("capacity ", capacity));
  }
  BoundedQueue queue(capacity);
  const Json& ops = scenario.at("ops");
  for (size_t i = 0; i < ops.size(); ++i) {
    const std::string kind = ops[i].at("op");
    report.Begin(i, kind);
    RunOne(queue, kind, ops[i], report);
    report.Expect("size", ReadInt(ops[i].at("size")), queue.size());
  }
}

}  // namespace lockstep::golden
