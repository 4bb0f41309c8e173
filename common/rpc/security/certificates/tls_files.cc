#include "common/rpc/security/certificates/tls_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "common/base/status_macros.h"
#include "common/rpc/security/certificate_name.h"
#include "openssl/x509.h"

namespace lockstep {
namespace {

constexpr off_t kLargestFile = off_t{1} << 20;
constexpr mode_t kRightsOfOthers = 037;  // the group may read
constexpr int kMostReadings = 10;

enum class Secret { kNo, kYes };

absl::Status CheckOwner(const std::string& path, const struct stat& info) {
  // Root may own it: Kubernetes mounts secrets so.
  if (info.st_uid != geteuid() && info.st_uid != 0) {
    return absl::PermissionDeniedError(absl::StrCat(
        path, " belongs to user ", info.st_uid, ", and this is user ",
        geteuid(), ": that user could read or replace the key; chown it"));
  }
  if ((info.st_mode & kRightsOfOthers) != 0) {
    return absl::PermissionDeniedError(absl::StrCat(
        path, " has mode ", absl::StrFormat("%04o", info.st_mode & 07777),
        ", so that others may use the key: chmod 600 ", path,
        ", or 640 with a group of its own"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadFile(const std::string& path, Secret secret) {
  // Non-blocking, so that opening a named pipe does not wait for a writer.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  }
  struct stat info;
  absl::Status status;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    status = absl::InvalidArgumentError(absl::StrCat(path, " is no file"));
  } else if (info.st_size == 0 || info.st_size > kLargestFile) {
    status = absl::InvalidArgumentError(absl::StrCat(
        path, " has ", info.st_size, " bytes; expected 1 to ", kLargestFile));
  } else if (secret == Secret::kYes) {
    status = CheckOwner(path, info);
  }
  std::string text;
  if (status.ok()) {
    text.resize(static_cast<size_t>(info.st_size));
    const ssize_t got = read(fd, text.data(), text.size());
    // A file that is being written may be cut off; CheckTlsFiles() then refuses
    // it, and the next reading finds it whole.
    text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  }
  close(fd);
  LOCKSTEP_RETURN_IF_ERROR(status);
  return text;
}

// Returns the job that all names have. It is an error if there is none, or
// several.
absl::StatusOr<std::string> JobOf(const CertificateFacts& facts,
                                  const std::string& given) {
  std::string job = given;
  for (const std::string& uri : facts.names.uris) {
    const auto name = ParseCertificateName(uri);
    if (!name.ok()) continue;
    if (!job.empty() && job != name->job) {
      return absl::InvalidArgumentError(
          absl::StrCat("tls.crt has names of job ", job, " and of job ",
                       name->job, "; a certificate is of one job"));
    }
    job = name->job;
  }
  if (job.empty()) {
    return absl::InvalidArgumentError(
        "tls.crt has no name of the form lockstep://JOB/ROLE/INDEX; make one "
        "with `lockstep certs make`, or map its names with --identity_map");
  }
  return job;
}

absl::StatusOr<TlsFiles> ReadOnce(const std::string& directory) {
  const auto path = [&](const char* name) {
    return absl::StrCat(directory, "/", name);
  };
  TlsFiles files;
  LOCKSTEP_ASSIGN_OR_RETURN(
      files.certificate, ReadFile(path(TlsFiles::kCertificate), Secret::kNo));
  LOCKSTEP_ASSIGN_OR_RETURN(files.key,
                            ReadFile(path(TlsFiles::kKey), Secret::kYes));
  LOCKSTEP_ASSIGN_OR_RETURN(
      files.authorities, ReadFile(path(TlsFiles::kAuthorities), Secret::kNo));
  absl::StatusOr<std::string> revoked =
      ReadFile(path(TlsFiles::kRevoked), Secret::kNo);
  if (revoked.ok()) {
    files.revoked = *std::move(revoked);
    // The list is optional, but one that cannot be read must not be ignored.
  } else if (!absl::IsNotFound(revoked.status())) {
    return revoked.status();
  }
  return files;
}

bool AreSame(const absl::StatusOr<TlsFiles>& a,
             const absl::StatusOr<TlsFiles>& b) {
  return a.ok() && b.ok() ? *a == *b : a.status() == b.status();
}

}  // namespace

std::string TlsDirOf(const std::string& directory, const TaskId& task) {
  return absl::StrReplaceAll(directory,
                             {{"{role}", TaskTypeName(task.type)},
                              {"{index}", absl::StrCat(task.index)}});
}

absl::StatusOr<TlsFiles> ReadTlsFiles(const std::string& directory) {
  absl::StatusOr<TlsFiles> files = ReadOnce(directory);
  // A renewal between two files would give a key that does not fit; a second
  // reading then differs from the first.
  for (int i = 1; i < kMostReadings; ++i) {
    absl::StatusOr<TlsFiles> again = ReadOnce(directory);
    if (AreSame(files, again)) break;
    files = std::move(again);
  }
  return files;
}

absl::StatusOr<CheckedTlsFiles> CheckTlsFiles(TlsFiles files,
                                              const std::string& job,
                                              absl::Time now) {
  CheckedTlsFiles checked;
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::vector<X509Ptr> chain,
      ReadCertificates(files.certificate, TlsFiles::kCertificate));
  const KeyPtr key = ReadKey(files.key);
  if (key == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("tls.key has no private key without a passphrase in PEM "
                     "format: ",
                     OpenSslError()));
  }
  checked.own = FactsOf(chain[0].get());
  if (X509_check_private_key(chain[0].get(), key.get()) != 1) {
    OpenSslError();
    return absl::InvalidArgumentError(
        absl::StrCat("tls.key does not fit tls.crt, the certificate of ",
                     checked.own.Owner()));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      checked.authorities,
      TrustedAuthorities::Make(files.authorities, files.revoked));
  // Peers would refuse the certificate too; here the cause is easier to find.
  const absl::Status trusted = checked.authorities->Check(
      files.certificate, TrustedAuthorities::Side::kClient, now);
  if (!trusted.ok() && now > checked.own.not_after) {
    return absl::Status(trusted.code(),
                        absl::StrCat(trusted.message(), "; ", kRenew));
  }
  LOCKSTEP_RETURN_IF_ERROR(trusted);
  LOCKSTEP_ASSIGN_OR_RETURN(checked.job, JobOf(checked.own, job));
  checked.files = std::move(files);
  return checked;
}

}  // namespace lockstep
