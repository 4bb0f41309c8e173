#include "server/shard/snapshot.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::server {

absl::StatusOr<std::shared_ptr<const Snapshot>> Snapshot::Take(
    ShardState& state, int64_t step, FillProgress& progress) {
  std::shared_ptr<Snapshot> snapshot(new Snapshot(step));
  snapshot->AddParts(state);
  const size_t total = snapshot->PlaceTensors();
  // A server near the limit of its memory must refuse the copy and train on.
  snapshot->bytes_.reset(new (std::nothrow) std::byte[total]);
  if (snapshot->bytes_ == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for a copy of ", total, " bytes"));
  }
  progress.Expect(total);
  snapshot->scalars_ = state.Scalars();
  LOCKSTEP_RETURN_IF_ERROR(snapshot->CopyParts(state, progress));
  return snapshot;
}

void Snapshot::AddParts(const ShardState& state) {
  for (int i = 0; i < state.num_parts(); ++i) {
    const PartSpec& spec = state.parts()[i];
    Part part = {state.part_size(i), state.num_tensors(i), spec.grows, {}, {}};
    if (spec.grows) {
      // Only rows that committed steps have changed: all others follow from the
      // seed.
      for (const auto& [key, row] : state.values().KeptRows(i)) {
        part.keys.push_back(key);
        part.rows.push_back(row);
      }
      part.size = part.rows.size() * spec.row_width * ElementSize(spec.dtype);
    }
    parts_.push_back(std::move(part));
  }
}

size_t Snapshot::PlaceTensors() {
  size_t total = 0;
  bool any = true;
  // Tensor after tensor, and in each part after part: a read of one tensor of
  // consecutive parts is then a single range.
  for (int tensor = 0; any; ++tensor) {
    any = false;
    std::vector<size_t> starts;
    for (const Part& part : parts_) {
      starts.push_back(total);
      if (tensor >= part.num_tensors) continue;
      any = true;
      total += part.size;
    }
    if (any) offsets_.push_back(std::move(starts));
  }
  return total;
}

absl::Status Snapshot::CopyParts(const ShardState& state,
                                 FillProgress& progress) {
  for (int i = 0; i < static_cast<int>(parts_.size()); ++i) {
    const Part& part = parts_[i];
    for (int tensor = 0; tensor < part.num_tensors; ++tensor) {
      const absl::Span<std::byte> to = {bytes_.get() + offsets_[tensor][i],
                                        part.size};
      int64_t step = 0;
      if (part.grows) {
        step = state.values().CopyRows(i, tensor, part.rows, to);
      } else {
        LOCKSTEP_ASSIGN_OR_RETURN(step, state.values().Read(i, tensor, to));
      }
      // The step of the values is compared after each copy, so that no lock has
      // to keep commits away meanwhile.
      if (step != step_) {
        return absl::InternalError("a step was committed during the copy");
      }
      LOCKSTEP_RETURN_IF_ERROR(progress.Advance(to.size()));
    }
  }
  return absl::OkStatus();
}

std::vector<int64_t> Snapshot::num_rows() const {
  std::vector<int64_t> rows;
  for (const Part& part : parts_) {
    rows.push_back(static_cast<int64_t>(part.keys.size()));
  }
  return rows;
}

absl::Status Snapshot::ReadKeys(int part, int64_t first,
                                absl::Span<int64_t> keys) const {
  const bool known = part >= 0 && part < static_cast<int>(parts_.size());
  const size_t rows = known ? parts_[part].keys.size() : 0;
  if (!known || first < 0 || static_cast<size_t>(first) > rows ||
      keys.size() > rows - static_cast<size_t>(first)) {
    return absl::InvalidArgumentError(
        absl::StrCat(keys.size(), " keys of part ", part, " from ", first,
                     " on; the snapshot has ", rows));
  }
  std::copy_n(parts_[part].keys.begin() + first, keys.size(), keys.begin());
  return absl::OkStatus();
}

absl::Status Snapshot::Read(const ByteRange& range, int tensor,
                            absl::Span<std::byte> out) const {
  bool found = tensor >= 0 && out.size() == range.size;
  for (int i = 0; i < range.num_parts; ++i) {
    const Part& part = parts_[range.first_part + i];
    found = found && tensor < part.num_tensors;
    // The caller has checked the range against the size of the whole table, of
    // which the copy has only some rows.
    if (!part.grows) continue;
    found = found && range.num_parts == 1 && range.first <= part.size &&
            range.size <= part.size - range.first;
  }
  if (!found) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no tensor ", tensor, " of ", out.size(), " bytes in parts ",
        range.first_part, " to ", range.first_part + range.num_parts - 1));
  }
  std::memcpy(out.data(),
              bytes_.get() + offsets_[tensor][range.first_part] + range.first,
              range.size);
  return absl::OkStatus();
}

}  // namespace lockstep::server
