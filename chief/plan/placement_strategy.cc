#include "chief/plan/placement_strategy.h"

#include <openssl/evp.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace lockstep::chief {

int GreedyByLoad::Next(int64_t load) {
  const auto least = std::min_element(loads_.begin(), loads_.end());
  *least += load;
  return static_cast<int>(least - loads_.begin());
}

absl::StatusOr<int> ServerByName(absl::string_view name, uint64_t seed,
                                 int num_servers) {
  const std::string text = absl::StrCat(name, "_", seed);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  if (EVP_Digest(text.data(), text.size(), digest, &length, EVP_md5(),
                 nullptr) != 1) {
    return absl::UnavailableError(
        "OpenSSL cannot compute MD5 here; choose another placement");
  }
  // The remainder of the digest as a big-endian number, as TensorFlow computes
  // it.
  uint64_t rest = 0;
  for (unsigned int i = 0; i < length; ++i) {
    rest = (rest * 256 + digest[i]) % static_cast<uint64_t>(num_servers);
  }
  return static_cast<int>(rest);
}

}  // namespace lockstep::chief
