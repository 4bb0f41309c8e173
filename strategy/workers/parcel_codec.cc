#include "strategy/workers/parcel_codec.h"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::strategy {
namespace {

// The payload is the memory of values.
static_assert(std::endian::native == std::endian::little);

constexpr size_t kPiece = size_t{1} << 20;

void EncodeLeaf(const Leaf& leaf, v1::LeafHeader& header) {
  const auto* slices = std::get_if<Slices>(&leaf);
  const Value& value =
      slices == nullptr ? std::get<Value>(leaf) : slices->values;
  header.set_type(std::string(NameOf(value.type())));
  header.mutable_shape()->Add(value.shape().begin(), value.shape().end());
  if (slices == nullptr) return;
  header.set_is_slices(true);
  if (!slices->dense_shape.has_value()) return;
  header.set_has_dense_shape(true);
  header.mutable_dense_shape()->Add(slices->dense_shape->begin(),
                                    slices->dense_shape->end());
}

}  // namespace

void EncodeLeaves(const std::vector<Leaf>& leaves, v1::ParcelHeader& header) {
  for (const Leaf& leaf : leaves) EncodeLeaf(leaf, *header.add_leaves());
}

void ForEachPiece(const std::vector<Leaf>& leaves,
                  absl::FunctionRef<bool(absl::Span<const std::byte>)> send) {
  const auto cut = [&](absl::Span<const std::byte> bytes) {
    for (size_t at = 0; at < bytes.size(); at += kPiece) {
      if (!send(bytes.subspan(at, kPiece))) return false;
    }
    return true;
  };
  for (const Leaf& leaf : leaves) {
    const auto* slices = std::get_if<Slices>(&leaf);
    if (slices == nullptr) {
      if (!cut(std::get<Value>(leaf).bytes())) return;
      continue;
    }
    const auto indices = std::as_bytes(std::span(slices->indices));
    if (!cut({indices.data(), indices.size()})) return;
    if (!cut(slices->values.bytes())) return;
  }
}

size_t PayloadSize(const std::vector<Leaf>& leaves) {
  size_t size = 0;
  ForEachPiece(leaves, [&size](absl::Span<const std::byte> piece) {
    size += piece.size();
    return true;
  });
  return size;
}

absl::StatusOr<ParcelReader::Pending> ParcelReader::ToPending(
    const v1::LeafHeader& header) {
  Pending leaf;
  LOCKSTEP_ASSIGN_OR_RETURN(leaf.type, ParseElementType(header.type()));
  leaf.shape.assign(header.shape().begin(), header.shape().end());
  LOCKSTEP_ASSIGN_OR_RETURN(leaf.values.bytes,
                            Value::BytesOf(leaf.type, leaf.shape));
  leaf.is_slices = header.is_slices();
  if (!leaf.is_slices) return leaf;
  if (leaf.shape.empty()) {
    return absl::InvalidArgumentError(
        "slices have values of the shape [], which has no rows");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      leaf.indices.bytes, Value::BytesOf(ElementType::kInt64, {leaf.shape[0]}));
  if (header.has_dense_shape()) {
    leaf.dense_shape.emplace(header.dense_shape().begin(),
                             header.dense_shape().end());
    LOCKSTEP_RETURN_IF_ERROR(
        Value::BytesOf(leaf.type, *leaf.dense_shape).status());
  }
  return leaf;
}

absl::StatusOr<ParcelReader> ParcelReader::Make(
    const v1::ParcelHeader& header) {
  ParcelReader reader;
  for (const v1::LeafHeader& leaf : header.leaves()) {
    LOCKSTEP_ASSIGN_OR_RETURN(reader.leaves_.emplace_back(), ToPending(leaf));
  }
  return reader;
}

size_t ParcelReader::missing() const {
  size_t missing = 0;
  for (const Pending& leaf : leaves_) {
    for (const Run* run : {&leaf.indices, &leaf.values}) {
      // A header may claim more bytes than memory has, see Make().
      if (__builtin_add_overflow(missing, run->bytes - run->data.size(),
                                 &missing)) {
        return SIZE_MAX;
      }
    }
  }
  return missing;
}

absl::Status ParcelReader::Append(std::string_view piece) {
  while (!piece.empty()) {
    if (run_ >= 2 * leaves_.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the parcel has ", piece.size(), " bytes more than its leaves"));
    }
    Pending& leaf = leaves_[run_ / 2];
    Run& run = run_ % 2 == 0 ? leaf.indices : leaf.values;
    const size_t missing = run.bytes - run.data.size();
    const size_t taken = std::min(missing, piece.size());
    const auto* from = reinterpret_cast<const std::byte*>(piece.data());
    // Not reserved before: memory grows with the bytes that have come, and not
    // with the sizes that a header claims.
    run.data.insert(run.data.end(), from, from + taken);
    piece.remove_prefix(taken);
    // Also for a run of no bytes, as the indices of a dense leaf.
    if (taken == missing) ++run_;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Leaf>> ParcelReader::Finish() {
  std::vector<Leaf> leaves;
  for (Pending& pending : leaves_) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        Value values, Value::FromBytes(pending.type, std::move(pending.shape),
                                       std::move(pending.values.data)));
    if (!pending.is_slices) {
      leaves.emplace_back(std::move(values));
      continue;
    }
    if (pending.indices.data.size() != pending.indices.bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("slices have ", pending.indices.data.size(),
                       " bytes of indices, but ", values.Description(),
                       " needs ", pending.indices.bytes));
    }
    Slices slices;
    slices.indices.resize(pending.indices.bytes / sizeof(int64_t));
    std::copy(pending.indices.data.begin(), pending.indices.data.end(),
              std::as_writable_bytes(std::span(slices.indices)).begin());
    slices.values = std::move(values);
    slices.dense_shape = std::move(pending.dense_shape);
    leaves.emplace_back(std::move(slices));
  }
  return leaves;
}

}  // namespace lockstep::strategy
