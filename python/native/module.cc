// The native part of the Python package: Session and Evaluation.
// What it returns is for lockstep/_session.py, not for users.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "python/native/memory.h"
#include "python/native/unlocked.h"
#include "worker/session/evaluation.h"
#include "worker/session/session.h"

namespace py = pybind11;

namespace lockstep::worker {
namespace {

// The pass at hand is not needed any more.
class Unwanted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
// The job's epochs are over.
class EndOfInput : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// None of these exceptions touches the interpreter when it is thrown, so this
// may be called without the interpreter's lock.
void Check(const absl::Status& status) {
  if (status.ok()) return;
  const std::string message(status.message());
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      throw py::value_error(message);
    case absl::StatusCode::kAborted:
      throw Unwanted(message);
    case absl::StatusCode::kOutOfRange:
      throw EndOfInput(message);
    default:
      throw std::runtime_error(message);
  }
}

template <typename T>
T Check(absl::StatusOr<T> value) {
  Check(value.status());
  return *std::move(value);
}

// How the servers draw initial values: kind, a, b, as Initializer has them.
using Drawn = std::tuple<int, double, double>;

// A variable as Python describes it: name, shape, dtype, the bytes of its
// initial values (or None: they are drawn), how they are drawn, the cut of a
// table's rows, and whether it is a buffer.
using Described = std::tuple<std::string, std::vector<int64_t>, std::string,
                             std::optional<py::buffer>, Drawn, int, bool>;

// Calls the function of an evaluator or a session without the interpreter's
// lock.
template <typename Call>
auto WithoutLock(Call call) {
  const Unlocked unlocked;
  return call();
}

absl::Duration WaitFor(double seconds) {
  return seconds > 0 ? absl::Seconds(seconds) : absl::InfiniteDuration();
}

class PySession {
 public:
  PySession(const std::string& tf_config, const std::string& tls_dir,
            const std::string& expected_job, const std::string& log_level,
            bool shared_memory, double chief_wait, bool exit_with_parent,
            bool early_passes, const std::string& job_file,
            const std::vector<std::string>& settings,
            const std::string& state_dir, const std::string& status_address,
            const std::vector<Described>& described) {
    std::vector<SessionVariable> variables;
    for (const auto& [name, shape, dtype, initial, drawn, row_cut, buffer] :
         described) {
      SessionVariable variable;
      variable.spec.name = name;
      variable.spec.shape = shape;
      variable.spec.dtype = Check(ParseDType(dtype));
      variable.spec.row_cut = static_cast<RowCut>(row_cut);
      variable.spec.buffer = buffer;
      variable.spec.initializer = {
          .kind = static_cast<Initializer::Kind>(std::get<0>(drawn)),
          .a = std::get<1>(drawn),
          .b = std::get<2>(drawn)};
      tables_.push_back(variable.spec.is_table());
      if (initial.has_value()) {
        // The session reads the initial values until its first step, so the
        // Python objects behind them must live on.
        buffers_.push_back(initial->request());
        const py::buffer_info& info = buffers_.back();
        variable.initial = {static_cast<const std::byte*>(info.ptr),
                            static_cast<size_t>(info.size * info.itemsize)};
      }
      variables.push_back(std::move(variable));
    }
    Session::Options options;
    options.tf_config = tf_config;
    options.tls_dir = tls_dir;
    options.expected_job = expected_job;
    options.log_level = log_level;
    options.early_passes = early_passes;
    options.shared_memory = shared_memory;
    options.chief_wait = WaitFor(chief_wait);
    options.exit_with_parent = exit_with_parent;
    options.job_file = job_file;
    options.settings = settings;
    options.state_dir = state_dir;
    options.status_address = status_address;
    const Unlocked unlocked;
    std::unique_ptr<Session> session = Check(Session::Join(options, variables));
    auto destroyed = std::make_shared<std::promise<void>>();
    destroyed_ = destroyed->get_future();
    session_ =
        std::shared_ptr<Session>(session.release(), [destroyed](Session* last) {
          std::default_delete<Session>()(last);
          destroyed->set_value();
        });
  }

  ~PySession() { Close(""); }

