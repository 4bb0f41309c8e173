#include "server/rpc/push_codec.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/wire/shared_memory_codec.h"
#include "common/wire/wire_codec.h"

namespace lockstep::server {
namespace {

v1::PushOutcome ToProto(PushOutcome outcome) {
  switch (outcome) {
    case PushOutcome::kAccepted:
      return v1::ACCEPTED;
    case PushOutcome::kStale:
      return v1::STALE;
    case PushOutcome::kDuplicate:
      return v1::DUPLICATE;
    case PushOutcome::kSuperseded:
      return v1::SUPERSEDED;
  }
  return v1::PUSH_OUTCOME_UNSPECIFIED;
}

// Bytes from which a value is lent: a slice costs more than a copy of fewer.
constexpr size_t kSmallestLentSlice = 4096;

// The objects that a slice keeps alive.
struct Owner {
  std::shared_ptr<const void> value;
  std::shared_ptr<const void> keep;
};

grpc::Slice SliceOf(LentBytes value, std::shared_ptr<const void> keep) {
  // gRPC only reads the bytes that it sends.
  auto* bytes = const_cast<std::byte*>(value.bytes.data());
  return {bytes, value.bytes.size(),
          [](void* owner) { delete static_cast<Owner*>(owner); },
          new Owner{std::move(value.owner), std::move(keep)}};
}

// The form of one part's gradient, as a push declares it.
struct GradientForm {
  size_t size = 0;  // bytes
  std::optional<GradientRows> rows = {};
  bool absent = false;  // then nothing else is set
};

// By part of the push: true if the header names it as absent.
absl::StatusOr<std::vector<bool>> AbsentOf(const v1::PushHeader& header,
                                           const Shard& shard) {
  const v1::PartRange& parts = header.parts();
  if (!header.absent().empty() && shard.job().mode != SyncMode::kStrict) {
    return absl::InvalidArgumentError(absl::StrCat(
        "header.absent names ", header.absent_size(),
        " parts, but the job's mode is COMPATIBLE, in which every push has a "
        "gradient; send zeros"));
  }
  std::vector<bool> absent(parts.num_parts());
  int64_t last = int64_t{parts.first_part()} - 1;
  for (const int part : header.absent()) {
    const int64_t offset = int64_t{part} - parts.first_part();
    if (part <= last || offset >= parts.num_parts()) {
      return absl::InvalidArgumentError(
          absl::StrCat("header.absent has ", part,
                       "; it must ascend, from part ", parts.first_part(),
                       " to ", parts.first_part() + parts.num_parts() - 1));
    }
    absent[offset] = true;
    last = part;
  }
  return absent;
}

// Checks the counts of a gradient's rows; those of MakeCanonical() come later.
absl::Status CheckCounts(const v1::RowIds& rows, const std::string& part,
                         const JobConfig& job) {
  if (rows.counts().empty()) return absl::OkStatus();
  if (!job.shares_work()) {
    return absl::InvalidArgumentError(
        absl::StrCat("header.rows has counts for ", part,
                     ", but work is not SHARED: leave them out"));
  }
  for (const int count : rows.counts()) {
    if (count >= 1 && count <= job.micro_batches_per_step) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "header.rows has the count ", count, " for ", part,
        "; it must be at least 1 and at most micro_batches_per_step, ",
        job.micro_batches_per_step));
  }
  return absl::OkStatus();
}

absl::StatusOr<GradientForm> FormOf(int index, GradientType type,
                                    const Shard& shard, const v1::RowIds* rows,
                                    size_t payload_size) {
  const PartSpec& part = shard.parts()[index];
  if (!part.is_table()) {
    LOCKSTEP_ASSIGN_OR_RETURN(size_t size, shard.GradientSize(index, type));
    return GradientForm{size};
  }
  if (rows == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(shard.PartName(index), " is a table of ", part.num_rows(),
                     " rows, but header.rows has no entry for it"));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const size_t element,
                            GradientElementSize(part.dtype, type));
  absl::StatusOr<NamedRows> named =
      ReadRows(part, element, *rows, payload_size);
  if (!named.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rows of ", shard.PartName(index), ": ", named.status().message()));
  }
  LOCKSTEP_RETURN_IF_ERROR(
      CheckCounts(*rows, shard.PartName(index), shard.job()));
  named->rows.counts.assign(rows->counts().begin(), rows->counts().end());
  return GradientForm{named->size, std::move(named->rows)};
}

