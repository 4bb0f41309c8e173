#include "common/rpc/security/transport/transport_security.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/input_file.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/rpc/security/access_table.h"
#include "common/rpc/security/certificates/require_tls13.h"
#include "common/rpc/security/transport/tls_verifiers.h"
#include "grpcpp/security/tls_credentials_options.h"

namespace lockstep {
namespace {

constexpr unsigned int kRefreshSeconds = 1;
constexpr std::chrono::seconds kReload(1);
// The time between reminders in the log of a certificate that is still valid.
constexpr absl::Duration kRemindEvery = absl::Hours(6);

absl::StatusOr<std::string> ReadMap(const std::string& path) {
  // One byte more than ParseIdentityMap() takes.
  absl::StatusOr<std::string> text =
      ReadInputFile(path, kLargestIdentityMap + 1);
  if (text.ok()) return text;
  return absl::NotFoundError(absl::StrCat("--identity_map: cannot read ", path,
                                          ": ", text.status().message()));
}

absl::StatusOr<TlsFiles> ReadFirst(const std::string& directory) {
  absl::StatusOr<TlsFiles> files = ReadTlsFiles(directory);
  if (files.ok()) return files;
  return absl::Status(
      files.status().code(),
      absl::StrCat("--tls_dir: ", files.status().message(),
                   absl::IsNotFound(files.status())
                       ? "; name a directory with tls.crt, tls.key and ca.crt, "
                         "as `lockstep certs make` makes them"
                       : ""));
}

struct OwnHolder {
  Mutex mutex;
  std::shared_ptr<TransportSecurity> own ABSL_GUARDED_BY(mutex);
};

OwnHolder& Holder() {
  static auto* holder = new OwnHolder;
  return *holder;
}

std::vector<std::string> Values(const grpc::AuthContext& context,
                                const char* name) {
  std::vector<std::string> values;
  for (const grpc::string_ref& value : context.FindPropertyValues(name)) {
    values.emplace_back(value.data(), value.size());
  }
  return values;
}

}  // namespace

absl::StatusOr<std::shared_ptr<TransportSecurity>> TransportSecurity::Load(
    const Options& options) {
  // First: OpenSSL applies the setting only to connections that are made later.
  LOCKSTEP_RETURN_IF_ERROR(RequireTls13());
  std::string map_text;
  if (!options.identity_map.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(map_text, ReadMap(options.identity_map));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(TlsFiles files, ReadFirst(options.directory));
  // absl::Now(), not Clock: certificates are valid by the wall clock.
  absl::StatusOr<CheckedTlsFiles> checked =
      CheckTlsFiles(std::move(files), JobInIdentityMap(map_text), absl::Now());
  if (!checked.ok()) {
    return absl::Status(
        checked.status().code(),
        absl::StrCat("--tls_dir: the files in ", options.directory, ": ",
                     checked.status().message()));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      IdentityMap map,
      ParseIdentityMap(map_text, options.identity_map, checked->job));
  std::shared_ptr<TransportSecurity> made(
      new TransportSecurity(options, *std::move(checked), std::move(map)));
  LOCKSTEP_RETURN_IF_ERROR(made->Serve());
  return made;
}

TransportSecurity::TransportSecurity(const Options& options,
                                     CheckedTlsFiles files, IdentityMap map)
    : options_(options),
      job_(files.job),
      map_(std::move(map)),
      files_(std::move(files)) {}

TransportSecurity::~TransportSecurity() { StopReading(); }

void TransportSecurity::StopReading() {
  {
    MutexLock lock(mutex_);
    quit_ = true;
    wake_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
}

absl::Status TransportSecurity::Serve() {
  {
    MutexLock lock(mutex_);
    const TlsFiles& files = files_.files;
    LOCKSTEP_ASSIGN_OR_RETURN(
        pair_, ServedFile::Make(files.key + "\n" + files.certificate));
    LOCKSTEP_ASSIGN_OR_RETURN(authorities_,
                              ServedFile::Make(files.authorities));
  }
  // gRPC's providers renew certificates only from files, hence the files in
  // memory.
  provider_ =
      std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
          pair_->path(), pair_->path(), authorities_->path(), kRefreshSeconds);
  thread_ = std::thread([this] { Watch(); });
  return absl::OkStatus();
}

absl::Status TransportSecurity::Take(CheckedTlsFiles files) {
  // A running process cannot change its job.
  if (files.job != job_) {
    return absl::InvalidArgumentError(
        absl::StrCat("tls.crt is of job ", files.job, ", and this process of ",
                     job_, "; restart it for another job"));
  }
  // Its peers would refuse it as another task.
  const Caller shown = ToCaller(files.own.names);
  for (const TaskId& task : options_.tasks) {
    if (shown.CheckSpeaksFor(task).ok()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "tls.crt is that of ", shown.ToString(), ", and this process is ",
        task.ToString(), task == options_.tasks.front() ? "" : ", too",
        "; put that task's files there"));
  }
  MutexLock lock(mutex_);
  // The authorities first: the new certificate may need the new ones.
  LOCKSTEP_RETURN_IF_ERROR(authorities_->Replace(files.files.authorities));
  LOCKSTEP_RETURN_IF_ERROR(
      pair_->Replace(files.files.key + "\n" + files.files.certificate));
  files_ = std::move(files);
  return absl::OkStatus();
}

void TransportSecurity::Reload() {
  MutexLock reloading(reload_mutex_);
  const absl::Time now = absl::Now();
  absl::StatusOr<TlsFiles> files = ReadTlsFiles(options_.directory);
  absl::Status status = files.status();
  if (files.ok()) {
    bool is_new = false;
    {
      MutexLock lock(mutex_);
      is_new = !(*files == files_.files);
    }
    // Equal files were checked before; parsing them each second would cost
    // more.
    if (!is_new) return;
    absl::StatusOr<CheckedTlsFiles> checked =
        CheckTlsFiles(*std::move(files), map_.empty() ? "" : job_, now);
    status = checked.ok() ? Take(*std::move(checked)) : checked.status();
    if (status.ok()) {
      const CertificateFacts facts = own();
      spdlog::info("uses new certificates of {}; {} expires in {}",
                   options_.directory, facts.Owner(),
                   RoughDuration(facts.not_after - now));
      return;
    }
  }
  const std::string sentence =
      absl::StrCat("the files in ", options_.directory,
                   " are not used, the last ones are: ", status.message());
  if (troubles_.Note(sentence)) spdlog::error("{}", sentence);
}

void TransportSecurity::Watch() {
  while (true) {
    {
      MutexLock lock(mutex_);
      // Polls: a new set may come by a rename, a remount or a new link, which
      // no single kind of notification covers.
      if (!quit_) wake_.WaitFor(mutex_, kReload);
      if (quit_) return;
    }
    Reload();
    NoteExpiry(own());
    NoteAuthorities();
  }
}

void TransportSecurity::NoteExpiry(const CertificateFacts& facts) {
  NoteEnd(facts, absl::StrCat("the certificate of ", facts.Owner()), kRenew);
}

void TransportSecurity::NoteAuthorities() {
  CertificateFacts first;
  {
    MutexLock lock(mutex_);
    first.not_after = files_.authorities->not_after();
  }
  NoteEnd(first,
          absl::StrCat("an authority in ", options_.directory, "/ca.crt"),
          "change the authority before all certificates end with it, or take "
          "it out if it signs none");
}

void TransportSecurity::NoteEnd(const CertificateFacts& facts,
                                const std::string& what,
                                const std::string& fix) {
  const absl::Time now = absl::Now();
  const std::string trouble = ValidityTrouble(facts, now);
  if (trouble.empty()) return;
  const std::string sentence = absl::StrCat(what, " ", trouble, "; ", fix);
  const bool is_late = now > facts.not_after;
  // One problem, although the time in its sentence changes.
  if (troubles_.Note(sentence, is_late ? TroubleBook::kLogEvery : kRemindEvery,
                     what)) {
    spdlog::warn("{}", sentence);
  }
}

TlsFiles TransportSecurity::files() const {
  MutexLock lock(mutex_);
  return files_.files;
}

CertificateFacts TransportSecurity::own() const {
  MutexLock lock(mutex_);
  return files_.own;
}

absl::Time TransportSecurity::expires() const {
  MutexLock lock(mutex_);
  return std::min(files_.own.not_after, files_.authorities->not_after());
}

std::vector<std::string> TransportSecurity::Troubles() const {
  return troubles_.Current();
}

absl::Status TransportSecurity::CheckChain(
    const std::string& chain, TrustedAuthorities::Side side) const {
  std::shared_ptr<const TrustedAuthorities> authorities;
  {
    MutexLock lock(mutex_);
    // A copy of the pointer: the check may take long, and Take() may replace
    // the files meanwhile.
    authorities = files_.authorities;
  }
  return authorities->Check(chain, side, absl::Now());
}

absl::Status TransportSecurity::CheckReached(
    const std::string& address, const NamesInCertificate& names) const {
  const auto found = options_.peers.find(address);
  // At an address outside of the cluster the chief is expected, see
  // Options::peers.
  const TaskId wanted = found == options_.peers.end()
                            ? TaskId{TaskType::kChief, 0}
                            : found->second;
  const Caller reached = ToCaller(names);
  if (reached.CheckSpeaksFor(wanted).ok()) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("at ", address, " is ", reached.ToString(), ", and not ",
                   wanted.ToString(), " of job ", job_, "; check the address"));
}

