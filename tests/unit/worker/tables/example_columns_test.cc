#include "worker/tables/example_columns.h"

#include <limits>
#include <map>

#include "common/records/tfrecord.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/v1/tf_example.pb.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/worker/data/files/idx_bytes.h"
#include "worker/data/files/data_file.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

ModelConfig Model() {
  ModelConfig model;
  model.features = 1000;
  model.embedding_rows = 100;
  model.categorical = {"site", "device"};
  model.crosses = {"device*site"};
  model.numeric = {"age"};
  return model;
}

ColumnLayout Layout() { return ColumnLayoutOf(Model()).value(); }

v1::TfFeature Texts(const std::vector<std::string>& texts) {
  v1::TfFeature feature;
  for (const std::string& text : texts) {
    feature.mutable_bytes_list()->add_value(text);
  }
  return feature;
}

v1::TfFeature Ints(const std::vector<int64_t>& ints) {
  v1::TfFeature feature;
  for (const int64_t number : ints) {
    feature.mutable_int64_list()->add_value(number);
  }
  return feature;
}

v1::TfFeature Floats(const std::vector<float>& floats) {
  v1::TfFeature feature;
  for (const float number : floats) {
    feature.mutable_float_list()->add_value(number);
  }
  return feature;
}

using Features = std::map<std::string, v1::TfFeature>;

Features Click(const std::string& site, int64_t device, float age,
               int64_t label) {
  return {{"site", Texts({site})},
          {"device", Ints({device})},
          {"age", Floats({age})},
          {"label", Ints({label})},
          {"other", {}}};
}

std::string BytesOf(const Features& features) {
  v1::TfExample example;
  for (const auto& [name, feature] : features) {
    v1::TfFeatures::Entry& entry = *example.mutable_features()->add_feature();
    entry.set_key(name);
    *entry.mutable_value() = feature;
  }
  return example.SerializeAsString();
}

std::string FileOf(const std::vector<Features>& examples) {
  std::string file;
  for (const Features& example : examples) {
    AppendTfRecord(BytesOf(example), file);
  }
  return file;
}

ColumnExamples Read(const std::vector<Features>& file) {
  ColumnExamples examples;
  EXPECT_OK(ParseExamples(FileOf(file), "a", Layout(), examples));
  return examples;
}

TEST(ExampleColumnsTest, ExamplesAreReadInOrder) {
  const ColumnExamples examples =
      Read({Click("a", 1, 0.5f, 1), Click("b", 2, -3, 0)});
  EXPECT_THAT(examples.labels, ElementsAre(true, false));
  EXPECT_THAT(examples.numeric, ElementsAre(0.5f, -3));
  EXPECT_EQ(examples.wide.size(), 6u);
  EXPECT_EQ(examples.deep.size(), 4u);
}

TEST(ExampleColumnsTest, EqualValuesHaveEqualRowsAndOthersOthers) {
  const ColumnExamples examples =
      Read({Click("a", 1, 0, 1), Click("a", 2, 0, 0), Click("1", 2, 0, 0)});
  const auto& wide = examples.wide;
  EXPECT_EQ(wide[0], wide[3]);  // "a"
  EXPECT_NE(wide[1], wide[4]);  // 1 and 2
  EXPECT_NE(wide[2], wide[5]);  // their pairs
  EXPECT_EQ(wide[4], wide[7]);  // 2
  EXPECT_EQ(examples.deep[0], examples.deep[2]);
  EXPECT_NE(examples.deep[1], examples.deep[3]);
  // The text "1" and the number 1 are one value, but features have weights of
  // their own.
  EXPECT_EQ(examples.deep[1], examples.deep[4]);
  EXPECT_NE(wide[1], wide[6]);
}

TEST(ExampleColumnsTest, RowsAreWithinTheTables) {
  std::vector<Features> file;
  for (int i = 0; i < 500; ++i) file.push_back(Click("s", i, 0, 1));
  const ColumnExamples examples = Read(file);
  EXPECT_EQ(examples.wide.size(), 1500u);
  EXPECT_EQ(examples.deep.size(), 1000u);
  for (const int64_t row : examples.wide) EXPECT_TRUE(row >= 0 && row < 1000);
  for (const int64_t row : examples.deep) EXPECT_TRUE(row >= 0 && row < 100);
}

TEST(ExampleColumnsTest, WrongFeaturesAreNamedAndNothingIsTaken) {
  const Features good = Click("a", 1, 0, 1);
  const auto with = [&good](const char* name, v1::TfFeature feature) {
    Features example = good;
    example[name] = std::move(feature);
    return example;
  };
  Features missing = good;
  missing.erase("site");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto& [example, name] : std::vector<std::pair<Features, char>>{
           {missing, 's'},
           {with("site", {}), 's'},
           {with("site", Texts({"a", "b"})), 's'},
           {with("site", Floats({1})), 's'},
           {with("age", Floats({nan})), 'a'},
           {with("age", Floats({1, 2})), 'a'},
           {with("age", Texts({"1"})), 'a'},
           {with("label", {}), 'l'},
           {with("label", Ints({2})), 'l'}}) {
    ColumnExamples examples = Read({good});
    EXPECT_THAT(
        ParseExamples(FileOf({good, example}), "x.tfrecord", Layout(),
                      examples),
        StatusIs(kInvalid, AllOf(HasSubstr("x.tfrecord: record 2: "),
                                 HasSubstr(std::string("feature \"") + name))));
    EXPECT_EQ(examples.size(), 1);
    EXPECT_EQ(examples.wide.size(), 3u);
    EXPECT_EQ(examples.deep.size(), 2u);
    EXPECT_EQ(examples.numeric.size(), 1u);
  }
}

