#include "common/rpc/security/certificates/openssl_types.h"

#include <ctime>

#include "openssl/err.h"
#include "openssl/pem.h"

namespace lockstep {
namespace {

// Without it OpenSSL would ask the terminal for a passphrase.
int NoPassphrase(char* /*buffer*/, int /*size*/, int /*writing*/,
                 void* /*data*/) {
  return -1;
}

}  // namespace

BioPtr ReadFrom(absl::string_view text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string ContentsOf(BIO* bio) {
  char* data = nullptr;
  const int64_t size = BIO_get_mem_data(bio, &data);
  return size > 0 ? std::string(data, static_cast<size_t>(size)) : "";
}

std::string OpenSslError() {
  char text[256] = "unknown error";
  // The last error is the most specific one.
  if (const uint64_t error = ERR_peek_last_error(); error != 0) {
    ERR_error_string_n(error, text, sizeof(text));
  }
  ERR_clear_error();
  return text;
}

absl::Time ToTime(const ASN1_TIME* time) {
  tm broken = {};
  if (time == nullptr || ASN1_TIME_to_tm(time, &broken) != 1) {
    // A certificate with a broken time then counts as expired.
    return absl::InfinitePast();
  }
  return absl::FromTM(broken, absl::UTCTimeZone());
}

KeyPtr ReadKey(absl::string_view pem) {
  return KeyPtr(PEM_read_bio_PrivateKey(ReadFrom(pem).get(), nullptr,
                                        &NoPassphrase, nullptr));
}

}  // namespace lockstep
