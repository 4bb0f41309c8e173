// The native part of the Python package: Session, with numpy arrays for memory.
// What it returns is for lockstep/_session.py, not for users.

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
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

// A variable as Python describes it: name, shape, dtype, the bytes of its
// initial values (or None), and the cut of a table's rows.
using Described = std::tuple<std::string, std::vector<int64_t>, std::string,
                             std::optional<py::buffer>, int>;

class PySession {
 public:
  PySession(const std::string& tf_config, const std::string& tls_dir,
            const std::string& expected_job, const std::string& log_level,
            bool shared_memory, double chief_wait, bool exit_with_parent,
            const std::vector<Described>& described) {
    std::vector<SessionVariable> variables;
    for (const auto& [name, shape, dtype, initial, row_cut] : described) {
      SessionVariable variable;
      variable.spec.name = name;
      variable.spec.shape = shape;
      variable.spec.dtype = Check(ParseDType(dtype));
      variable.spec.row_cut = static_cast<RowCut>(row_cut);
      if (initial.has_value()) {
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
    options.shared_memory = shared_memory;
    options.chief_wait =
        chief_wait > 0 ? absl::Seconds(chief_wait) : absl::InfiniteDuration();
    options.exit_with_parent = exit_with_parent;
    py::gil_scoped_release release;
    session_ = Check(Session::Join(options, variables));
  }

  ~PySession() { Close(); }

  // (turn, number, share, batch, seed, membership)
  std::tuple<int, int64_t, int, int64_t, uint64_t, int64_t> Next(
      double timeout) {
    SessionStep step;
    Session::Turn turn;
    {
      py::gil_scoped_release release;
      turn = Check(session().Next(absl::Seconds(timeout), step));
    }
    if (turn == Session::Turn::kStep) buffers_.clear();
    return {
        static_cast<int>(turn), step.number, step.share, step.batch, step.seed,
        step.membership};
  }

  // (code, message, exit code)
  std::tuple<std::string, std::string, int> End() {
    const absl::Status end = session().end();
    return {absl::StatusCodeToString(end.code()), std::string(end.message()),
            session().exit_code()};
  }

  // (name, seed, batch size, train steps, worker, workers)
  std::tuple<std::string, uint64_t, int64_t, int64_t, int, int> Job() {
    const SessionJob job = session().job();
    return {job.name,        job.seed,   job.batch_size,
            job.train_steps, job.worker, job.num_workers};
  }

  py::array Value(size_t variable) {
    const absl::Span<const std::byte> bytes = session().value(variable);
    return Array(const_cast<std::byte*>(bytes.data()), bytes.size());
  }

  py::array Gradient(size_t variable) {
    const absl::Span<std::byte> bytes = session().gradient(variable);
    return Array(bytes.data(), bytes.size());
  }

  void ChooseRows(size_t variable, std::vector<int64_t> ids) {
    Check(session().ChooseRows(variable, std::move(ids)));
  }

  std::vector<int64_t> Rows(size_t variable) {
    const absl::Span<const int64_t> rows = session().rows(variable);
    return {rows.begin(), rows.end()};
  }

  void Pull() {
    py::gil_scoped_release release;
    Check(session().Pull());
  }

  void Ready(size_t variable) {
    py::gil_scoped_release release;
    Check(session().Ready(variable));
  }

  void CheckWanted() {
    py::gil_scoped_release release;
    Check(session().CheckWanted());
  }

  void Finish(double loss, int64_t examples) {
    py::gil_scoped_release release;
    Check(session().Finish(loss, examples));
  }

  py::array_t<int64_t> Examples(int64_t num_examples, int64_t batch) {
    std::vector<int64_t> rows;
    {
      py::gil_scoped_release release;
      rows = Check(session().Examples(num_examples, batch));
    }
    return py::array_t<int64_t>(static_cast<py::ssize_t>(rows.size()),
                                rows.data());
  }

  void RequestStop(const std::string& reason) {
    py::gil_scoped_release release;
    session().RequestStop(reason);
  }

  void Close() {
    py::gil_scoped_release release;
    session_.reset();
  }

 private:
  Session& session() {
    if (session_ == nullptr) {
      throw std::runtime_error(
          "the worker is closed; make a new one to join again");
    }
    return *session_;
  }

  // An array of bytes that keeps the memory for as long as it lives.
  py::array Array(std::byte* data, size_t size) {
    auto* owner = new std::shared_ptr<const void>(session().owner());
    const py::capsule keeper(owner, [](void* held) {
      delete static_cast<std::shared_ptr<const void>*>(held);
    });
    return py::array_t<uint8_t>(static_cast<py::ssize_t>(size),
                                reinterpret_cast<uint8_t*>(data), keeper);
  }

  std::vector<py::buffer_info> buffers_;  // initial values, until a step comes
  std::unique_ptr<Session> session_;
};

}  // namespace
}  // namespace lockstep::worker

PYBIND11_MODULE(_native, module) {
  using lockstep::worker::PySession;
  py::register_exception<lockstep::worker::Unwanted>(module, "Unwanted");
  py::register_exception<lockstep::worker::EndOfInput>(module, "EndOfInput");
  py::class_<PySession>(module, "Session")
      .def(py::init<const std::string&, const std::string&, const std::string&,
                    const std::string&, bool, double, bool,
                    const std::vector<lockstep::worker::Described>&>())
      .def("next", &PySession::Next)
      .def("end", &PySession::End)
      .def("job", &PySession::Job)
      .def("value", &PySession::Value)
      .def("gradient", &PySession::Gradient)
      .def("choose_rows", &PySession::ChooseRows)
      .def("rows", &PySession::Rows)
      .def("pull", &PySession::Pull)
      .def("ready", &PySession::Ready)
      .def("check_wanted", &PySession::CheckWanted)
      .def("finish", &PySession::Finish)
      .def("examples", &PySession::Examples)
      .def("request_stop", &PySession::RequestStop)
      .def("close", &PySession::Close);
}