TEST(ExampleColumnsTest, MessagesAreTensorFlows) {
  const auto file = ReadDataText(LOCKSTEP_RECORDS_DATA "/tensorflow.tfrecord");
  ASSERT_OK(file);
  TfRecordReader reader(*file);
  for (int64_t i = 0; i < 3; ++i) {
    const auto record = reader.Next();
    ASSERT_OK(record);
    const Features written = {
        {"ids", Ints({i, -1, int64_t{1} << 40})},
        {"name", Texts({"row " + std::to_string(i)})},
        {"none", {}},
        {"x", Floats({0.5f * static_cast<float>(i), -2.25f})}};
    EXPECT_EQ(**record, BytesOf(written));
    v1::TfExample read;
    ASSERT_TRUE(read.ParseFromString(std::string(**record)));
    EXPECT_EQ(read.SerializeAsString(), BytesOf(written));
  }
}

TEST(ExampleColumnsTest, OfAFeatureThatOccursTwiceTheLastOneCounts) {
  // Messages one behind the other are merged.
  std::string file;
  AppendTfRecord(BytesOf(Click("a", 1, 0.5f, 1)) +
                     BytesOf({{"age", Floats({7})}, {"label", Ints({0})}}),
                 file);
  ColumnExamples examples;
  ASSERT_OK(ParseExamples(file, "a", Layout(), examples));
  EXPECT_THAT(examples.labels, ElementsAre(false));
  EXPECT_THAT(examples.numeric, ElementsAre(7));
}

TEST(ExampleColumnsTest, RecordsThatAreCutOffAreRefused) {
  const std::string whole = BytesOf(Click("a", 1, 0.5f, 1));
  for (size_t size = 1; size < whole.size(); ++size) {
    std::string file;
    AppendTfRecord(whole.substr(0, size), file);
    ColumnExamples examples;
    EXPECT_THAT(
        ParseExamples(file, "a", Layout(), examples),
        StatusIs(kInvalid, HasSubstr("a: record 1: no tf.train.Example")));
  }
}

TEST(ExampleColumnsTest, DamagedFilesAreRefused) {
  std::string file = FileOf({Click("a", 1, 0, 1), Click("b", 1, 0, 1)});
  file.back() = static_cast<char>(file.back() ^ 1);
  ColumnExamples examples;
  EXPECT_THAT(ParseExamples(file, "x", Layout(), examples),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("x: record 2:")));
  EXPECT_EQ(examples.size(), 0);
}

TEST(ExampleColumnsTest, FilesMayBeGzipped) {
  const std::string bytes = FileOf({Click("a", 1, 0, 1)});
  const testing::TempDir dir;
  testing::WriteFile(dir.Join("plain"), {bytes.begin(), bytes.end()});
  testing::WriteFile(dir.Join("packed"),
                     testing::Gzip({bytes.begin(), bytes.end()}));
  ColumnExamples examples;
  for (const char* name : {"plain", "packed"}) {
    ASSERT_OK(ReadExampleFile(dir.Join(name), Layout(), examples));
  }
  EXPECT_EQ(examples.size(), 2);
  EXPECT_THAT(ReadExampleFile(dir.Join("none"), Layout(), examples),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none: ")));
}

TEST(ExampleColumnsTest, LayoutsNameWhatIsMissingOrWrong) {
  using Change = void (*)(ModelConfig&);
  for (const auto& [change, field] :
       std::vector<std::pair<Change, const char*>>{
           {[](ModelConfig& m) { m.features = 0; }, "model.features"},
           {[](ModelConfig& m) { m.embedding_rows = 0; },
            "model.embedding_rows"},
           {[](ModelConfig& m) { m.categorical.clear(); }, "model.categorical"},
           {[](ModelConfig& m) {
              m.categorical = {"a", "b", "a"};
            },
            "has \"a\" twice"},
           {[](ModelConfig& m) { m.row_limit = 5; }, "model.row_limit"},
           {[](ModelConfig& m) { m.crosses = {"site"}; }, "has \"site\""},
           {[](ModelConfig& m) { m.crosses = {"site*age"}; }, "site*age"},
           {[](ModelConfig& m) { m.crosses = {"site*site"}; }, "site*site"},
           {[](ModelConfig& m) { m.crosses = {"site*device*site"}; },
            "site*device*site"}}) {
    ModelConfig model = Model();
    change(model);
    EXPECT_THAT(ColumnLayoutOf(model), StatusIs(kInvalid, HasSubstr(field)));
  }
}

}  // namespace
}  // namespace lockstep::worker
