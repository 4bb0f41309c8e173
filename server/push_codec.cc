#include "server/push_codec.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/shared_memory_codec.h"
#include "common/status_macros.h"

namespace lockstep {
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

constexpr size_t kSmallestLentSlice = 4096;

using Owner = std::shared_ptr<const void>;

grpc::Slice SliceOf(LentBytes value) {
  // gRPC only reads what it sends.
  auto* bytes = const_cast<std::byte*>(value.bytes.data());
  return {bytes, value.bytes.size(),
          [](void* owner) { delete static_cast<Owner*>(owner); },
          new Owner(std::move(value.owner))};
}

// Hands each part its bytes of a payload of the right length.
std::vector<PartGradient> Cut(const TensorPayload& payload, int first_part,
                              int num_parts, const Shard& shard) {
  auto owner = std::make_shared<std::vector<grpc::Slice>>(payload.slices);
  std::vector<PartGradient> gradients;
  size_t index = 0;
  size_t offset = 0;
  for (int i = 0; i < num_parts; ++i) {
    PartGradient gradient{{}, owner};
    size_t left = shard.PartSize(first_part + i);
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
    gradients.push_back(std::move(gradient));
  }
  return gradients;
}

absl::Status CheckPayload(const TensorPayload& payload, size_t size,
                          const v1::PartRange& parts) {
  if (payload.size == size) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "payload has ", payload.size, " bytes; parts ", parts.first_part(),
      " to ", parts.first_part() + parts.num_parts() - 1, " have ", size));
}

}  // namespace

absl::StatusOr<Push> ToPush(const v1::PushHeader& header,
                            const TensorPayload& payload, const Shard& shard) {
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
  LOCKSTEP_ASSIGN_OR_RETURN(
      size_t size, shard.SizeOf(push.first_part, header.parts().num_parts()));
  if (header.shared()) {
    if (payload.size > 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "payload has ", payload.size, " bytes in a push that is shared"));
    }
    LOCKSTEP_ASSIGN_OR_RETURN(push.gradients,
                              shard.shared_gradients().Find(
                                  push.pass.worker, push.pass.incarnation,
                                  push.first_part, header.parts().num_parts()));
    return push;
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckPayload(payload, size, header.parts()));
  push.gradients =
      Cut(payload, push.first_part, header.parts().num_parts(), shard);
  return push;
}

grpc::ByteBuffer EncodeValues(const google::protobuf::MessageLite& header,
                              std::vector<LentBytes> values) {
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
    slices.push_back(SliceOf(std::move(value)));
  }
  flush();
  return EncodeTensorMessage(header, slices);
}

grpc::ByteBuffer EncodePushAnswer(PushAnswer answer, bool shared) {
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
  return EncodeValues(result, std::move(answer.values));
}

}  // namespace lockstep
