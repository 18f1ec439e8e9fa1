#include "trainer/report/progress.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

namespace tj::trainer {
namespace {

/// False when the reader is gone or the disk full: then there is nobody left to tell.
bool write_all(int descriptor, const std::string& text) {
  std::size_t written = 0;
  while (written < text.size()) {
    const auto count = ::write(descriptor, text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    written += static_cast<std::size_t>(count);
  }
  return true;
}

double tokens_per_second(const StepReport& report) {
  return report.seconds > 0 ? static_cast<double>(report.tokens) / report.seconds : 0;
}

}  // namespace

std::string step_line(const StepReport& report) {
  char line[160];
  std::snprintf(line, sizeof line, "step %lld/%lld | loss %.4f | lr %.1e | %.0f tok/s | %.3f s",
                static_cast<long long>(report.step), static_cast<long long>(report.steps),
                report.loss, report.lr, tokens_per_second(report), report.seconds);
  return line;
}

std::string step_json(const StepReport& report) {
  const nlohmann::ordered_json document = {{"step", report.step},
                                           {"steps", report.steps},
                                           {"loss", report.loss},
                                           {"lr", report.lr},
                                           {"gradient_norm", report.gradient_norm},
                                           {"tokens_per_second", tokens_per_second(report)},
                                           {"seconds", report.seconds}};
  return document.dump();
}

void say(const std::string& line) { (void)write_all(STDOUT_FILENO, line + "\n"); }
void say_error(const std::string& line) { (void)write_all(STDERR_FILENO, line + "\n"); }

Result<void> append_line(const std::filesystem::path& file, const std::string& line) {
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const bool written = descriptor >= 0 && write_all(descriptor, line + "\n");
  const int error_number = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (written) return {};
  return Error{.code = Code::unavailable,
               .message = std::string("can't be written: ") + std::strerror(error_number),
               .subject = file.string()};
}

}  // namespace tj::trainer
