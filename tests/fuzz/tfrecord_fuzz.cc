// Feeds arbitrary bytes to the readers of TFRecord files and of examples: as a
// file, and as a record whose checks are good.

#include <cstddef>
#include <cstdint>
#include <string>

#include "worker/tables/tf_example.h"
#include "worker/tables/tfrecord.h"

namespace lockstep {
namespace {

void Check(absl::string_view bytes) {
  TfRecordReader reader(bytes);
  while (true) {
    const auto record = reader.Next();
    if (!record.ok() || !record->has_value()) break;
    ParseTfExample(**record).status().IgnoreError();
  }
  const auto example = ParseTfExample(bytes);
  if (!example.ok()) return;
  for (const auto& [name, feature] : *example) {
    // No list is longer than its bytes.
    if (feature.ints.size() > bytes.size()) __builtin_trap();
    if (feature.floats.size() > bytes.size()) __builtin_trap();
  }
}

}  // namespace
}  // namespace lockstep

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::Check({reinterpret_cast<const char*>(data), size});
  return 0;
}
