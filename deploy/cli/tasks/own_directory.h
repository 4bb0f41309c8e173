#ifndef LOCKSTEP_DEPLOY_CLI_TASKS_OWN_DIRECTORY_H_
#define LOCKSTEP_DEPLOY_CLI_TASKS_OWN_DIRECTORY_H_

#include <filesystem>
#include <string>
#include <system_error>

namespace lockstep {

// The program that runs, links resolved.
inline std::string OwnProgram() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

// Where it is: the other programs are beside it.
inline std::string OwnDirectory() {
  return std::filesystem::path(OwnProgram()).parent_path().string();
}

}  // namespace lockstep

#endif  // LOCKSTEP_DEPLOY_CLI_TASKS_OWN_DIRECTORY_H_
