#include "tests/golden/device_setter.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tests/golden/trace.h"

namespace lockstep::golden {

Device ParseDevice(const std::string& text) {
  Device device;
  for (absl::string_view part : absl::StrSplit(text, '/', absl::SkipEmpty())) {
    int task = 0;
    if (absl::ConsumePrefix(&part, "job:")) {
      device.job = std::string(part);
    } else if (absl::ConsumePrefix(&part, "device:")) {
      device.kind = std::string(part);
    } else if (absl::ConsumePrefix(&part, "task:") &&
               absl::SimpleAtoi(part, &task)) {
      device.task = task;
    } else {
      throw BadTrace(absl::StrCat("\"", text, "\" is no device"));
    }
  }
  return device;
}

std::string DeviceName(const Device& device) {
  std::string name;
  if (!device.job.empty()) absl::StrAppend(&name, "/job:", device.job);
  if (device.task) absl::StrAppend(&name, "/task:", *device.task);
  if (!device.kind.empty()) absl::StrAppend(&name, "/device:", device.kind);
  return name;
}

Device Merge(const Device& outer, const Device& inner) {
  Device merged = outer;
  if (!inner.job.empty()) merged.job = inner.job;
  if (inner.task) merged.task = inner.task;
  if (!inner.kind.empty()) merged.kind = inner.kind;
  return merged;
}

DeviceSetter::DeviceSetter(Device ps, Device worker,
                           std::function<int()> next_server)
    : ps_(std::move(ps)),
      worker_(std::move(worker)),
      next_server_(std::move(next_server)) {}

Device DeviceSetter::PlaceVariable(const Device& pinned) const {
  Device ps = ps_;
  if (!ps.job.empty() && (pinned.job.empty() || pinned.job == ps.job)) {
    ps.task = next_server_();
  }
  return Merge(ps, pinned);
}

Device DeviceSetter::PlaceOperation(const Device& pinned) const {
  return Merge(worker_, pinned);
}

}  // namespace lockstep::golden