absl::StatusOr<std::vector<GradientForm>> FormsOf(
    const v1::PushHeader& header, const std::vector<bool>& absent,
    GradientType type, const Shard& shard, size_t payload_size) {
  const v1::PartRange& parts = header.parts();
  std::vector<GradientForm> forms;
  int tables = 0;
  for (int i = 0; i < parts.num_parts(); ++i) {
    const int part = parts.first_part() + i;
    // header.rows has one entry for each table among the parts, in their order.
    const v1::RowIds* rows =
        tables < header.rows_size() ? &header.rows(tables) : nullptr;
    if (shard.parts()[part].is_table()) ++tables;
    LOCKSTEP_ASSIGN_OR_RETURN(GradientForm form,
                              FormOf(part, type, shard, rows, payload_size));
    if (absent[i]) {
      if (form.rows.has_value() && form.size > 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("header.rows names rows of ", shard.PartName(part),
                         ", which header.absent names too"));
      }
      form = GradientForm();
      form.absent = true;
    }
    forms.push_back(std::move(form));
  }
  if (tables == header.rows_size()) return forms;
  return absl::InvalidArgumentError(
      absl::StrCat("header.rows has ", header.rows_size(), " entries; ", tables,
                   " of the parts are tables"));
}

// Cuts the payload into gradients of these forms, whose sizes must add up to
// its size.
std::vector<PartGradient> Cut(const TensorPayload& payload,
                              std::vector<GradientForm> forms,
                              GradientType type) {
  std::vector<size_t> sizes;
  for (const GradientForm& form : forms) sizes.push_back(form.size);
  std::vector<PartGradient> gradients = CutIntoGradients(payload, sizes);
  for (size_t i = 0; i < forms.size(); ++i) {
    gradients[i].type = type;
    gradients[i].rows = std::move(forms[i].rows);
    gradients[i].absent = forms[i].absent;
  }
  return gradients;
}

absl::StatusOr<std::vector<PartGradient>> CutPayload(
    const v1::PushHeader& header, const std::vector<bool>& absent,
    const TensorPayload& payload, const Shard& shard) {
  const v1::PartRange& parts = header.parts();
  LOCKSTEP_ASSIGN_OR_RETURN(GradientType type,
                            FromProto("gradient_type", header.gradient_type()));
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<GradientForm> forms,
                            FormsOf(header, absent, type, shard, payload.size));
  size_t size = 0;
  for (const GradientForm& form : forms) {
    // A sum that overflows is wrong, and no payload has SIZE_MAX bytes.
    if (__builtin_add_overflow(size, form.size, &size)) size = SIZE_MAX;
    if (size == SIZE_MAX) break;
  }
  if (payload.size != size) {
    return absl::InvalidArgumentError(absl::StrCat(
        "payload has ", payload.size, " bytes; parts ", parts.first_part(),
        " to ", parts.first_part() + parts.num_parts() - 1,
        header.absent().empty() ? " have " : " without the absent ones have ",
        size, " as ", std::string(GradientTypeName(type))));
  }
  return Cut(payload, std::move(forms), type);
}

absl::StatusOr<std::vector<PartGradient>> FindShared(
    const v1::PushHeader& header, const std::vector<bool>& absent,
    const TensorPayload& payload, const Shard& shard) {
  const v1::PartRange& parts = header.parts();
  if (payload.size > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "payload has ", payload.size, " bytes in a push that is shared"));
  }
  for (int i = 0; i < parts.num_parts(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(
        shard.GradientSize(parts.first_part() + i, GradientType::kVariable)
            .status());
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::vector<PartGradient> gradients,
      shard.shared_gradients().Find(header.identity().task_index(),
                                    header.identity().incarnation(),
                                    parts.first_part(), parts.num_parts()));
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!absent[i]) continue;
    gradients[i].slices.clear();
    gradients[i].absent = true;
  }
  return gradients;
}

}  // namespace

