#include "server/mirror/means_codec.h"

#include <cstdint>
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

// The form of one part's mean, as an answer declares it.
struct MeanForm {
  size_t size = 0;  // bytes; 0: absent
  std::optional<GradientRows> rows = {};
};

absl::StatusOr<std::vector<MeanForm>> FormsOf(const v1::MeansHeader& header,
                                              const std::vector<bool>& absent,
                                              absl::Span<const PartSpec> parts,
                                              size_t payload_size) {
  std::vector<MeanForm> forms;
  int tables = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    MeanForm& form = forms.emplace_back();
    if (absent[i]) continue;
    if (!parts[i].is_table()) {
      form.size = MeanSize(parts[i].dtype, parts[i].count);
    } else if (tables++ < header.rows_size()) {
      LOCKSTEP_ASSIGN_OR_RETURN(
          NamedRows named, ReadRows(parts[i], ElementSize(parts[i].dtype),
                                    header.rows(tables - 1), payload_size));
      form = {named.size, std::move(named.rows)};
    }
  }
  if (tables == header.rows_size()) return forms;
  return absl::InvalidArgumentError(
      absl::StrCat("header.rows has ", header.rows_size(),
                   " lists; it must have one for each of the ", tables,
                   " tables that are not absent"));
}

bool HaveAllPlaces(absl::Span<const PartGradient> means) {
  for (const PartGradient& mean : means) {
    if (!mean.absent && !mean.place.has_value()) return false;
  }
  return true;
}

absl::StatusOr<SharedMeans> PlacesOf(const v1::MeansHeader& header,
                                     absl::Span<const MeanForm> forms) {
  SharedMeans shared{
      FromProto(header.means()), FromProto(header.counters()), {}};
  int next = 0;
  for (const MeanForm& form : forms) {
    if (form.rows.has_value()) {
      return absl::InvalidArgumentError(
          "header.means is set, but means of tables have no place in it");
    }
    SharedMeans::Mean& mean = shared.parts.emplace_back();
    mean.size = form.size;
    if (form.size == 0) continue;
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
    if (means[i].rows.has_value()) {
      const std::vector<int64_t>& ids = means[i].rows->indices;
      header.add_rows()->mutable_ids()->Add(ids.begin(), ids.end());
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
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::vector<MeanForm> forms,
      FormsOf(header, absent, parts.subspan(first_part, num_parts),
              payload.size));
  if (header.has_means()) return PlacesOf(header, forms);
  std::vector<size_t> sizes;
  // Does not overflow: lists of rows are no longer than the payload, and the
  // other parts are in this server's memory.
  size_t total = 0;
  for (const MeanForm& form : forms) {
    sizes.push_back(form.size);
    total += form.size;
  }
  if (total != payload.size) {
    return absl::InvalidArgumentError(absl::StrCat(
        "payload has ", payload.size, " bytes; the means of ", num_parts,
        " parts from ", first_part, " on have ", total));
  }
  std::vector<PartGradient> means = CutIntoGradients(payload, sizes);
  for (int i = 0; i < num_parts; ++i) {
    means[i].absent = absent[i];
    means[i].rows = std::move(forms[i].rows);
  }
  return means;
}

}  // namespace lockstep::server
