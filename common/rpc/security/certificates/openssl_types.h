#ifndef LOCKSTEP_COMMON_RPC_SECURITY_CERTIFICATES_OPENSSL_TYPES_H_
#define LOCKSTEP_COMMON_RPC_SECURITY_CERTIFICATES_OPENSSL_TYPES_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "openssl/bio.h"
#include "openssl/evp.h"
#include "openssl/x509.h"

namespace lockstep {

// Owners of OpenSSL's objects.
struct OpenSslFree {
  void operator()(BIO* p) const { BIO_free(p); }
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  void operator()(X509* p) const { X509_free(p); }
  void operator()(X509_CRL* p) const { X509_CRL_free(p); }
  void operator()(X509_STORE* p) const { X509_STORE_free(p); }
  void operator()(X509_STORE_CTX* p) const { X509_STORE_CTX_free(p); }
};
using BioPtr = std::unique_ptr<BIO, OpenSslFree>;
using KeyPtr = std::unique_ptr<EVP_PKEY, OpenSslFree>;
using X509Ptr = std::unique_ptr<X509, OpenSslFree>;
using CrlPtr = std::unique_ptr<X509_CRL, OpenSslFree>;
using StorePtr = std::unique_ptr<X509_STORE, OpenSslFree>;
using StoreContextPtr = std::unique_ptr<X509_STORE_CTX, OpenSslFree>;

// Returns a BIO that reads `text`, which must outlive it.
BioPtr ReadFrom(absl::string_view text);

// Returns the bytes that were written to a BIO.
std::string ContentsOf(BIO* bio);

// Returns this thread's last error in OpenSSL's words, and clears all of its
// errors: an old one would mislead the next check.
std::string OpenSslError();

// Converts a certificate's time; the infinite past if OpenSSL cannot read it.
absl::Time ToTime(const ASN1_TIME* time);

// Reads a private key without a passphrase; null, and an error of OpenSSL, if
// there is none.
KeyPtr ReadKey(absl::string_view pem);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RPC_SECURITY_CERTIFICATES_OPENSSL_TYPES_H_
