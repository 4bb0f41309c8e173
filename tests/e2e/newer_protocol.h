#ifndef LOCKSTEP_TESTS_E2E_NEWER_PROTOCOL_H_
#define LOCKSTEP_TESTS_E2E_NEWER_PROTOCOL_H_

// The build includes this before the one source file that contains the protocol
// version, which makes the program speak the next version.
#include "common/wire/wire_codec.h"

#define kProtocolVersion (::lockstep::kProtocolVersion + 1)

#endif  // LOCKSTEP_TESTS_E2E_NEWER_PROTOCOL_H_
