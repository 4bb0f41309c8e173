// Feeds arbitrary bytes to the readers of TFRecord files, of examples and of
// their columns: as a file, and as a record with correct checks.

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/records/tfrecord.h"
#include "worker/tables/example_columns.h"

namespace lockstep {
namespace {

// Columns of the examples in tests/fuzz/corpus.
void CheckColumns(absl::string_view file) {
  const worker::ColumnLayout layout = {.categorical = {"user", "ad"},
                                       .crosses = {{0, 1}},
                                       .numeric = {"hour"},
                                       .label = "clicked"};
  worker::ColumnExamples examples;
  const absl::Status status =
      worker::ParseExamples(file, "file", layout, examples);
  const auto count = static_cast<size_t>(examples.size());
  if (!status.ok() && count != 0) __builtin_trap();
  if (examples.wide.size() != 3 * count) __builtin_trap();
  if (examples.deep.size() != 2 * count) __builtin_trap();
  if (examples.numeric.size() != count) __builtin_trap();
}

void Check(absl::string_view bytes) {
  CheckColumns(bytes);
  std::string file;
  AppendTfRecord(bytes, file);
  CheckColumns(file);
}

}  // namespace
}  // namespace lockstep

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::Check({reinterpret_cast<const char*>(data), size});
  return 0;
}
