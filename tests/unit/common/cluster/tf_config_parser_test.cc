#include "common/cluster/tf_config_parser.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/dense_cluster.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::DenseCluster;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::Optional;
using ::testing::StartsWith;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

TfConfig Parsed(absl::string_view text) {
  absl::StatusOr<TfConfig> config = TfConfigParser("TF_CONFIG").Parse(text);
  EXPECT_OK(config);
  return config.ok() ? *config : TfConfig();
}

TEST(TfConfigParserTest, ReadsWhatAnOperatorWrites) {
  const TfConfig config = Parsed(R"({
      "cluster": {"chief": ["j-chief-0.ns.svc:2222"],
                  "ps": ["j-ps-0.ns.svc:2222"],
                  "worker": ["j-worker-0.ns.svc:2222"]},
      "task": {"type": "ps", "index": 0}, "environment": "cloud"})");

  EXPECT_EQ(config.cluster,
            DenseCluster({{"chief", {"j-chief-0.ns.svc:2222"}},
                          {"ps", {"j-ps-0.ns.svc:2222"}},
                          {"worker", {"j-worker-0.ns.svc:2222"}}}));
  EXPECT_EQ(config.task_type, "ps");
  EXPECT_THAT(config.task_index, Optional(0));
  EXPECT_EQ(config.environment, "cloud");
  EXPECT_EQ(config.source, "TF_CONFIG");
  EXPECT_THAT(config.warnings, IsEmpty());
}

TEST(TfConfigParserTest, EmptyObjectIsLocal) {
  const TfConfig config = Parsed("{}");

  EXPECT_TRUE(config.cluster.empty());
  EXPECT_EQ(config.task_type, "");
  EXPECT_EQ(config.task_index, absl::nullopt);
}

TEST(TfConfigParserTest, NullIsAbsent) {
  const TfConfig config = Parsed(
      R"({"cluster": null, "task": {"type": null, "index": null},
          "rpc_layer": null, "model_dir": null, "service": null})");

  EXPECT_TRUE(config.cluster.empty());
  EXPECT_EQ(config.task_type, "");
  EXPECT_EQ(config.task_index, absl::nullopt);
}

struct IndexCase {
  const char* json;
  int index;
};

class IndexTest : public ::testing::TestWithParam<IndexCase> {};

TEST_P(IndexTest, IsTaken) {
  const TfConfig config =
      Parsed(absl::StrCat(R"({"task": {"index": )", GetParam().json, "}}"));

  EXPECT_THAT(config.task_index, Optional(GetParam().index));
}

INSTANTIATE_TEST_SUITE_P(
    All, IndexTest,
    ::testing::Values(IndexCase{"0", 0}, IndexCase{"\"1\"", 1},
                      IndexCase{"\"007\"", 7}, IndexCase{"2.0", 2},
                      IndexCase{"3e1", 30}, IndexCase{"999999", 999999}));

TEST(TfConfigParserTest, TaskTypeOfAnotherScalarIsTurnedToText) {
  EXPECT_EQ(Parsed(R"({"task": {"type": 123456}})").task_type, "123456");
  EXPECT_EQ(Parsed(R"({"task": {"type": true}})").task_type, "true");
}

TEST(TfConfigParserTest, MapIsASparseJob) {
  const TfConfig config = Parsed(
      R"({"cluster": {"worker": {"1": "b:1", "12": "m:1"}, "ps": ["p:1"]}})");

  EXPECT_THAT(config.cluster.TaskIndices("worker"), ElementsAre(1, 12));
  EXPECT_EQ(config.cluster.NumTasks("ps"), 1);
}

TEST(TfConfigParserTest, EmptyJobsAreKept) {
  const TfConfig config =
      Parsed(R"({"cluster": {"worker": {}, "ps": [], "chief": null}})");

  EXPECT_THAT(config.cluster.jobs(),
              ElementsAre(Key("chief"), Key("ps"), Key("worker")));
}

TEST(TfConfigParserTest, SparseClusterStandsForCluster) {
  const TfConfig config =
      Parsed(R"({"sparseCluster": {"worker": {"1": "b:1"}, "ps": ["p:1"]}})");

  EXPECT_THAT(config.cluster.TaskIndices("worker"), ElementsAre(1));
}

TEST(TfConfigParserTest, ByteOrderMarkIsSkipped) {
  EXPECT_EQ(Parsed("\xEF\xBB\xBF{\"rpc_layer\": \"grpc\"}").rpc_layer, "grpc");
}

