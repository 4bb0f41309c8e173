#ifndef LOCKSTEP_TESTS_CONFORMANCE_GOLDEN_ACCUMULATOR_REPLAY_H_
#define LOCKSTEP_TESTS_CONFORMANCE_GOLDEN_ACCUMULATOR_REPLAY_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/conformance/golden/golden_reader.h"

namespace lockstep::golden {

// AccumulatorReplay does a scenario's operations on one accumulator, dense or
// sparse. `Format` says how its gradients are written:
//
//   Gradient                                 owns what the view shows
//   Gradient Read(DType, const Json&)
//   View Show(const Gradient&)
//   void Compare(DType, const Json& recorded, const Value& actual)
template <typename Accumulator, typename Format>
class AccumulatorReplay {
 public:
  AccumulatorReplay(const typename Accumulator::Options& options)
      : dtype_(options.dtype), accumulator_(options) {}

  void Run(const Json& ops) {
    for (size_t i = 0; i < ops.size(); ++i) {
      SCOPED_TRACE(absl::StrCat("operation ", i, ": ", ops[i].dump()));
      RunOne(ops[i]);
      EXPECT_EQ(accumulator_.num_accumulated(),
                ops[i].at("count").template get<int64_t>());
    }
  }

 private:
  using Completed = typename Accumulator::Completed;

  void RunOne(const Json& op) {
    const std::string kind = op.at("op");
    if (kind == "apply") return Apply(op);
    if (kind == "take") return Take(op);
    if (kind == "set_global_step") return SetGlobalStep(op);
    if (kind == "cancel") {
      return CompareCompleted(op.at("completed"),
                              accumulator_.Cancel(op.at("id")));
    }
    ADD_FAILURE() << "unknown operation";
  }

  // A gradient that TensorFlow dropped in silence leaves the count as it was,
  // unless a take has come between; the next count shows it in any case.
  void Apply(const Json& op) {
    const auto gradient = Format::Read(dtype_, op.at("gradient"));
    auto applied =
        accumulator_.Apply(op.at("local_step"), Format::Show(gradient));
    EXPECT_EQ(StatusName(applied.status()), op.at("status"));
    if (!applied.ok()) return CompareCompleted(op.at("completed"), {});
    CompareCompleted(op.at("completed"), applied->completed);
  }

  void Take(const Json& op) {
    auto completed = accumulator_.Take(op.at("id"), op.at("n"));
    CompareCompleted(op.at("completed"), {});
    if (!completed.ok()) {
      EXPECT_EQ(StatusName(completed.status()), op.at("status"));
    } else if (completed->empty()) {
      EXPECT_EQ(op.at("status"), "PENDING");
    } else {
      CompareCompleted(Json::array({op}), *completed);
    }
  }

  void SetGlobalStep(const Json& op) {
    accumulator_.SetGlobalStep(op.at("step"));
    EXPECT_EQ(op.at("status"), "OK");
    CompareCompleted(op.at("completed"), {});
  }

  void CompareCompleted(const Json& recorded,
                        const std::vector<Completed>& actual) {
    ASSERT_EQ(actual.size(), recorded.size());
    for (size_t i = 0; i < actual.size(); ++i) {
      EXPECT_EQ(actual[i].id, recorded[i].at("id").template get<uint64_t>());
      EXPECT_EQ(StatusName(actual[i].status), recorded[i].at("status"));
      ASSERT_EQ(actual[i].status.ok(), recorded[i].contains("result"));
      if (!actual[i].status.ok()) continue;
      Format::Compare(dtype_, recorded[i].at("result"), actual[i].gradient);
    }
  }

  const DType dtype_;
  Accumulator accumulator_;
};

}  // namespace lockstep::golden

#endif  // LOCKSTEP_TESTS_CONFORMANCE_GOLDEN_ACCUMULATOR_REPLAY_H_
