#include "common/grpc_status.h"

#include <string>

#include "common/job/utf8.h"
#include "common/text/plain_text.h"

namespace lockstep {
namespace {

constexpr size_t kMaxMessageBytes = 2000;

// Messages of streams carry the text as UTF-8; a caller cannot read one that
// holds anything else.
void MakeUtf8(std::string& text) {
  if (IsUtf8(text)) return;
  for (char& byte : text) {
    if ((byte & 0x80) != 0) byte = '?';
  }
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  std::string message = CutText(status.message(), kMaxMessageBytes);
  MakeUtf8(message);
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), message);
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
}

}  // namespace lockstep
