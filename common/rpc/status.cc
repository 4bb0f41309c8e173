#include "common/rpc/status.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/text/plain_text.h"
#include "common/text/utf8.h"
#include "common/wire/status_detail.h"
#include "lockstep/v1/status_detail.pb.h"

namespace lockstep {
namespace {

constexpr size_t kMaxMessageBytes = 2000;
constexpr char kReset[] = "Received RST_STREAM with error code";

// Empty if there is no detail.
std::string DetailBytes(const absl::Status& status) {
  v1::StatusDetail detail;
  detail.set_cause(static_cast<v1::FailureCause>(CauseOf(status)));
  detail.set_newest_incarnation(NewestIncarnationOf(status));
  return detail.SerializeAsString();
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  // Messages on streams carry the text as UTF-8; a receiver cannot parse other
  // bytes.
  const std::string message =
      ToUtf8(CutText(status.message(), kMaxMessageBytes));
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), message,
                      DetailBytes(status));
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  // A server whose message memory is used up resets calls, possibly of other
  // peers than the one that uses it. gRPC distinguishes this from the server's
  // own RESOURCE_EXHAUSTED only by these words.
  if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED &&
      absl::StartsWith(status.error_message(), kReset)) {
    return absl::UnavailableError(
        "the peer has no memory left for messages, and has reset the call");
  }
  const absl::Status plain(static_cast<absl::StatusCode>(status.error_code()),
                           status.error_message());
  v1::StatusDetail detail;
  // An unreadable detail is dropped: the code still holds.
  if (!detail.ParseFromString(status.error_details())) return plain;
  return WithNewestIncarnation(
      WithCause(plain, static_cast<FailureCause>(detail.cause())),
      detail.newest_incarnation());
}

absl::Status FromServerStatus(const grpc::Status& status, bool cancelled_here) {
  absl::Status from = FromGrpcStatus(status);
  if (!absl::IsCancelled(from) || cancelled_here) return from;
  return absl::UnavailableError("the server ended the call");
}

absl::Status ExplainUnserved(const absl::Status& status,
                             absl::string_view peer) {
  if (!absl::IsUnimplemented(status)) return status;
  // gRPC names the kind of address before it.
  if (!absl::ConsumePrefix(&peer, "ipv4:")) {
    absl::ConsumePrefix(&peer, "ipv6:");
  }
  return absl::UnimplementedError(absl::StrCat(
      "the process at ", peer, " does not serve this call: it is another ",
      "program, another kind of task, or of another version; correct the ",
      "address, or run one version of Lockstep in the whole cluster",
      status.message().empty() ? "" : ": ", status.message()));
}

}  // namespace lockstep
