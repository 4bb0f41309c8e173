#ifndef LOCKSTEP_COMMON_RPC_SECURITY_TRANSPORT_TLS_VERIFIERS_H_
#define LOCKSTEP_COMMON_RPC_SECURITY_TRANSPORT_TLS_VERIFIERS_H_

#include <memory>
#include <string>

#include "grpcpp/security/auth_metadata_processor.h"
#include "grpcpp/security/tls_certificate_verifier.h"

namespace lockstep {

class TransportSecurity;

// For servers: accepts the owners of certificates of trusted authorities.
std::shared_ptr<grpc::experimental::CertificateVerifier> MakeClientVerifier(
    std::shared_ptr<TransportSecurity> security);

// For channels to `address`: requires a certificate of a trusted authority with
// the name of the task there.
std::shared_ptr<grpc::experimental::CertificateVerifier> MakeServerVerifier(
    std::shared_ptr<TransportSecurity> security, std::string address);

// For servers: refuses calls by their path, before the body is read, as
// CheckMayCall() says.
std::shared_ptr<grpc::AuthMetadataProcessor> MakeAccessProcessor(
    std::shared_ptr<TransportSecurity> security);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RPC_SECURITY_TRANSPORT_TLS_VERIFIERS_H_
