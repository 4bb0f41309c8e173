#ifndef LOCKSTEP_COMMON_WIRE_SHARED_MEMORY_CODEC_H_
#define LOCKSTEP_COMMON_WIRE_SHARED_MEMORY_CODEC_H_

#include "common/memory/shared_memory.h"
#include "lockstep/v1/parameter.pb.h"

namespace lockstep {

// Shared memory on the wire. Users of values from a peer must check them.

v1::SharedFile ToProto(const SharedFile& file);
SharedFile FromProto(const v1::SharedFile& file);

v1::SharedValue ToProto(const SharedPlace& place);
SharedPlace FromProto(const v1::SharedValue& value);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_WIRE_SHARED_MEMORY_CODEC_H_
