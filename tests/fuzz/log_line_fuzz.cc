// Bytes of a task's log, in two pieces, and of an entry of the journal. Lines
// have to be printable, bounded and without an end of line.

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "common/text/utf8.h"
#include "deploy/cli/logs/log_line.h"

namespace {

void Check(const lockstep::cli::LogLine& line) {
  if (line.text.size() > lockstep::cli::kLongestLine) abort();
  if (!lockstep::IsUtf8(line.text)) abort();
  for (size_t i = 0; i < line.text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(line.text[i]);
    if (byte < ' ' || byte == 0x7F) abort();
    // C1 controls.
    if (byte == 0xC2 && static_cast<unsigned char>(line.text[i + 1]) < 0xA0) {
      abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  lockstep::cli::LogReader reader("worker 1", absl::InfinitePast(),
                                  absl::UTCTimeZone());
  for (const absl::string_view piece :
       {bytes.substr(0, size / 2), bytes.substr(size / 2)}) {
    for (const auto& line : reader.Read(piece)) Check(line);
  }
  if (const auto line = reader.End()) Check(*line);
  if (const auto line = lockstep::cli::FromJournal(bytes)) Check(*line);
  return 0;
}
