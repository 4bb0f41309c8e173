#include "common/checkpoint/files/sha256.h"

#include <openssl/evp.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/files/posix_file.h"

namespace lockstep {
namespace {

constexpr uint64_t kPieceBytes = 1 << 20;
constexpr size_t kDigestBytes = 32;

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_MD_CTX, FreeContext>;

absl::Status Unavailable(const std::string& path) {
  return absl::InternalError(path + ": OpenSSL cannot compute SHA-256 here");
}

absl::Status Digest(const PosixFile& file, EVP_MD_CTX* context) {
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t size, file.Size());
  std::vector<char> buffer(std::min(size, kPieceBytes));
  // Reads in pieces: a file may be larger than the memory.
  for (uint64_t offset = 0; offset < size; offset += kPieceBytes) {
    const auto piece =
        absl::MakeSpan(buffer).first(std::min(kPieceBytes, size - offset));
    LOCKSTEP_RETURN_IF_ERROR(file.ReadAt(offset, piece));
    if (EVP_DigestUpdate(context, piece.data(), piece.size()) != 1) {
      return Unavailable(file.path());
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> Sha256OfFile(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const PosixFile file, PosixFile::OpenForRead(path));
  const Context context(EVP_MD_CTX_new());
  if (context == nullptr ||
      EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1) {
    return Unavailable(path);
  }
  LOCKSTEP_RETURN_IF_ERROR(Digest(file, context.get()));
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  if (EVP_DigestFinal_ex(context.get(), digest, &length) != 1 ||
      length != kDigestBytes) {
    return Unavailable(path);
  }
  return absl::BytesToHexString(
      {reinterpret_cast<const char*>(digest), kDigestBytes});
}

bool IsSha256Hex(absl::string_view text) {
  return text.size() == 2 * kDigestBytes &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
         });
}

}  // namespace lockstep