std::shared_ptr<grpc::ServerCredentials> TransportSecurity::ForServer() {
  grpc::experimental::TlsServerCredentialsOptions options(provider_);
  options.watch_identity_key_cert_pairs();
  options.watch_root_certs();
  // ClientVerifier verifies instead of gRPC, so that a refusal has a reason in
  // words.
  options.set_cert_request_type(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_BUT_DONT_VERIFY);
  options.set_certificate_verifier(MakeClientVerifier(shared_from_this()));
  std::shared_ptr<grpc::ServerCredentials> credentials =
      grpc::experimental::TlsServerCredentials(options);
  credentials->SetAuthMetadataProcessor(
      MakeAccessProcessor(shared_from_this()));
  return credentials;
}

std::shared_ptr<grpc::ChannelCredentials> TransportSecurity::ForChannel(
    const std::string& address) {
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(provider_);
  options.watch_identity_key_cert_pairs();
  options.watch_root_certs();
  // ServerVerifier verifies instead of gRPC, so that a refusal has a reason in
  // words.
  options.set_verify_server_certs(false);
  // Certificates name tasks, not hosts: see CheckReached().
  options.set_check_call_host(false);
  options.set_certificate_verifier(
      MakeServerVerifier(shared_from_this(), address));
  return grpc::experimental::TlsCredentials(options);
}

