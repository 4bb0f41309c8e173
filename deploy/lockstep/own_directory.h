#ifndef LOCKSTEP_DEPLOY_LOCKSTEP_OWN_DIRECTORY_H_
#define LOCKSTEP_DEPLOY_LOCKSTEP_OWN_DIRECTORY_H_

#include <filesystem>
#include <string>
#include <system_error>

namespace lockstep {

// Where the program that runs is, links resolved: the other programs are
// beside it.
inline std::string OwnDirectory() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error)
      .parent_path()
      .string();
}

}  // namespace lockstep

#endif  // LOCKSTEP_DEPLOY_LOCKSTEP_OWN_DIRECTORY_H_
