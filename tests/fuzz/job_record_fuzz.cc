// A record of a job that is accepted is the same after it was written and read
// again, but for the digits that are not written, and its page can be made.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "chief/page/job_record.h"
#include "chief/page/page.h"
#include "nlohmann/json.hpp"

namespace {

using lockstep::chief::CurvePoint;
using lockstep::chief::JobRecord;
using lockstep::chief::StoryEvent;

void Require(bool condition) {
  if (!condition) std::abort();
}

// That a number was read as it was written, to `unit` or five digits.
void RequireNear(double read, double written, double unit) {
  Require(std::abs(read - written) <= unit + 2e-5 * std::abs(written));
}

void RequireSameCurve(const std::vector<CurvePoint>& read,
                      const std::vector<CurvePoint>& written) {
  Require(read.size() == written.size());
  for (size_t i = 0; i < written.size(); ++i) {
    Require(read[i].step == written[i].step);
    RequireNear(read[i].unix_seconds, written[i].unix_seconds, 0.1);
    RequireNear(read[i].value, written[i].value, 0);
  }
}

void RequireSameStory(const std::vector<StoryEvent>& read,
                      const std::vector<StoryEvent>& written) {
  Require(read.size() == written.size());
  for (size_t i = 0; i < written.size(); ++i) {
    Require(read[i].kind == written[i].kind);
    Require(read[i].text.empty() == written[i].text.empty());
    RequireNear(read[i].unix_seconds, written[i].unix_seconds, 0.001);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto record = JobRecord::FromJson(text, "job");
  if (!record.ok()) return 0;
  const std::string written = record->ToJson("job");
  const auto again = JobRecord::FromJson(written, "job");
  Require(again.ok());
  const auto json = nlohmann::json::parse(text.begin(), text.end());
  for (const auto& curve : json["curves"].items()) {
    RequireSameCurve(again->Points(curve.key()), record->Points(curve.key()));
  }
  RequireSameStory(again->Events(), record->Events());
  lockstep::chief::PageContents contents;
  contents.record = *again;
  Require(!lockstep::chief::RenderPage(contents).empty());
  return 0;
}
