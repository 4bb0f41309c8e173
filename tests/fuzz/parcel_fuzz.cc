// The parcels that members of a group parse. The first two bytes are the length
// of the header; the rest is the payload, in pieces of up to 13 bytes.

#include <stdlib.h>

#include <algorithm>
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

// The dense_shape of leaves that are dense says nothing.
bool IsSame(const v1::LeafHeader& one, const v1::LeafHeader& other) {
  const auto has_dense_shape = [](const v1::LeafHeader& leaf) {
    return leaf.is_slices() && leaf.has_dense_shape();
  };
  const auto are_same = [](const auto& shape, const auto& others) {
    return std::equal(shape.begin(), shape.end(), others.begin(), others.end());
  };
  return one.type() == other.type() && are_same(one.shape(), other.shape()) &&
         one.is_slices() == other.is_slices() &&
         has_dense_shape(one) == has_dense_shape(other) &&
         (!has_dense_shape(one) ||
          are_same(one.dense_shape(), other.dense_shape()));
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
  for (int i = 0; i < header.leaves_size(); ++i) {
    Require(IsSame(again.leaves(i), header.leaves(i)));
  }
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
