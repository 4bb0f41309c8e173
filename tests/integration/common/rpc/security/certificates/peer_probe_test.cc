#include "common/rpc/security/certificates/peer_probe.h"

#include <utility>

#include "absl/time/clock.h"
#include "common/rpc/server.h"
#include "common/rpc/tcp_listener.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "openssl/ec.h"
#include "openssl/pem.h"
#include "openssl/x509v3.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/testing/test_certificates.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TempDir;
using ::lockstep::testing::TestAuthority;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::Duration kTimeout = absl::Seconds(20);

// An authority that `signer` signs, itself without one. Unlike those of
// MakeAuthority() it may sign further authorities.
CertifiedKey MakeSigner(const std::string& name, const CertifiedKey* signer) {
  const KeyPtr key(EVP_EC_gen("P-256"));
  const X509Ptr made(X509_new());
  X509_set_version(made.get(), 2);  // means 3
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), 86400);
  X509_NAME_add_entry_by_txt(
      X509_get_subject_name(made.get()), "CN", MBSTRING_ASC,
      reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_pubkey(made.get(), key.get());
  X509Ptr issuer;
  KeyPtr issuers_key;
  if (signer != nullptr) {
    issuer = std::move(ReadCertificates(signer->certificate, name)->front());
    issuers_key = ReadKey(signer->key);
  }
  X509* const by = issuer == nullptr ? made.get() : issuer.get();
  X509_set_issuer_name(made.get(), X509_get_subject_name(by));
  X509V3_CTX context = {};
  X509V3_set_ctx(&context, by, made.get(), nullptr, nullptr, 0);
  for (const auto& [id, value] :
       {std::pair{NID_basic_constraints, "critical,CA:TRUE"},
        std::pair{NID_key_usage, "critical,keyCertSign"},
        std::pair{NID_subject_key_identifier, "hash"}}) {
    X509_EXTENSION* extension =
        X509V3_EXT_conf_nid(nullptr, &context, id, value);
    X509_add_ext(made.get(), extension, -1);
    X509_EXTENSION_free(extension);
  }
  X509_sign(made.get(), issuer == nullptr ? key.get() : issuers_key.get(),
            EVP_sha256());
  const BioPtr certificate(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(certificate.get(), made.get());
  const BioPtr private_key(BIO_new(BIO_s_mem()));
  PEM_write_bio_PrivateKey(private_key.get(), key.get(), nullptr, nullptr, 0,
                           nullptr, nullptr);
  return {ContentsOf(certificate.get()), ContentsOf(private_key.get())};
}

CertifiedKey Issue(const CertifiedKey& authority, const std::string& name) {
  CertificateRequest request;
  request.common_name = name;
  request.uris = {"lockstep://fashion/" + name};
  return MakeCertificate(authority, request, TestAuthority::Valid()).value();
}

class PeerProbeTest : public ::testing::Test {
 protected:
  std::unique_ptr<GrpcServer> Start(bool secure) {
    return Start(secure, authority_.Files("ps/0"));
  }
  std::unique_ptr<GrpcServer> Start(bool secure, const TlsFiles& files) {
    testing::WriteTlsFiles(directory_.path(), files);
    GrpcServer::Options options;
    if (secure) {
      options.security =
          TransportSecurity::Load({directory_.path(), ""}).value();
    }
    return GrpcServer::Start("127.0.0.1:0", {}, options).value();
  }

  const TestAuthority authority_;
  const TempDir directory_;
};

TEST_F(PeerProbeTest, TellsWhoseCertificateAnswers) {
  const auto server = Start(/*secure=*/true);
  const TlsFiles own = authority_.Files("operator/read");
  const auto shown = ProbePeer("127.0.0.1", server->port(), &own, kTimeout);
  ASSERT_OK(shown);
  EXPECT_THAT(shown->facts.names.uris, ElementsAre("lockstep://fashion/ps/0"));
  EXPECT_EQ(shown->refusal, "");
}

TEST_F(PeerProbeTest, AuthoritiesBetweenTheOwnCertificateAndTheRootAreSent) {
  const CertifiedKey root = MakeSigner("root", nullptr);
  const CertifiedKey middle = MakeSigner("middle", &root);
  const CertifiedKey server_pair = Issue(root, "ps/0");
  const auto server = Start(
      /*secure=*/true,
      {server_pair.certificate, server_pair.key, root.certificate, ""});
  const CertifiedKey pair = Issue(middle, "operator/read");
  const TlsFiles own = {pair.certificate + middle.certificate, pair.key,
                        root.certificate, ""};
  ASSERT_OK(CheckTlsFiles(own, "", absl::Now()));
  const auto shown = ProbePeer("127.0.0.1", server->port(), &own, kTimeout);
  ASSERT_OK(shown);
  EXPECT_EQ(shown->refusal, "");
}

TEST_F(PeerProbeTest, ServerThatRefusesTheOwnCertificateIsTold) {
  const auto server = Start(/*secure=*/true);
  const TlsFiles own = TestAuthority("stranger").Files("operator/read");
  const auto shown = ProbePeer("127.0.0.1", server->port(), &own, kTimeout);
  ASSERT_OK(shown);
  EXPECT_NE(shown->refusal, "");
  const auto without =
      ProbePeer("127.0.0.1", server->port(), nullptr, kTimeout);
  ASSERT_OK(without);
  EXPECT_NE(without->refusal, "");
}

TEST_F(PeerProbeTest, ServerWithoutTlsIsTold) {
  const auto server = Start(/*secure=*/false);
  EXPECT_THAT(ProbePeer("127.0.0.1", server->port(), nullptr, kTimeout),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(PeerProbeTest, ServerWithoutRoomForAConnectionIsUnavailable) {
  const auto listener =
      TcpListener::Listen("127.0.0.1:0", {.all = 0, .of_one_address = 0});
  ASSERT_OK(listener);
  (*listener)->Start([](int, int) {});
  EXPECT_THAT(
      ProbePeer("127.0.0.1", (*listener)->port(), nullptr, kTimeout),
      StatusIs(absl::StatusCode::kUnavailable,
               HasSubstr("ended the connection during the TLS handshake")));
}

TEST_F(PeerProbeTest, AddressWithoutServerIsUnavailable) {
  EXPECT_THAT(ProbePeer("127.0.0.1", 1, nullptr, kTimeout),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(PeerProbeTest, NameThatDoesNotResolveIsNamed) {
  EXPECT_THAT(ProbePeer("no.such.host.invalid", 1, nullptr, kTimeout),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("the name no.such.host.invalid does not "
                                 "resolve: ")));
}

}  // namespace
}  // namespace lockstep
