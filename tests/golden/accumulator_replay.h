#ifndef LOCKSTEP_TESTS_GOLDEN_ACCUMULATOR_REPLAY_H_
#define LOCKSTEP_TESTS_GOLDEN_ACCUMULATOR_REPLAY_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/golden/report.h"
#include "tests/golden/trace.h"

namespace lockstep::golden {

// AccumulatorReplay executes a scenario's operations on one accumulator, dense
// or sparse. `Format` defines the encoding of its gradients:
//
//   Gradient                                 owns the data of the view
//   Gradient Read(DType, const Json&)
//   View Show(const Gradient&)
//   void Compare(DType, const Json& recorded, const Value& actual, Report&)
template <typename Accumulator, typename Format>
class AccumulatorReplay {
 public:
  AccumulatorReplay(const typename Accumulator::Options& options,
                    Report& report)
      : dtype_(options.dtype), accumulator_(options), report_(report) {}

  void Run(const Json& ops) {
    for (size_t i = 0; i < ops.size(); ++i) {
      const std::string kind = ops[i].at("op");
      report_.Begin(i, kind);
      RunOne(kind, ops[i]);
      report_.Expect("count", ReadInt(ops[i].at("count")),
                     accumulator_.num_accumulated());
    }
  }

 private:
  using Completed = typename Accumulator::Completed;

  void RunOne(const std::string& kind, const Json& op) {
    if (kind == "apply") return Apply(op);
    if (kind == "take") return Take(op);
    if (kind == "set_global_step") return SetGlobalStep(op);
    if (kind == "cancel") {
      return CompareCompleted(op.at("completed"),
                              accumulator_.Cancel(ReadInt(op.at("id"))));
    }
    throw BadTrace(absl::StrCat("unknown operation \"", kind, "\""));
  }

  // A gradient that TensorFlow dropped silently leaves the count unchanged,
  // unless a take came between; the next count always shows it.
  void Apply(const Json& op) {
    const auto gradient = Format::Read(dtype_, op.at("gradient"));
    auto applied = accumulator_.Apply(ReadInt(op.at("local_step")),
                                      Format::Show(gradient));
    report_.Expect("status", op.at("status"), StatusName(applied.status()));
    if (!applied.ok()) return CompareCompleted(op.at("completed"), {});
    CompareCompleted(op.at("completed"), applied->completed);
  }

  void Take(const Json& op) {
    auto completed =
        accumulator_.Take(ReadInt(op.at("id")), ReadInt(op.at("n")));
    CompareCompleted(op.at("completed"), {});
    if (!completed.ok() || completed->empty()) {
      report_.Expect(
          "status", op.at("status"),
          completed.ok() ? "PENDING" : StatusName(completed.status()));
    } else {
      CompareCompleted(Json::array({op}), *completed);
    }
  }

  void SetGlobalStep(const Json& op) {
    accumulator_.SetGlobalStep(ReadInt(op.at("step")));
    report_.Expect("status", op.at("status"), "OK");
    CompareCompleted(op.at("completed"), {});
  }

  void CompareCompleted(const Json& recorded,
                        const std::vector<Completed>& actual) {
    if (!report_.Expect("number of ended requests", recorded.size(),
                        actual.size())) {
      return;
    }
    for (size_t i = 0; i < actual.size(); ++i) {
      report_.Expect("id", ReadInt(recorded[i].at("id")), actual[i].id);
      const bool same = report_.Expect("status", recorded[i].at("status"),
                                       StatusName(actual[i].status));
      if (!same || !actual[i].status.ok()) continue;
      Format::Compare(dtype_, recorded[i].at("result"), actual[i].gradient,
                      report_);
    }
  }

  const DType dtype_;
  Accumulator accumulator_;
  Report& report_;
};

}  // namespace lockstep::golden

#endif  // LOCKSTEP_TESTS_GOLDEN_ACCUMULATOR_REPLAY_H_
