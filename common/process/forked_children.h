#ifndef LOCKSTEP_COMMON_PROCESS_FORKED_CHILDREN_H_
#define LOCKSTEP_COMMON_PROCESS_FORKED_CHILDREN_H_

namespace lockstep {

// A child of fork(), such as a data loader's of a user's program, inherits
// descriptors. As long as it has them, a parent that was killed cannot be
// started again: its files are locked and its port is taken, and its peers do
// not notice that their connections are dead. These functions make later
// children close them.
//
// Threads: all functions may be called from any.

// Until KeepInChildren(), children close `descriptor`.
void CloseInChildren(int descriptor);
// Must be called before `descriptor` is closed: its number is then used for
// other files.
void KeepInChildren(int descriptor);

// From now on children close the TCP sockets of this port: those that listen
// there, and those of accepted connections.
void CloseSocketsInChildren(int port);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PROCESS_FORKED_CHILDREN_H_
