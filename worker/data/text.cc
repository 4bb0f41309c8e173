#include "worker/data/text.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/data/files/data_file.h"

namespace lockstep::worker {
namespace {

absl::StatusOr<Text> Read(const std::string& path, int64_t length) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<uint8_t> bytes, ReadDataFile(path));
  return MakeText(std::move(bytes), length);
}

}  // namespace

absl::StatusOr<Text> MakeText(std::vector<uint8_t> bytes, int64_t length) {
  if (length < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("examples of a text must be of at least 1 byte, got ",
                     length, "; set data.sequence_length"));
  }
  if (static_cast<int64_t>(bytes.size()) <= length) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a text of ", bytes.size(), " bytes has no example of ", length,
        " and the byte after it; give a longer text, or make "
        "data.sequence_length smaller"));
  }
  return Text{std::move(bytes), length};
}

absl::StatusOr<Text> LoadText(const std::string& path, int64_t length) {
  absl::StatusOr<Text> text = Read(path, length);
  if (text.ok()) return text;
  return absl::Status(text.status().code(),
                      absl::StrCat(path, ": ", text.status().message()));
}

absl::StatusOr<Batch> LoadTextBatch(const Text& text,
                                    absl::Span<const int64_t> ids) {
  Batch batch;
  batch.size = static_cast<int64_t>(ids.size());
  const auto length = static_cast<size_t>(text.length);
  batch.tokens.reserve(ids.size() * length);
  batch.labels.reserve(ids.size() * length);
  for (int64_t id : ids) {
    if (id < 0 || id >= text.num_examples()) {
      return absl::InvalidArgumentError(
          absl::StrCat("example id ", id, " is not in [0, ",
                       text.num_examples(), "), the examples of this text"));
    }
    // Examples do not overlap but for one byte: the last label is the first
    // byte of the next example.
    const uint8_t* first = text.bytes.data() + id * text.length;
    batch.tokens.insert(batch.tokens.end(), first, first + length);
    // The label of each byte is the next byte.
    batch.labels.insert(batch.labels.end(), first + 1, first + length + 1);
  }
  return batch;
}

}  // namespace lockstep::worker
