#include "common/job/codec/field_list_codec.h"

#include <string>
#include <vector>

#include "common/job/codec/job_config_codec.h"
#include "gmock/gmock.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "lockstep/v1/job.pb.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;
using ::google::protobuf::util::MessageDifferencer;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// One field of each kind, under the names of v1::VariableOptimizer,
// v1::CheckpointConfig and v1::ModelConfig.
struct Checkpoint {
  std::string directory = "/tmp";
  int64_t keep = 5;
  absl::Duration every = absl::Seconds(1);
};

struct Optimizer {
  enum class Kind { kPlain, kAdam };
  Kind kind = Kind::kPlain;
  double momentum = 0.5;
  bool centered = false;
  std::vector<std::string> exempt = {};
};

struct Variables {
  std::string variables;
  std::optional<double> learning_rate;
  Optimizer optimizer;
};

struct Job {
  uint64_t seed = 1;
  int replicas = 0;
  Checkpoint checkpoint;
  std::vector<Variables> variables;
};

struct Type {
  DType type = DType::kFloat32;
  std::vector<int64_t> units = {};
};

struct Misnamed {
  int64_t keep = 5;
};

constexpr EnumValue<Optimizer::Kind> kKinds[] = {
    {Optimizer::Kind::kPlain, v1::OptimizerConfig::GRADIENT_DESCENT},
    {Optimizer::Kind::kAdam, v1::OptimizerConfig::ADAM}};

void VisitFields(FieldVisitor& visit, Checkpoint& checkpoint) {
  visit("directory", checkpoint.directory);
  visit("keep", checkpoint.keep);
  visit("every", checkpoint.every);
}

void VisitFields(FieldVisitor& visit, Optimizer& optimizer) {
  visit("kind", optimizer.kind, kKinds);
  visit.Optional("momentum", optimizer.momentum,
                 optimizer.kind == Optimizer::Kind::kAdam ? 0.25 : 0.5);
  visit("centered", optimizer.centered);
  visit("weight_decay_exempt", optimizer.exempt);
}

void VisitFields(FieldVisitor& visit, Variables& variables) {
  visit("variables", variables.variables);
  visit("learning_rate", variables.learning_rate);
  visit("optimizer", variables.optimizer);
}

void VisitFields(FieldVisitor& visit, Job& job) {
  visit("seed", job.seed);
  if (job.seed == 9) visit.Default(job.replicas, 90);
  visit("replicas_to_aggregate", job.replicas);
  visit("checkpoint", job.checkpoint);
  visit("variable_optimizers", job.variables);
}

void VisitFields(FieldVisitor& visit, Type& type) {
  visit("variable_type", type.type);
  visit("hidden_units", type.units);
}

void VisitFields(FieldVisitor& visit, Misnamed& misnamed) {
  visit("keeps", misnamed.keep);
}

TEST(FieldListCodecTest, FieldsOfEachKindComeBack) {
  Job job{7, 3, {"/c", 2, absl::Minutes(1)}, std::vector<Variables>(2)};
  job.variables[1] = {
      "a*", 0.125, {Optimizer::Kind::kAdam, 0.75, true, {"b", "c"}}};

  const auto proto = ToMessage<v1::JobConfig>(job);
  const absl::StatusOr<Job> back = FromMessage<Job>(proto, "");

  EXPECT_EQ(proto.checkpoint().every().seconds(), 60);
  EXPECT_FALSE(proto.variable_optimizers(0).has_learning_rate());
  ASSERT_OK(back);
  EXPECT_EQ(ToMessage<v1::JobConfig>(*back).DebugString(), proto.DebugString());
  EXPECT_EQ(back->replicas, 3);
  EXPECT_EQ(back->checkpoint.keep, 2);
  ASSERT_EQ(back->variables.size(), 2u);
  EXPECT_EQ(back->variables[1].learning_rate, 0.125);
  EXPECT_TRUE(back->variables[1].optimizer.centered);
  EXPECT_THAT(back->variables[1].optimizer.exempt, ElementsAre("b", "c"));
  const auto type = FromMessage<Type>(
      ToMessage<v1::ModelConfig>(Type{DType::kBFloat16, {2, 1}}), "");
  ASSERT_OK(type);
  EXPECT_EQ(type->type, DType::kBFloat16);
  EXPECT_THAT(type->units, ElementsAre(2, 1));
}

TEST(FieldListCodecTest, ZeroIsAbsentOnlyWithoutPresence) {
  v1::CheckpointConfig proto;
  proto.set_directory("");
  EXPECT_EQ(FromMessage<Checkpoint>(proto, "")->keep, 5);
  proto.set_keep(0);
  proto.mutable_every();

  const absl::StatusOr<Checkpoint> checkpoint =
      FromMessage<Checkpoint>(proto, "");

  ASSERT_OK(checkpoint);
  EXPECT_EQ(checkpoint->directory, "/tmp");
  EXPECT_EQ(checkpoint->keep, 0);
  EXPECT_EQ(checkpoint->every, absl::ZeroDuration());
}

