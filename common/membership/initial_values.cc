#include "common/membership/initial_values.h"

#include "absl/time/clock.h"
#include "absl/types/span.h"
#include "common/base/fault_points.h"
#include "common/base/status_macros.h"
#include "common/membership/membership.h"

namespace lockstep {
namespace {

absl::Status SendBlock(CoordinatorCalls& calls,
                       const v1::PutInitialValuesRequest& request,
                       absl::FunctionRef<bool()> is_over) {
  while (!is_over()) {
    v1::PutInitialValuesResponse response;
    PassFaultPoint(FaultPoint::kWorkerValuesSend);
    // A block that arrives twice is harmless: it has the same bytes and offset.
    const absl::Status status = calls.Call(
        &CoordinatorCalls::Stub::PutInitialValues, request, response);
    PassFaultPoint(FaultPoint::kWorkerValuesAnswered);
    if (!Membership::MayPass(status)) return status;
    absl::SleepFor(Membership::kRetryPause);
  }
  return absl::CancelledError("the job ended");
}

}  // namespace

absl::Status SendInitialValues(CoordinatorCalls& calls,
                               const v1::Identity& identity,
                               const std::vector<VariableSpec>& model,
                               const ChiefClient::InitialValues& values,
                               absl::FunctionRef<bool()> is_over) {
  v1::PutInitialValuesRequest request;
  *request.mutable_identity() = identity;
  for (size_t v = 0; v < model.size(); ++v) {
    if (model[v].initializer.kind != Initializer::Kind::kGiven) continue;
    LOCKSTEP_ASSIGN_OR_RETURN(const absl::Span<const std::byte> bytes,
                              values(v));
    request.set_variable(static_cast<int32_t>(v));
    for (size_t offset = 0; offset < bytes.size(); offset += kMaxGivenBlock) {
      const absl::Span<const std::byte> block =
          bytes.subspan(offset, kMaxGivenBlock);
      request.set_offset(offset);
      request.set_payload(block.data(), block.size());
      const absl::Status sent = SendBlock(calls, request, is_over);
      // Another chief runs the job now, or another worker provides the values.
      if (absl::IsFailedPrecondition(sent)) return absl::OkStatus();
      LOCKSTEP_RETURN_IF_ERROR(sent);
    }
  }
  return absl::OkStatus();
}

}  // namespace lockstep
