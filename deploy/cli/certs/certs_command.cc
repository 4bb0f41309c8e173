#include "deploy/cli/certs/certs_command.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster.h"
#include "common/cluster/host_port.h"
#include "common/flags/flag_parser.h"
#include "common/rpc/security/certificates/peer_probe.h"
#include "common/rpc/security/certificates/trusted_authorities.h"
#include "common/rpc/security/identity_map.h"
#include "common/text/count_text.h"
#include "deploy/cli/tasks/cluster_file.h"
#include "deploy/cli/tasks/log_files.h"

namespace lockstep::cli {
namespace {

constexpr absl::Duration kDay = absl::Hours(24);
// Clocks of other hosts may be late.
constexpr absl::Duration kEarlier = absl::Hours(1);
// The longest --days, so that no certificate of the first set outlives the
// authority.
constexpr int kAuthorityDays = 3650;
constexpr absl::Duration kTimeout = absl::Seconds(5);
constexpr int kWrong = 1;
constexpr char kEvaluator[] = "evaluator-0";  // a member of a set

std::string Describe(const CertificateFacts& facts, absl::Time now) {
  const std::string trouble = ValidityTrouble(facts, now);
  return absl::StrCat(
      "  names    ", absl::StrJoin(facts.names.uris, "\n           "),
      facts.names.uris.empty() ? "none" : "", "\n  hosts    ",
      absl::StrJoin(facts.names.dns, ", "),
      facts.names.dns.empty() || facts.addresses.empty() ? "" : ", ",
      absl::StrJoin(facts.addresses, ", "), "\n  signed   by ", facts.issuer,
      "\n  valid    until ",
      absl::FormatTime("%Y-%m-%d %H:%M UTC", facts.not_after,
                       absl::UTCTimeZone()),
      trouble.empty() ? "" : absl::StrCat("; ", trouble), "\n");
}

// The end of the first authority in a directory's ca.crt to expire.
absl::StatusOr<absl::Time> AuthorityEnd(const std::string& directory) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::string text,
      ReadTextFile(absl::StrCat(directory, "/", TlsFiles::kAuthorities)));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::shared_ptr<const TrustedAuthorities> authorities,
      TrustedAuthorities::Make(text, ""));
  return authorities->not_after();
}

// The end of the authority that signs a set's certificates, the first one in
// its ca.crt; others there are only trusted.
absl::StatusOr<absl::Time> SignerEnd(const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/", TlsFiles::kAuthorities);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<X509Ptr> certificates,
                            ReadCertificates(text, path));
  return FactsOf(certificates.front().get()).not_after;
}

// "" for an authority whose end is far away.
std::string AuthorityTrouble(absl::Time end, absl::Time now) {
  CertificateFacts first;
  first.not_after = end;
  return ValidityTrouble(first, now);
}

std::string DescribeAuthority(absl::Time end, absl::Time now) {
  const std::string trouble = AuthorityTrouble(end, now);
  return absl::StrCat(
      "  ca.crt   until ",
      absl::FormatTime("%Y-%m-%d %H:%M UTC", end, absl::UTCTimeZone()),
      trouble.empty() ? "" : absl::StrCat("; ", trouble), "\n");
}

// The directories with a certificate: `directory`, or those in it, by name.
std::vector<std::string> WithCertificates(const std::string& directory) {
  const auto has_one = [](const std::filesystem::path& path) {
    std::error_code error;
    return std::filesystem::exists(path / TlsFiles::kCertificate, error);
  };
  std::vector<std::string> found;
  std::error_code error;
  std::filesystem::directory_iterator entries(directory, error);
  if (has_one(directory)) return {directory};
  for (; !error && entries != std::filesystem::directory_iterator();
       entries.increment(error)) {
    // A name with a dot is what a member's link points at.
    const std::string name = entries->path().filename();
    if (name[0] != '.' && has_one(entries->path())) {
      found.push_back(entries->path());
    }
  }
  std::sort(found.begin(), found.end());
  // A directory without any is listed itself, for the error that reading it
  // gives.
  return found.empty() ? std::vector<std::string>{directory} : found;
}

// What to give in place of the directory of a whole set; "" for another one.
std::string OneOfSet(const std::string& directory) {
  const std::string member = WithCertificates(directory).front();
  if (member == directory) return "";
  return absl::StrCat("; ", directory,
                      " has a directory for each task: give one, as --tls_dir ",
                      member, "; `lockstep certs show ", directory,
                      "` shows all");
}

}  // namespace

