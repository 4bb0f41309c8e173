#include "deploy/cli/inspect/predict_command.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/deploy/cli/config/command_fixture.h"
#include "tests/unit/worker/data/files/npy_bytes.h"
#include "tests/unit/worker/scoring/softmax_checkpoint.h"
#include "worker/data/files/array_file.h"

namespace lockstep::cli {
namespace {

using ::lockstep::testing::CommandTest;
using ::lockstep::testing::NpyBytes;
using ::lockstep::testing::NpyText;
using ::lockstep::testing::WriteFile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A checkpoint of a model with two inputs and two classes, which takes the
// larger input for the class, and two examples: (1, 0) and (0, 1).
class PredictCommandTest : public CommandTest {
 protected:
  PredictCommandTest() {
    Write("job",
          "name: 'job' train_steps: 1 batch_size: 1 model { kind: 'softmax' }"
          " data { train_images: 'elsewhere' train_labels: 'elsewhere'"
          " classes: 2 } checkpoint { directory: '" +
              Path("checkpoints") + "' }");
    WriteFile(Path("data.npy"),
              NpyBytes(NpyText("|i1", "(2, 2)"), {1, 0, 0, 1}));
    testing::WriteSoftmaxCheckpoint(Path("checkpoints"), 3, 2, 2);
  }

  int Predict(std::vector<std::string> args) {
    args.push_back("--job=" + Path("job"));
    return Run<PredictCommand>("predict", args);
  }
};

TEST_F(PredictCommandTest, LinesNameTheClassOfEachExample) {
  EXPECT_EQ(Predict({"--data=" + Path("data.npy")}), 0) << Err();

  EXPECT_EQ(Out(),
            "example,class,probability,class_0,class_1\n"
            "0,0,0.999877,0.999877,0.000123395\n"
            "1,1,0.999877,0.000123395,0.999877\n");
}

TEST_F(PredictCommandTest, ArrayOfProbabilitiesIsWritten) {
  const std::string out = Path("out.npy");

  EXPECT_EQ(Predict({"--data=" + Path("data.npy"), "--out=" + out}), 0)
      << Err();

  EXPECT_THAT(Out(), StartsWith(out + ": predictions of step 3 for 2"));
  const auto array = worker::ReadArrayFile(out);
  ASSERT_OK(array);
  EXPECT_EQ(array->type, worker::NumberType::kFloat32);
  EXPECT_THAT(array->dimensions, ElementsAre(2, 2));
}

TEST_F(PredictCommandTest, FileThatExistsStays) {
  WriteFile(Path("out.csv"), {'x'});

  EXPECT_EQ(Predict({"--data=" + Path("data.npy"), "--out=" + Path("out.csv")}),
            1);

  EXPECT_THAT(Err(), HasSubstr("--out is " + Path("out.csv") +
                               ", which exists: remove it or name another"));
}

TEST_F(PredictCommandTest, ExamplesOfAnotherShapeAreNamed) {
  WriteFile(Path("data.npy"),
            NpyBytes(NpyText("|i1", "(2, 3)"), {1, 0, 0, 1, 1, 1}));

  EXPECT_EQ(Predict({"--data=" + Path("data.npy")}), 1);

  EXPECT_THAT(Err(), HasSubstr("the examples of " + Path("data.npy") +
                               " are 1x3x1; the model of the checkpoint of "
                               "step 3 takes others"));
}

TEST_F(PredictCommandTest, MissingTestSetOrFileIsNamed) {
  EXPECT_EQ(Predict({}), 1);
  EXPECT_THAT(Err(), HasSubstr("the job has no test set"));
  EXPECT_EQ(Predict({"--data=" + Path("none.npy")}), 1);
  EXPECT_THAT(Err(), HasSubstr(Path("none.npy")));
}

}  // namespace
}  // namespace lockstep::cli
