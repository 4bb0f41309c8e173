#include "worker/data/files/npy.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/text/excerpt.h"

namespace lockstep::worker {
namespace {

constexpr std::array<uint8_t, 6> kMagic = {0x93, 'N', 'U', 'M', 'P', 'Y'};
constexpr size_t kVersionEnd = 8;
constexpr size_t kMaxDimensions = 8;
// Headers of plain arrays have 118 bytes; a much longer one describes records.
constexpr size_t kMaxText = 4096;

// Scanner reads the dictionary of a header, a Python literal.
class Scanner {
 public:
  explicit Scanner(absl::string_view text) : rest_(text) {}

  // Skips blanks, then takes `token` if it comes next.
  bool Take(absl::string_view token) {
    rest_.remove_prefix(
        std::min(rest_.find_first_not_of(" \t\n"), rest_.size()));
    return absl::ConsumePrefix(&rest_, token);
  }
  // Takes a text in single or double quotes, without escapes.
  std::optional<std::string> TakeText() {
    const char quote = Take("'") ? '\'' : '"';
    if (quote == '"' && !Take("\"")) return std::nullopt;
    const size_t end = rest_.find(quote);
    if (end == absl::string_view::npos) return std::nullopt;
    std::string text(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return text;
  }
  std::optional<int64_t> TakeNumber() {
    // Skips blanks.
    Take("");
    const size_t end =
        std::min(rest_.find_first_not_of("0123456789"), rest_.size());
    int64_t number = 0;
    if (!absl::SimpleAtoi(rest_.substr(0, end), &number)) return std::nullopt;
    rest_.remove_prefix(end);
    return number;
  }
  bool AtEnd() { return Take("") && rest_.empty(); }

 private:
  absl::string_view rest_;
};

struct Described {
  std::optional<std::string> type;
  std::optional<bool> fortran_order;
  std::optional<std::vector<int64_t>> dimensions;
};

std::optional<std::vector<int64_t>> TakeTuple(Scanner& scanner) {
  if (!scanner.Take("(")) return std::nullopt;
  std::vector<int64_t> numbers;
  while (!scanner.Take(")")) {
    const std::optional<int64_t> number = scanner.TakeNumber();
    // One above the limit is kept, for the message of ParseNpyHeader().
    if (!number.has_value() || numbers.size() > kMaxDimensions) {
      return std::nullopt;
    }
    numbers.push_back(*number);
    if (scanner.Take(",")) continue;
    if (!scanner.Take(")")) return std::nullopt;
    break;
  }
  return numbers;
}

bool TakeEntry(Scanner& scanner, Described& described) {
  const std::optional<std::string> key = scanner.TakeText();
  if (!key.has_value() || !scanner.Take(":")) return false;
  if (*key == "descr") {
    described.type = scanner.TakeText();
    return described.type.has_value();
  }
  if (*key == "fortran_order") {
    described.fortran_order = scanner.Take("True");
    return *described.fortran_order || scanner.Take("False");
  }
  if (*key != "shape") return false;
  described.dimensions = TakeTuple(scanner);
  return described.dimensions.has_value();
}

absl::StatusOr<Described> ParseText(absl::string_view text) {
  Scanner scanner(text);
  Described described;
  bool fine = scanner.Take("{");
  while (fine && !scanner.Take("}")) {
    // The comma behind the last entry may be missing.
    fine = TakeEntry(scanner, described) && (scanner.Take(",") || true);
  }
  if (fine && scanner.AtEnd() && described.type.has_value() &&
      described.fortran_order.has_value() && described.dimensions.has_value()) {
    return described;
  }
  return absl::InvalidArgumentError(
      "the header does not describe one array of numbers; save a plain array, "
      "with numpy.save(FILE, array)");
}

constexpr std::array<std::pair<absl::string_view, NumberType>, 16> kTypes = {{
    {"|b1", NumberType::kBool},
    {"|u1", NumberType::kUint8},
    {"<u1", NumberType::kUint8},
    {"|i1", NumberType::kInt8},
    {"<i1", NumberType::kInt8},
    {"<u2", NumberType::kUint16},
    {"<i2", NumberType::kInt16},
    {"<u4", NumberType::kUint32},
    {"<i4", NumberType::kInt32},
    {"<u8", NumberType::kUint64},
    {"<i8", NumberType::kInt64},
    {"<f2", NumberType::kFloat16},
    {"<f4", NumberType::kFloat32},
    {"<f8", NumberType::kFloat64},
    {"=f4", NumberType::kFloat32},
    {"=f8", NumberType::kFloat64},
}};

absl::StatusOr<NumberType> TypeOf(const std::string& name) {
  for (const auto& [known, type] : kTypes) {
    if (name == known) return type;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the elements are of NumPy's type ", Excerpt(name, 16),
      ", not little-endian numbers; save array.astype('float32')"));
}

// Returns the text of the header and the offset of the values.
absl::StatusOr<std::pair<absl::string_view, size_t>> FindText(
    absl::Span<const uint8_t> bytes) {
  if (!IsNpy(bytes)) {
    return absl::InvalidArgumentError("not a NumPy file");
  }
  // Version 1 has a length of 2 bytes, later versions of 4.
  const size_t length_bytes = bytes.size() > 6 && bytes[6] > 1 ? 4 : 2;
  const size_t begin = kVersionEnd + length_bytes;
  if (bytes.size() < begin) {
    return absl::DataLossError("the header of the NumPy file is cut off");
  }
  if (bytes[6] < 1 || bytes[6] > 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("version ", static_cast<int>(bytes[6]),
                     " of NumPy's format is not known; 1 to 3 are"));
  }
  size_t length = 0;
  // Little-endian.
  for (size_t i = begin; i > kVersionEnd; --i) {
    length = length << 8 | bytes[i - 1];
  }
  if (length > kMaxText) {
    return absl::InvalidArgumentError(
        absl::StrCat("the header of the NumPy file has ", length,
                     " bytes; an array of numbers has at most ", kMaxText));
  }
  if (bytes.size() - begin < length) {
    return absl::DataLossError("the header of the NumPy file is cut off");
  }
  const auto* text = reinterpret_cast<const char*>(bytes.data() + begin);
  return std::pair(absl::string_view(text, length), begin + length);
}

absl::Status CheckLength(const NpyHeader& header, size_t total) {
  const size_t found = total - header.size;
  uint64_t expected = SizeOf(header.type);
  for (const int64_t dimension : header.dimensions) {
    const uint64_t size = static_cast<uint64_t>(dimension);
    if (size != 0 && expected > std::numeric_limits<uint64_t>::max() / size) {
      // No file is that long, so the comparison below fails.
      expected = std::numeric_limits<uint64_t>::max();
      break;
    }
    expected *= size;
  }
  if (expected == found) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(ShapeText(header.dimensions), " elements of ",
                   NameOf(header.type), " need ", expected, " bytes, but ",
                   found, " follow the header; save the file again"));
}

}  // namespace

