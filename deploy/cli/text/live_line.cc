#include "deploy/cli/text/live_line.h"

#include "deploy/cli/text/text_format.h"

namespace lockstep::cli {
namespace {

// Faster changes cannot be read.
constexpr absl::Duration kRedrawEvery = absl::Milliseconds(100);

}  // namespace

void LiveLine::Draw(const std::function<std::string()>& text) {
  if (!terminal_.live()) return;
  const absl::Time now = clock_.Now();
  if (now - drawn_ < kRedrawEvery) return;
  drawn_ = now;
  // Some terminals start a new line after the last column.
  terminal_.ShowLive(Clip(text(), terminal_.Columns() - 1));
}

}  // namespace lockstep::cli
