// tj man: the manual page, made from the options of the program itself.
#include <CLI/CLI.hpp>

#include "cli/commands/commands.h"
#include "cli/jobs/output.h"
#include "cli/man_page.h"

namespace tj {
namespace {

constexpr const char* kExamples = R"(
Examples:
  tj man | man -l -                                          read it
  tj man > ~/.local/share/man/man1/tj.1                      install it: man tj)";

}  // namespace

void add_man(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("man", "the manual page, for man -l -");
  command->footer(kExamples);
  command->callback([&app, &exit_code] {
    print(man_page(app));
    exit_code = tj_exit::kSucceeded;
  });
}

}  // namespace tj
