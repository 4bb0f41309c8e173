#include "common/membership/chief_requests.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/text/utf8.h"
#include "common/wire/wire_codec.h"

namespace lockstep {

v1::RegisterRequest RegisterRequestOf(const ChiefClient::Options& options,
                                      bool again) {
  v1::RegisterRequest request;
  request.set_protocol_version(kProtocolVersion);
  request.set_program_version(LOCKSTEP_VERSION);
  request.set_address(options.own_address);
  request.set_expected_job(options.expected_job);
  request.set_again(again);
  request.set_gpus(options.gpus);
  return request;
}

v1::HeartbeatRequest HeartbeatRequestOf(const ChiefClient::Options& options) {
  v1::HeartbeatRequest request;
  request.set_protocol_version(kProtocolVersion);
  request.set_gpus(options.gpus);
  if (options.progress) {
    *request.mutable_progress() = ToProto(options.progress());
  }
  return request;
}

v1::DescribeModelRequest DescribeRequestOf(
    const std::vector<VariableSpec>& variables,
    const std::optional<ExampleShape>& examples, int64_t num_examples) {
  v1::DescribeModelRequest request;
  for (const VariableSpec& variable : variables) {
    *request.add_variables() = ToProto(variable);
  }
  if (examples.has_value()) *request.mutable_examples() = ToProto(*examples);
  request.set_num_examples(num_examples);
  return request;
}

v1::ReportEvaluationRequest ReportRequestOf(int64_t step,
                                            const ChiefClient::Score& score) {
  v1::ReportEvaluationRequest request;
  request.set_global_step(step);
  request.set_loss(score.loss);
  request.set_accuracy(score.accuracy);
  request.set_examples(score.examples);
  if (score.auc.has_value()) request.set_auc(*score.auc);
  *request.mutable_figures() = ToProto(score.figures);
  return request;
}

v1::LeaveRequest LeaveRequestOf(const ChiefClient::Options& options,
                                LeaveCause cause, const std::string& reason) {
  v1::LeaveRequest request;
  request.set_cause(ToProto(cause));
  request.set_reason(ToUtf8(reason));
  if (options.progress) {
    *request.mutable_progress() = ToProto(options.progress());
  }
  return request;
}

v1::StopRequest StopRequestOf(const Sender& sender, const std::string& reason) {
  v1::StopRequest request;
  request.set_reason(
      ToUtf8(absl::StrCat(sender.task.ToString(), ": ", reason)));
  request.set_task_type(std::string(TaskTypeName(sender.task.type)));
  request.set_task_index(sender.task.index);
  request.set_job_id(sender.job_id);
  request.set_incarnation(sender.incarnation);
  return request;
}

}  // namespace lockstep
