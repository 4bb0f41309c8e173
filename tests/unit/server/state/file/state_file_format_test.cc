// format.md says what the code does.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/state/file/state_file.h"
#include "server/state/file/state_header.h"
#include "server/state/file/state_layout.h"
#include "server/state/file/step_record.h"
#include "server/state/file/worker_fences.h"
#include "server/state/tables/row_directory.h"
#include "server/state/tables/row_log.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::server {
namespace {

using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// By field: its offset and its bytes, as the page has them; "8 each" is 8.
using Fields = std::map<std::string, std::pair<size_t, size_t>>;

class StateFileFormatTest : public ::testing::Test {
 protected:
  StateFileFormatTest() {
    std::ifstream page(LOCKSTEP_STATE_FILE_FORMAT);
    std::string section;
    for (std::string line; std::getline(page, line);) {
      text_ += line + "\n";
      if (absl::StartsWith(line, "## ")) section = line.substr(3);
      const std::vector<std::string> cells = absl::StrSplit(line, " | ");
      size_t offset = 0;
      size_t bytes = 0;
      if (cells.size() < 4 ||
          !absl::SimpleAtoi(absl::StripPrefix(cells[0], "| "), &offset) ||
          !absl::SimpleAtoi(absl::StripSuffix(cells[1], " each"), &bytes)) {
        continue;
      }
      page_[section][cells[2]] = {offset, bytes};
    }
  }

  const Fields& Section(const std::string& name) { return page_[name]; }
  size_t Offset(const std::string& section, const std::string& field) {
    return page_[section].at(field).first;
  }
  template <typename T>
  T At(const std::byte* bytes, const std::string& section,
       const std::string& field) {
    T value;
    EXPECT_EQ(page_[section].at(field).second, sizeof(T)) << field;
    std::memcpy(&value, bytes + Offset(section, field), sizeof(T));
    return value;
  }

  std::string text_;

