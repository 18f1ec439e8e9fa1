#include "trainer/workloads/gpt2/prompt.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "trainer/process/durable_file.h"
#include "trainer/process/stop_request.h"

namespace tj::trainer {
namespace {

constexpr const char* kPrompt = "--prompt";
constexpr const char* kPromptFile = "--prompt-file";

Error wrong(std::string message) {
  return {.code = Code::invalid, .message = std::move(message), .subject = kPromptFile};
}

/// A read would begin anew after a signal; a poll does not.
Result<std::string> read_standard_input() {
  std::string text;
  std::array<char, 65536> bytes{};
  while (stop_signal() == 0) {
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    auto count = static_cast<ssize_t>(::poll(&input, 1, /*timeout=*/-1));
    if (count > 0) count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      return wrong(std::string("standard input can't be read: ") + std::strerror(errno));
    if (count == 0) break;
    text.append(bytes.data(), static_cast<std::size_t>(count));
    if (static_cast<std::int64_t>(text.size()) >= kPromptBytesMax)
      return wrong("standard input is larger than " + std::to_string(kPromptBytesMax) + " bytes");
  }
  return text;
}

}  // namespace

Result<std::string> read_prompt(const Flags& flags) {
  const auto text = flags.find(kPrompt), file = flags.find(kPromptFile);
  if (text != flags.end() && file != flags.end())
    return wrong(std::string("is given, and ") + kPrompt + " too; it must be one of them");
  if (text != flags.end()) return text->second;
  if (file == flags.end()) return std::string();
  if (file->second == "-") return read_standard_input();
  auto read = read_small_file(file->second, kPromptBytesMax);
  if (!read) return wrong(describe(read.error()));
  return read;
}

}  // namespace tj::trainer
