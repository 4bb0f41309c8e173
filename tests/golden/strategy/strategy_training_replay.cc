#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tests/golden/optimizer_json.h"
#include "tests/golden/replay.h"
#include "tests/golden/strategy/strategy_models.h"
#include "tests/golden/strategy/strategy_workers.h"

namespace lockstep::golden {
namespace {

using strategy::Copy;
using strategy::Cross;
using strategy::LossAndGradients;
using strategy::PerReplica;
using strategy::Replica;
using strategy::TrainedBy;
using strategy::TrainedByOptions;
using strategy::Variable;

// An answer in canonical form: loss and gradients of each local replica.
struct Pass {
  Value loss;
  std::vector<Leaf> gradients;
};

std::vector<double> Doubles(const Value& value) {
  if (value.type() == ElementType::kFloat64) return value.Elements<double>();
  const std::vector<float> elements = value.Elements<float>();
  return {elements.begin(), elements.end()};
}

constexpr double kUlpsOfTerm = 4;

// The larger magnitude of each two elements.
std::vector<double> Larger(std::vector<double> a,
                           const std::vector<double>& b) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    a[i] = std::max(std::fabs(a[i]), std::fabs(b[i]));
  }
  return a;
}

class Training {
 public:
  Training(const Json& scenario, Report& report)
      : scenario_(scenario), report_(report), workers_(scenario) {
    for (const Json& variable : scenario.at("variables")) {
      report.Expect("status of a variable", "OK",
                    StatusName(workers_.Create(variable)));
      names_.push_back(variable.at("name").get<std::string>());
      before_[names_.back()] = ReadValue(variable.at("initial"));
    }
    for (const StrategyWorker& worker : workers_.workers()) {
      std::vector<Variable> variables;
      for (const std::string& name : names_) {
        variables.push_back(worker.VariableOf(name));
      }
      auto made = TrainedBy::Make(*worker.strategy, OptionsOf(scenario),
                                  std::move(variables));
      if (!made.ok()) throw BadTrace(std::string(made.status().message()));
      trained_.push_back(*std::move(made));
    }
    passes_.resize(trained_.size());
  }

  void Run() {
    const Json& ops = scenario_.at("ops");
    for (size_t i = 0; i < ops.size(); ++i) {
      report_.Begin(i, "step");
      const auto answers = workers_.All(
          [&](StrategyWorker& worker) { return Step(ops[i], worker); });
      bool ok = true;
      for (size_t w = 0; w < answers.size(); ++w) {
        ok = report_.Expect("status", ops[i].at("status").get<std::string>(),
                            StatusName(answers[w].status())) &&
             ok;
      }
      if (!ok || ops[i].at("status") != "OK") return;
      for (size_t w = 0; w < answers.size(); ++w) {
        ComparePasses(ops[i], w, (*answers[w])[0]);
      }
      CompareAndTake(ops[i].at("state"));
      for (size_t v = 0; v < names_.size(); ++v) {
        before_[names_[v]] =
            ReadValue(ops[i].at("state").at("variables").at(v));
      }
    }
  }

 private:
  static TrainedByOptions OptionsOf(const Json& scenario) {
    const Json& optimizer = scenario.at("optimizer");
    Json hyper = optimizer.at("hyper");
    // Arguments that the recorder left to their defaults.
    for (const char* name : {"l2_shrinkage_regularization_strength", "beta"}) {
      if (!hyper.contains(name)) hyper[name] = 0;
    }
    const OptimizerRecord record =
        ReadOptimizer(optimizer.at("name").get<std::string>(), hyper);
    TrainedByOptions options;
    options.optimizer = record.config;
    options.learning_rate = record.learning_rate;
    options.reduce = ReduceOp::kSum;
    if (scenario.at("graph").get<bool>()) {
      options.communication.bytes_per_pack = 0;
    }
    return options;
  }

  bool IsSoftmax() const { return scenario_.at("model") == "softmax"; }

