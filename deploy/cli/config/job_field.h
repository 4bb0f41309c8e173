#ifndef LOCKSTEP_DEPLOY_CLI_CONFIG_JOB_FIELD_H_
#define LOCKSTEP_DEPLOY_CLI_CONFIG_JOB_FIELD_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep::cli {

// JobField is one field of a job file with its documentation; the root, which
// has no path, is the whole file.
struct JobField {
  std::string path{};  // "model.hidden_units"
  std::string type{};  // "whole number"
  bool is_list = false;
  bool settable = false;        // by --set
  std::string doc{};            // sentences
  std::string default_value{};  // empty: none, or stated in `doc`
  std::vector<std::pair<std::string, std::string>> values{};  // name, doc
  std::vector<JobField> fields{};

  // Returns the last name of the path: "hidden_units".
  std::string name() const;
};

// Returns the output of `lockstep explain` for the field at `path`, in lines of
// `width` columns; for "", the list of the file's fields.
//
//   kInvalidArgument  no such field; names one that is near
absl::StatusOr<std::string> ExplainField(const JobField& root,
                                         absl::string_view path, size_t width);

// Returns the manual page lockstep-job(5), in roff.
std::string JobManualPage(const JobField& root, absl::string_view version);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_CONFIG_JOB_FIELD_H_
