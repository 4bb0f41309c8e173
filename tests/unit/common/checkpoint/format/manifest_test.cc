#include "common/checkpoint/format/manifest.h"

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

Manifest Sample() {
  Manifest manifest;
  manifest.job_name = "mnist";
  manifest.job_id = "run-1";
  manifest.global_step = 1500;
  manifest.seed = std::numeric_limits<uint64_t>::max();
  manifest.mode = "strict";
  manifest.num_workers = 3;
  manifest.saved_at_unix_ms = 1'700'000'000'000;
  manifest.files = {{"model.safetensors", 1234, std::string(64, 'a')},
                    {"optimizer.safetensors", 0, std::string(64, '0')}};
  manifest.metrics = {{"accuracy", 0.9375}, {"loss", 0.1}};
  manifest.settings = {{"learning_rate_scale", 0.5}};
  return manifest;
}

std::string SampleText() {
  auto text = EncodeManifest(Sample());
  EXPECT_OK(text);
  return text.value_or("");
}

TEST(ManifestTest, WhatIsEncodedCanBeParsed) {
  EXPECT_THAT(ParseManifest(SampleText()), IsOkAndHolds(Sample()));
}

TEST(ManifestTest, MetricsAreOptional) {
  Manifest manifest = Sample();
  manifest.metrics.clear();

  auto text = EncodeManifest(manifest);

  ASSERT_OK(text);
  EXPECT_EQ(text->find("metrics"), std::string::npos);
  EXPECT_THAT(ParseManifest(*text), IsOkAndHolds(manifest));
}

TEST(ManifestTest, EveryTruncationIsRefused) {
  const std::string text = SampleText();
  const size_t brace = text.rfind('}');

  for (size_t size = 0; size <= brace; ++size) {
    EXPECT_THAT(ParseManifest(text.substr(0, size)), StatusIs(kInvalid));
  }
}

TEST(ManifestTest, UnknownFieldsAreIgnored) {
  const std::string text = absl::StrReplaceAll(
      SampleText(), {{"\"mode\"", "\"later\": [1, {\"a\": []}], \"mode\""}});

  EXPECT_THAT(ParseManifest(text), IsOkAndHolds(Sample()));
}

TEST(ManifestTest, NewerFormatIsToldFromDamage) {
  const std::string text = absl::StrReplaceAll(
      SampleText(), {{"\"format_version\": 1", "\"format_version\": 2"}});

  EXPECT_THAT(ParseManifest(text),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("format_version is 2")));
}

TEST(ManifestTest, HugeTextIsRefused) {
  const std::string text = std::string(kMaxManifestBytes, ' ') + SampleText();

  EXPECT_THAT(ParseManifest(text), StatusIs(kInvalid, HasSubstr("1048576")));
}

TEST(ManifestTest, OtherJsonIsRefused) {
  for (const char* text : {"[]", "null", "{}", "1", "\"x\"", "[[[[[[]]]]]]"}) {
    EXPECT_THAT(ParseManifest(text), StatusIs(kInvalid)) << text;
  }
}

// One replacement in a valid text, and a part of the expected message.
struct BadText {
  const char* from;
  const char* to;
  const char* message;
};

class BadTextTest : public ::testing::TestWithParam<BadText> {};