 private:
  std::map<std::string, Fields> page_;
};

TEST_F(StateFileFormatTest, HeaderIsAsThePageSays) {
  std::array<std::byte, StateHeader::kSize> bytes = {};
  const StateHeader header = {"mnist", 7, 0x1122334455667788, 3 << 20};
  EncodeStateHeader(header, absl::MakeSpan(bytes));
  const std::string section = "Header";

  ASSERT_EQ(Section(section).size(), 7u);
  EXPECT_EQ(std::memcmp(bytes.data(), "LOCKSTEP", 8), 0);
  EXPECT_EQ(At<uint32_t>(bytes.data(), section, "version"),
            StateHeader::kVersion);
  EXPECT_EQ(At<int32_t>(bytes.data(), section, "task_index"), 7);
  EXPECT_EQ(At<uint64_t>(bytes.data(), section, "layout_hash"),
            header.layout_hash);
  EXPECT_EQ(At<uint64_t>(bytes.data(), section, "file_size"), header.file_size);
  EXPECT_STREQ(
      reinterpret_cast<const char*>(bytes.data()) + Offset(section, "job_id"),
      "mnist");
  // The checksum is the last of the bytes that are not zero.
  const auto end = std::find_if(bytes.rbegin(), bytes.rend(),
                                [](std::byte b) { return b != std::byte{0}; });
  EXPECT_EQ(static_cast<size_t>(bytes.rend() - end),
            Offset(section, "checksum") + 4);
}

TEST_F(StateFileFormatTest, VersionIsThatOfThePage) {
  for (const char* text : {" Version ", "| version | "}) {
    EXPECT_TRUE(
        absl::StrContains(text_, absl::StrCat(text, StateHeader::kVersion)))
        << text;
  }
}

TEST_F(StateFileFormatTest, CountersAreAsThePageSays) {
  const auto layout = StateLayout::Make(
      {{.variable = 0, .count = 4}, {.variable = 1, .count = 4}}, {1, 1}, 2);
  ASSERT_OK(layout);
  const auto bytes = Section("Counters").at("updates").second;
  EXPECT_EQ(layout->CounterOffset(0, 0) % StateLayout::kPartAlignment, 0u);
  EXPECT_EQ(layout->CounterOffset(0, 1), layout->CounterOffset(0, 0) + bytes);
  EXPECT_EQ(layout->CounterOffset(1, 0),
            layout->CounterOffset(0, 0) + 2 * bytes);
  EXPECT_GT(layout->CounterOffset(0, 0), layout->TensorOffset(1, 0, 1));
}

TEST_F(StateFileFormatTest, StepRecordIsAsThePageSays) {
  constexpr size_t kBefore = sizeof(uint64_t);  // the sequence
  const auto field = [](const char* name, size_t offset, size_t bytes) {
    return Pair(std::string(name), Pair(kBefore + offset, bytes));
  };
#define LOCKSTEP_FIELD(name) \
  field(#name, offsetof(StepRecord, name), sizeof(StepRecord::name))
  EXPECT_THAT(
      Section("Step record"),
      UnorderedElementsAre(
          Pair("sequence", Pair(0u, 8u)), LOCKSTEP_FIELD(epoch),
          LOCKSTEP_FIELD(incarnation), LOCKSTEP_FIELD(committed_step),
          LOCKSTEP_FIELD(prepared_step), LOCKSTEP_FIELD(attempt),
          LOCKSTEP_FIELD(opened_step), LOCKSTEP_FIELD(replicas_to_aggregate),
          LOCKSTEP_FIELD(learning_rate_scale), LOCKSTEP_FIELD(powers),
          LOCKSTEP_FIELD(current_buffer), LOCKSTEP_FIELD(paused),
          LOCKSTEP_FIELD(settings_revision), LOCKSTEP_FIELD(opened_epoch),
          LOCKSTEP_FIELD(workers),
          Pair("checksum", Pair(kBefore + sizeof(StepRecord), 4u))));
#undef LOCKSTEP_FIELD
}

TEST_F(StateFileFormatTest, RecordsAndFencesLieWhereThePageSays) {
  StateHeader header = {"job", 0, 1, StateLayout::kRegionAlignment};
  const auto file = StateFile::Create("", header, StepRecord());
  ASSERT_OK(file);
  const std::byte* bytes = (*file)->bytes().data();
  const std::string section = "Step record";
  EXPECT_EQ(At<uint64_t>(bytes + 1024, section, "sequence"), 1u);
  EXPECT_EQ(At<int64_t>(bytes + 1024, section, "committed_step"), -1);

  StepRecord record;
  record.committed_step = 41;
  (*file)->WriteRecord(record);

  EXPECT_EQ(At<uint64_t>(bytes + 1536, section, "sequence"), 2u);
  EXPECT_EQ(At<int64_t>(bytes + 1536, section, "committed_step"), 41);
  EXPECT_EQ(StateLayout::kFencesOffset, 4096u);
  EXPECT_EQ(StateLayout::kFencesOffset + StateLayout::kFencesSize, 2097152u);
}

TEST_F(StateFileFormatTest, FencesAreAsThePageSays) {
  std::array<int64_t, 32> words = {};
  WorkerFences fences;
  fences.KeepIn({reinterpret_cast<std::byte*>(words.data()), sizeof(words)});
  fences.Expire(1, 77);
  fences.ShutOut(2, 0);
  fences.ShutOut(3, 77);
  fences.EndInput(3);

  EXPECT_EQ(words[0], 4);
  const std::string section = "Worker fences";
  const auto* places = reinterpret_cast<const std::byte*>(&words[1]);
  EXPECT_EQ(At<int64_t>(places + 16, section, "expired"), 77);
  EXPECT_EQ(At<int64_t>(places + 16, section, "standing"), 0);
  EXPECT_EQ(At<int64_t>(places + 32, section, "expired"), 0);
  EXPECT_EQ(At<int64_t>(places + 32, section, "standing"), 1);
  EXPECT_EQ(At<int64_t>(places + 48, section, "standing"),
            78 | (int64_t{1} << 62));
}

TEST_F(StateFileFormatTest, RowLogIsAsThePageSays) {
  alignas(8) std::array<std::byte, 16 + 8 * 4> bytes = {};
  ASSERT_EQ(bytes.size(), RowLog::Size(4));
  RowLog log(absl::MakeSpan(bytes));
  const std::vector<int64_t> rows = {2, 3};
  log.Begin(rows);
  log.Finish(9);

  EXPECT_EQ(At<int64_t>(bytes.data(), "Row logs", "step"), 9);
  EXPECT_EQ(At<int64_t>(bytes.data(), "Row logs", "num_rows"), 2);
  EXPECT_EQ(At<int64_t>(bytes.data(), "Row logs", "rows"), 2);
  EXPECT_EQ(At<int64_t>(bytes.data() + 8, "Row logs", "rows"), 3);
}

TEST_F(StateFileFormatTest, RowDirectoryIsAsThePageSays) {
  alignas(8) std::array<std::byte, 8 + 8 * 4> bytes = {};
  ASSERT_EQ(bytes.size(), RowDirectory::Size(4));
  const auto directory = RowDirectory::Open(absl::MakeSpan(bytes));
  ASSERT_OK(directory);
  (*directory)->Add(50);
  (*directory)->Add(7);
  (*directory)->Keep(0);

  const std::string section = "Row directories";
  EXPECT_EQ(At<int64_t>(bytes.data(), section, "num_rows"), 2);
  EXPECT_EQ(At<int64_t>(bytes.data(), section, "keys"), 50);
  EXPECT_EQ(At<int64_t>(bytes.data() + 8, section, "keys"), ~int64_t{7});
}

}  // namespace
}  // namespace lockstep::server
