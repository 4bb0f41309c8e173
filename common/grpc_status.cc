#include "common/grpc_status.h"

#include <string>

#include "absl/strings/string_view.h"
#include "common/job/utf8.h"

namespace lockstep {
namespace {

constexpr size_t kMaxMessageBytes = 2000;

bool IsInsideCharacter(char byte) { return (byte & 0xc0) == 0x80; }

// At most so many bytes of `text`, up to the end of a character.
absl::string_view Cut(absl::string_view text, size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && IsInsideCharacter(text[most])) --most;
  return text.substr(0, most);
}

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
  std::string message(Cut(status.message(), kMaxMessageBytes));
  MakeUtf8(message);
  if (message.size() < status.message().size()) message += "...";
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), message);
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
}

}  // namespace lockstep
