#include "common/program/security_metrics.h"

#include <memory>

#include "absl/time/time.h"
#include "common/rpc/security/transport/transport_security.h"

namespace lockstep {

MetricFamilies SecurityMetrics() {
  const std::shared_ptr<TransportSecurity> security = OwnSecurity();
  MetricFamilies metrics;
  if (security == nullptr) return metrics;
  metrics.Gauge(
      "lockstep_certificate_expiry_timestamp_seconds",
      "Unix time at which this process's certificate expires, or the first "
      "authority that it trusts.",
      static_cast<double>(absl::ToUnixSeconds(security->expires())));
  metrics.Counter(
      "lockstep_tls_handshake_failures_total",
      "Connections that failed because of a certificate.",
      static_cast<double>(security->troubles().failed_handshakes()));
  metrics.Gauge("lockstep_security_troubles",
                "What is wrong with certificates now; the log has the words.",
                static_cast<double>(security->Troubles().size()));
  for (const auto& [call, count] : security->troubles().denied()) {
    metrics.Counter("lockstep_denied_calls_total",
                    "Calls that were refused because of the caller's role.",
                    static_cast<double>(count),
                    {{"method", call.first}, {"role", call.second}});
  }
  return metrics;
}

}  // namespace lockstep
