#ifndef LOCKSTEP_DEPLOY_CLI_STATUS_OPERATOR_SECURITY_H_
#define LOCKSTEP_DEPLOY_CLI_STATUS_OPERATOR_SECURITY_H_

#include <string>

#include "absl/status/status.h"

namespace lockstep::cli {

// Makes all later connections of this process use the certificate of an
// operator, in a directory as TlsFiles describes it. `identity_map` is a file,
// as ParseIdentityMap() reads it, or empty. Errors as
// TransportSecurity::Load().
absl::Status UseOperatorCertificate(const std::string& directory,
                                    const std::string& identity_map = "");

// Ends the use of that certificate, whose files may then be removed; without
// one nothing happens. Connections that are open stay as they are.
void DropOperatorCertificate();

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_STATUS_OPERATOR_SECURITY_H_
