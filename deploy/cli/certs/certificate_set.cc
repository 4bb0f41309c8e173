#include "deploy/cli/certs/certificate_set.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/cluster/host_port.h"
#include "common/rpc/security/certificate_name.h"
#include "common/rpc/security/certificates/certificate_facts.h"
#include "common/rpc/security/certificates/tls_files.h"

namespace lockstep::cli {
namespace {

// Certificates are public, keys are not.
constexpr mode_t kForAll = 0644;
constexpr mode_t kForOwner = 0600;
constexpr mode_t kDirectory = 0700;
constexpr mode_t kRightsOfOthers = 077;

std::string NameOf(const TaskId& task) {
  return absl::StrCat(TaskTypeName(task.type), "-", task.index);
}

absl::Status WriteFile(const std::string& path, const std::string& text,
                       mode_t mode) {
  // No other user can open it before its mode is right.
  const int fd =
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (fd < 0) return absl::ErrnoToStatus(errno, "cannot make " + path);
  // One call takes such a short text whole, unless the volume is full: then it
  // may take a part without an error.
  const ssize_t written = write(fd, text.data(), text.size());
  absl::Status status;
  if (written >= 0 && written < static_cast<ssize_t>(text.size())) {
    status = absl::ResourceExhaustedError(
        absl::StrCat("cannot write ", path, ": there is room for ", written,
                     " of ", text.size(), " bytes"));
  } else if (written < 0 || fsync(fd) != 0) {
    status = absl::ErrnoToStatus(errno, "cannot write " + path);
  }
  close(fd);
  // A later call must not take it for a whole file.
  if (!status.ok()) unlink(path.c_str());
  return status;
}

absl::StatusOr<std::string> ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  // An empty file gives nothing to copy, which would count as a failure.
  file.peek();
  if (file.eof()) return "";
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    return absl::NotFoundError("cannot read " + path);
  }
  return text.str();
}

absl::StatusOr<CertifiedKey> TakeAuthority(const CertificateSet& set) {
  const std::string certificate =
      absl::StrCat(set.directory, "/", TlsFiles::kAuthorities);
  const std::string key =
      absl::StrCat(set.directory, "/", CertificateSet::kAuthorityKey);
  std::error_code error;
  if (!std::filesystem::exists(certificate, error)) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        CertifiedKey made,
        MakeAuthority(
            absl::StrCat("Lockstep ", set.job, " ",
                         absl::FormatTime("%Y-%m-%d %H:%M:%E3S", set.made,
                                          absl::UTCTimeZone())),
            set.authority_valid));
    // The certificate is the last file, because its presence means that the
    // authority is made: ca.crt without ca.key asks for a key that was taken
    // away.
    const absl::Status kept = WriteFile(key, made.key, kForOwner);
    if (absl::IsAlreadyExists(kept)) {
      return absl::FailedPreconditionError(absl::StrCat(
          key, " is there without ", certificate,
          ": bring the certificate back, or remove the key if an earlier call "
          "was cut off"));
    }
    LOCKSTEP_RETURN_IF_ERROR(kept);
    LOCKSTEP_RETURN_IF_ERROR(WriteFile(certificate, made.certificate, kForAll));
    return made;
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckAuthorityKey(set.directory));
  CertifiedKey pair;
  LOCKSTEP_ASSIGN_OR_RETURN(pair.certificate, ReadWhole(certificate));
  absl::StatusOr<std::string> text = ReadWhole(key);
  if (!text.ok()) {
    return absl::NotFoundError(absl::StrCat(
        key,
        " is not there: bring the authority's key back to sign, or name "
        "another --out for a new authority"));
  }
  pair.key = *std::move(text);
  return pair;
}

absl::Status CheckHasNotEnded(const CertificateSet& set,
                              const CertifiedKey& authority) {
  const std::string file =
      absl::StrCat(set.directory, "/", TlsFiles::kAuthorities);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<X509Ptr> certificates,
                            ReadCertificates(authority.certificate, file));
  const CertificateFacts facts = FactsOf(certificates.front().get());
  // Not the beginning of the validity, which is an hour ago.
  if (facts.not_after > absl::Now()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the authority of ", file, " expired ",
      absl::FormatTime("%Y-%m-%d %H:%M UTC", facts.not_after,
                       absl::UTCTimeZone()),
      ", and no peer trusts its certificates; name another --out for a new "
      "authority"));
}

