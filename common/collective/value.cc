#include "common/collective/value.h"

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

absl::Status Value::Check() const {
  LOCKSTEP_ASSIGN_OR_RETURN(const size_t needed, BytesOf(type_, shape_));
  if (bytes_.size() == needed) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a value of shape [", absl::StrJoin(shape_, ","), "] has ", size(),
      " elements in ", bytes_.size(), " bytes, but must have ", needed,
      " bytes of ", std::string(NameOf(type_))));
}

std::string Value::Description() const {
  std::string text = absl::StrCat(std::string(NameOf(type_)), " [",
                                  absl::StrJoin(shape_, ","), "]");
  // Members that compare their descriptions find that one has other elements.
  if (!Check().ok()) absl::StrAppend(&text, " with ", size(), " elements");
  return text;
}

absl::Status CheckSlices(const Slices& slices) {
  LOCKSTEP_RETURN_IF_ERROR(slices.values.Check());
  const std::vector<int64_t>& shape = slices.values.shape();
  const auto indices = static_cast<int64_t>(slices.indices.size());
  if (!shape.empty() && shape[0] == indices) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("slices have ", indices, " indices, but their values are ",
                   slices.values.Description(), "; each needs a row"));
}

absl::Status CheckLeaf(const Leaf& leaf) {
  if (const Value* value = std::get_if<Value>(&leaf)) return value->Check();
  return CheckSlices(std::get<Slices>(leaf));
}

std::string DescriptionOf(const Leaf& leaf) {
  if (const Value* value = std::get_if<Value>(&leaf)) {
    return value->Description();
  }
  return absl::StrCat("slices of ",
                      std::get<Slices>(leaf).values.Description());
}

}  // namespace lockstep
