// A manifest that is accepted must survive being written and read again.

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "common/checkpoint/format/manifest.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  auto manifest = lockstep::ParseManifest(text);
  if (!manifest.ok()) {
    Require(manifest.status().message().size() < 2000);
    return 0;
  }
  auto again = lockstep::EncodeManifest(*manifest);
  Require(again.ok());
  auto parsed = lockstep::ParseManifest(*again);
  Require(parsed.ok() && *parsed == *manifest);
  return 0;
}
