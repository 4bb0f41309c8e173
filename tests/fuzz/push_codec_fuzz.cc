// The raw bytes that servers and workers parse: pushes, pulls and their
// answers. The first byte selects the slices of the others, the second the
// message type.

#include <stdlib.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/wire/tensor_message.h"
#include "google/protobuf/stubs/logging.h"
#include "lockstep/v1/parameter.pb.h"
#include "lockstep/v1/shard_control.pb.h"
#include "server/rpc/push_codec.h"
#include "server/shard/shard.h"

namespace lockstep {
namespace {

void Require(bool promise) {
  if (!promise) abort();
}

// Three parts of 16 bytes. Leaves nothing on the disk.
std::unique_ptr<server::Shard> MakeShard() {
  std::error_code error;
  std::string directory =
      std::filesystem::temp_directory_path(error) / "lockstep_fuzz_XXXXXX";
  Require(mkdtemp(directory.data()) != nullptr);
  server::ShardState::Options options;
  options.job.replicas_to_aggregate = 1;
  options.job.total_num_replicas = 2;
  options.job_id = "job";
  options.incarnation = 1;
  options.state_dir = directory;
  options.variables = {{"w", {8}, DType::kFloat32, {}},
                       {"b", {2}, DType::kFloat64, {}}};
  options.parts = {{0, 0, 4, DType::kFloat32},
                   {0, 4, 4, DType::kFloat32},
                   {1, 0, 2, DType::kFloat64}};
  auto shard = server::Shard::Create(options);
  Require(shard.ok() && (*shard)->state().Remove().ok());
  std::filesystem::remove_all(directory, error);
  return *std::move(shard);
}

// Cuts bytes into slices of 1 to 17 bytes chosen by `how`, some with an empty
// one between them; 0: one slice.
grpc::ByteBuffer Cut(absl::string_view bytes, uint8_t how) {
  std::vector<grpc::Slice> slices;
  uint32_t state = how;
  while (!bytes.empty()) {
    state = state * 1103515245 + 12345;
    const size_t size = how == 0 ? bytes.size() : 1 + (state >> 16) % 17;
    const absl::string_view piece = bytes.substr(0, size);
    slices.emplace_back(piece.data(), piece.size());
    if (how >= 128 && (state >> 24) % 4 == 0) slices.emplace_back();
    bytes.remove_prefix(piece.size());
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

std::string Flat(const TensorPayload& payload) {
  std::string bytes(payload.size, '\0');
  payload.CopyTo(bytes.data());
  return bytes;
}

// The result must not depend on the slices. It must equal that of generated
// code, and survive being written and read again.
template <typename Message, typename Header>
bool CheckTensorMessage(absl::string_view bytes, uint8_t how, Header& header,
                        TensorPayload& payload) {
  const bool ok = DecodeTensorMessage(Cut(bytes, how), header, payload).ok();
  Header whole_header;
  TensorPayload whole;
  const bool whole_ok =
      DecodeTensorMessage(Cut(bytes, 0), whole_header, whole).ok();
  Require(ok == whole_ok);
  if (!ok) return false;
  const std::string text = header.SerializeAsString();
  Require(text == whole_header.SerializeAsString());
  Require(Flat(payload) == Flat(whole));
  Message message;
  if (message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    Require(message.header().SerializeAsString() == text);
    Require(message.payload() == Flat(payload));
  }
  Header again_header;
  TensorPayload again;
  Require(DecodeTensorMessage(EncodeTensorMessage(header, payload.slices),
                              again_header, again)
              .ok());
  Require(again_header.SerializeAsString() == text);
  Require(Flat(again) == Flat(payload));
  return true;
}

// The gradients must be the payload, part after part.
void CheckPush(absl::string_view bytes, uint8_t how) {
  static const server::Shard& shard = *MakeShard().release();
  v1::PushHeader header;
  TensorPayload payload;
  if (!CheckTensorMessage<v1::PushRequest>(bytes, how, header, payload)) return;
  const absl::StatusOr<server::Push> push =
      server::ToPush(header, payload, shard);
  if (!push.ok()) return;
  std::string joined;
  int part = push->first_part;
  for (const server::PartGradient& gradient : push->gradients) {
    const size_t begin = joined.size();
    for (const server::ByteSlice& slice : gradient.slices) {
      joined.append(reinterpret_cast<const char*>(slice.data), slice.size);
    }
    const auto size = shard.GradientSize(part++, gradient.type);
    Require(size.ok() && joined.size() - begin == *size);
  }
  Require(joined == Flat(payload));
}

template <typename Message, typename Header>
void CheckTensors(absl::string_view bytes, uint8_t how) {
  Header header;
  TensorPayload payload;
  CheckTensorMessage<Message>(bytes, how, header, payload);
}

// A message without tensors must be read as generated code reads it.
template <typename Message>
void CheckMessage(absl::string_view bytes, uint8_t how) {
  Message message;
  const bool ok = DecodeMessage(Cut(bytes, how), message).ok();
  Message whole;
  Require(ok ==
          whole.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
  if (!ok) return;
  Require(message.SerializeAsString() == whole.SerializeAsString());
  Message again;
  Require(DecodeMessage(EncodeMessage(message), again).ok());
  Require(again.SerializeAsString() == message.SerializeAsString());
}

void Check(absl::string_view bytes, uint8_t how, uint8_t kind) {
  switch (kind % 6) {
    case 0:
      return CheckPush(bytes, how);
    case 1:
      return CheckMessage<v1::PullRequest>(bytes, how);
    case 2:
      return CheckTensors<v1::PullResponse, v1::PullHeader>(bytes, how);
    case 3:
      return CheckTensors<v1::PushResponse, v1::PushResult>(bytes, how);
    case 4:
      return CheckTensors<v1::WritePartsRequest, v1::WritePartsHeader>(bytes,
                                                                       how);
    default:
      return CheckTensors<v1::ReadSnapshotResponse, v1::ReadSnapshotHeader>(
          bytes, how);
  }
}

}  // namespace
}  // namespace lockstep

// Silences Protobuf, which logs every string that is no UTF-8.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  google::protobuf::SetLogHandler(nullptr);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 2,
                                size - 2);
  lockstep::Check(bytes, data[0], data[1]);
  return 0;
}
