#include "common/records/tf_example_writer.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace lockstep {
namespace {

// Field numbers of tf.train.Feature.
constexpr int kBytesList = 1;
constexpr int kFloatList = 2;
constexpr int kInt64List = 3;

std::string Varint(uint64_t number) {
  std::string bytes;
  for (; number >= 0x80; number >>= 7) {
    bytes.push_back(static_cast<char>(number | 0x80));
  }
  bytes.push_back(static_cast<char>(number));
  return bytes;
}

// A field whose contents have a length: text, a message, or packed numbers.
std::string Field(int number, absl::string_view contents) {
  constexpr int kLengthDelimited = 2;
  return absl::StrCat(
      Varint(static_cast<uint64_t>(number << 3 | kLengthDelimited)),
      Varint(contents.size()), contents);
}

std::string Packed(const std::vector<float>& floats) {
  std::string bytes(floats.size() * sizeof(float), '\0');
  if (!floats.empty()) std::memcpy(bytes.data(), floats.data(), bytes.size());
  return bytes;
}

std::string Packed(const std::vector<int64_t>& ints) {
  std::string bytes;
  for (const int64_t number : ints) {
    absl::StrAppend(&bytes, Varint(static_cast<uint64_t>(number)));
  }
  return bytes;
}

std::string Serialize(const TfFeature& feature) {
  if (!feature.bytes.empty()) {
    std::string list;
    for (const std::string& bytes : feature.bytes) {
      absl::StrAppend(&list, Field(1, bytes));
    }
    return Field(kBytesList, list);
  }
  if (!feature.floats.empty()) {
    return Field(kFloatList, Field(1, Packed(feature.floats)));
  }
  if (feature.ints.empty()) return "";
  return Field(kInt64List, Field(1, Packed(feature.ints)));
}

}  // namespace

std::string SerializeTfExample(const TfExample& example) {
  std::string features;
  for (const auto& [name, feature] : example) {
    absl::StrAppend(
        &features,
        Field(1, absl::StrCat(Field(1, name), Field(2, Serialize(feature)))));
  }
  return Field(1, features);
}

}  // namespace lockstep
