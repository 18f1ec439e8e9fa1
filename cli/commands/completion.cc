// tj completion: what makes a shell complete tj.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/completion/scripts.h"
#include "cli/jobs/output.h"

namespace tj {
namespace {

constexpr const char* kExamples = R"(
Examples:
  source <(tj completion bash)                                  in ~/.bashrc
  source <(tj completion zsh)                                   in ~/.zshrc, after compinit
  tj completion fish > ~/.config/fish/completions/tj.fish

Commands, flags and names of jobs are completed; for names the cluster is asked, for 1.5 s at
most. kubectl-tj is completed as well.)";

}  // namespace

void add_completion(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("completion", "a script that makes a shell complete tj");
  auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "which shell")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}).description(""))
      ->type_name("bash|zsh|fish");
  command->footer(kExamples);
  command->callback([shell, &exit_code] {
    print(completion_script(*shell));
    exit_code = tj_exit::kSucceeded;
  });
}

}  // namespace tj