  // The recorded gradients of a replica, which softmax goes on with.
  std::vector<std::optional<Leaf>> Recorded(const Json& op,
                                            const Replica& replica,
                                            int worker) const {
    std::vector<std::optional<Leaf>> gradients;
    const Json& result = OfWorker(op.at("result"), worker);
    for (const Json& of_variable : result.at("gradients")) {
      gradients.push_back(ReadLeaf(of_variable.at(replica.local())));
    }
    return gradients;
  }

  absl::StatusOr<Results> Step(const Json& op, StrategyWorker& worker) {
    const auto w = static_cast<size_t>(worker.index);
    TrainedBy& trained = *trained_[w];
    std::vector<Pass>& passes = passes_[w];
    passes.resize(static_cast<size_t>(worker.strategy->local_replicas()));
    LOCKSTEP_ASSIGN_OR_RETURN(
        const auto losses,
        worker.strategy->Run(
            [&](Replica& replica, const Node& features, const Node& targets) {
              return Guarded([&] {
                return trained.Minimize(
                    replica,
                    [&](Replica&, absl::Span<const Variable> variables)
                        -> absl::StatusOr<LossAndGradients> {
                      std::vector<Value> values;
                      for (const Variable& variable : variables) {
                        LOCKSTEP_ASSIGN_OR_RETURN(values.emplace_back(),
                                                  replica.Read(variable));
                      }
                      LossAndGradients made =
                          ComputeModel(scenario_.at("model"), values,
                                       std::get<Value>(features.leaf),
                                       std::get<Value>(targets.leaf),
                                       ReadInt(scenario_.at("global_batch")));
                      Pass& pass = passes[replica.local()];
                      pass = {made.loss, {}};
                      for (const auto& gradient : made.gradients) {
                        pass.gradients.push_back(*gradient);
                      }
                      if (IsSoftmax()) {
                        made.gradients = Recorded(op, replica, worker.index);
                        const Json& result =
                            OfWorker(op.at("result"), worker.index);
                        made.loss =
                            ReadValue(result.at("loss").at(replica.local()));
                      }
                      return made;
                    });
              });
            },
            worker.Nodes(op.at("features")), worker.Nodes(op.at("targets"))));
    LOCKSTEP_ASSIGN_OR_RETURN(Value total,
                              worker.strategy->Reduce(ReduceOp::kSum, losses));
    return Results{Canonical(Leaf(std::move(total)))};
  }

  void ComparePasses(const Json& op, size_t worker, const Json& total) {
    const Json& result = OfWorker(op.at("result"), static_cast<int>(worker));
    report_.Expect("total_loss",
                   Canonical(ReadLeaf(result.at("total_loss"))).dump(),
                   total.dump());
    // The largest of the terms whose sum a gradient of softmax is.
    const double term =
        1.0 / static_cast<double>(ReadInt(scenario_.at("global_batch")));
    for (size_t r = 0; r < passes_[worker].size(); ++r) {
      const Pass& pass = passes_[worker][r];
      CompareComputed(absl::StrCat("loss of replica ", r),
                      ReadLeaf(result.at("loss").at(r)), Leaf(pass.loss), term);
      for (size_t v = 0; v < names_.size(); ++v) {
        CompareComputed(
            absl::StrCat("gradient of ", names_[v], ", replica ", r),
            ReadLeaf(result.at("gradients").at(v).at(r)), pass.gradients.at(v),
            term);
      }
    }
  }

