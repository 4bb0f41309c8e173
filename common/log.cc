#include "common/log.h"

#include "absl/strings/str_cat.h"
#include "spdlog/sinks/stdout_sinks.h"

namespace lockstep {

absl::Status InitLog(const std::string& task, const std::string& level) {
  const spdlog::level::level_enum parsed = spdlog::level::from_str(level);
  if (parsed == spdlog::level::off || level.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--log_level is \"", level,
                     "\"; use one of trace, debug, info, warning, error"));
  }
  auto logger = std::make_shared<spdlog::logger>(
      task, std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%-7l%$ %n: %v");
  logger->set_level(parsed);
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
  return absl::OkStatus();
}

}  // namespace lockstep
