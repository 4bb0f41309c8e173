#include "chief/operators/registration_answer.h"

#include <algorithm>

#include "common/base/fingerprint.h"
#include "common/job/codec/job_config_codec.h"

namespace lockstep::chief {

uint64_t FingerprintOf(const JobConfig& job) {
  const uint64_t value =
      Fingerprint().Add(ToProto(job).SerializeAsString()).value();
  return std::max(value, uint64_t{1});
}

void FillJob(const MemberJob& told, v1::RegisterResponse& response) {
  response.set_num_workers(told.num_workers);
  response.set_data_shard(told.data_shard);
  response.mutable_workers()->Add(told.workers.begin(), told.workers.end());
  *response.mutable_job() = ToProto(told.job);
}

}  // namespace lockstep::chief
