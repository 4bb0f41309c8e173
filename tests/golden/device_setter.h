#ifndef LOCKSTEP_TESTS_GOLDEN_DEVICE_SETTER_H_
#define LOCKSTEP_TESTS_GOLDEN_DEVICE_SETTER_H_

#include <functional>
#include <optional>
#include <string>

namespace lockstep::golden {

// A device in TensorFlow's syntax: "/job:ps/task:1/device:CPU:0", each of the
// three optional.
struct Device {
  std::string job;
  std::optional<int> task;
  std::string kind;  // "CPU:0"
};
// Throws BadTrace for text that is no device.
Device ParseDevice(const std::string& text);
std::string DeviceName(const Device& device);

// Returns `inner`, completed by the fields of `outer`.
Device Merge(const Device& outer, const Device& inner);

// DeviceSetter is TensorFlow's placement function around a strategy: variables
// go to servers, everything else stays on the worker. An operation that is
// pinned to another job keeps it without a call of the strategy.
class DeviceSetter {
 public:
  DeviceSetter(Device ps, Device worker, std::function<int()> next_server);

  Device PlaceVariable(const Device& pinned) const;
  Device PlaceOperation(const Device& pinned) const;

 private:
  const Device ps_;
  const Device worker_;
  const std::function<int()> next_server_;
};

}  // namespace lockstep::golden

#endif  // LOCKSTEP_TESTS_GOLDEN_DEVICE_SETTER_H_