  // Softmax: within the README's tolerance, in which a sum whose terms cancel
  // may have the rounding error of its terms; others bit for bit.
  void CompareComputed(const std::string& what, const Leaf& expected,
                       const Leaf& got, double term) {
    const Value* a = std::get_if<Value>(&expected);
    const Value* b = std::get_if<Value>(&got);
    if (!IsSoftmax() || a == nullptr || b == nullptr ||
        a->shape() != b->shape() || a->type() != b->type()) {
      report_.Expect(what, Canonical(expected).dump(), Canonical(got).dump());
      return;
    }
    const std::vector<double> x = Doubles(*a);
    const std::vector<double> y = Doubles(*b);
    double largest = 0;
    double furthest = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      largest = std::max(largest, std::fabs(x[i]));
      furthest = std::max(furthest, std::fabs(x[i] - y[i]));
    }
    const bool single = a->type() == ElementType::kFloat32;
    const double tolerance = single ? 2e-6 : 1e-14;
    const double rounding = kUlpsOfTerm * std::ldexp(1.0, single ? -24 : -53);
    if (furthest <= tolerance * largest + rounding * term) return;
    report_.Add(what, Text(x), Text(y));
  }

  void CompareAndTake(const Json& state) {
    for (size_t w = 0; w < trained_.size(); ++w) {
      const StrategyWorker& worker = workers_.workers()[w];
      for (size_t v = 0; v < names_.size(); ++v) {
        const Variable& variable = worker.VariableOf(names_[v]);
        CompareCopies(worker, variable, state.at("variables").at(v), names_[v],
                      UlpsOf(variable));
        for (const auto& [key, recorded] : state.at("slots").at(v).items()) {
          const auto slot = trained_[w]->Slot(variable, key);
          if (!report_.Expect(absl::StrCat("slot ", key), "OK",
                              StatusName(slot.status()))) {
            continue;
          }
          CompareCopies(worker, *slot, recorded, slot->name(), 0);
        }
      }
      const Json scalars = state.value("scalars", Json::object());
      report_.Expect("number of scalars", absl::StrCat(scalars.size()),
                     absl::StrCat(trained_[w]->NonSlots().size()));
      for (const Variable& power : trained_[w]->NonSlots()) {
        CompareCopies(worker, power, scalars.at(power.name()), power.name(), 0);
      }
    }
  }

  // Adagrad's reciprocal square roots of eight elements and more.
  double UlpsOf(const Variable& variable) const {
    size_t elements = 1;
    for (const int64_t dim : variable.shape()) {
      elements *= static_cast<size_t>(dim);
    }
    const bool estimates = scenario_.at("optimizer").at("name") == "Adagrad" &&
                           variable.type() == ElementType::kFloat32 &&
                           elements >= 8;
    return estimates ? 8 : 0;
  }

  // Compares all copies, and puts the recorded value in their place. The unit
  // of `ulps` is that of the value before or after the step, as the rounding
  // error is the update's.
  void CompareCopies(const StrategyWorker& worker, const Variable& variable,
                     const Json& recorded, const std::string& name,
                     double ulps) {
    const Value expected = ReadValue(recorded);
    const absl::Status read = worker.strategy->Across([&](Cross& cross) {
      return cross.Update(variable, [&](Copy& copy) -> absl::Status {
        LOCKSTEP_ASSIGN_OR_RETURN(const Value got, copy.Read());
        const std::string what = absl::StrCat(name, ", copy ", copy.index(),
                                              " of worker ", worker.index);
        if (ulps == 0) {
          report_.Expect(what, Canonical(Leaf(expected)).dump(),
                         Canonical(Leaf(got)).dump());
        } else {
          const std::vector<double> scale =
              Larger(Doubles(before_.at(name)), Doubles(expected));
          if (!Near(DType::kFloat32, Doubles(expected), Doubles(got), scale,
                    ulps)) {
            report_.Add(what, Text(Doubles(expected)), Text(Doubles(got)));
          }
        }
        return copy.Assign(expected);
      });
    });
    report_.Expect(absl::StrCat("status of ", name), "OK", StatusName(read));
  }

  const Json& scenario_;
  Report& report_;
  StrategyWorkers workers_;
  std::vector<std::string> names_;
  std::map<std::string, Value> before_;  // values before the step, by name
  std::vector<std::unique_ptr<TrainedBy>> trained_;  // by worker
  std::vector<std::vector<Pass>> passes_;            // by worker and replica
};

}  // namespace

void ReplayStrategyTraining(const Json& scenario, Report& report) {
  Training(scenario, report).Run();
}

}  // namespace lockstep::golden