CertsCommands::CertsCommands(CLI::App& parent)
    : app_(*parent.add_subcommand(
          "certs", "Makes, renews and checks the certificates of a job.")),
      make_(*app_.add_subcommand(
          "make",
          "Makes a certificate authority and a certificate for each task and "
          "for operators: each is a directory for --tls_dir. Take DIR/ca.key "
          "away to a safe place; it can sign certificates of any role.")),
      renew_(*app_.add_subcommand(
          "renew",
          "Replaces certificates by new ones of the same authority; running "
          "processes take them within seconds.")),
      show_(*app_.add_subcommand(
          "show",
          "Shows the certificates in directories, or all of a set that "
          "`lockstep "
          "certs make` made. Exit code: 1 if one, or an authority in its "
          "ca.crt, has expired, or expires within 14 days.")),
      check_(*app_.add_subcommand(
          "check",
          "Shows the mistakes in the files of a directory, and in the "
          "certificate of a running server. Exit code: 1 if there is one.")) {
  app_.require_subcommand(1);
  AddSetFlags(make_);
  AddSetFlags(renew_);
  show_
      .add_option("directory,--tls_dir", directories_,
                  "Directories with tls.crt, or of a whole set; with or "
                  "without --tls_dir before them.")
      ->required();
  check_
      .add_option("--tls_dir", tls_dir_,
                  "Directory with tls.crt, tls.key and ca.crt.")
      ->required();
  check_.add_option("--identity_map", identity_map_,
                    "File that gives roles to certificates with other names "
                    "than Lockstep's, if the job's programs have one.");
  check_.add_option("--connect", connect_,
                    "Address of a running server, host:port, whose "
                    "certificate to check, too.");
}

void CertsCommands::AddSetFlags(CLI::App& app) {
  app.add_option("--cluster", cluster_file_, "JSON file with the cluster.")
      ->required();
  app.add_option("--job", job_, "The job's name, as in its job file.")
      ->required();
  app.add_option("--out", out_, "Directory for the certificates.")->required();
  app.add_option("--days", days_, "Days for which they are valid.")
      ->check(CLI::Range(1, 3650))
      ->capture_default_str();
  app.add_option("--only", only_,
                 "One member only, as worker-1 or operator-read; or "
                 "evaluator-0, which the cluster need not list.");
}

int CertsCommands::Run(Terminal& terminal, std::ostream& err) const {
  if (show_.parsed()) return Show(terminal, err);
  if (check_.parsed()) return Check(terminal, err);
  return Make(terminal, err);
}

absl::StatusOr<CertificateSet> CertsCommands::SetOf(
    const Cluster& cluster) const {
  CertificateSet set;
  set.job = job_;
  set.directory = out_;
  set.only = only_;
  set.chief = cluster.chief();
  for (const TaskType type : {TaskType::kPs, TaskType::kChief,
                              TaskType::kWorker, TaskType::kEvaluator}) {
    for (const TaskId& task : cluster.Tasks(type)) {
      set.tasks.push_back({task, cluster.Address(task).value_or("")});
    }
  }
  // Nothing calls an evaluator, so it may run without a place in the cluster.
  // Once it has a certificate, it is a member like the others.
  const TaskId evaluator = {TaskType::kEvaluator, 0};
  std::error_code error;
  if (cluster.Tasks(TaskType::kEvaluator).empty() &&
      (only_ == kEvaluator ||
       std::filesystem::exists(absl::StrCat(out_, "/", kEvaluator), error))) {
    set.tasks.push_back({evaluator, ""});
  }
  const absl::Time now = absl::Now();
  set.made = now;
  set.validity = {now - kEarlier, now + days_ * kDay};
  set.authority_valid = {now - kEarlier, now + kAuthorityDays * kDay};
  if (renew_.parsed() &&
      !std::filesystem::exists(absl::StrCat(out_, "/ca.crt"), error)) {
    return absl::NotFoundError(absl::StrCat(
        out_, "/ca.crt is not there; `lockstep certs make` makes it"));
  }
  return set;
}

int CertsCommands::Make(Terminal& terminal, std::ostream& err) const {
  const char* name = renew_.parsed() ? "renew" : "make";
  // Certificates name hosts, so ports that are chosen later do not matter.
  const absl::StatusOr<Cluster> cluster = ReadClusterFile(cluster_file_);
  if (cluster.ok()) err << WarningLines(cluster->warnings());
  const absl::StatusOr<CertificateSet> set =
      cluster.ok() ? SetOf(*cluster) : cluster.status();
  absl::StatusOr<std::vector<std::string>> made =
      set.ok() ? WriteCertificateSet(*set)
               : absl::StatusOr<std::vector<std::string>>(set.status());
  if (!made.ok()) {
    err << "lockstep certs " << name << ": " << made.status().message() << "\n";
    return kUsageExitCode;
  }
  for (const std::string& member : *made) {
    terminal.Print(absl::StrCat(out_, "/", member, "\n"));
  }
  std::string valid = CountText(days_, "day");
  const absl::StatusOr<absl::Time> end = SignerEnd(out_);
  // Certificates have whole seconds.
  if (end.ok() && *end + absl::Seconds(1) <= set->validity.until) {
    valid = absl::StrCat("only ", RoughDuration(*end - absl::Now()), ", until ",
                         out_,
                         "/ca.crt ends; `lockstep certs make` makes a "
                         "new authority in another --out");
  }
  terminal.Print(absl::StrCat("valid for ", valid,
                              "; copy each directory to its task alone, as "
                              "--tls_dir, and take ",
                              out_, "/ca.key to a safe place\n"));
  return 0;
}

