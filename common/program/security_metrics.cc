#include "common/program/security_metrics.h"

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "common/rpc/security/transport/transport_security.h"

namespace lockstep {

std::vector<Metric> SecurityMetrics() {
  const std::shared_ptr<TransportSecurity> security = OwnSecurity();
  if (security == nullptr) return {};
  std::vector<Metric> metrics = {
      {"lockstep_certificate_expiry_seconds",
       "Unix time at which this process's certificate expires.",
       Metric::Kind::kGauge,
       static_cast<double>(absl::ToUnixSeconds(security->own().not_after))},
      {"lockstep_tls_handshake_failures_total",
       "Connections that failed because of a certificate.",
       Metric::Kind::kCounter,
       static_cast<double>(security->troubles().failed_handshakes())},
      {"lockstep_security_troubles",
       "What is wrong with certificates now; the log has the words.",
       Metric::Kind::kGauge, static_cast<double>(security->Troubles().size())}};
  for (const auto& [call, count] : security->troubles().denied()) {
    metrics.push_back({"lockstep_denied_calls_total",
                       "Calls that were refused because of the caller's role.",
                       Metric::Kind::kCounter,
                       static_cast<double>(count),
                       {{"method", call.first}, {"role", call.second}}});
  }
  return metrics;
}

}  // namespace lockstep
