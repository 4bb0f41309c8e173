#include "deploy/cli/status/operator_security.h"

#include <memory>
#include <utility>

#include "common/base/status_macros.h"
#include "common/rpc/security/transport/transport_security.h"

namespace lockstep::cli {

absl::Status UseOperatorCertificate(const std::string& directory,
                                    const std::string& identity_map) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<TransportSecurity> security,
                            TransportSecurity::Load({directory, identity_map}));
  SetOwnSecurity(std::move(security));
  return absl::OkStatus();
}

void DropOperatorCertificate() {
  if (const std::shared_ptr<TransportSecurity> security = OwnSecurity()) {
    security->StopReading();
  }
  SetOwnSecurity(nullptr);
}

}  // namespace lockstep::cli
