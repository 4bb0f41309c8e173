#include "common/base/one_line_sink.h"

#include <utility>

#include "common/text/plain_text.h"

namespace lockstep {

OneLineSink::OneLineSink(spdlog::sink_ptr inner) : inner_(std::move(inner)) {}

void OneLineSink::log(const spdlog::details::log_msg& message) {
  const absl::string_view text(message.payload.data(), message.payload.size());
  if (IsOneLine(text, kMaxText)) return inner_->log(message);
  const std::string line = OneLine(text, kMaxText);
  // Only a message that needs it is copied.
  spdlog::details::log_msg changed = message;
  changed.payload = spdlog::string_view_t(line.data(), line.size());
  inner_->log(changed);
}

void OneLineSink::flush() { inner_->flush(); }

void OneLineSink::set_pattern(const std::string& pattern) {
  inner_->set_pattern(pattern);
}

void OneLineSink::set_formatter(std::unique_ptr<spdlog::formatter> formatter) {
  inner_->set_formatter(std::move(formatter));
}

}  // namespace lockstep
