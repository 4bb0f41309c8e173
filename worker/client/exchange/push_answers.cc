#include "worker/client/exchange/push_answers.h"

namespace lockstep::worker {

void PushAnswers::Count(PushOutcome outcome) {
  switch (outcome) {
    case PushOutcome::kAccepted:
      ++counts_.accepted;
      break;
    case PushOutcome::kStale:
      ++counts_.stale;
      break;
    case PushOutcome::kDuplicate:
      ++counts_.duplicate;
      break;
    case PushOutcome::kSuperseded:
      ++counts_.superseded;
      break;
  }
}

void PushAnswers::MarkThrough(const ReadyChunks::Id& chunk) {
  through_[chunk.server].insert(chunk.chunk);
}

PushAnswers::Values PushAnswers::ValuesOf(std::vector<ReadyChunks::Id>& chunks,
                                          const HeldChunks& held) const {
  const HeldChunks::Held brought = push_.Values();
  while (!chunks.empty()) {
    const ReadyChunks::Id& chunk = chunks.back();
    if (!through_[chunk.server].contains(chunk.chunk)) return Values::kAwaited;
    const HeldChunks::Held& now = held.held(chunk.server, chunk.chunk);
    if (now.step != brought.step || now.attempt != brought.attempt) {
      return Values::kLacking;
    }
    chunks.pop_back();
  }
  return Values::kHeld;
}

}  // namespace lockstep::worker
