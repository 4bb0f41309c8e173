#include "chief/checkpoint/checkpoint_trouble.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep::chief {

std::optional<std::string> CheckpointTrouble::Failed(int64_t step,
                                                     const absl::Status& why,
                                                     absl::Time now) {
  ++failures_;
  if (code_ == why.code() && now - said_ < kRepeat) return std::nullopt;
  code_ = why.code();
  said_ = now;
  return absl::StrCat("the checkpoint of step ", step,
                      " could not be written: ", why.message());
}

std::optional<std::string> CheckpointTrouble::Saved(int64_t step) {
  if (failures_ == 0) return std::nullopt;
  code_ = absl::StatusCode::kOk;
  const int64_t failures = std::exchange(failures_, 0);
  return absl::StrCat("checkpoints can be written again: that of step ", step,
                      " is there, after ", failures,
                      failures == 1 ? " failure" : " failures");
}

}  // namespace lockstep::chief
