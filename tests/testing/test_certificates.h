#ifndef LOCKSTEP_TESTS_TESTING_TEST_CERTIFICATES_H_
#define LOCKSTEP_TESTS_TESTING_TEST_CERTIFICATES_H_

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/rpc/security/certificates/certificate_maker.h"
#include "common/rpc/security/certificates/tls_files.h"

namespace lockstep::testing {

// TestAuthority signs certificates of job "fashion" for tests.
class TestAuthority {
 public:
  explicit TestAuthority(const std::string& name = "test authority")
      : pair_(MakeAuthority(name, Valid()).value()) {}

  static Validity Valid() {
    return {absl::Now() - absl::Hours(1), absl::Now() + absl::Hours(24 * 90)};
  }

  const CertifiedKey& pair() const { return pair_; }
  const std::string& certificate() const { return pair_.certificate; }

  // "worker/1" or a whole URI.
  CertifiedKey Issue(const std::string& name) const {
    return Issue(name, Valid());
  }
  CertifiedKey Issue(const std::string& name, const Validity& validity) const {
    return IssueAll({name}, validity);
  }
  CertifiedKey IssueAll(const std::vector<std::string>& names,
                        const Validity& validity) const {
    CertificateRequest request;
    request.common_name = names.empty() ? "nameless" : names[0];
    for (const std::string& name : names) {
      request.uris.push_back(name.find("://") == std::string::npos
                                 ? absl::StrCat("lockstep://fashion/", name)
                                 : name);
    }
    request.hosts = {"localhost", "127.0.0.1"};
    return MakeCertificate(pair_, request, validity).value();
  }

  TlsFiles Files(const std::string& name) const { return FilesOf(Issue(name)); }
  TlsFiles FilesOf(const CertifiedKey& pair) const {
    return {pair.certificate, pair.key, certificate(), ""};
  }

  // Returns a list of revoked certificates, in PEM format, by their serial
  // numbers (hexadecimal, as in CertificateFacts).
  std::string Revoke(const std::vector<std::string>& serials) const {
    return Revoke(serials, Valid());
  }
  std::string Revoke(const std::vector<std::string>& serials,
                     const Validity& validity) const;

 private:
  const CertifiedKey pair_;
};

inline void WriteText(const std::string& path, const std::string& text,
                      mode_t mode) {
  const std::string next = path + ".next";
  std::ofstream(next) << text;
  chmod(next.c_str(), mode);
  std::filesystem::rename(next, path);
}

// Writes the files into a directory, which may have others of the same names.
inline void WriteTlsFiles(const std::string& directory, const TlsFiles& files) {
  std::filesystem::create_directories(directory);
  WriteText(directory + "/tls.crt", files.certificate, 0644);
  WriteText(directory + "/tls.key", files.key, 0600);
  WriteText(directory + "/ca.crt", files.authorities, 0644);
  if (!files.revoked.empty()) {
    WriteText(directory + "/crl.pem", files.revoked, 0644);
  }
}

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_TESTING_TEST_CERTIFICATES_H_