TEST(TfConfigParserTest, DoublyEncodedDocumentIsReadWithAWarning) {
  const TfConfig config = Parsed(R"("{\"rpc_layer\": \"grpc\"}")");

  EXPECT_EQ(config.rpc_layer, "grpc");
  EXPECT_THAT(config.warnings,
              ElementsAre(HasSubstr("remove the outer quotes")));
}

TEST(TfConfigParserTest, UnknownKeysAreKeptWithAWarning) {
  const TfConfig config =
      Parsed(R"({"sparkle": {"x": [1]}, "task": {"typ": "worker"}})");

  EXPECT_THAT(config.unknown_keys,
              ElementsAre(::testing::Pair("sparkle", R"({"x":[1]})"),
                          ::testing::Pair("task.typ", "\"worker\"")));
  EXPECT_THAT(config.warnings,
              ElementsAre(HasSubstr("\"task.typ\" is not known"),
                          HasSubstr("\"sparkle\" is not known")));
}

TEST(TfConfigParserTest, WhatDescribesThePlatformIsTakenInSilence) {
  const TfConfig config = Parsed(
      R"({"job": {"a": 1}, "trial": "1", "rpc_layer": "grpc", "service": {},
          "session_master": "", "task": {"trial": "1", "cloud": "z"}})");

  EXPECT_THAT(config.warnings, IsEmpty());
  EXPECT_THAT(config.unknown_keys, IsEmpty());
}

TEST(TfConfigParserTest, KeysThatSteerNothingHereAreWarnedOf) {
  const TfConfig config = Parsed(
      R"({"eval_session_master": "x", "model_dir": "/m", "service": {"a": 1},
          "session_master": "s:1", "rpc_layer": "grpc+tls"})");

  EXPECT_THAT(config.warnings,
              ElementsAre(AllOf(HasSubstr("rpc_layer is \"grpc+tls\"; ignored"),
                                HasSubstr("does not encrypt")),
                          HasSubstr("session_master is \"s:1\"; ignored"),
                          HasSubstr("eval_session_master is \"x\"; ignored"),
                          AllOf(HasSubstr("model_dir is \"/m\"; ignored"),
                                HasSubstr("checkpoint.directory")),
                          HasSubstr("service is ignored")));
  EXPECT_THAT(config.unknown_keys, IsEmpty());
  EXPECT_EQ(config.model_dir, "/m");
  EXPECT_EQ(config.session_master, "s:1");
}

TEST(TfConfigParserTest, EnvironmentSaysNothingSoItsTypeIsOnlyWarnedOf) {
  EXPECT_THAT(Parsed(R"({"environment": 3})").warnings,
              ElementsAre(HasSubstr("environment is not a string")));
  EXPECT_EQ(Parsed(R"({"environment": ""})").environment, "");
}

struct ErrorCase {
  const char* json;
  const char* message;
};

class TfConfigErrorTest : public ::testing::TestWithParam<ErrorCase> {};

TEST_P(TfConfigErrorTest, NamesSourcePathValueAndFix) {
  EXPECT_THAT(TfConfigParser("job.json").Parse(GetParam().json),
              StatusIs(kInvalid, AllOf(StartsWith("job.json"),
                                       HasSubstr(GetParam().message))))
      << GetParam().json;
}

