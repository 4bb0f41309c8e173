#ifndef LOCKSTEP_COMMON_RPC_SECURITY_TRANSPORT_TRANSPORT_SECURITY_H_
#define LOCKSTEP_COMMON_RPC_SECURITY_TRANSPORT_TRANSPORT_SECURITY_H_

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/cluster/task_id.h"
#include "common/rpc/security/caller.h"
#include "common/rpc/security/certificates/tls_files.h"
#include "common/rpc/security/transport/served_file.h"
#include "common/rpc/security/trouble_book.h"
#include "grpcpp/security/auth_context.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/server_context.h"

namespace lockstep {

// TransportSecurity has everything that a process needs for mutual TLS 1.3: its
// certificate and key, the authorities that it trusts, and the names of peers.
// It reads its files again each second, and uses new ones if they fit each
// other; until then it keeps the old ones.
//
// Threads: safe to share.
class TransportSecurity
    : public std::enable_shared_from_this<TransportSecurity> {
 public:
  struct Options {
    std::string directory;     // as TlsFiles describes it
    std::string identity_map;  // a file, as ParseIdentityMap() reads it; or ""
    // The tasks at the addresses that this process calls. At any other address
    // it expects the chief.
    std::map<std::string, TaskId> peers{};
    // The tasks of this process: it takes no new certificate that lacks the
    // name of one of them. The caller must check the first certificate.
    std::vector<TaskId> tasks{};
  };

  // Errors as ReadTlsFiles(), CheckTlsFiles() and ParseIdentityMap().
  static absl::StatusOr<std::shared_ptr<TransportSecurity>> Load(
      const Options& options);
  ~TransportSecurity();

  // The job of its certificate.
  const std::string& job() const { return job_; }

  // Accepts peers with a certificate of a trusted authority, and calls that
  // CheckMayCall() allows, before their bodies are read.
  std::shared_ptr<grpc::ServerCredentials> ForServer();

  // Connects to servers whose certificate names the task at `address`.
  std::shared_ptr<grpc::ChannelCredentials> ForChannel(
      const std::string& address);

  // Returns the caller whose certificate has these names.
  Caller ToCaller(const NamesInCertificate& names) const {
    return {names, job_, map_};
  }

  // Checks a peer's certificate. Errors as TrustedAuthorities::Check().
  absl::Status CheckChain(const std::string& chain,
                          TrustedAuthorities::Side side) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Checks that the names include that of the task at `address`.
  //
  //   kPermissionDenied  they are another's; names both
  absl::Status CheckReached(const std::string& address,
                            const NamesInCertificate& names) const;

  // The files in use.
  TlsFiles files() const ABSL_LOCKS_EXCLUDED(mutex_);

  // The facts of the own certificate.
  CertificateFacts own() const ABSL_LOCKS_EXCLUDED(mutex_);

  // The end of the own certificate, or of the first authority if that is
  // earlier.
  absl::Time expires() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Reads the files again at once; a thread does it each second.
  void Reload() ABSL_LOCKS_EXCLUDED(reload_mutex_, mutex_);

  // Must be called before the files are removed: they are not read afterwards.
  void StopReading() ABSL_LOCKS_EXCLUDED(mutex_);

  TroubleBook& troubles() { return troubles_; }

  // Notes a certificate that has expired, or expires soon.
  void NoteExpiry(const CertificateFacts& facts);

  // Returns the problems that exist now or soon will, one sentence each.
  std::vector<std::string> Troubles() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  TransportSecurity(const Options& options, CheckedTlsFiles files,
                    IdentityMap map);

  absl::Status Serve();
  absl::Status Take(CheckedTlsFiles files) ABSL_LOCKS_EXCLUDED(mutex_);
  void Watch() ABSL_LOCKS_EXCLUDED(reload_mutex_, mutex_);
  // Notes an authority that has expired, or expires soon.
  void NoteAuthorities() ABSL_LOCKS_EXCLUDED(mutex_);
  // Notes the trouble of the validity of `facts`, if there is one. `what` names
  // the certificate or authority, and `fix` says what to do.
  void NoteEnd(const CertificateFacts& facts, const std::string& what,
               const std::string& fix);

  const Options options_;
  const std::string job_;
  const IdentityMap map_;
  TroubleBook troubles_;

  // Key and certificates are in one file, so that they change together.
  std::unique_ptr<ServedFile> pair_;
  std::unique_ptr<ServedFile> authorities_;
  std::shared_ptr<grpc::experimental::FileWatcherCertificateProvider> provider_;

  // Held from reading the files until they are in use, so that a caller never
  // puts older ones in place of those of another.
  Mutex reload_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);

  mutable Mutex mutex_;
  CondVar wake_;
  CheckedTlsFiles files_ ABSL_GUARDED_BY(mutex_);
  bool quit_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // last: it uses all of the above
};

// The security of this process; null without certificates. Must be set once,
// before any server or channel is made; tests may set it again.
void SetOwnSecurity(std::shared_ptr<TransportSecurity> security);
std::shared_ptr<TransportSecurity> OwnSecurity();

// Returns the caller of an RPC, by its connection's certificate. It has no role
// if the connection has a certificate but this process has no security of its
// own.
Caller CallerOf(const grpc::ServerContextBase& context);
Caller CallerOf(const grpc::AuthContext& context,
                const TransportSecurity* security);

// Notes a problem of this process if the caller's certificate expires soon.
// Takes some microseconds, so it must not be called for each call.
void NoteExpiryOf(const grpc::ServerContextBase& context);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RPC_SECURITY_TRANSPORT_TRANSPORT_SECURITY_H_