bool Has(const CertificateSet& set, TaskType type) {
  return std::any_of(set.tasks.begin(), set.tasks.end(),
                     [type](const CertificateSet::Task& task) {
                       return task.id.type == type;
                     });
}

// Whether the task is a worker with a mirror: see Cluster::WithMirrors().
bool HostsMirror(const CertificateSet& set, const TaskId& task) {
  return !Has(set, TaskType::kPs) && task.type != TaskType::kEvaluator;
}

// The task as the members of the job know it.
TaskId Known(const CertificateSet& set, const TaskId& task) {
  if (!HostsMirror(set, task) || !Has(set, TaskType::kChief)) return task;
  return {TaskType::kWorker,
          task.type == TaskType::kChief ? 0 : task.index + 1};
}

CertificateRequest RequestFor(const CertificateSet& set,
                              const std::string& member) {
  CertificateRequest request;
  request.common_name = absl::StrCat(set.job, " ", member);
  const auto add = [&](Role role, std::optional<int> index) {
    request.uris.push_back(CertificateName{set.job, role, index}.ToUri());
  };
  if (member == "operator-read") add(Role::kReader, std::nullopt);
  if (member == "operator-steer") add(Role::kSteerer, std::nullopt);
  for (const CertificateSet::Task& task : set.tasks) {
    if (NameOf(Known(set, task.id)) != member) continue;
    const TaskId known = Known(set, task.id);
    add(RoleOf(known.type), known.index);
    if (HostsMirror(set, task.id)) add(Role::kPs, known.index);
    if (task.id == set.chief && known.type != TaskType::kChief) {
      add(Role::kChief, 0);
    }
    const absl::StatusOr<HostPort> address = ParseHostPort(task.address);
    // A client compares the host that it connects to with these names; on the
    // task's own machine that may be localhost.
    if (address.ok()) request.hosts.push_back(address->host);
    if (!address.ok() || address->host != "localhost") {
      request.hosts.emplace_back("localhost");
    }
  }
  return request;
}

// Makes an empty directory in that of the set for a member's files; returns its
// name.
absl::StatusOr<std::string> NewDirectory(const CertificateSet& set,
                                         const std::string& member) {
  for (int i = 1;; ++i) {
    const std::string name = absl::StrCat(".", member, ".", i);
    const std::string path = absl::StrCat(set.directory, "/", name);
    if (mkdir(path.c_str(), kDirectory) == 0) return name;
    if (errno != EEXIST) {
      return absl::ErrnoToStatus(errno, "cannot make " + path);
    }
  }
}

absl::Status Fill(const std::string& directory, const CertifiedKey& pair,
                  const std::string& authority) {
  const std::string path = directory + "/";
  LOCKSTEP_RETURN_IF_ERROR(
      WriteFile(path + TlsFiles::kCertificate, pair.certificate, kForAll));
  LOCKSTEP_RETURN_IF_ERROR(
      WriteFile(path + TlsFiles::kKey, pair.key, kForOwner));
  return WriteFile(path + TlsFiles::kAuthorities, authority, kForAll);
}

// Makes `link` lead to `target`, in one step.
absl::Status Switch(const std::string& link, const std::string& target) {
  // rename() replaces a link in one step, while symlink() refuses a path that
  // exists.
  const std::string new_link = absl::StrCat(link, ".next");
  // A call that was interrupted may have left it; mostly there is none.
  unlink(new_link.c_str());
  if (symlink(target.c_str(), new_link.c_str()) == 0 &&
      rename(new_link.c_str(), link.c_str()) == 0) {
    return absl::OkStatus();
  }
  const int error = errno;
  unlink(new_link.c_str());
  if (error == EISDIR) {
    return absl::FailedPreconditionError(absl::StrCat(
        link, " is a directory, and not the link to one that this command ",
        "makes: the set was copied without its links; remove the directory"));
  }
  return absl::ErrnoToStatus(error, "cannot put in place " + link);
}