TEST_P(BadTextTest, IsRefusedWithFieldAndValue) {
  const std::string sound = SampleText();
  const std::string text =
      absl::StrReplaceAll(sound, {{GetParam().from, GetParam().to}});
  ASSERT_NE(text, sound) << "nothing was replaced";

  EXPECT_THAT(ParseManifest(text),
              StatusIs(kInvalid, HasSubstr(GetParam().message)));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadTextTest,
    ::testing::Values(
        BadText{"\"format_version\": 1", "\"format_version\": 0",
                "format_version is 0, want 1"},
        BadText{"\"format_version\": 1", "\"format_version\": \"1\"",
                "format_version is \"1\""},
        BadText{"\"job_name\"", "\"job\"", "job_name is null, want a string"},
        BadText{"\"mnist\"", "\"\"", "job_name is empty"},
        BadText{"\"run-1\"", "7", "job_id is 7, want a string"},
        BadText{"1500", "-1", "global_step is -1"},
        BadText{"1500", "1.5", "global_step is 1.5"},
        BadText{"1500", "9223372036854775808",
                "global_step is 9223372036854775808"},
        BadText{"18446744073709551615", "18446744073709551616", "seed is "},
        BadText{"\"strict\"", "\"loose\"", "mode is \"loose\""},
        BadText{"\"num_workers\": 3", "\"num_workers\": [3]",
                "num_workers is [3]"},
        BadText{"1700000000000", "true", "saved_at_unix_ms is true"},
        BadText{"model.safetensors", "../model", "files.name is \"../model\""},
        BadText{"model.safetensors", "/etc/passwd", "files.name"},
        BadText{"model.safetensors", "a/b", "files.name is \"a/b\""},
        BadText{"model.safetensors", "..", "files.name is \"..\""},
        BadText{"model.safetensors", ".hidden", "files.name is \".hidden\""},
        BadText{"model.safetensors", "", "files.name is \"\""},
        BadText{"model.safetensors", "optimizer.safetensors",
                "want each name once"},
        BadText{"1234", "-1234", "bytes is -1234"},
        BadText{"1234", "9223372036854775808", "files.bytes"},
        BadText{"aaaa\"", "AAAA\"", "files.sha256"},
        BadText{"aaaa\"", "\"", "files.sha256"},
        BadText{"\"files\": [", "\"files\": [1,", "files is [1,"},
        BadText{"\"files\"", "\"file\"", "files is null"},
        BadText{"0.9375", "\"high\"", "metrics.accuracy is \"high\""},
        BadText{"\"accuracy\"", "\"loss\"", "the key \"loss\" twice"}));

// One change to a valid manifest that must not reach a file.
class BadManifestTest
    : public ::testing::TestWithParam<std::function<void(Manifest&)>> {};

TEST_P(BadManifestTest, IsNotEncoded) {
  Manifest manifest = Sample();
  GetParam()(manifest);

  EXPECT_THAT(EncodeManifest(manifest), StatusIs(kInvalid, HasSubstr("want")));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadManifestTest,
    ::testing::Values([](Manifest& m) { m.job_name.clear(); },
                      [](Manifest& m) { m.job_name = std::string(257, 'n'); },
                      [](Manifest& m) { m.job_id = "\xff"; },
                      [](Manifest& m) { m.mode = "Strict"; },
                      [](Manifest& m) { m.global_step = -1; },
                      [](Manifest& m) { m.num_workers = -1; },
                      [](Manifest& m) { m.saved_at_unix_ms = -1; },
                      [](Manifest& m) { m.files.clear(); },
                      [](Manifest& m) { m.files[0].name = m.files[1].name; },
                      [](Manifest& m) { m.files[0].name = "a b"; },
                      [](Manifest& m) { m.files[0].bytes = uint64_t{1} << 63; },
                      [](Manifest& m) { m.files[0].sha256.pop_back(); },
                      [](Manifest& m) { m.files.resize(1025, m.files[0]); },
                      [](Manifest& m) {
                        m.metrics["loss"] =
                            std::numeric_limits<double>::quiet_NaN();
                      },
                      [](Manifest& m) {
                        m.metrics["loss"] =
                            std::numeric_limits<double>::infinity();
                      },
                      [](Manifest& m) { m.metrics["\xff"] = 1; }));

TEST(ManifestTest, TooManyNumbersAreRefusedByTheNameOfTheirField) {
  Manifest manifest = *ParseManifest(SampleText());
  for (int i = 0; i < 5000; ++i) manifest.settings[absl::StrCat(i)] = 1;

  EXPECT_THAT(EncodeManifest(manifest),
              StatusIs(kInvalid, HasSubstr("settings")));
}

TEST(ManifestTest, TooManyFilesAreRefusedBeforeTheyAreRead) {
  std::string entries;
  for (int i = 0; i < 1025; ++i) entries += "{},";
  const std::string text = absl::StrReplaceAll(
      SampleText(), {{"\"files\": [", "\"files\": [" + entries}});

  EXPECT_THAT(ParseManifest(text), StatusIs(kInvalid, HasSubstr("1 to 1024")));
}

}  // namespace
}  // namespace lockstep
