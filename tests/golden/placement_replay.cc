#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "chief/plan/partitioner.h"
#include "chief/plan/placement_strategy.h"
#include "common/job/variable_settings.h"
#include "server/update/slots.h"
#include "tests/golden/device_setter.h"
#include "tests/golden/replay.h"

namespace lockstep::golden {
namespace {

// An optimizer's slots do not depend on its hyper-parameters, except RMSProp's
// `centered`, which is off by default.
OptimizerConfig WithName(const std::string& name) {
  using Kind = OptimizerConfig::Kind;
  static const auto& kinds = *new std::map<std::string, Kind>{
      {"GradientDescent", Kind::kGradientDescent},
      {"Momentum", Kind::kMomentum},
      {"Adagrad", Kind::kAdagrad},
      {"Adam", Kind::kAdam},
      {"RMSProp", Kind::kRmsProp},
      {"Adadelta", Kind::kAdadelta},
      {"Ftrl", Kind::kFtrl}};
  const auto kind = kinds.find(name);
  if (kind == kinds.end()) {
    throw BadTrace(absl::StrCat("unknown optimizer \"", name, "\""));
  }
  OptimizerConfig config;
  config.kind = kind->second;
  return config;
}

class PlacementReplay {
 public:
  PlacementReplay(const Json& scenario, Report& report)
      : scenario_(scenario), report_(report) {}

  void Run() {
    const Json& arguments = scenario_.at("arguments");
    const int64_t tasks = ReadInt(arguments.at("ps_tasks"));
    report_.Expect("places", scenario_.at("places").dump(),
                   tasks > 0 ? "true" : "false");
    if (tasks < 0 || tasks > 1 << 20) throw BadTrace("too many ps_tasks");
    chief::RoundRobin strategy(std::max<int>(1, static_cast<int>(tasks)));
    places_ = tasks > 0;
    setter_ = std::make_unique<DeviceSetter>(
        ParseDevice(arguments.at("ps_device")),
        ParseDevice(arguments.at("worker_device")),
        [&strategy] { return strategy.Next(); });
    for (const Json& item : scenario_.at("items")) Place(item);
    report_.Expect("number of results", scenario_.at("results").size(), next_);
  }

 private:
  void Place(const Json& item) {
    const std::string kind = item.at("kind");
    const Device pinned = ParseDevice(item.value("device", std::string()));
    if (kind == "variable") {
      PlaceVariable(item.at("name"), pinned);
    } else if (kind == "global_step") {
      PlaceVariable("global_step", pinned);
    } else if (kind == "operation") {
      Compare(item.at("name"),
              places_ ? setter_->PlaceOperation(pinned) : pinned);
    } else if (kind == "partitioned") {
      PlaceParts(item, pinned);
    } else if (kind == "optimizer") {
      PlaceSlots(item);
    } else if (kind == "moving_average") {
      for (const std::string name : item.at("variables")) {
        PlaceBeside(name, absl::StrCat(name, "/ExponentialMovingAverage"));
      }
    } else {
      throw BadTrace(absl::StrCat("unknown kind of item \"", kind, "\""));
    }
  }

  void PlaceVariable(const std::string& name, const Device& pinned) {
    const Device device = places_ ? setter_->PlaceVariable(pinned) : pinned;
    devices_[name] = device;
    Compare(name, device);
  }

  void PlaceParts(const Json& item, const Device& pinned) {
    const std::string name = item.at("name");
    const chief::PartitionInput input{ReadInts(item.at("shape"))};
    const auto partition =
        chief::FixedSizePartition(input, ReadInt(item.at("num_shards")));
    if (!partition.ok()) throw BadTrace("a variable that cannot be cut");
    const auto parts = chief::CutVariable(input.shape, *partition);
    if (!parts.ok()) throw BadTrace("a variable that cannot be cut");
    for (size_t i = 0; i < parts->size(); ++i) {
      PlaceVariable(chief::PartName(name, i), pinned);
    }
  }

  // Adam's powers are placed with the variable whose name sorts first.
  void PlaceSlots(const Json& item) {
    const OptimizerConfig config = WithName(item.at("optimizer"));
    std::vector<std::string> variables = item.at("variables");
    if (server::HasAdamPowers(config) && !variables.empty()) {
      const std::string first =
          *std::min_element(variables.begin(), variables.end());
      PlaceBeside(first, "beta1_power");
      PlaceBeside(first, "beta2_power");
    }
    for (const std::string& variable : variables) {
      for (const std::string& slot : server::SlotNames(config)) {
        PlaceBeside(variable, TensorNameOf(variable, slot));
      }
    }
  }

  // The strategy is called nevertheless.
  void PlaceBeside(const std::string& variable, const std::string& name) {
    const auto device = devices_.find(variable);
    if (device == devices_.end()) {
      throw BadTrace(absl::StrCat("unknown variable \"", variable, "\""));
    }
    if (places_) setter_->PlaceVariable(Device());
    Compare(name, device->second);
  }

  void Compare(const std::string& name, const Device& device) {
    const Json& recorded = scenario_.at("results").at(next_);
    report_.Begin(next_++, name);
    report_.Expect("name", recorded.at("name"), name);
    report_.Expect("device", recorded.at("device"), DeviceName(device));
    report_.Expect("job", recorded.at("job").dump(),
                   device.job.empty() ? "null" : Json(device.job).dump());
    report_.Expect("task", recorded.at("task").dump(),
                   device.task ? absl::StrCat(*device.task) : "null");
  }

  const Json& scenario_;
  Report& report_;
  bool places_ = false;
  std::unique_ptr<DeviceSetter> setter_;
  std::map<std::string, Device> devices_;
  size_t next_ = 0;
};

}  // namespace

void ReplayPlacement(const Json& scenario, Report& report) {
  const bool callable = scenario.at("strategy") == "round_robin";
  if (!callable && scenario.at("strategy") != "not callable") {
    throw BadTrace("unknown strategy");
  }
  report.Expect("status", scenario.at("status"),
                callable ? "OK" : "INVALID_ARGUMENT");
  if (callable) PlacementReplay(scenario, report).Run();
}

}  // namespace lockstep::golden
