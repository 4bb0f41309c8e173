// The parcels that members of a group parse. The first two bytes are the length
// of the header; the rest is the payload, in pieces of up to 13 bytes.

#include <stdlib.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "google/protobuf/stubs/logging.h"
#include "strategy/workers/parcel_codec.h"

namespace lockstep::strategy {
namespace {

void Require(bool promise) {
  if (!promise) abort();
}

std::string PayloadOf(const std::vector<Leaf>& leaves) {
  std::string payload;
  ForEachPiece(leaves, [&](absl::Span<const std::byte> piece) {
    payload.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    return true;
  });
  return payload;
}

// A parcel that is read must be the one that was sent.
void Check(const v1::ParcelHeader& header, std::string_view payload) {
  auto reader = ParcelReader::Make(header);
  if (!reader.ok()) return;
  for (size_t at = 0; at < payload.size(); at += 13) {
    if (!reader->Append(payload.substr(at, 13)).ok()) return;
  }
  const auto leaves = reader->Finish();
  if (!leaves.ok()) return;
  Require(PayloadOf(*leaves) == payload);
  v1::ParcelHeader again;
  EncodeLeaves(*leaves, again);
  Require(again.leaves_size() == header.leaves_size());
}

}  // namespace
}  // namespace lockstep::strategy

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  google::protobuf::SetLogHandler(nullptr);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2,
                               size - 2);
  const size_t length = data[0] + size_t{256} * data[1];
  if (length > bytes.size()) return 0;
  lockstep::v1::ParcelHeader header;
  if (!header.ParseFromArray(bytes.data(), static_cast<int>(length))) return 0;
  lockstep::strategy::Check(header, bytes.substr(length));
  return 0;
}