  // (number, share, replica, batch, seed, membership, early)
  using Step = std::tuple<int64_t, int, int, int64_t, uint64_t, int64_t, bool>;

  // (turn, step)
  std::pair<int, Step> Next(double timeout) {
    SessionStep step;
    const Session::Turn turn = Check(Inside([&](Session& session) {
      return session.Next(absl::Seconds(timeout), step);
    }));
    // With the lock: this gives up references to Python objects.
    if (turn == Session::Turn::kStep) buffers_.clear();
    return {static_cast<int>(turn), ToTuple(step)};
  }

  std::optional<Step> StepAgain() {
    const std::optional<SessionStep> step = session().StepAgain();
    return step.has_value() ? std::optional(ToTuple(*step)) : std::nullopt;
  }

  bool IsTaken(size_t variable) { return session().is_taken(variable); }

  // (code, message, exit code)
  std::tuple<std::string, std::string, int> End() {
    const absl::Status end = session().end();
    return {absl::StatusCodeToString(end.code()), std::string(end.message()),
            session().exit_code()};
  }

  std::optional<int64_t> LastStep() { return session().last_step(); }

  // (name, seed, batch size, train steps, worker, workers, replicas, passes per
  // step)
  std::tuple<std::string, uint64_t, int64_t, int64_t, int, int, int, int>
  Job() {
    const SessionJob job = session().job();
    return {job.name,   job.seed,        job.batch_size, job.train_steps,
            job.worker, job.num_workers, job.replicas,   job.passes_per_step};
  }

  // The variable must be no table: the memory of rows is another with each
  // choice.
  Memory Value(size_t variable) {
    CheckKind(variable, /*table=*/false);
    const absl::Span<const std::byte> bytes = session().value(variable);
    // Writable, although values are not: after TakeValue() the memory is the
    // program's.
    return {session().owner(), const_cast<std::byte*>(bytes.data()),
            bytes.size()};
  }

  Memory Gradient(size_t variable) {
    CheckKind(variable, /*table=*/false);
    const absl::Span<std::byte> bytes = session().gradient(variable);
    return {session().owner(), bytes.data(), bytes.size()};
  }

  void AwaitValues(size_t first, size_t count) {
    Check(Inside(
        [&](Session& session) { return session.AwaitValues(first, count); }));
  }

  // False: the time is up.
  bool BeginGradients(double timeout) {
    return Check(Inside([&](Session& session) {
      return session.BeginGradients(absl::Seconds(timeout));
    }));
  }

  void TakeValue(size_t variable) { Check(session().TakeValue(variable)); }

  void ChooseRows(size_t variable, std::vector<int64_t> ids) {
    Check(session().ChooseRows(variable, std::move(ids)));
  }

  // A copy of the values of a table's chosen rows, as bytes.
  Memory RowValues(size_t variable) {
    CheckKind(variable, /*table=*/true);
    const absl::Span<const std::byte> bytes = session().value(variable);
    return CopyOf(bytes.data(), bytes.size());
  }

  // The gradients of a table's chosen rows, as bytes.
  void SetRowGradients(size_t variable, const py::buffer& gradients) {
    CheckKind(variable, /*table=*/true);
    const py::buffer_info from = gradients.request();
    const absl::Span<std::byte> bytes = session().gradient(variable);
    if (static_cast<size_t>(from.size * from.itemsize) != bytes.size() ||
        PyBuffer_IsContiguous(from.view(), 'C') == 0) {
      throw py::value_error("the gradients of rows have " +
                            std::to_string(from.size * from.itemsize) +
                            " bytes; the rows " + std::to_string(bytes.size()) +
                            ", one after the other");
    }
    std::copy_n(static_cast<const std::byte*>(from.ptr), bytes.size(),
                bytes.data());
  }

  void PullRows() {
    Check(Inside([](Session& session) { return session.PullRows(); }));
  }

  void Report(const std::string& name, double value) {
    Check(session().Report({name, value}));
  }

  void Pull() {
    Check(Inside([](Session& session) { return session.Pull(); }));
  }

  void Ready(size_t variable) {
    Check(Inside([&](Session& session) { return session.Ready(variable); }));
  }

  void BeginReading() { session().BeginReading(); }
  void EndReading() { session().EndReading(); }

