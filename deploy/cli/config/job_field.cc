#include "deploy/cli/config/job_field.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/flags/wrap_text.h"
#include "common/job/codec/field_names_codec.h"
#include "common/text/excerpt.h"

namespace lockstep::cli {
namespace {

std::string TypeOf(const JobField& field) {
  if (!field.is_list) return field.type;
  if (field.type == "group of fields") return "list of groups of fields";
  return absl::StrCat("list of ", field.type, "s");
}

void AddPaths(const JobField& group, std::vector<std::string>& paths) {
  for (const JobField& field : group.fields) {
    paths.push_back(field.path);
    AddPaths(field, paths);
  }
}

// Returns "; did you mean x?", or "; known are x, y, z", for a name that
// `group` does not have.
std::string Hint(const JobField& root, const JobField& group,
                 absl::string_view name) {
  if (group.fields.empty()) return "; it holds no fields";
  // The same name in another group is meant rather than one that is near.
  std::vector<std::string> paths;
  AddPaths(root, paths);
  paths = ShallowestPaths(paths, name);
  if (!paths.empty()) {
    return absl::StrCat("; did you mean ", absl::StrJoin(paths, " or "), "?");
  }
  std::vector<std::string> names;
  for (const JobField& child : group.fields) names.push_back(child.name());
  return NameHint(name, names,
                  group.path.empty() ? "" : absl::StrCat(group.path, "."));
}

absl::StatusOr<const JobField*> Find(const JobField& root,
                                     absl::string_view path) {
  const JobField* field = &root;
  if (path.empty()) return field;
  for (const absl::string_view name : absl::StrSplit(path, '.')) {
    const auto found = std::find_if(
        field->fields.begin(), field->fields.end(),
        [&](const JobField& child) { return child.name() == name; });
    if (found != field->fields.end()) {
      field = &*found;
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        field->path.empty() ? "a job file" : field->path, " has no field ",
        Excerpt(name), Hint(root, *field, name)));
  }
  return field;
}

// Returns "model { hidden_units: [VALUE, ...] }".
std::string InJobFile(const JobField& field) {
  std::string text = field.type == "group of fields" ? " { ... }"
                     : field.type == "duration"      ? ": \"60s\""
                     : field.is_list                 ? ": [VALUE, VALUE]"
                                                     : ": VALUE";
  std::vector<std::string> names = absl::StrSplit(field.path, '.');
  text = names.back() + text;
  for (size_t i = names.size() - 1; i > 0; --i) {
    text = absl::StrCat(names[i - 1], " { ", text, " }");
  }
  return text;
}

std::string OnCommandLine(const JobField& field) {
  return absl::StrCat("--set ", field.path, "=",
                      field.type == "duration" ? "60s"
                      : field.is_list          ? "VALUE,VALUE"
                                               : "VALUE");
}

// Returns "  name  text", with `text` wrapped in a column that begins at
// `column`.
std::string Row(absl::string_view name, absl::string_view text, size_t column,
                size_t width) {
  std::string row = absl::StrCat("  ", name);
  // A name that reaches into the column still ends with a gap.
  row.resize(std::max(column, row.size() + 2), ' ');
  return absl::StrCat(WrapText(absl::StrCat(row, text), width, column), "\n");
}

std::string FirstSentence(absl::string_view doc) {
  const size_t end = doc.find(". ");
  return std::string(end == absl::string_view::npos ? doc
                                                    : doc.substr(0, end + 1));
}

std::string Roff(absl::string_view text) {
  std::string escaped = absl::StrReplaceAll(
      // roff prints a bare "-" as a hyphen, which cannot be pasted into a
      // shell, and takes a line that begins with "." or "'" for a request.
      text, {{"\\", "\\e"}, {"-", "\\-"}, {"\n.", "\n\\&."}});
  if (absl::StartsWith(escaped, ".") || absl::StartsWith(escaped, "'")) {
    escaped = "\\&" + escaped;
  }
  return escaped;
}

void AppendRoffField(const JobField& field, std::string& page) {
  absl::StrAppend(&page, ".TP\n\\fB", Roff(field.name()), "\\fR (",
                  Roff(TypeOf(field)));
  if (!field.default_value.empty()) {
    absl::StrAppend(&page, "; default ", Roff(field.default_value));
  }
  absl::StrAppend(&page, ")\n", Roff(field.doc), "\n");
  for (const auto& [name, doc] : field.values) {
    absl::StrAppend(&page, ".br\n\\fB", Roff(name), "\\fR: ", Roff(doc), "\n");
  }
}

void AppendRoffGroup(const JobField& group, std::string& page) {
  if (!group.path.empty()) {
    absl::StrAppend(&page, ".SS \"", Roff(group.path), "\"\n", Roff(group.doc),
                    "\n");
  }
  for (const JobField& field : group.fields) AppendRoffField(field, page);
  // Groups follow their parent's fields, because a page has sections of two
  // levels only.
  for (const JobField& field : group.fields) {
    if (!field.fields.empty()) AppendRoffGroup(field, page);
  }
}

}  // namespace

