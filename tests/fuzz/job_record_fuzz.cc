// A record of a job that is accepted is the same after it was written and read
// again, and its page can be made.

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "chief/page/job_record.h"
#include "chief/page/page.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto record = lockstep::chief::JobRecord::FromJson(text, "job");
  if (!record.ok()) return 0;
  const std::string written = record->ToJson("job");
  const auto again = lockstep::chief::JobRecord::FromJson(written, "job");
  Require(again.ok());
  lockstep::chief::PageContents contents;
  contents.record = *again;
  Require(!lockstep::chief::RenderPage(contents).empty());
  return 0;
}
