#ifndef LOCKSTEP_TESTS_INTEGRATION_COMMON_RPC_SECURITY_RAW_CREDENTIALS_H_
#define LOCKSTEP_TESTS_INTEGRATION_COMMON_RPC_SECURITY_RAW_CREDENTIALS_H_

#include <memory>
#include <string>

#include "common/rpc/security/certificates/certificate_maker.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/security/tls_certificate_verifier.h"
#include "grpcpp/security/tls_credentials_options.h"

namespace lockstep::testing {

// A channel of a client that checks nothing, with any certificate; an empty one
// is none.
inline std::shared_ptr<grpc::Channel> UncheckedChannel(
    const std::string& address, const std::string& authority,
    const CertifiedKey& pair) {
  using grpc::experimental::IdentityKeyCertPair;
  using grpc::experimental::NoOpCertificateVerifier;
  using grpc::experimental::StaticDataCertificateProvider;
  using grpc::experimental::TlsChannelCredentialsOptions;
  TlsChannelCredentialsOptions options;
  if (pair.key.empty()) {
    options.set_certificate_provider(
        std::make_shared<StaticDataCertificateProvider>(authority));
  } else {
    options.set_certificate_provider(
        std::make_shared<StaticDataCertificateProvider>(
            authority,
            std::vector<IdentityKeyCertPair>{{pair.key, pair.certificate}}));
    options.watch_identity_key_cert_pairs();
  }
  options.watch_root_certs();
  options.set_verify_server_certs(false);
  options.set_check_call_host(false);
  options.set_certificate_verifier(std::make_shared<NoOpCertificateVerifier>());
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 1);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1);
  return grpc::CreateCustomChannel(
      address, grpc::experimental::TlsCredentials(options), arguments);
}

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_INTEGRATION_COMMON_RPC_SECURITY_RAW_CREDENTIALS_H_