// Writes the files of a member beside the present ones, and switches the link.
absl::Status Place(const CertificateSet& set, const std::string& member,
                   const CertifiedKey& pair, const std::string& authority) {
  const std::string link = absl::StrCat(set.directory, "/", member);
  std::error_code error;
  const std::filesystem::path old = std::filesystem::read_symlink(link, error);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string next, NewDirectory(set, member));
  const std::string path = absl::StrCat(set.directory, "/", next);
  absl::Status placed = Fill(path, pair, authority);
  if (placed.ok()) placed = Switch(link, next);
  if (!placed.ok()) {
    // No link leads to the new key, and no later call would remove it.
    std::filesystem::remove_all(path, error);
    return placed;
  }
  // `old` is relative, like all links of a set, so that the set may be moved. A
  // rest that cannot be removed does no harm: no link leads to it. What a link
  // of the operator's own leads to stays.
  if (!old.has_parent_path() &&
      absl::StartsWith(old.native(), absl::StrCat(".", member, "."))) {
    std::filesystem::remove_all(set.directory / old, error);
  }
  return absl::OkStatus();
}

// The jobs that a member's present certificate names. One that cannot be read
// is replaced like one that is not there.
std::vector<std::string> JobsOf(const std::string& certificate) {
  std::vector<std::string> jobs;
  const absl::StatusOr<std::string> text = ReadWhole(certificate);
  if (!text.ok()) return jobs;
  const absl::StatusOr<std::vector<X509Ptr>> read =
      ReadCertificates(*text, certificate);
  if (!read.ok()) return jobs;
  for (const std::string& uri : FactsOf(read->front().get()).names.uris) {
    const absl::StatusOr<CertificateName> name = ParseCertificateName(uri);
    if (name.ok()) jobs.push_back(name->job);
  }
  return jobs;
}

// A misspelt job would give the members names that their job refuses.
absl::Status CheckSameJob(const CertificateSet& set,
                          const std::vector<std::string>& members) {
  for (const std::string& member : members) {
    const std::string certificate =
        absl::StrCat(set.directory, "/", member, "/", TlsFiles::kCertificate);
    for (const std::string& job : JobsOf(certificate)) {
      if (job == set.job) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "--job is ", set.job, ", but ", certificate, " is of the job ", job,
          "; give --job ", job, ", or another --out for a new set"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckAuthorityKey(const std::string& directory) {
  const std::string key =
      absl::StrCat(directory, "/", CertificateSet::kAuthorityKey);
  struct stat info = {};
  if (stat(key.c_str(), &info) != 0 || (info.st_mode & kRightsOfOthers) == 0) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(absl::StrCat(
      key, " has mode ", absl::StrFormat("%04o", info.st_mode & 07777),
      ", so that others may make certificates of any role: chmod 600 ", key));
}

std::vector<std::string> MembersOf(const CertificateSet& set) {
  std::vector<std::string> members;
  for (const CertificateSet::Task& task : set.tasks) {
    members.push_back(NameOf(Known(set, task.id)));
  }
  members.insert(members.end(), {"operator-read", "operator-steer"});
  return members;
}

absl::StatusOr<std::vector<std::string>> WriteCertificateSet(
    const CertificateSet& set) {
  LOCKSTEP_RETURN_IF_ERROR(CheckJobInName(set.job));
  std::vector<std::string> members = MembersOf(set);
  LOCKSTEP_RETURN_IF_ERROR(CheckSameJob(set, members));
  if (!set.only.empty()) {
    if (std::count(members.begin(), members.end(), set.only) == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--only: there is no ", set.only, "; the members are ",
                       absl::StrJoin(members, ", ")));
    }
    members = {set.only};
  }
  if (mkdir(set.directory.c_str(), kDirectory) != 0 && errno != EEXIST) {
    return absl::ErrnoToStatus(errno, "cannot make " + set.directory);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const CertifiedKey authority, TakeAuthority(set));
  LOCKSTEP_RETURN_IF_ERROR(CheckHasNotEnded(set, authority));
  for (const std::string& member : members) {
    const absl::StatusOr<CertifiedKey> pair =
        MakeCertificate(authority, RequestFor(set, member), set.validity);
    // The certificate has been read, so that the key is wrong.
    if (absl::IsInvalidArgument(pair.status())) {
      return absl::InvalidArgumentError(
          absl::StrCat(set.directory, "/", CertificateSet::kAuthorityKey, ": ",
                       pair.status().message(), "; bring the key of ",
                       TlsFiles::kAuthorities,
                       " back, or name another --out for a new authority"));
    }
    LOCKSTEP_RETURN_IF_ERROR(pair.status());
    LOCKSTEP_RETURN_IF_ERROR(Place(set, member, *pair, authority.certificate));
  }
  return members;
}

}  // namespace lockstep::cli
