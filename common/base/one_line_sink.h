#ifndef LOCKSTEP_COMMON_BASE_ONE_LINE_SINK_H_
#define LOCKSTEP_COMMON_BASE_ONE_LINE_SINK_H_

#include <cstddef>
#include <memory>
#include <string>

#include "spdlog/sinks/sink.h"

namespace lockstep {

// OneLineSink passes messages to another sink in the form of OneLine(), so that
// text from a peer cannot forge lines, control the terminal or fill the disk.
//
// Threads: as the other sink.
class OneLineSink final : public spdlog::sinks::sink {
 public:
  static constexpr size_t kMaxText = 4 << 10;  // bytes of a message

  explicit OneLineSink(spdlog::sink_ptr inner);

  void log(const spdlog::details::log_msg& message) override;
  void flush() override;
  void set_pattern(const std::string& pattern) override;
  void set_formatter(std::unique_ptr<spdlog::formatter> formatter) override;

 private:
  const spdlog::sink_ptr inner_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_BASE_ONE_LINE_SINK_H_