absl::StatusOr<NamedRows> ReadRows(const PartSpec& table, size_t element,
                                   const v1::RowIds& ids, size_t payload_size) {
  NamedRows named;
  // A row has at most 2^56 elements, so this does not overflow. The product
  // with the number of ids may.
  const size_t row_size = element * static_cast<size_t>(table.row_width);
  if (__builtin_mul_overflow(row_size, ids.ids_size(), &named.size) ||
      named.size > payload_size) {
    return absl::InvalidArgumentError(
        absl::StrCat("header.rows names ", ids.ids_size(), " of ", row_size,
                     " bytes; the payload has ", payload_size, " bytes"));
  }
  named.rows.indices.assign(ids.ids().begin(), ids.ids().end());
  named.rows.shape = {ids.ids_size(), table.row_width};
  return named;
}

std::vector<PartGradient> CutIntoGradients(const TensorPayload& payload,
                                           absl::Span<const size_t> sizes) {
  // One owner for all gradients: copies of slices share their bytes.
  auto owner = std::make_shared<std::vector<grpc::Slice>>(payload.slices);
  std::vector<PartGradient> gradients;
  size_t index = 0;
  size_t offset = 0;
  for (size_t left : sizes) {
    PartGradient& gradient = gradients.emplace_back();
    gradient.owner = owner;
    while (left > 0) {
      const grpc::Slice& slice = (*owner)[index];
      const size_t piece = std::min(left, slice.size() - offset);
      gradient.slices.push_back(
          {reinterpret_cast<const std::byte*>(slice.begin()) + offset, piece});
      left -= piece;
      offset += piece;
      if (offset == slice.size()) {
        ++index;
        offset = 0;
      }
    }
  }
  return gradients;
}

absl::StatusOr<Push> ToPush(const v1::PushHeader& header,
                            const TensorPayload& payload, const Shard& shard) {
  // Pass 0 stands for no pass in token waits.
  if (header.pass() < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("pass is ", header.pass(), "; passes count from 1"));
  }
  Push push;
  push.pass = {header.identity().task_index(), header.identity().incarnation(),
               header.local_step(), header.pass(), header.slot()};
  push.attempt = header.attempt();
  push.return_values = header.return_values();
  push.first_part = header.parts().first_part();
  LOCKSTEP_RETURN_IF_ERROR(
      shard.SizeOf(push.first_part, header.parts().num_parts()).status());
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<bool> absent,
                            AbsentOf(header, shard));
  LOCKSTEP_ASSIGN_OR_RETURN(push.gradients,
                            header.shared()
                                ? FindShared(header, absent, payload, shard)
                                : CutPayload(header, absent, payload, shard));
  return push;
}

grpc::ByteBuffer EncodeValues(const google::protobuf::MessageLite& header,
                              std::vector<LentBytes> values,
                              std::shared_ptr<const void> keep) {
  std::vector<grpc::Slice> slices;
  std::string gathered;
  const auto flush = [&] {
    if (!gathered.empty()) slices.emplace_back(gathered);
    gathered.clear();
  };
  for (LentBytes& value : values) {
    if (value.bytes.size() < kSmallestLentSlice) {
      gathered.append(reinterpret_cast<const char*>(value.bytes.data()),
                      value.bytes.size());
      continue;
    }
    flush();
    slices.push_back(SliceOf(std::move(value), keep));
  }
  flush();
  return EncodeTensorMessage(header, slices);
}

grpc::ByteBuffer EncodePushAnswer(PushAnswer answer, bool shared,
                                  std::shared_ptr<const void> keep) {
  v1::PushResult result;
  for (PushOutcome outcome : answer.outcomes) {
    result.add_outcomes(ToProto(outcome));
  }
  result.set_server_step(answer.server_step);
  if (shared) {
    for (const LentBytes& value : answer.values) {
      *result.add_values() = ToProto(value.place);
    }
    return EncodeTensorMessage(result, {});
  }
  return EncodeValues(result, std::move(answer.values), std::move(keep));
}

}  // namespace lockstep::server
