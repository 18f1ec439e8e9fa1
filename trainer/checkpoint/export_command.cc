#include "trainer/checkpoint/export_command.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "contract/outcome.h"
#include "trainer/checkpoint/export.h"
#include "trainer/values/settings.h"

namespace tj::trainer {
namespace {

struct Words {
  std::string from, to, weights = "raw";
};

void define(CLI::App& app, Words& words) {
  app.add_option("--from", words.from,
                 "a checkpoint, the folder of a training (its newest usable checkpoint), a folder "
                 "with model.safetensors, or a .safetensors file")
      ->type_name("PATH")
      ->required();
  app.add_option("--to", words.to,
                 "the file to write: .pth (.pt) for torch.load, or .safetensors; replaces one of "
                 "its name")
      ->type_name("FILE")
      ->required();
  app.add_option("--weights", words.weights,
                 "raw, or ema: the averages, where the training kept some (" + words.weights + ")")
      ->type_name("NAME")
      ->check(CLI::IsMember({"raw", "ema"}));
}

int fail(int code, const std::string& message) {
  std::fprintf(stderr, "trainer export: %s\n", message.c_str());
  return code;
}

void print_end(const ExportOrder& order, const ExportEnd& end) {
  for (const auto& damaged : end.damaged)
    std::fprintf(stderr, "trainer export: passed over %s\n", describe(damaged).c_str());
  const std::string step = end.step ? " (step " + std::to_string(*end.step) + ")" : "";
  std::printf("exported %s%s%s to %s: %zu tensors, %s parameters, %s bytes\n",
              order.weights == ExportedWeights::ema ? "averages of " : "", end.source.c_str(),
              step.c_str(), order.to.c_str(), end.tensors, grouped(end.elements).c_str(),
              grouped(end.bytes).c_str());
}

}  // namespace

int run_export(const std::vector<std::string>& arguments) {
  CLI::App app("Writes the weights of a checkpoint as one file for other programs.",
               "trainer export");
  Words words;
  define(app, words);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return exit_code::kDone;
  } catch (const CLI::ParseError& failure) {
    return fail(exit_code::kUsage,
                std::string(failure.what()) + "; `trainer export --help` lists the flags");
  }
  const ExportOrder order{
      .from = words.from,
      .to = words.to,
      .weights = words.weights == "ema" ? ExportedWeights::ema : ExportedWeights::raw};
  if (!is_export_name(order.to))
    return fail(exit_code::kUsage,
                "--to: is \"" + order.to.string() + "\"; it must end in .pth, .pt or .safetensors");
  const auto end = export_weights(order);
  if (!end)
    return fail(end.error().code == Code::invalid ? exit_code::kBadData : exit_code::kInputOutput,
                describe(end.error()));
  print_end(order, *end);
  return exit_code::kDone;
}

}  // namespace tj::trainer