  void CheckWanted() {
    Check(Inside([](Session& session) { return session.CheckWanted(); }));
  }

  void Finish(double loss, int64_t examples) {
    Check(Inside(
        [&](Session& session) { return session.Finish(loss, examples); }));
  }

  // Indices as int64, one after the other.
  Memory Examples(int64_t num_examples, int64_t batch) {
    const std::vector<int64_t> rows = Check(Inside([&](Session& session) {
      return session.Examples(num_examples, batch);
    }));
    return CopyOf(reinterpret_cast<const std::byte*>(rows.data()),
                  rows.size() * sizeof(int64_t));
  }

  void EndInput() { session().EndInput(); }

  void RequestStop(const std::string& reason) {
    Inside([&](Session& session) { session.RequestStop(reason); });
  }

  // Ends the calls of other threads. Returns true if that stops the job, as
  // Session::carries_job() has it.
  bool Close(const std::string& failure) {
    // No later call finds the session, but one of another thread may be in it.
    std::shared_ptr<Session> session = std::move(session_);
    const Unlocked unlocked;
    if (session == nullptr) return false;
    const bool stops = session->carries_job();
    if (!failure.empty()) session->Fail(failure);
    session->Leave();
    session.reset();
    // A forked child has none of the threads whose calls would return.
    if (process_ == getpid()) destroyed_.wait();
    return stops;
  }

 private:
  static Step ToTuple(const SessionStep& step) {
    return {step.number, step.share,      step.replica, step.batch,
            step.seed,   step.membership, step.early};
  }

  void CheckKind(size_t variable, bool table) const {
    if (variable < tables_.size() && tables_[variable] == table) return;
    throw py::value_error("variable " + std::to_string(variable) +
                          (table ? " is no table" : " is a table, or is not"));
  }

  // Calls a function of the session without the interpreter's lock. The session
  // lives until that returns, though Close() may be called in another thread.
  template <typename Call>
  std::invoke_result_t<Call, Session&> Inside(Call call) {
    session();
    std::shared_ptr<Session> found = session_;
    const Unlocked unlocked;
    // Given up without the lock, because the last one destroys the session.
    const std::shared_ptr<Session> held = std::move(found);
    return call(*held);
  }

  // Must be called, and used, with the interpreter's lock.
  Session& session() {
    if (session_ == nullptr) {
      throw std::runtime_error(
          "the worker is closed; make a new one to join again");
    }
    return *session_;
  }

  std::vector<bool> tables_;              // by variable
  std::vector<py::buffer_info> buffers_;  // initial values, until a step comes
  const pid_t process_ = getpid();
  std::shared_ptr<Session> session_;
  std::future<void> destroyed_;  // the session
};

class PyEvaluation {
 public:
  PyEvaluation(const std::string& tf_config, const std::string& tls_dir,
               const std::string& expected_job, const std::string& log_level,
               double chief_wait, bool exit_with_parent) {
    Evaluation::Options options;
    options.tf_config = tf_config;
    options.tls_dir = tls_dir;
    options.expected_job = expected_job;
    options.log_level = log_level;
    options.chief_wait = WaitFor(chief_wait);
    options.exit_with_parent = exit_with_parent;
    evaluation_ = Check(WithoutLock([&] { return Evaluation::Make(options); }));
  }

  ~PyEvaluation() {
    WithoutLock([&] { evaluation_.reset(); });
  }

  // The status of the registration: (code, message, exit code).
  std::tuple<std::string, std::string, int> Join() {
    const absl::Status status =
        WithoutLock([&] { return evaluation_->Join(); });
    return {absl::StatusCodeToString(status.code()),
            std::string(status.message()), evaluation_->exit_code()};
  }

  bool Wait(double timeout) {
    return Check(
        WithoutLock([&] { return evaluation_->Wait(absl::Seconds(timeout)); }));
  }

  int Joins() const { return evaluation_->joins(); }

  std::tuple<std::string, std::string, int> End() {
    const absl::Status end = evaluation_->end();
    return {absl::StatusCodeToString(end.code()), std::string(end.message()),
            evaluation_->exit_code()};
  }

