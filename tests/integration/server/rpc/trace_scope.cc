#include "tests/integration/server/rpc/trace_scope.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>

namespace lockstep::testing {
namespace {

using golden::Json;
using golden::ReadInt;

// The part of a job before an operation.
class TraceScope {
 public:
  explicit TraceScope(const Json& scenario)
      : needed_(ReadInt(scenario.at("replicas_to_aggregate"))),
        total_(ReadInt(scenario.at("total_num_replicas"))),
        initial_tokens_(ReadInt(scenario.at("num_tokens"))) {
    if (initial_tokens_ == -1) initial_tokens_ = needed_;
    const Json& variables = scenario.at("variables");
    decays_early_ = scenario.at("optimizer").at("name") == "Adam" &&
                    std::any_of(variables.begin(), variables.end(),
                                [](const Json& variable) {
                                  return variable.at("sparse") == true;
                                });
  }

  // True if the services do as TensorFlow; then it is in the part.
  bool Add(const Json& op) {
    const std::string kind = op.at("op");
    if (kind == "start") return true;
    if (kind == "pass" && ReadInt(op.at("worker")) >= total_) return false;
    if (kind == "reinit_chief" &&
        (decays_early_ ||
         (op.at("tokens").get<bool>() && initial_tokens_ > 0))) {
      return false;
    }
    if (op.contains("cancelled") && !MayDie(op)) return false;
    if (kind == "stop_chief") away_ = true;
    if (kind == "reinit_chief") away_ = false;
    return !away_ || !HasGathered(op.at("state"));
  }

 private:
  bool MayDie(const Json& op) {
    // Worker 0 dies with the chief.
    const int64_t worker = ReadInt(op.value("worker", Json(0)));
    if (op.at("cancelled").get<bool>()) return lost_tokens_.count(worker) == 0;
    lost_tokens_.insert(worker);
    return true;
  }

  bool HasGathered(const Json& state) const {
    const Json& counts = state.at("accumulated");
    return std::any_of(counts.begin(), counts.end(), [&](const Json& count) {
      return !count.is_null() && ReadInt(count) >= needed_;
    });
  }

  const int64_t needed_;
  const int64_t total_;
  int64_t initial_tokens_;
  bool decays_early_ = false;
  bool away_ = false;  // the chief
  std::set<int64_t> lost_tokens_;
};

}  // namespace

size_t ServedOperations(const Json& scenario) {
  TraceScope scope(scenario);
  size_t served = 0;
  for (const Json& op : scenario.at("ops")) {
    if (!scope.Add(op)) break;
    ++served;
  }
  return served;
}

}  // namespace lockstep::testing