INSTANTIATE_TEST_SUITE_P(
    All, TfConfigErrorTest,
    ::testing::Values(
        ErrorCase{"", "is empty; write a JSON"},
        ErrorCase{"{", "not valid JSON"},
        ErrorCase{"[]", "is an array, but must be an object such as"},
        ErrorCase{"7", "is 7, but must be an object"},
        ErrorCase{R"("\"{}\"")", "is \"{}\", but must be an object"},
        ErrorCase{R"("")", "is empty"},
        ErrorCase{R"({"cluster": ["a:1"]})",
                  ": cluster is an array, but must be an object"},
        ErrorCase{R"({"cluster": "a:1"})", ": cluster is \"a:1\", but"},
        ErrorCase{R"({"sparseCluster": 1})", ": sparseCluster is 1, but"},
        ErrorCase{R"({"cluster": {}, "sparseCluster": {}})",
                  "sparseCluster is an object, but must be absent beside"},
        ErrorCase{R"({"cluster": {"worker": "a:1"}})",
                  "cluster.worker is \"a:1\", but must be a list"},
        ErrorCase{R"({"cluster": {"worker": ["a:1", 7]}})",
                  "cluster.worker[1] is 7, but must be a string \"host:port\""},
        ErrorCase{R"({"cluster": {"worker": ["a:1", null]}})",
                  "cluster.worker[1] is null, but"},
        ErrorCase{R"({"cluster": {"worker": {"1": {}}}})",
                  "cluster.worker[\"1\"] is an object, but"},
        ErrorCase{R"({"cluster": {"worker": {"one": "a:1"}}})",
                  "cluster.worker has the key \"one\", but a key must be a "
                  "whole number from 0 to 999999"},
        ErrorCase{R"({"cluster": {"worker": {"-1": "a:1"}}})", "key \"-1\""},
        ErrorCase{R"({"cluster": {"worker": {"": "a:1"}}})", "key \"\""},
        ErrorCase{R"({"cluster": {"worker": {"2000000000": "a:1"}}})",
                  "key \"2000000000\""},
        ErrorCase{R"({"cluster": {"worker": {"1": "a:1", "01": "b:1"}}})",
                  "cluster.worker gives task 1 twice"},
        ErrorCase{R"({"cluster": {"a b": 1}})", "cluster[\"a b\"] is 1"},
        ErrorCase{R"({"cluster": {"ps": ["a:1"], "ps": ["b:1"]}})",
                  "the key \"ps\" twice"},
        ErrorCase{R"({"task": "worker"})", "task is \"worker\", but must be"},
        ErrorCase{R"({"task": {"type": ["ps"]}})", "task.type is an array"},
        ErrorCase{R"({"task": {"type": ""}})", "task.type is \"\", but"},
        ErrorCase{R"({"task": {"index": -1}})",
                  "task.index is -1, but must be a whole number from 0"},
        ErrorCase{R"({"task": {"index": 1.5}})", "task.index is 1.5"},
        ErrorCase{R"({"task": {"index": "x"}})", "task.index is \"x\""},
        ErrorCase{R"({"task": {"index": ""}})", "task.index is \"\""},
        ErrorCase{R"({"task": {"index": " 1"}})", "task.index is \" 1\""},
        ErrorCase{R"({"task": {"index": true}})", "task.index is true"},
        ErrorCase{R"({"task": {"index": 1000000}})", "task.index is 1000000"},
        ErrorCase{R"({"task": {"index": 1e300}})", "task.index is 1e+300"},
        ErrorCase{R"({"task": {"index": 99999999999999999999}})",
                  "task.index is"},
        ErrorCase{R"({"task": {"index": "99999999999"}})", "task.index is"},
        ErrorCase{R"({"rpc_layer": 1})", "rpc_layer is 1, but"},
        ErrorCase{R"({"session_master": []})", "session_master is an array"},
        ErrorCase{R"({"service": "x"})", "service is \"x\", but"},
        ErrorCase{R"({"model_dir": ""})", "model_dir is \"\", but"},
        ErrorCase{R"({"model_dir": 1})", "model_dir is 1, but"}));

TEST(TfConfigParserTest, EveryMistakeIsNamed) {
  EXPECT_THAT(
      TfConfigParser("f").Parse(R"({"cluster": {"ps": 1, "worker": [2, "a:1"]},
                                    "task": {"type": [], "index": -1},
                                    "rpc_layer": 3})"),
      StatusIs(kInvalid, AllOf(HasSubstr("f: cluster.ps is 1"),
                               HasSubstr("\nf: cluster.worker[0] is 2"),
                               HasSubstr("\nf: task.type is an array"),
                               HasSubstr("\nf: task.index is -1"),
                               HasSubstr("\nf: rpc_layer is 3"))));
}

TEST(TfConfigParserTest, ReadLeavesOutWhatIsOfTheWrongType) {
  const auto config = TfConfigParser("f").Read(
      R"({"cluster": {"ps": 1, "worker": [2, "a:1"]},
          "task": {"type": "worker", "index": -1}})");

  ASSERT_OK(config);
  EXPECT_THAT(config->cluster.TaskIndices("worker"), ElementsAre(1));
  EXPECT_FALSE(config->cluster.jobs().contains("ps"));
  EXPECT_THAT(config->mistakes.status(),
              StatusIs(kInvalid, AllOf(HasSubstr("f: cluster.ps is 1"),
                                       HasSubstr("\nf: task.index is -1"))));
  EXPECT_THAT(TfConfigParser("f").Read("[]"), StatusIs(kInvalid));
}

TEST(TfConfigParserTest, MessageCarriesNoMoreThanAnExcerpt) {
  const std::string text =
      absl::StrCat(R"({"cluster": {"ps": ")", std::string(1000, 's'), R"("}})");

  const absl::StatusOr<TfConfig> config =
      TfConfigParser("TF_CONFIG").Parse(text);

  EXPECT_THAT(config, StatusIs(kInvalid, Not(HasSubstr(std::string(61, 's')))));
}

TEST(TfConfigParserTest, ListLongerThanTheIndicesIsRefused) {
  std::string text = R"({"cluster": {"ps": [)";
  for (int i = 0; i < 1'000'000; ++i) text += "\"\",";
  text += R"("last"]}})";

  EXPECT_THAT(TfConfigParser("f").Parse(text),
              StatusIs(kInvalid, StartsWith("f: task index 1000000")));
}

}  // namespace
}  // namespace lockstep