std::string JobField::name() const {
  const size_t dot = path.rfind('.');
  return dot == std::string::npos ? path : path.substr(dot + 1);
}

absl::StatusOr<std::string> ExplainField(const JobField& root,
                                         absl::string_view path, size_t width) {
  LOCKSTEP_ASSIGN_OR_RETURN(const JobField* field, Find(root, path));
  std::string text =
      field->path.empty()
          ? "The fields of a job file.\n"
          : absl::StrCat(field->path, ": ", TypeOf(*field), "\n\n",
                         WrapText(field->doc, width), "\n");
  if (!field->values.empty()) absl::StrAppend(&text, "\n");
  size_t column = 0;
  for (const auto& [name, doc] : field->values) {
    column = std::max(column, name.size() + 4);
  }
  for (const JobField& child : field->fields) {
    column = std::max(column, child.name().size() + 4);
  }
  for (const auto& [name, doc] : field->values) {
    absl::StrAppend(&text, Row(name, doc, column, width));
  }
  if (!field->fields.empty()) absl::StrAppend(&text, "\n");
  for (const JobField& child : field->fields) {
    absl::StrAppend(&text,
                    Row(child.name(), FirstSentence(child.doc), column, width));
  }
  if (field->path.empty()) return text;
  absl::StrAppend(&text, "\n");
  if (!field->default_value.empty()) {
    absl::StrAppend(&text, "default: ", field->default_value, "\n");
  }
  absl::StrAppend(&text, "in a job file: ", InJobFile(*field), "\n");
  if (field->settable) {
    absl::StrAppend(&text, "on a command line: ", OnCommandLine(*field), "\n");
  }
  return text;
}

std::string JobManualPage(const JobField& root, absl::string_view version) {
  std::string page = absl::StrCat(
      ".TH LOCKSTEP\\-JOB 5 \"\" \"lockstep ", Roff(version),
      "\" \"File formats\"\n"
      ".SH NAME\nlockstep-job \\- the model, data and settings of a Lockstep "
      "job\n"
      ".SH DESCRIPTION\nA job file describes a job for the chief. It is in "
      "protobuf text format, of the message lockstep.v1.JobConfig. Fields that "
      "are absent take their defaults. A list may be written in brackets, and "
      "a duration as text such as \"60s\".\n.PP\n"
      "\\fBlockstep explain\\fR prints the description of one field.\n"
      ".SH FIELDS\n");
  AppendRoffGroup(root, page);
  absl::StrAppend(
      &page,
      ".SH EXAMPLES\n.nf\nname: \"fashion\"\ntrain_steps: 1500\n"
      "batch_size: 300\nmodel { kind: \"mlp\" hidden_units: [256, 128] }\n"
      "optimizer { kind: ADAM }\nlearning_rate: 0.002\n"
      "checkpoint { directory: \"checkpoints\" every: \"60s\" }\n.fi\n"
      ".SH FILES\n.TP\n"
      "/usr/share/doc/lockstep/examples/fashion_mnist/job.textproto\n"
      "a whole job\n.TP\n"
      "/usr/share/lockstep/proto/lockstep/v1/job.proto\n"
      "the message, for other programs\n"
      ".SH SEE ALSO\nlockstep(1), lockstep\\-explain(1), lockstep\\-run(1), "
      "lockstep\\-chief(8)\n");
  return page;
}

}  // namespace lockstep::cli
