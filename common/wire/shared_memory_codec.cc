#include "common/wire/shared_memory_codec.h"

namespace lockstep {

v1::SharedFile ToProto(const SharedFile& file) {
  v1::SharedFile proto;
  proto.set_pid(file.pid);
  proto.set_fd(file.fd);
  proto.set_size(file.size);
  proto.set_proof(file.proof);
  proto.set_pid_space(file.pid_space);
  return proto;
}

SharedFile FromProto(const v1::SharedFile& file) {
  return {file.pid(), file.fd(), file.size(), file.proof(), file.pid_space()};
}

v1::SharedValue ToProto(const SharedPlace& place) {
  v1::SharedValue proto;
  proto.set_offset(place.offset);
  proto.set_counter(place.counter);
  proto.set_writes(place.writes);
  return proto;
}

SharedPlace FromProto(const v1::SharedValue& value) {
  // The range of the counter is checked where the file is mapped.
  return {value.offset(), static_cast<int>(value.counter()), value.writes()};
}

}  // namespace lockstep
