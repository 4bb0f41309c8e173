#include "chief/checkpoint/volume_error.h"

#include "absl/strings/str_cat.h"

namespace lockstep::chief {

absl::Status OfVolume(const absl::Status& status) {
  if (status.ok()) return status;
  // The new checkpoint is written before an old one is removed.
  const absl::string_view fix =
      absl::IsResourceExhausted(status)
          ? "; make room there for one checkpoint more than checkpoint.keep"
          : "";
  return absl::Status(
      status.code(),
      absl::StrCat("checkpoint.directory: ", status.message(), fix));
}

}  // namespace lockstep::chief
