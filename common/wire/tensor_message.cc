#include "common/wire/tensor_message.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "grpcpp/support/proto_buffer_reader.h"

namespace lockstep {
namespace {

constexpr uint64_t kLengthDelimited = 2;
constexpr uint64_t kHeaderTag = (1 << 3) | kLengthDelimited;
constexpr uint64_t kPayloadTag = (2 << 3) | kLengthDelimited;
// Largest message that protobuf can parse.
constexpr uint64_t kMaxHeaderBytes = std::numeric_limits<int>::max();

// Cursor reads the bytes of a list of slices in order.
class Cursor {
 public:
  explicit Cursor(std::vector<grpc::Slice> slices)
      : slices_(std::move(slices)) {
    for (const grpc::Slice& slice : slices_) total_ += slice.size();
  }

  bool done() const { return position_ == total_; }
  size_t position() const { return position_; }
  size_t remaining() const { return total_ - position_; }

  absl::Status ReadVarint(const char* what, uint64_t& value) {
    value = 0;
    // At most ten bytes of 7 bits each; further bits of the tenth are lost, as
    // in protobuf.
    for (int shift = 0; shift < 64; shift += 7) {
      uint8_t byte = 0;
      if (!ReadByte(byte)) return Error(absl::StrCat(what, " is cut off"));
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return absl::OkStatus();
    }
    return Error(absl::StrCat(what, " is longer than ten bytes"));
  }

  // Merges the next `size` bytes, without a copy if one slice holds them.
  // `size` must not exceed remaining() nor kMaxHeaderBytes.
  bool Merge(size_t size, google::protobuf::MessageLite& message) {
    if (size == 0) return true;
    const grpc::Slice& slice = slices_[index_];
    const uint8_t* const begin = slice.begin() + offset_;
    if (size <= slice.size() - offset_) {
      Advance(size);
      return MergeBytes(begin, size, message);
    }
    // Copied instead of streamed over the slices: protobuf 3.21 throws if a
    // message in such a stream is malformed near the end of a slice.
    std::vector<uint8_t> bytes;
    bytes.reserve(size);
    while (bytes.size() < size) {
      const grpc::Slice& next = slices_[index_];
      const size_t piece = std::min(size - bytes.size(), next.size() - offset_);
      bytes.insert(bytes.end(), next.begin() + offset_,
                   next.begin() + offset_ + piece);
      Advance(piece);
    }
    return MergeBytes(bytes.data(), size, message);
  }

  // Returns the remaining bytes as references.
  TensorPayload TakeRest() {
    TensorPayload payload;
    payload.size = remaining();
    for (; index_ < slices_.size(); ++index_, offset_ = 0) {
      const grpc::Slice& slice = slices_[index_];
      if (offset_ == slice.size()) continue;
      if (offset_ == 0) {
        payload.slices.push_back(slice);
        continue;
      }
      // grpc_slice_sub() takes its own reference to the memory of `whole`.
      grpc_slice whole = slice.c_slice();
      payload.slices.emplace_back(grpc_slice_sub(whole, offset_, slice.size()),
                                  grpc::Slice::STEAL_REF);
      grpc_slice_unref(whole);
    }
    position_ = total_;
    return payload;
  }

  absl::Status Error(absl::string_view why) const {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor message: ", why, " at byte ", position_, " of ",
                     total_, "; send { header = 1; bytes payload = 2; }"));
  }

 private:
  static bool MergeBytes(const uint8_t* bytes, size_t size,
                         google::protobuf::MessageLite& message) {
    google::protobuf::io::CodedInputStream in(bytes, static_cast<int>(size));
    // A stray end-group tag also ends parsing, without an error.
    return message.MergeFromCodedStream(&in) && in.ConsumedEntireMessage();
  }

  bool ReadByte(uint8_t& byte) {
    while (index_ < slices_.size() && offset_ == slices_[index_].size()) {
      ++index_;
      offset_ = 0;
    }
    if (index_ == slices_.size()) return false;
    byte = slices_[index_].begin()[offset_];
    Advance(1);
    return true;
  }

  void Advance(size_t bytes) {
    offset_ += bytes;
    position_ += bytes;
    while (index_ < slices_.size() && offset_ == slices_[index_].size()) {
      ++index_;
      offset_ = 0;
    }
  }

  const std::vector<grpc::Slice> slices_;
  size_t total_ = 0;
  size_t index_ = 0;
  size_t offset_ = 0;
  size_t position_ = 0;
};

std::string FieldPrefix(uint64_t tag, size_t length) {
  std::string out;
  google::protobuf::io::StringOutputStream stream(&out);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.WriteVarint32(static_cast<uint32_t>(tag));
  coded.WriteVarint64(length);
  coded.Trim();
  return out;
}

