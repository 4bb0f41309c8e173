#include "worker/data/files/npz.h"

#include <zip.h>

#include <algorithm>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"

namespace lockstep::worker {
namespace {

constexpr char kEnding[] = ".npy";
constexpr size_t kNamesInMessages = 10;

using Archive = std::unique_ptr<zip_t, void (*)(zip_t*)>;
using Member = std::unique_ptr<zip_file_t, void (*)(zip_file_t*)>;

// Opens an archive in memory; `bytes` must outlive it.
absl::StatusOr<Archive> Open(absl::Span<const uint8_t> bytes) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source =
      zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
  zip_t* archive = source == nullptr
                       ? nullptr
                       : zip_open_from_source(source, ZIP_RDONLY, &error);
  if (archive != nullptr) {
    zip_error_fini(&error);
    // zip_discard(), not zip_close(): nothing is to be written.
    return Archive(archive, [](zip_t* opened) { zip_discard(opened); });
  }
  const std::string why = zip_error_strerror(&error);
  // A failed open leaves the source to its caller; a successful one takes it
  // over.
  if (source != nullptr) zip_source_free(source);
  zip_error_fini(&error);
  return absl::InvalidArgumentError(
      absl::StrCat("the zip archive cannot be opened (", why,
                   "): it is cut off or damaged; save or fetch it again"));
}

// Names of the members, without ".npy".
std::vector<std::string> NamesOf(zip_t* archive) {
  std::vector<std::string> names;
  const zip_int64_t count = zip_get_num_entries(archive, 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    const char* name =
        zip_get_name(archive, static_cast<zip_uint64_t>(i), ZIP_FL_ENC_GUESS);
    const std::string text = name == nullptr ? "" : name;
    if (absl::EndsWith(text, kEnding)) {
      names.push_back(text.substr(0, text.size() + 1 - sizeof(kEnding)));
    }
  }
  return names;
}

absl::Status NoSuchMember(const std::string& name,
                          std::vector<std::string> names) {
  const size_t all = names.size();
  if (all > kNamesInMessages) names.resize(kNamesInMessages);
  const std::string has =
      all == 0 ? "no array"
               : absl::StrCat("the arrays ", absl::StrJoin(names, ", "),
                              all > names.size() ? ", ..." : "");
  return absl::NotFoundError(absl::StrCat(
      name.empty()
          ? "no array is named, and the archive has "
          : absl::StrCat("there is no array \"", name, "\"; the archive has "),
      has, "; append one of them to the path as FILE.npz:NAME"));
}

absl::Status Damaged(const std::string& name, const std::string& why) {
  return absl::DataLossError(
      absl::StrCat("array \"", name, "\" cannot be read: ", why));
}

absl::StatusOr<std::vector<uint8_t>> ReadMember(zip_t* archive,
                                                const std::string& name,
                                                int64_t max_bytes) {
  const std::string file = name + kEnding;
  zip_stat_t info;
  zip_stat_init(&info);
  if (zip_stat(archive, file.c_str(), 0, &info) != 0 ||
      (info.valid & ZIP_STAT_SIZE) == 0) {
    return Damaged(name, zip_strerror(archive));
  }
  if (info.size > static_cast<zip_uint64_t>(max_bytes)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("array \"", name, "\" has ", info.size, " bytes; at most ",
                     max_bytes, " are read"));
  }
  const Member member(zip_fopen(archive, file.c_str(), 0),
                      [](zip_file_t* opened) {
                        if (opened != nullptr) zip_fclose(opened);
                      });
  if (member == nullptr) return Damaged(name, zip_strerror(archive));
  // The size in the archive may be wrong: memory grows only as bytes arrive.
  constexpr size_t kChunk = size_t{1} << 20;
  std::vector<uint8_t> bytes;
  while (bytes.size() < info.size) {
    const size_t before = bytes.size();
    bytes.resize(std::min<size_t>(before + kChunk, info.size));
    const zip_int64_t got =
        zip_fread(member.get(), bytes.data() + before, bytes.size() - before);
    if (got <= 0) {
      return Damaged(name, got < 0 ? zip_file_strerror(member.get())
                                   : "the data end too early");
    }
    bytes.resize(before + static_cast<size_t>(got));
  }
  // libzip compares the checksum when it reaches the end of the data.
  uint8_t more = 0;
  if (zip_fread(member.get(), &more, 1) != 0) {
    return Damaged(name, zip_file_strerror(member.get()));
  }
  return bytes;
}

}  // namespace

bool IsZip(absl::Span<const uint8_t> bytes) {
  return bytes.size() >= 4 && bytes[0] == 'P' && bytes[1] == 'K' &&
         bytes[2] == 3 && bytes[3] == 4;
}

absl::StatusOr<std::vector<uint8_t>> ReadNpzMember(
    absl::Span<const uint8_t> archive, const std::string& name,
    int64_t max_bytes) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Archive opened, Open(archive));
  const std::vector<std::string> names = NamesOf(opened.get());
  if (name.empty() && names.size() == 1) {
    return ReadMember(opened.get(), names.front(), max_bytes);
  }
  // Not zip_stat() alone: it would also accept members that are no arrays.
  for (const std::string& known : names) {
    if (known == name) return ReadMember(opened.get(), name, max_bytes);
  }
  return NoSuchMember(name, names);
}

}  // namespace lockstep::worker
