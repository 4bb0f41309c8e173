#include "common/checkpoint/format/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/json/bounded_json.h"
#include "common/text/excerpt.h"
#include "common/text/utf8.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

constexpr char kMetadataKey[] = "__metadata__";
constexpr uint64_t kDataAlignment = 64;
constexpr uint64_t kMaxDataBytes = std::numeric_limits<int64_t>::max();
// Depth of the header, a tensor in it, an array in that.
constexpr JsonLimits kLimits = {kMaxSafetensorsHeaderBytes, /*max_depth=*/3};

template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// A file's own text, short and printable enough for a message.
std::string Quote(absl::string_view text) { return Excerpt(text, 128); }

uint64_t ReadLittleEndian(absl::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = kSafetensorsLengthBytes; i-- > 0;) {
    value = value << 8 | static_cast<uint8_t>(bytes[i]);
  }
  return value;
}

std::string WriteLittleEndian(uint64_t value) {
  std::string bytes(kSafetensorsLengthBytes, '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(value & 0xff);
    value >>= 8;
  }
  return bytes;
}

// --- of BuildSafetensorsHeader() ---

absl::Status CheckName(const std::string& name) {
  if (name.empty()) return Invalid("a tensor has an empty name");
  if (name == kMetadataKey) {
    return Invalid("tensor name ", Quote(name), " is reserved by the format");
  }
  if (!IsUtf8(name)) return Invalid("tensor name ", Quote(name), " not UTF-8");
  return absl::OkStatus();
}

absl::Status CheckNames(const std::vector<TensorSpec>& tensors) {
  absl::flat_hash_set<absl::string_view> seen;
  for (const TensorSpec& tensor : tensors) {
    LOCKSTEP_RETURN_IF_ERROR(CheckName(tensor.name));
    if (!seen.insert(tensor.name).second) {
      return Invalid("tensor name ", Quote(tensor.name), " is given twice");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckMetadata(const std::map<std::string, std::string>& metadata) {
  for (const auto& [key, value] : metadata) {
    if (!IsUtf8(key) || !IsUtf8(value)) {
      return Invalid("metadata ", Quote(key), " is not UTF-8");
    }
  }
  return absl::OkStatus();
}

absl::Status PlaceTensors(std::vector<TensorSpec> tensors,
                          SafetensorsHeader& header) {
  // Each tensor's size is a multiple of its element's, so after descending
  // element sizes every offset is a multiple of the next element size.
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const TensorSpec& a, const TensorSpec& b) {
                     return TensorTypeSize(a.type) > TensorTypeSize(b.type);
                   });
  for (TensorSpec& tensor : tensors) {
    LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t bytes, TensorBytes(tensor));
    // Not bytes + data_bytes > kMaxDataBytes: the sum could overflow.
    if (bytes > kMaxDataBytes - header.data_bytes) {
      return Invalid("tensors up to ", DescribeTensor(tensor),
                     " need more than ", kMaxDataBytes, " bytes");
    }
    header.tensors.push_back({std::move(tensor), header.data_bytes, bytes});
    header.data_bytes += bytes;
  }
  return absl::OkStatus();
}

std::string ToJson(const SafetensorsHeader& header) {
  Json json = Json::object();
  if (!header.metadata.empty()) json[kMetadataKey] = header.metadata;
  for (const StoredTensor& tensor : header.tensors) {
    json[tensor.name] = {
        {"dtype", std::string(TensorTypeName(tensor.type))},
        {"shape", tensor.shape},
        {"data_offsets", {tensor.offset, tensor.offset + tensor.bytes}}};
  }
  return json.dump();
}

// --- of ParseSafetensorsHeader() ---

absl::StatusOr<std::vector<int64_t>> ParseShape(const Json& json) {
  if (!json.is_array() || json.size() > kMaxTensorRank) {
    return Invalid("shape is ", ShowJson(json), ", want a list of at most ",
                   kMaxTensorRank, " dimensions");
  }
  std::vector<int64_t> shape;
  for (const Json& dimension : json) {
    if (!dimension.is_number_unsigned() ||
        dimension.get<uint64_t>() > kMaxDataBytes) {
      return Invalid("shape is ", ShowJson(json),
                     ", want integers in [0, 2^63)");
    }
    shape.push_back(dimension.get<int64_t>());
  }
  return shape;
}

