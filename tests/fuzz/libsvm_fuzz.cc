// Feeds arbitrary bytes to the reader of LIBSVM text.

#include <cstddef>
#include <cstdint>

#include "worker/tables/libsvm.h"

namespace lockstep {
namespace {

void Require(bool promise) {
  if (!promise) __builtin_trap();
}

void Check(absl::string_view text) {
  worker::SparseExamples examples;
  const bool read = worker::ParseLibsvm(text, "text", {1, 10}, examples).ok();
  Require(read || (examples.size() == 0 && examples.features.empty()));
  Require(examples.values.size() == examples.features.size());
  Require(examples.ends.size() == examples.labels.size());
  for (int64_t e = 0; e < examples.size(); ++e) {
    int64_t before = -1;
    for (size_t i = examples.begin(e); i < examples.end(e); ++i) {
      Require(examples.features[i] > before && examples.features[i] < 10);
      before = examples.features[i];
    }
  }
}

}  // namespace
}  // namespace lockstep

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::Check({reinterpret_cast<const char*>(data), size});
  return 0;
}