bool IsNpy(absl::Span<const uint8_t> bytes) {
  return bytes.size() >= kMagic.size() &&
         std::equal(kMagic.begin(), kMagic.end(), bytes.begin());
}

absl::StatusOr<NpyHeader> ParseNpyHeader(absl::Span<const uint8_t> bytes) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto text, FindText(bytes));
  const absl::StatusOr<Described> described = ParseText(text.first);
  LOCKSTEP_RETURN_IF_ERROR(described.status());
  NpyHeader header;
  header.size = text.second;
  LOCKSTEP_ASSIGN_OR_RETURN(header.type, TypeOf(*described->type));
  header.dimensions = *described->dimensions;
  if (header.dimensions.empty() || header.dimensions.size() > kMaxDimensions) {
    return absl::InvalidArgumentError(
        absl::StrCat("the array has ", header.dimensions.size(),
                     " dimensions; 1 to ", kMaxDimensions, " are supported"));
  }
  if (*described->fortran_order && header.dimensions.size() > 1) {
    return absl::InvalidArgumentError(
        "the array lies in Fortran order; save "
        "numpy.ascontiguousarray(array)");
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckLength(header, bytes.size()));
  return header;
}

std::string MakeNpyHeader(NumberType type,
                          const std::vector<int64_t>& dimensions) {
  absl::string_view name;
  for (const auto& [known, of] : kTypes) {
    // The first name of a type in kTypes is the one that NumPy itself writes.
    if (of == type && name.empty()) name = known;
  }
  std::string text = absl::StrCat("{'descr': '", name,
                                  "', 'fortran_order': False, 'shape': (");
  for (const int64_t dimension : dimensions) {
    absl::StrAppend(&text, dimension, ", ");
  }
  absl::StrAppend(&text, "), }");
  // The format requires that the header ends with a line break at a multiple of
  // 64 bytes; blanks fill it up.
  constexpr size_t kFixed = kVersionEnd + 2;
  text.resize((kFixed + text.size() + 1 + 63) / 64 * 64 - kFixed - 1, ' ');
  text.push_back('\n');
  std::string header(reinterpret_cast<const char*>(kMagic.data()),
                     kMagic.size());
  header.append({1, 0});
  header.push_back(static_cast<char>(text.size() & 0xff));
  header.push_back(static_cast<char>(text.size() >> 8));
  return header + text;
}

}  // namespace lockstep::worker
