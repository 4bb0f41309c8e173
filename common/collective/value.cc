#include "common/collective/value.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"

namespace lockstep {

absl::StatusOr<size_t> Value::BytesOf(ElementType type,
                                      absl::Span<const int64_t> shape) {
  constexpr int64_t kMaxBytes = int64_t{1} << 40;
  auto bytes = static_cast<int64_t>(SizeOf(type));
  for (const int64_t dim : shape) {
    // With a dimension of 0, `bytes` becomes 0 and stays so; negative ones are
    // still found.
    if (dim < 0 || (dim > 0 && bytes > kMaxBytes / dim)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "shape [", absl::StrJoin(shape, ","),
          "] must have no negative dimension, and at most 2^40 bytes"));
    }
    bytes *= dim;
  }
  return static_cast<size_t>(bytes);
}

absl::StatusOr<Value> Value::Zeros(ElementType type,
                                   std::vector<int64_t> shape) {
  LOCKSTEP_ASSIGN_OR_RETURN(const size_t bytes, BytesOf(type, shape));
  Value made;
  made.type_ = type;
  made.shape_ = std::move(shape);
  made.bytes_.resize(bytes);
  return made;
}

absl::StatusOr<Value> Value::FromBytes(ElementType type,
                                       std::vector<int64_t> shape,
                                       std::vector<std::byte> bytes) {
  LOCKSTEP_ASSIGN_OR_RETURN(const size_t needed, BytesOf(type, shape));
  if (bytes.size() != needed) {
    return absl::InvalidArgumentError(
        absl::StrCat(bytes.size(), " bytes, but ", std::string(NameOf(type)),
                     " [", absl::StrJoin(shape, ","), "] has ", needed));
  }
  Value made;
  made.type_ = type;
  made.shape_ = std::move(shape);
  made.bytes_ = std::move(bytes);
  return made;
}

std::string Value::Description() const {
  return absl::StrCat(std::string(NameOf(type_)), " [",
                      absl::StrJoin(shape_, ","), "]");
}

std::string DescriptionOf(const Leaf& leaf) {
  if (const Value* value = std::get_if<Value>(&leaf)) {
    return value->Description();
  }
  return absl::StrCat("slices of ",
                      std::get<Slices>(leaf).values.Description());
}

}  // namespace lockstep
