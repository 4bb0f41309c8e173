#include "common/rpc/security/certificates/require_tls13.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "common/rpc/security/certificates/openssl_types.h"
#include "openssl/conf.h"
#include "openssl/crypto.h"

namespace lockstep {
namespace {

constexpr char kSettings[] =
    "openssl_conf = settings\n"
    "[settings]\n"
    "ssl_conf = connections\n"
    "[connections]\n"
    "system_default = all\n"
    "[all]\n"
    "Protocol = -ALL,TLSv1.3\n";

absl::Status Load() {
  // Loads the system's settings first; OpenSSL would otherwise load them later,
  // over these. A process that ends keeps OpenSSL's memory: threads of gRPC may
  // still use it, as one that waits for a name to be resolved.
  OPENSSL_init_crypto(OPENSSL_INIT_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT,
                      nullptr);
  OPENSSL_load_builtin_modules();
  const BioPtr text = ReadFrom(kSettings);
  const std::unique_ptr<CONF, void (*)(CONF*)> settings(NCONF_new(nullptr),
                                                        NCONF_free);
  long line = 0;  // NOLINT(google-runtime-int): OpenSSL's type
  if (settings == nullptr ||
      NCONF_load_bio(settings.get(), text.get(), &line) != 1 ||
      CONF_modules_load(settings.get(), nullptr, 0) != 1) {
    return absl::InternalError(
        absl::StrCat("cannot require TLS 1.3: ", OpenSslError()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RequireTls13() {
  static const absl::Status loaded = Load();
  return loaded;
}

}  // namespace lockstep
