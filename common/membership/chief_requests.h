#ifndef LOCKSTEP_COMMON_MEMBERSHIP_CHIEF_REQUESTS_H_
#define LOCKSTEP_COMMON_MEMBERSHIP_CHIEF_REQUESTS_H_

#include <optional>
#include <string>
#include <vector>

#include "common/cluster/task_id.h"
#include "common/membership/chief_client.h"
#include "common/plan/example_shape.h"
#include "common/plan/leave_cause.h"
#include "common/plan/variable_spec.h"
#include "common/wire/sender.h"
#include "lockstep/v1/coordinator.pb.h"

namespace lockstep {

// The requests of ChiefClient, without the sender's identity. Private to
// common/membership.

v1::RegisterRequest RegisterRequestOf(const ChiefClient::Options& options,
                                      bool again);

v1::HeartbeatRequest HeartbeatRequestOf(const ChiefClient::Options& options);

v1::DescribeModelRequest DescribeRequestOf(
    const std::vector<VariableSpec>& variables,
    const std::optional<ExampleShape>& examples, int64_t num_examples = 0);

v1::ReportEvaluationRequest ReportRequestOf(int64_t step,
                                            const ChiefClient::Score& score);

v1::LeaveRequest LeaveRequestOf(const ChiefClient::Options& options,
                                LeaveCause cause, const std::string& reason);

v1::StopRequest StopRequestOf(const Sender& sender, const std::string& reason);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MEMBERSHIP_CHIEF_REQUESTS_H_
