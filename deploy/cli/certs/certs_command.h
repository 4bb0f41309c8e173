#ifndef LOCKSTEP_DEPLOY_CLI_CERTS_CERTS_COMMAND_H_
#define LOCKSTEP_DEPLOY_CLI_CERTS_CERTS_COMMAND_H_

#include <ostream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "common/cluster/cluster.h"
#include "common/rpc/security/certificates/tls_files.h"
#include "deploy/cli/certs/certificate_set.h"
#include "deploy/cli/text/terminal.h"

namespace lockstep::cli {

// CertsCommands are `lockstep certs make`, `renew`, `show` and `check`.
//
// Threads: not thread-safe.
// Borrows: `parent`, which keeps pointers to the members: it must not be parsed
// after this object is destroyed.
class CertsCommands {
 public:
  explicit CertsCommands(CLI::App& parent);

  bool chosen() const { return app_.parsed(); }

  // Returns 0; 1 if `show` or `check` finds something wrong; 2 if files cannot
  // be read or written, or for bad flags.
  int Run(Terminal& terminal, std::ostream& err) const;

 private:
  void AddSetFlags(CLI::App& app);
  absl::StatusOr<CertificateSet> SetOf(const Cluster& cluster) const;
  int Make(Terminal& terminal, std::ostream& err) const;
  int Show(Terminal& terminal, std::ostream& err) const;
  int Check(Terminal& terminal, std::ostream& err) const;
  // Checks the files of --tls_dir with --identity_map. Errors as
  // CheckTlsFiles(), ReadTextFile() and ParseIdentityMap().
  absl::StatusOr<CheckedTlsFiles> CheckFiles(TlsFiles files) const;
  // Connects to the server at --connect, and prints the certificate that it
  // presents. Returns false if that is not accepted.
  bool CheckPeer(const std::string& directory, Terminal& terminal) const;

  CLI::App& app_;
  CLI::App& make_;
  CLI::App& renew_;
  CLI::App& show_;
  CLI::App& check_;
  std::string cluster_file_;
  std::string job_;
  std::string out_;
  std::string only_;
  int days_ = 90;
  std::vector<std::string> directories_;
  std::string tls_dir_;
  std::string identity_map_;
  std::string connect_;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_CERTS_CERTS_COMMAND_H_
