#include "common/records/tf_example.h"

#include <cstring>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep {
namespace {

enum WireType { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

// One field of a message.
struct Field {
  uint64_t number = 0;
  int type = kVarint;
  uint64_t varint = 0;      // of kVarint
  absl::string_view bytes;  // of the others
};

// Walks through the fields of a protobuf message.
class FieldReader {
 public:
  // `start` is where the whole began, for messages.
  FieldReader(absl::string_view message, const char* start)
      : left_(message), start_(start) {}

  // Whether there was one more field.
  absl::StatusOr<bool> Next(Field& field) {
    if (left_.empty()) return false;
    uint64_t tag = 0;
    LOCKSTEP_RETURN_IF_ERROR(Varint(tag));
    field.number = tag >> 3;
    field.type = static_cast<int>(tag & 7);
    switch (field.type) {
      case kVarint:
        LOCKSTEP_RETURN_IF_ERROR(Varint(field.varint));
        return true;
      case kFixed64:
        LOCKSTEP_RETURN_IF_ERROR(Take(8, field.bytes));
        return true;
      case kFixed32:
        LOCKSTEP_RETURN_IF_ERROR(Take(4, field.bytes));
        return true;
      case kLength: {
        uint64_t size = 0;
        LOCKSTEP_RETURN_IF_ERROR(Varint(size));
        LOCKSTEP_RETURN_IF_ERROR(Take(size, field.bytes));
        return true;
      }
      default:
        return Wrong();
    }
  }

  bool done() const { return left_.empty(); }

  absl::Status Varint(uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      absl::string_view byte;
      LOCKSTEP_RETURN_IF_ERROR(Take(1, byte));
      const auto bits = static_cast<uint8_t>(byte[0]);
      value |= uint64_t{bits & 0x7fu} << shift;
      if (bits < 0x80) return absl::OkStatus();
    }
    return Wrong();
  }

  absl::Status Take(uint64_t size, absl::string_view& bytes) {
    if (size > left_.size()) return Wrong();
    bytes = left_.substr(0, size);
    left_.remove_prefix(size);
    return absl::OkStatus();
  }

  absl::Status Wrong() const {
    return absl::InvalidArgumentError(absl::StrCat("no tf.train.Example: byte ",
                                                   left_.data() - start_,
                                                   " makes no sense"));
  }

 private:
  absl::string_view left_;
  const char* const start_;
};

using OnField = absl::FunctionRef<absl::Status(const Field& field)>;

absl::Status ForEachField(absl::string_view message, const char* start,
                          OnField visit) {
  FieldReader reader(message, start);
  Field field;
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool more, reader.Next(field));
    if (!more) return absl::OkStatus();
    LOCKSTEP_RETURN_IF_ERROR(visit(field));
  }
}

float ToFloat(absl::string_view bytes) {
  float value = 0;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

// Adds the elements of a list's field 1, packed or one.
absl::Status AddFloats(const Field& field, const char* start,
                       std::vector<float>& floats) {
  if (field.type == kFixed32) {
    floats.push_back(ToFloat(field.bytes));
    return absl::OkStatus();
  }
  FieldReader packed(field.bytes, start);
  if (field.type != kLength || field.bytes.size() % sizeof(float) != 0) {
    return packed.Wrong();
  }
  for (size_t i = 0; i < field.bytes.size(); i += sizeof(float)) {
    floats.push_back(ToFloat(field.bytes.substr(i)));
  }
  return absl::OkStatus();
}

absl::Status AddInts(const Field& field, const char* start,
                     std::vector<int64_t>& ints) {
  if (field.type == kVarint) {
    ints.push_back(static_cast<int64_t>(field.varint));
    return absl::OkStatus();
  }
  FieldReader packed(field.bytes, start);
  if (field.type != kLength) return packed.Wrong();
  while (!packed.done()) {
    uint64_t value = 0;
    LOCKSTEP_RETURN_IF_ERROR(packed.Varint(value));
    ints.push_back(static_cast<int64_t>(value));
  }
  return absl::OkStatus();
}

// bytes_list = 1, float_list = 2, int64_list = 3, each with value = 1.
absl::Status ReadFeature(absl::string_view message, const char* start,
                         TfFeature& feature) {
  feature = TfFeature();
  return ForEachField(message, start, [&](const Field& list) {
    if (list.type != kLength) return absl::OkStatus();
    return ForEachField(list.bytes, start,
                        [&](const Field& value) -> absl::Status {
                          if (value.number != 1) return absl::OkStatus();
                          if (list.number == 2)
                            return AddFloats(value, start, feature.floats);
                          if (list.number == 3)
                            return AddInts(value, start, feature.ints);
                          if (list.number == 1 && value.type == kLength) {
                            feature.bytes.emplace_back(value.bytes);
                          }
                          return absl::OkStatus();
                        });
  });
}

// A map's entry: key = 1, value = 2.
absl::Status ReadEntry(absl::string_view message, const char* start,
                       TfExample& example) {
  std::string key;
  TfFeature feature;
  LOCKSTEP_RETURN_IF_ERROR(
      ForEachField(message, start, [&](const Field& field) -> absl::Status {
        if (field.type != kLength) return absl::OkStatus();
        if (field.number == 1) key = std::string(field.bytes);
        if (field.number != 2) return absl::OkStatus();
        return ReadFeature(field.bytes, start, feature);
      }));
  example[std::move(key)] = std::move(feature);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TfExample> ParseTfExample(absl::string_view bytes) {
  TfExample example;
  const char* start = bytes.data();
  LOCKSTEP_RETURN_IF_ERROR(ForEachField(bytes, start, [&](const Field& field) {
    if (field.number != 1 || field.type != kLength) return absl::OkStatus();
    return ForEachField(field.bytes, start, [&](const Field& entry) {
      if (entry.number != 1 || entry.type != kLength) return absl::OkStatus();
      return ReadEntry(entry.bytes, start, example);
    });
  }));
  return example;
}

}  // namespace lockstep
