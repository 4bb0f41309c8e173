#include "common/process/forked_children.h"

#include <dirent.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <set>

#include "common/base/mutex.h"

namespace lockstep {
namespace {

struct Closed {
  Mutex mutex;
  std::set<int> descriptors ABSL_GUARDED_BY(mutex);
  std::set<int> ports ABSL_GUARDED_BY(mutex);
};

Closed& ToClose() {
  // Never destroyed: a fork may happen while the process ends.
  static Closed& closed = *new Closed();
  return closed;
}

// The local port of a TCP socket; 0 for other descriptors.
int PortOf(int descriptor) {
  sockaddr_in6 address = {};
  socklen_t size = sizeof(address);
  if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) !=
      0) {
    return 0;
  }
  // Both kinds of addresses have the port at the same place.
  const bool has_port =
      address.sin6_family == AF_INET || address.sin6_family == AF_INET6;
  return has_port ? ntohs(address.sin6_port) : 0;
}

void CloseSocketsOf(const std::set<int>& ports) {
  DIR* const open = ports.empty() ? nullptr : opendir("/proc/self/fd");
  if (open == nullptr) return;
  // Collected first: closing changes the directory that is being read.
  std::set<int> found;
  while (const dirent* entry = readdir(open)) {
    const int descriptor = atoi(entry->d_name);
    if (descriptor > 0 && ports.contains(PortOf(descriptor))) {
      found.insert(descriptor);
    }
  }
  closedir(open);
  for (const int descriptor : found) close(descriptor);
}

// The lock is held across fork(), so that the child finds whole sets.
void BeforeFork() ABSL_NO_THREAD_SAFETY_ANALYSIS { ToClose().mutex.Lock(); }
void InParent() ABSL_NO_THREAD_SAFETY_ANALYSIS { ToClose().mutex.Unlock(); }
void InChild() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  Closed& closed = ToClose();
  for (const int descriptor : closed.descriptors) close(descriptor);
  CloseSocketsOf(closed.ports);
  closed.descriptors.clear();
  closed.ports.clear();
  closed.mutex.Unlock();
}

void WatchForks() {
  static const int once = pthread_atfork(BeforeFork, InParent, InChild);
  static_cast<void>(once);  // without memory for it children close nothing
}

}  // namespace

void CloseInChildren(int descriptor) {
  WatchForks();
  MutexLock lock(ToClose().mutex);
  ToClose().descriptors.insert(descriptor);
}

void KeepInChildren(int descriptor) {
  MutexLock lock(ToClose().mutex);
  ToClose().descriptors.erase(descriptor);
}

void CloseSocketsInChildren(int port) {
  WatchForks();
  MutexLock lock(ToClose().mutex);
  ToClose().ports.insert(port);
}

}  // namespace lockstep