absl::Status ParseOffsets(const Json& json, uint64_t data_bytes,
                          StoredTensor& tensor) {
  if (!json.is_array() || json.size() != 2 || !json[0].is_number_unsigned() ||
      !json[1].is_number_unsigned()) {
    return Invalid("data_offsets is ", ShowJson(json),
                   ", want two integers, both >= 0");
  }
  const auto begin = json[0].get<uint64_t>();
  const auto end = json[1].get<uint64_t>();
  // Within the file, so that a reader of `tensor` needs no other check.
  if (begin > end || end > data_bytes) {
    return Invalid("data_offsets is ", ShowJson(json),
                   ", want begin <= end <= ", data_bytes,
                   ", the bytes of data in the file");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t bytes, TensorBytes(tensor));
  if (end - begin != bytes) {
    return Invalid("data_offsets is ", ShowJson(json), ", which is ",
                   end - begin, " bytes; dtype and shape need ", bytes);
  }
  tensor.offset = begin;
  tensor.bytes = bytes;
  return absl::OkStatus();
}

absl::Status ParseFields(const Json& json, uint64_t data_bytes,
                         StoredTensor& tensor) {
  // Further fields are refused: the format defines exactly these.
  if (!json.is_object() || json.size() != 3 || !json.contains("dtype") ||
      !json.contains("shape") || !json.contains("data_offsets")) {
    return Invalid(ShowJson(json),
                   " is not an object of dtype, shape and data_offsets");
  }
  if (!json["dtype"].is_string()) {
    return Invalid("dtype is ", ShowJson(json["dtype"]), ", want a string");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      tensor.type,
      ParseTensorType(json["dtype"].get_ref<const std::string&>()));
  LOCKSTEP_ASSIGN_OR_RETURN(tensor.shape, ParseShape(json["shape"]));
  return ParseOffsets(json["data_offsets"], data_bytes, tensor);
}

absl::StatusOr<StoredTensor> ParseTensor(const std::string& name,
                                         const Json& json,
                                         uint64_t data_bytes) {
  if (name.empty()) return Invalid("a tensor has an empty name");
  StoredTensor tensor;
  tensor.name = name;
  absl::Status parsed = ParseFields(json, data_bytes, tensor);
  if (parsed.ok()) return tensor;
  return Invalid("tensor ", Quote(name), ": ", parsed.message());
}

absl::Status ParseMetadata(const Json& json,
                           std::map<std::string, std::string>& metadata) {
  if (!json.is_object()) {
    return Invalid(kMetadataKey, " is ", ShowJson(json), ", want an object");
  }
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) {
      return Invalid(kMetadataKey, " field ", Quote(key), " is ",
                     ShowJson(value), ", want a string");
    }
    metadata[key] = value.get_ref<const std::string&>();
  }
  return absl::OkStatus();
}

absl::Status CheckPlaces(const SafetensorsHeader& header) {
  uint64_t next = 0;
  for (const StoredTensor& tensor : header.tensors) {
    // Header tensors are in the order of their offsets, so one pass finds gaps
    // and overlaps.
    if (tensor.offset != next) {
      return Invalid("tensor ", Quote(tensor.name), ": data_offsets begins at ",
                     tensor.offset, ", want ", next,
                     tensor.offset < next ? " (it overlaps the one before)"
                                          : " (it leaves a gap)");
    }
    next += tensor.bytes;
  }
  if (next == header.data_bytes) return absl::OkStatus();
  return Invalid("the tensors need ", header.data_start + next,
                 " bytes, the file has ",
                 header.data_start + header.data_bytes);
}

}  // namespace

std::string DescribeTensor(const TensorSpec& tensor) {
  return absl::StrCat("tensor ", Quote(tensor.name), " ",
                      TensorTypeName(tensor.type), " [",
                      absl::StrJoin(tensor.shape, ","), "]");
}