  // (name, checkpoint directory)
  std::tuple<std::string, std::string> Job() {
    return {evaluation_->job_name(), evaluation_->checkpoint_directory()};
  }

  bool ScoresAverages() const { return evaluation_->scores_averages(); }

  void Report(int64_t step,
              const std::vector<std::pair<std::string, double>>& named) {
    std::vector<NamedFigure> figures;
    for (const auto& [name, value] : named) figures.push_back({name, value});
    Check(WithoutLock([&] { return evaluation_->Report(step, figures); }));
  }

  void Leave(const std::string& reason) {
    WithoutLock([&] { evaluation_->Leave(reason); });
  }

  void SetTrouble(const std::string& trouble) {
    evaluation_->SetTrouble(trouble);
  }

  void RequestStop() { evaluation_->RequestStop(); }

 private:
  std::unique_ptr<Evaluation> evaluation_;
};

void DefineEvaluation(py::module_& module) {
  py::class_<PyEvaluation>(module, "Evaluation")
      .def(py::init<const std::string&, const std::string&, const std::string&,
                    const std::string&, double, bool>())
      .def("join", &PyEvaluation::Join)
      .def("wait", &PyEvaluation::Wait)
      .def("joins", &PyEvaluation::Joins)
      .def("end", &PyEvaluation::End)
      .def("job", &PyEvaluation::Job)
      .def("scores_averages", &PyEvaluation::ScoresAverages)
      .def("report", &PyEvaluation::Report)
      .def("set_trouble", &PyEvaluation::SetTrouble)
      .def("leave", &PyEvaluation::Leave)
      .def("request_stop", &PyEvaluation::RequestStop);
}

}  // namespace
}  // namespace lockstep::worker

PYBIND11_MODULE(_native, module) {
  using lockstep::worker::Memory;
  using lockstep::worker::PySession;
  // Handlers run in the reverse order of their registration: this one comes
  // after those of the package.
  py::module_::import("atexit").attr("register")(
      py::cpp_function(&lockstep::worker::WaitForTheEnd));
  py::class_<Memory>(module, "Memory", py::buffer_protocol())
      .def_buffer(&Memory::Buffer)
      .def("dlpack", &Memory::DLPack);
  // As the errors without a class of their own: code that handles those of a
  // call handles these, too.
  py::register_exception<lockstep::worker::Unwanted>(module, "Unwanted",
                                                     PyExc_RuntimeError);
  py::register_exception<lockstep::worker::EndOfInput>(module, "EndOfInput",
                                                       PyExc_RuntimeError);
  py::class_<PySession>(module, "Session")
      .def(py::init<const std::string&, const std::string&, const std::string&,
                    const std::string&, bool, double, bool, bool,
                    const std::string&, const std::vector<std::string>&,
                    const std::string&, const std::string&,
                    const std::vector<lockstep::worker::Described>&>())
      .def("next", &PySession::Next)
      .def("step_again", &PySession::StepAgain)
      .def("is_taken", &PySession::IsTaken)
      .def("end", &PySession::End)
      .def("last_step", &PySession::LastStep)
      .def("job", &PySession::Job)
      .def("value", &PySession::Value)
      .def("gradient", &PySession::Gradient)
      .def("await_values", &PySession::AwaitValues)
      .def("begin_gradients", &PySession::BeginGradients)
      .def("take_value", &PySession::TakeValue)
      .def("choose_rows", &PySession::ChooseRows)
      .def("row_values", &PySession::RowValues)
      .def("set_row_gradients", &PySession::SetRowGradients)
      .def("pull_rows", &PySession::PullRows)
      .def("report", &PySession::Report)
      .def("pull", &PySession::Pull)
      .def("ready", &PySession::Ready)
      .def("begin_reading", &PySession::BeginReading)
      .def("end_reading", &PySession::EndReading)
      .def("check_wanted", &PySession::CheckWanted)
      .def("finish", &PySession::Finish)
      .def("examples", &PySession::Examples)
      .def("end_input", &PySession::EndInput)
      .def("request_stop", &PySession::RequestStop)
      .def("close", &PySession::Close, py::arg("failure") = "");
  lockstep::worker::DefineEvaluation(module);
}
