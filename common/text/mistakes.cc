#include "common/text/mistakes.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace lockstep {

void Mistakes::Add(const absl::Status& status) {
  if (status.ok()) return;
  // Counts them all, but keeps few: a document may have any number.
  if (++count_ <= kShown) shown_.emplace_back(status.message());
}

absl::Status Mistakes::status() const {
  if (count_ == 0) return absl::OkStatus();
  std::string text = absl::StrJoin(shown_, "\n");
  if (count_ > kShown) {
    absl::StrAppend(&text, "\nand ", count_ - kShown, " more mistakes");
  }
  return absl::InvalidArgumentError(text);
}

}  // namespace lockstep
