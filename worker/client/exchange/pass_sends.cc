#include "worker/client/exchange/pass_sends.h"

#include <algorithm>

namespace lockstep::worker {

PassSends::PassSends(const HeldChunks& chunks)
    : absent_(chunks.num_variables()), ready_(chunks.chunks()) {}

void PassSends::OnNewChunks(const HeldChunks& chunks) {
  ready_ = ReadyChunks(chunks.chunks());
}

void PassSends::BeginPass(StepClient::PassKind kind) {
  // In shared work the call for the token says that the push was answered.
  token_early_ = kind != StepClient::PassKind::kShared;
  std::fill(absent_.begin(), absent_.end(), uint8_t{0});
  // Where every worker counts, the next pass begins early: see TrainingLoop.
  ready_.Reset(kind == StepClient::PassKind::kAllCount
                   ? ReadyChunks::Order::kThirdsLast
                   : ReadyChunks::Order::kAsReady);
}

PassSends::Chunks PassSends::MarkReady(size_t variable) {
  Chunks sent = ready_.MarkReady(variable);
  if (!push_.has_value()) sent.clear();
  return sent;
}

const std::vector<std::deque<size_t>>& PassSends::BeginPush(
    const PushId& push) {
  push_ = push;
  rest_sent_ = false;
  // The members of an attempt send in one order. In a later attempt some of
  // them may have begun the pass as one in which only some workers count.
  if (push.attempt > 1) ready_.KeepNothingBack();
  return ready_.order();
}

PassSends::Rest PassSends::RestOf(const PushId& push) const {
  const bool begun = push_ == push;
  if (begun && rest_sent_) return {};
  return {.sends_token_call = push.attempt > 0 && token_early_,
          .begins_push = !begun,
          .sends_chunks = true};
}

PassSends::Chunks PassSends::MarkRest() {
  rest_sent_ = true;
  return ready_.MarkRest();
}

PassSends::Chunks PassSends::ChunksOf(size_t first, size_t count) const {
  Chunks chunks;
  for (size_t variable = first; variable < first + count; ++variable) {
    const Chunks& of_variable = ready_.ChunksOf(variable);
    chunks.insert(chunks.end(), of_variable.begin(), of_variable.end());
  }
  return chunks;
}

}  // namespace lockstep::worker
