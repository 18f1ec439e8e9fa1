#include "trainer/process/command_words.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "trainer/process/last_words.h"

namespace tj::trainer {

std::optional<int> read_words(CLI::App& command, const std::vector<std::string>& words) {
  try {
    command.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    std::fputs(command.help().c_str(), stdout);
    return exit_code::kDone;
  } catch (const CLI::ParseError& wrong) {
    const auto& name = command.get_name();
    return fail_command(
        name, {.exit_code = exit_code::kUsage,
               .reason = "BadUsage",
               .message = std::string(wrong.what()) + "; `" + name + " --help` lists the flags"});
  }
}

int fail_command(const std::string& command, const Failure& failure, const char* line_start) {
  write_last_words({.reason = failure.reason, .message = failure.message, .rank = {}, .step = {}});
  std::fprintf(stderr, "%s%s: %s\n", line_start, command.c_str(), failure.message.c_str());
  return failure.exit_code;
}

}  // namespace tj::trainer