TEST(FieldListCodecTest, DefaultsMayDependOnEarlierFields) {
  v1::JobConfig proto;
  proto.set_seed(9);
  proto.add_variable_optimizers()->mutable_optimizer()->set_kind(
      v1::OptimizerConfig::ADAM);

  const absl::StatusOr<Job> job = FromMessage<Job>(proto, "");

  ASSERT_OK(job);
  EXPECT_EQ(job->replicas, 90);
  EXPECT_EQ(job->variables[0].optimizer.momentum, 0.25);
  const auto back = ToMessage<v1::JobConfig>(*job);
  EXPECT_EQ(back.replicas_to_aggregate(), 90);
  EXPECT_FALSE(back.variable_optimizers(0).optimizer().has_momentum());
}

TEST(FieldListCodecTest, FirstErrorNamesItsField) {
  v1::JobConfig proto;
  proto.add_variable_optimizers()->mutable_optimizer()->set_kind(
      v1::OptimizerConfig::FTRL);
  EXPECT_THAT(FromMessage<Job>(proto, "job."),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "job.variable_optimizers.optimizer.kind is the number "
                       "7, which has no name in this version; write one of "
                       "GRADIENT_DESCENT, MOMENTUM, ADAM, ADAGRAD, RMSPROP, "
                       "ADADELTA, FTRL, LAZY_ADAM, SGD, ADAM_TORCH, ADAMW, "
                       "ADAGRAD_DA, PROXIMAL_ADAGRAD, "
                       "PROXIMAL_GRADIENT_DESCENT"));
  proto.mutable_checkpoint()->mutable_every()->set_nanos(-1'000'000'000);
  EXPECT_THAT(FromMessage<Job>(proto, ""),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       StartsWith("checkpoint.every has seconds 0")));
  v1::ModelConfig model;
  model.set_variable_type("half");
  EXPECT_THAT(FromMessage<Type>(model, "model."),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       StartsWith("model.variable_type: ")));
}

TEST(FieldListCodecTest, NameWithoutAFieldIsAnErrorAtEachReading) {
  EXPECT_THAT(FromMessage<Misnamed>(v1::CheckpointConfig(), ""),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("CheckpointConfig has no field keeps")));
  EXPECT_EQ(ToMessage<v1::CheckpointConfig>(Misnamed()).keep(), 0);
}

// Tests that the lists of JobConfig have all fields of job.proto, each by a
// message with this field alone.
class EveryField {
 public:
  // `message` is part of `job_`; `path` names it in failures: "model.".
  void Check(Message& message, const std::string& path) {
    for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor& field = *message.GetDescriptor()->field(i);
      CheckField(field, message, path + field.name());
      message.GetReflection()->ClearField(&message, &field);
    }
  }

  v1::JobConfig& job() { return job_; }
  int count() const { return count_; }

 private:
  void CheckField(const FieldDescriptor& field, Message& message,
                  const std::string& path) {
    if (field.enum_type() != nullptr) {
      for (int i = 0; i < field.enum_type()->value_count(); ++i) {
        const auto* value = field.enum_type()->value(i);
        message.GetReflection()->SetEnum(&message, &field, value);
        ExpectBack(path + " " + value->name());
      }
      return;
    }
    if (field.message_type() == nullptr) {
      SetNumberOrText(field, message);
    } else {
      Message& nested =
          field.is_repeated()
              ? *message.GetReflection()->AddMessage(&message, &field)
              : *message.GetReflection()->MutableMessage(&message, &field);
      if (field.message_type()->name() != "Duration") {
        return Check(nested, path + ".");
      }
      google::protobuf::Duration seven;
      seven.set_seconds(7);
      nested.CopyFrom(seven);
    }
    ExpectBack(path);
  }

  // Sets a value that is no default.
  static void SetNumberOrText(const FieldDescriptor& field, Message& message) {
    FieldVisitor visit(message);
    const auto set = [&](auto value) {
      std::vector<decltype(value)> list = {value};
      if (field.is_repeated()) {
        visit(field.name().c_str(), list);
      } else {
        visit(field.name().c_str(), value);
      }
    };
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return set(int32_t{7});
      case FieldDescriptor::CPPTYPE_INT64:
        return set(int64_t{7});
      case FieldDescriptor::CPPTYPE_UINT64:
        return set(uint64_t{7});
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return set(0.625);
      case FieldDescriptor::CPPTYPE_BOOL:
        return set(!field.has_presence());  // with presence, true is default
      case FieldDescriptor::CPPTYPE_STRING:
        return set(std::string("float16"));  // of any text, variable_type too
      default:
        FAIL() << field.full_name() << " has a type that no list converts";
    }
  }

  void ExpectBack(const std::string& path) {
    ++count_;
    const absl::StatusOr<JobConfig> read = FromProto(job_);
    ASSERT_OK(read);
    const v1::JobConfig back = ToProto(*read);
    MessageDifferencer differencer;
    differencer.set_scope(MessageDifferencer::PARTIAL);
    EXPECT_TRUE(differencer.Compare(job_, back))
        << path << " is lost: no list in common/job/codec names it";
  }

  v1::JobConfig job_;
  int count_ = 0;
};

TEST(FieldListCodecTest, EveryFieldOfAJobComesBack) {
  EveryField fields;

  fields.Check(fields.job(), "");

  EXPECT_GT(fields.count(), 200);
}

}  // namespace
}  // namespace lockstep
