#include "server/mirror/means_codec.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/wire/shared_memory_codec.h"
#include "common/wire/tensor_message.h"
#include "lockstep/v1/mirror.pb.h"
#include "server/rpc/push_codec.h"
#include "server/update/mean_norm.h"

namespace lockstep::server {
namespace {

absl::StatusOr<std::vector<bool>> AbsentOf(const v1::MeansHeader& header,
                                           int first_part, int num_parts) {
  std::vector<bool> absent(num_parts);
  int next = first_part;
  for (const int part : header.absent()) {
    // Ascending and in range, so each index below is valid and set once.
    if (part < next || part >= first_part + num_parts) {
      return absl::InvalidArgumentError(absl::StrCat(
          "header.absent has ", part, "; it must ascend, from part ",
          first_part, " to ", first_part + num_parts - 1));
    }
    absent[part - first_part] = true;
    next = part + 1;
  }
  return absent;
}

bool HaveAllPlaces(absl::Span<const PartGradient> means) {
  for (const PartGradient& mean : means) {
    if (!mean.absent && !mean.place.has_value()) return false;
  }
  return true;
}

// `sizes` are those of the means, 0 for absent ones.
absl::StatusOr<SharedMeans> PlacesOf(const v1::MeansHeader& header,
                                     absl::Span<const size_t> sizes) {
  SharedMeans shared{
      FromProto(header.means()), FromProto(header.counters()), {}};
  int next = 0;
  for (const size_t size : sizes) {
    SharedMeans::Mean& mean = shared.parts.emplace_back();
    mean.size = size;
    if (size == 0) continue;
    if (next < header.places_size()) {
      mean.place = FromProto(header.places(next));
    }
    ++next;
  }
  if (next == header.places_size()) return shared;
  return absl::InvalidArgumentError(
      absl::StrCat("header.places has ", header.places_size(),
                   " places; it must have one for each of the ", next,
                   " parts that are not absent"));
}

}  // namespace

grpc::ByteBuffer EncodeMeans(int first_part, std::vector<PartGradient> means,
                             const std::optional<MeanMemory::Files>& files) {
  v1::MeansHeader header;
  std::vector<LentBytes> bytes;
  const bool shared = files.has_value() && HaveAllPlaces(means);
  if (shared) {
    *header.mutable_means() = ToProto(files->means);
    *header.mutable_counters() = ToProto(files->counters);
  }
  for (size_t i = 0; i < means.size(); ++i) {
    if (means[i].absent) {
      // A part without any gradient has no bytes.
      header.add_absent(first_part + static_cast<int>(i));
      continue;
    }
    if (shared) {
      *header.add_places() = ToProto(*means[i].place);
      continue;
    }
    for (const ByteSlice& slice : means[i].slices) {
      bytes.push_back({{slice.data, slice.size}, means[i].owner});
    }
  }
  return EncodeValues(header, std::move(bytes));
}

absl::StatusOr<std::variant<std::vector<PartGradient>, SharedMeans>>
DecodeMeans(const grpc::ByteBuffer& answer, absl::Span<const PartSpec> parts,
            int first_part, int num_parts) {
  v1::MeansHeader header;
  TensorPayload payload;
  LOCKSTEP_RETURN_IF_ERROR(DecodeTensorMessage(answer, header, payload));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<bool> absent,
                            AbsentOf(header, first_part, num_parts));
  std::vector<size_t> sizes;
  size_t total = 0;
  for (int i = 0; i < num_parts; ++i) {
    const PartSpec& part = parts[first_part + i];
    sizes.push_back(absent[i] ? 0 : MeanSize(part.dtype, part.count));
    total += sizes.back();
  }
  if (header.has_means()) return PlacesOf(header, sizes);
  if (total != payload.size) {
    return absl::InvalidArgumentError(absl::StrCat(
        "payload has ", payload.size, " bytes; the means of ", num_parts,
        " parts from ", first_part, " on have ", total));
  }
  std::vector<PartGradient> means = CutIntoGradients(payload, sizes);
  for (int i = 0; i < num_parts; ++i) means[i].absent = absent[i];
  return means;
}

}  // namespace lockstep::server
