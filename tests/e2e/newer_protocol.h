#ifndef LOCKSTEP_TESTS_E2E_NEWER_PROTOCOL_H_
#define LOCKSTEP_TESTS_E2E_NEWER_PROTOCOL_H_

// The build includes this ahead of the one source of a program that says which
// version of the protocol the program speaks: it speaks the next one then.
#include "common/wire/wire_codec.h"

#define kProtocolVersion (::lockstep::kProtocolVersion + 1)

#endif  // LOCKSTEP_TESTS_E2E_NEWER_PROTOCOL_H_