int CertsCommands::Show(Terminal& terminal, std::ostream& err) const {
  bool all_well = true;
  std::vector<std::string> directories;
  for (const std::string& given : directories_) {
    for (std::string& directory : WithCertificates(given)) {
      directories.push_back(std::move(directory));
    }
  }
  for (const std::string& directory : directories) {
    const absl::StatusOr<std::string> text =
        ReadTextFile(absl::StrCat(directory, "/", TlsFiles::kCertificate));
    const auto certificates =
        text.ok() ? ReadCertificates(*text, directory)
                  : absl::StatusOr<std::vector<X509Ptr>>(text.status());
    if (!certificates.ok()) {
      err << "lockstep certs show: " << certificates.status().message() << "\n";
      return kUsageExitCode;
    }
    const CertificateFacts facts = FactsOf(certificates->front().get());
    const absl::Time now = absl::Now();
    all_well = all_well && ValidityTrouble(facts, now).empty();
    terminal.Print(absl::StrCat(directory, "\n", Describe(facts, now)));
    // A certificate may be shown without the other files.
    const absl::StatusOr<absl::Time> end = AuthorityEnd(directory);
    if (!end.ok()) continue;
    all_well = all_well && AuthorityTrouble(*end, now).empty();
    terminal.Print(DescribeAuthority(*end, now));
  }
  return all_well ? 0 : kWrong;
}

bool CertsCommands::CheckPeer(const std::string& directory,
                              Terminal& terminal) const {
  const absl::StatusOr<HostPort> address = ParseHostPort(connect_);
  if (!address.ok()) {
    terminal.Print(absl::StrCat(address.status().message(), "\n"));
    return false;
  }
  const absl::StatusOr<TlsFiles> files = ReadTlsFiles(directory);
  // Without files of its own the probe still sees the certificate of the
  // server, which comes first in a handshake.
  const auto shown = ProbePeer(address->host, address->port,
                               files.ok() ? &*files : nullptr, kTimeout);
  if (!shown.ok()) {
    terminal.Print(
        absl::StrCat(connect_, ": ", shown.status().message(), "\n"));
    return false;
  }
  terminal.Print(
      absl::StrCat(connect_, "\n", Describe(shown->facts, absl::Now())));
  const auto trusted =
      files.ok() ? TrustedAuthorities::Make(files->authorities, files->revoked)
                 : files.status();
  const absl::Status checked =
      trusted.ok()
          ? (*trusted)->Check(shown->chain, TrustedAuthorities::Side::kServer,
                              absl::Now())
          : trusted.status();
  if (!checked.ok()) {
    terminal.Print(absl::StrCat("wrong: ", checked.message(), "\n"));
    return false;
  }
  if (!shown->refusal.empty()) {
    terminal.Print(absl::StrCat("wrong: the server refuses this certificate (",
                                shown->refusal,
                                "); its log, status and metrics say why\n"));
    return false;
  }
  return true;
}

absl::StatusOr<CheckedTlsFiles> CertsCommands::CheckFiles(
    TlsFiles files) const {
  std::string map;
  if (!identity_map_.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(map,
                              ReadFlagFile("--identity_map", identity_map_));
  }
  // Without a map no job is known here; the names of the certificate only have
  // to be of one job.
  LOCKSTEP_ASSIGN_OR_RETURN(
      CheckedTlsFiles checked,
      CheckTlsFiles(std::move(files), JobInIdentityMap(map), absl::Now()));
  LOCKSTEP_RETURN_IF_ERROR(
      ParseIdentityMap(map, identity_map_, checked.job).status());
  return checked;
}

int CertsCommands::Check(Terminal& terminal, std::ostream& err) const {
  const absl::StatusOr<TlsFiles> files = ReadTlsFiles(tls_dir_);
  const absl::Status key = CheckAuthorityKey(tls_dir_);
  if (!files.ok()) {
    err << "lockstep certs check: " << files.status().message()
        << OneOfSet(tls_dir_) << "\n";
    if (!key.ok()) err << "lockstep certs check: " << key.message() << "\n";
    return kWrong;
  }
  const absl::StatusOr<CheckedTlsFiles> checked = CheckFiles(*files);
  bool all_well = checked.ok();
  if (checked.ok()) {
    const absl::Time now = absl::Now();
    const absl::Time end = checked->authorities->not_after();
    terminal.Print(absl::StrCat(tls_dir_, "\n", Describe(checked->own, now),
                                DescribeAuthority(end, now)));
    all_well = ValidityTrouble(checked->own, now).empty() &&
               AuthorityTrouble(end, now).empty();
  } else {
    terminal.Print(absl::StrCat("wrong: ", checked.status().message(), "\n"));
  }
  if (!key.ok()) terminal.Print(absl::StrCat("wrong: ", key.message(), "\n"));
  all_well = all_well && key.ok();
  if (!connect_.empty()) all_well = CheckPeer(tls_dir_, terminal) && all_well;
  if (all_well) terminal.Print("all is well\n");
  return all_well ? 0 : kWrong;
}

}  // namespace lockstep::cli
