#ifndef LOCKSTEP_TESTS_GOLDEN_DEVICE_SETTER_H_
#define LOCKSTEP_TESTS_GOLDEN_DEVICE_SETTER_H_

#include <functional>
#include <optional>
#include <string>

namespace lockstep::golden {

// A device as TensorFlow names it: "/job:ps/task:1/device:CPU:0", each of the
// three optional.
struct Device {
  std::string job;
  std::optional<int> task;
  std::string kind;  // "CPU:0"
};
// Throws BadTrace for text that is no device.
Device ParseDevice(const std::string& text);
std::string DeviceName(const Device& device);

// What `inner` says, and `outer` where it says nothing.
Device Merge(const Device& outer, const Device& inner);

// DeviceSetter is TensorFlow's placement function around a strategy: variables
// go to servers, everything else stays on the worker. What is pinned to another
// job keeps it and is not asked about.
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