absl::StatusOr<uint64_t> TensorBytes(const TensorSpec& tensor) {
  if (tensor.shape.size() > kMaxTensorRank) {
    return Invalid(DescribeTensor(tensor), " has more than ", kMaxTensorRank,
                   " dimensions");
  }
  uint64_t bytes = TensorTypeSize(tensor.type);
  for (int64_t dimension : tensor.shape) {
    if (dimension < 0) {
      return Invalid(DescribeTensor(tensor), ": dimension ", dimension,
                     " is negative");
    }
    const auto factor = static_cast<uint64_t>(dimension);
    // Not bytes * factor > kMaxDataBytes: the product could overflow.
    if (factor != 0 && bytes > kMaxDataBytes / factor) {
      return Invalid(DescribeTensor(tensor), " has more than ", kMaxDataBytes,
                     " bytes");
    }
    bytes *= factor;
  }
  return bytes;
}

absl::StatusOr<BuiltSafetensorsHeader> BuildSafetensorsHeader(
    std::vector<TensorSpec> tensors,
    const std::map<std::string, std::string>& metadata) {
  LOCKSTEP_RETURN_IF_ERROR(CheckNames(tensors));
  LOCKSTEP_RETURN_IF_ERROR(CheckMetadata(metadata));
  BuiltSafetensorsHeader built;
  built.header.metadata = metadata;
  LOCKSTEP_RETURN_IF_ERROR(PlaceTensors(std::move(tensors), built.header));

  std::string json = ToJson(built.header);
  // The format allows spaces after the JSON; they move the data to a multiple
  // of kDataAlignment.
  const size_t used = (kSafetensorsLengthBytes + json.size()) % kDataAlignment;
  if (used != 0) json.append(kDataAlignment - used, ' ');
  if (json.size() > kMaxSafetensorsHeaderBytes) {
    return Invalid("the header has ", json.size(), " bytes, at most ",
                   kMaxSafetensorsHeaderBytes,
                   " are allowed: use fewer tensors or shorter names");
  }
  built.bytes = absl::StrCat(WriteLittleEndian(json.size()), json);
  built.header.data_start = built.bytes.size();
  return built;
}

absl::StatusOr<uint64_t> SafetensorsDataStart(absl::string_view start,
                                              uint64_t file_bytes) {
  if (start.size() < kSafetensorsLengthBytes ||
      file_bytes < kSafetensorsLengthBytes) {
    return Invalid("the file has ",
                   std::min<uint64_t>(start.size(), file_bytes),
                   " bytes, its header length alone needs 8");
  }
  // Also bounded by the file: a damaged length must not make the caller
  // allocate memory for bytes that do not exist.
  const uint64_t most = std::min(file_bytes - kSafetensorsLengthBytes,
                                 kMaxSafetensorsHeaderBytes);
  const uint64_t length = ReadLittleEndian(start);
  if (length <= most) return kSafetensorsLengthBytes + length;
  return Invalid("header length is ", length, ", want at most ", most,
                 " in a file of ", file_bytes, " bytes");
}

absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(
    absl::string_view start, uint64_t file_bytes) {
  SafetensorsHeader header;
  LOCKSTEP_ASSIGN_OR_RETURN(header.data_start,
                            SafetensorsDataStart(start, file_bytes));
  if (start.size() < header.data_start) {
    return Invalid("the header is cut off: ", start.size(), " of ",
                   header.data_start, " bytes");
  }
  header.data_bytes = file_bytes - header.data_start;
  const absl::string_view text = start.substr(
      kSafetensorsLengthBytes, header.data_start - kSafetensorsLengthBytes);
  // A rule of the format: nothing, not even a space, before the brace.
  if (text.empty() || text[0] != '{') {
    return Invalid("the header does not begin with '{'");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const Json json,
                            ParseBoundedJson(text, "the header", kLimits));
  for (const auto& [name, value] : json.items()) {
    if (name == kMetadataKey) {
      LOCKSTEP_RETURN_IF_ERROR(ParseMetadata(value, header.metadata));
      continue;
    }
    LOCKSTEP_ASSIGN_OR_RETURN(StoredTensor tensor,
                              ParseTensor(name, value, header.data_bytes));
    header.tensors.push_back(std::move(tensor));
  }
  // An empty tensor has the same offset as the one after it.
  std::sort(header.tensors.begin(), header.tensors.end(),
            [](const StoredTensor& a, const StoredTensor& b) {
              return std::tie(a.offset, a.bytes, a.name) <
                     std::tie(b.offset, b.bytes, b.name);
            });
  LOCKSTEP_RETURN_IF_ERROR(CheckPlaces(header));
  return header;
}

}  // namespace lockstep
