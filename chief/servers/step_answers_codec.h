#ifndef LOCKSTEP_CHIEF_SERVERS_STEP_ANSWERS_CODEC_H_
#define LOCKSTEP_CHIEF_SERVERS_STEP_ANSWERS_CODEC_H_

#include "chief/servers/shard_calls.h"
#include "chief/servers/take_result.h"
#include "lockstep/v1/shard_control.pb.h"

namespace lockstep::chief {

// Decode the servers' answers to calls of a step.

inline ShardCalls::Expired AnswerFrom(
    const v1::ExpireWorkerResponse& response) {
  return {response.held_announcement(), response.held_token(), response.step(),
          response.attempt(), response.incarnation()};
}

inline TakeResult AnswerFrom(const v1::TakeAndApplyResponse& response) {
  TakeResult answer;
  answer.prepared = response.prepared();
  answer.attempt = response.attempt();
  answer.committed_step = response.committed_step();
  answer.waits_for = response.waits_for();
  answer.announced_workers.assign(response.announced_workers().begin(),
                                  response.announced_workers().end());
  answer.open_parts = response.open_parts();
  for (const v1::PushedParts& pushed : response.pushed()) {
    answer.pushed[pushed.worker()] = pushed.parts();
  }
  answer.lost_workers.assign(response.lost_workers().begin(),
                             response.lost_workers().end());
  answer.contributors.assign(response.contributors().begin(),
                             response.contributors().end());
  if (response.has_squares()) answer.squares = response.squares();
  return answer;
}

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVERS_STEP_ANSWERS_CODEC_H_