absl::Status ReadHeader(Cursor& cursor, google::protobuf::MessageLite& header) {
  uint64_t length = 0;
  LOCKSTEP_RETURN_IF_ERROR(cursor.ReadVarint("header length", length));
  const size_t most = std::min<uint64_t>(cursor.remaining(), kMaxHeaderBytes);
  // Checked before the merge: Merge() trusts the length.
  if (length > most) {
    return cursor.Error(absl::StrCat("header of ", length,
                                     " bytes is cut off; at most ", most,
                                     " can follow"));
  }
  if (!cursor.Merge(length, header)) {
    return cursor.Error(absl::StrCat("header is no ", header.GetTypeName()));
  }
  return absl::OkStatus();
}

// Memory of a FilledSlice.
struct Memory {
  std::unique_ptr<std::byte[]> bytes;
  std::shared_ptr<void> held;
};

}  // namespace

void TensorPayload::CopyTo(void* out) const {
  char* to = static_cast<char*>(out);
  for (const grpc::Slice& slice : slices) {
    std::memcpy(to, slice.begin(), slice.size());
    to += slice.size();
  }
}

absl::Status DecodeTensorMessage(const grpc::ByteBuffer& buffer,
                                 google::protobuf::MessageLite& header,
                                 TensorPayload& payload) {
  header.Clear();
  payload = TensorPayload();
  std::vector<grpc::Slice> slices;
  if (buffer.Valid()) {
    // Dump() only takes references, unless the buffer is compressed.
    if (!buffer.Dump(&slices).ok()) {
      return absl::InvalidArgumentError(
          "tensor message: compressed; send it uncompressed");
    }
  }
  Cursor cursor(std::move(slices));
  while (!cursor.done()) {
    uint64_t tag = 0;
    LOCKSTEP_RETURN_IF_ERROR(cursor.ReadVarint("tag", tag));
    if (tag == kHeaderTag) {
      LOCKSTEP_RETURN_IF_ERROR(ReadHeader(cursor, header));
    } else if (tag == kPayloadTag) {
      uint64_t length = 0;
      LOCKSTEP_RETURN_IF_ERROR(cursor.ReadVarint("payload length", length));
      // The payload is the last field, so its bytes end with the message and
      // can be taken as slices.
      if (length != cursor.remaining()) {
        return cursor.Error(absl::StrCat("payload of ", length,
                                         " bytes is cut off or not last"));
      }
      payload = cursor.TakeRest();
    } else {
      return cursor.Error(absl::StrCat("unknown field tag ", tag));
    }
  }
  return absl::OkStatus();
}

grpc::ByteBuffer EncodeTensorMessage(
    const google::protobuf::MessageLite& header,
    absl::Span<const grpc::Slice> payload) {
  size_t bytes = 0;
  for (const grpc::Slice& slice : payload) bytes += slice.size();
  const std::string body = header.SerializeAsString();
  std::vector<grpc::Slice> slices;
  slices.reserve(payload.size() + 1);
  // Everything before the payload is one slice; the payload's slices are
  // referenced, not copied.
  slices.emplace_back(absl::StrCat(FieldPrefix(kHeaderTag, body.size()), body,
                                   FieldPrefix(kPayloadTag, bytes)));
  slices.insert(slices.end(), payload.begin(), payload.end());
  return grpc::ByteBuffer(slices.data(), slices.size());
}

grpc::ByteBuffer EncodeMessage(const google::protobuf::MessageLite& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

absl::Status DecodeMessage(const grpc::ByteBuffer& buffer,
                           google::protobuf::MessageLite& message) {
  grpc::ByteBuffer copy(buffer);  // the reader consumes it
  if (copy.Valid()) {
    grpc::ProtoBufferReader reader(&copy);
    if (reader.status().ok() && message.ParseFromZeroCopyStream(&reader)) {
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the bytes are no ", message.GetTypeName()));
}

FilledSlice::FilledSlice(size_t size, std::shared_ptr<void> held)
    : memory(new std::byte[size]),
      slice(
          // The last reference to the slice frees the memory, perhaps in a
          // thread of gRPC after the call.
          memory, size, [](void* owner) { delete static_cast<Memory*>(owner); },
          new Memory{std::unique_ptr<std::byte[]>(memory), std::move(held)}) {}

grpc::Slice UnownedSlice(const void* data, size_t size) {
  return grpc::Slice(data, size, grpc::Slice::STATIC_SLICE);
}

std::string CopyBytes(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  bytes.reserve(buffer.Length());
  if (!buffer.Dump(&slices).ok()) return bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

}  // namespace lockstep
