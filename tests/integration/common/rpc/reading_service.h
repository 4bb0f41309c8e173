#ifndef LOCKSTEP_TESTS_INTEGRATION_COMMON_RPC_READING_SERVICE_H_
#define LOCKSTEP_TESTS_INTEGRATION_COMMON_RPC_READING_SERVICE_H_

#include <cstddef>
#include <fstream>

#include "grpcpp/grpcpp.h"
#include "lockstep/v1/call_stream.grpc.pb.h"

// For tests of the limits of a server: a service that reads what peers send.
namespace lockstep::testing {

inline constexpr size_t kMebibyte = 1 << 20;
inline constexpr char kCalls[] = "/lockstep.v1.CallStreamService/Calls";

// Returns the resident memory of this process.
inline size_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  size_t all = 0;
  size_t resident = 0;
  file >> all >> resident;
  return resident * 4096;
}

// ReadingService reads one message of each stream, and waits for the rest of
// it.
class ReadingService final : public v1::CallStreamService::CallbackService {
 public:
  grpc::ServerBidiReactor<v1::StreamedCalls, v1::StreamedAnswers>* Calls(
      grpc::CallbackServerContext* /*context*/) override {
    return new Reader;
  }

 private:
  class Reader final
      : public grpc::ServerBidiReactor<v1::StreamedCalls, v1::StreamedAnswers> {
   public:
    Reader() { StartRead(&calls_); }
    void OnReadDone(bool ok) override {
      Finish(ok ? grpc::Status::OK : grpc::Status::CANCELLED);
    }
    void OnDone() override { delete this; }

   private:
    v1::StreamedCalls calls_;
  };
};

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_INTEGRATION_COMMON_RPC_READING_SERVICE_H_
