#ifndef LOCKSTEP_DEPLOY_CLI_TASKS_OWN_DIRECTORY_H_
#define LOCKSTEP_DEPLOY_CLI_TASKS_OWN_DIRECTORY_H_

#include <filesystem>
#include <string>
#include <system_error>

namespace lockstep::cli {

// Returns the path of the running program, with links resolved.
inline std::string OwnProgram() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

// Returns its directory: the other programs are in it, too.
inline std::string OwnDirectory() {
  return std::filesystem::path(OwnProgram()).parent_path().string();
}

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_TASKS_OWN_DIRECTORY_H_
