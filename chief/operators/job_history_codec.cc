#include "chief/operators/job_history_codec.h"

#include <algorithm>
#include <string>

#include "absl/strings/escaping.h"
#include "common/plan/progress.h"
#include "common/text/plain_text.h"
#include "common/text/utf8.h"
#include "common/wire/wire_codec.h"

namespace lockstep::chief {
namespace {

// Messages take no other text than UTF-8: a reason may quote bytes of a
// program.
std::string Utf8Text(const std::string& text) {
  return IsUtf8(text) ? text : absl::CHexEscape(text);
}

absl::Duration Age(const google::protobuf::Duration& proto) {
  // A negative age would be a time in the future.
  return std::max(lockstep::FromProto(proto), absl::ZeroDuration());
}

// As counts of a heartbeat, which carries it: this chief's own are added.
int64_t Count(int64_t count) {
  return std::clamp<int64_t>(count, 0, Progress::kMostCounted);
}

StatusTable::Death DeathFromProto(const v1::DeathStatus& proto,
                                  absl::Time now) {
  StatusTable::Death death;
  death.task = CutText(proto.task());
  death.reason = CutText(proto.reason());
  death.held = CutText(proto.held());
  death.redone = CutText(proto.redone());
  // The message has no time of the last step before the death, which was
  // shortly before it.
  death.at = death.still_since = now - Age(proto.since());
  if (proto.has_stood_still()) death.stood_still = Age(proto.stood_still());
  return death;
}

}  // namespace

v1::DeathStatus DeathToProto(const StatusTable::Death& death, absl::Time now) {
  v1::DeathStatus proto;
  proto.set_task(Utf8Text(death.task));
  proto.set_reason(Utf8Text(death.reason));
  proto.set_held(Utf8Text(death.held));
  proto.set_redone(Utf8Text(death.redone));
  *proto.mutable_since() = ToProto(now - death.at);
  if (death.stood_still.has_value()) {
    *proto.mutable_stood_still() = ToProto(*death.stood_still);
  }
  return proto;
}

v1::LossStatus LossesToProto(const StatusTable::Losses& losses) {
  v1::LossStatus proto;
  proto.set_recoveries(losses.recoveries);
  proto.set_steps_redone(losses.steps_redone);
  proto.set_steps_repeated(losses.steps_repeated);
  *proto.mutable_stood_still() = ToProto(losses.stood_still);
  return proto;
}

v1::JobHistory HistoryToProto(const StatusTable::History& history,
                              absl::Time now) {
  v1::JobHistory proto;
  *proto.mutable_training_time() = ToProto(history.training_time);
  for (const StatusTable::Death& death : history.deaths) {
    *proto.add_deaths() = DeathToProto(death, now);
  }
  *proto.mutable_losses() = LossesToProto(history.losses);
  proto.set_training(history.training);
  return proto;
}

StatusTable::History HistoryFromProto(const v1::JobHistory& proto,
                                      absl::Time now) {
  StatusTable::History history;
  history.training_time = Age(proto.training_time());
  for (const v1::DeathStatus& death : proto.deaths()) {
    // A server may send anything, so the memory is bounded here.
    if (history.deaths.size() == StatusTable::kDeaths) break;
    history.deaths.push_back(DeathFromProto(death, now));
  }
  const v1::LossStatus& losses = proto.losses();
  history.losses.recoveries = Count(losses.recoveries());
  history.losses.steps_redone = Count(losses.steps_redone());
  history.losses.steps_repeated = Count(losses.steps_repeated());
  history.losses.stood_still = Age(losses.stood_still());
  history.training = proto.training();
  return history;
}

}  // namespace lockstep::chief
