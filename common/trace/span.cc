#include "common/trace/span.h"

namespace lockstep {

absl::string_view SpanName(SpanKind kind) {
  switch (kind) {
    case SpanKind::kToken:
      return "wait for token";
    case SpanKind::kPull:
      return "pull";
    case SpanKind::kReadData:
      return "read data";
    case SpanKind::kForward:
      return "forward";
    case SpanKind::kBackward:
      return "backward";
    case SpanKind::kAnnounce:
      return "announce";
    case SpanKind::kPush:
      return "push";
    case SpanKind::kAwaitValues:
      return "wait for values";
    case SpanKind::kReceive:
      return "receive";
    case SpanKind::kUpdate:
      return "update";
    case SpanKind::kPrepare:
      return "prepared";
    case SpanKind::kCommit:
      return "commit";
    case SpanKind::kTake:
      return "take";
    case SpanKind::kOrderCommit:
      return "order commit";
    case SpanKind::kCheckpointCopy:
      return "checkpoint copy";
    case SpanKind::kCheckpointWrite:
      return "checkpoint write";
    case SpanKind::kDeath:
      return "death";
  }
  return "";
}

}  // namespace lockstep