void SetOwnSecurity(std::shared_ptr<TransportSecurity> security) {
  OwnHolder& holder = Holder();
  MutexLock lock(holder.mutex);
  // Swapped, so that the old one ends after the lock is released: its end joins
  // a thread.
  holder.own.swap(security);
}

std::shared_ptr<TransportSecurity> OwnSecurity() {
  OwnHolder& holder = Holder();
  MutexLock lock(holder.mutex);
  return holder.own;
}

Caller CallerOf(const grpc::AuthContext& context,
                const TransportSecurity* security) {
  const auto type = context.FindPropertyValues("transport_security_type");
  // An unchecked caller: the connection has no TLS.
  if (type.empty() || type[0] != "tls") return {};
  // A checked caller without names, which may call nothing.
  if (security == nullptr) return {{}, "", {}};
  return security->ToCaller(
      {Values(context, "peer_uri"), Values(context, "peer_dns")});
}

void NoteExpiryOf(const grpc::ServerContextBase& context) {
  const std::shared_ptr<TransportSecurity> security = OwnSecurity();
  const auto auth = context.auth_context();
  if (security == nullptr || auth == nullptr) return;
  for (const std::string& pem : Values(*auth, "x509_pem_cert")) {
    const auto certificates = ReadCertificates(pem, "the peer");
    if (certificates.ok()) {
      security->NoteExpiry(FactsOf(certificates->front().get()));
    }
  }
}

Caller CallerOf(const grpc::ServerContextBase& context) {
  const auto auth = context.auth_context();
  if (auth == nullptr) return {};
  return CallerOf(*auth, OwnSecurity().get());
}

}  // namespace lockstep
