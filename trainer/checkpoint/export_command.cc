#include "trainer/checkpoint/export_command.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "trainer/checkpoint/export.h"
#include "trainer/process/command_words.h"
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

Failure bad_usage(const std::string& message) {
  return {.exit_code = exit_code::kUsage, .reason = "BadUsage", .message = message};
}

/// What --from names can't be used, or --to not be written.
Failure failure_of(const Error& error) {
  if (error.code == Code::invalid) return bad_data(error);
  return {.exit_code = exit_code::kInputOutput, .reason = "SaveFailed", .message = describe(error)};
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
  if (const auto code = read_words(app, arguments)) return *code;
  const ExportOrder order{
      .from = words.from,
      .to = words.to,
      .weights = words.weights == "ema" ? ExportedWeights::ema : ExportedWeights::raw};
  if (!is_export_name(order.to))
    return fail_command(app.get_name(), bad_usage("--to: is \"" + order.to.string() +
                                                  "\"; it must end in .pth, .pt or .safetensors"));
  const auto end = export_weights(order);
  if (!end) return fail_command(app.get_name(), failure_of(end.error()));
  print_end(order, *end);
  return exit_code::kDone;
}

}  // namespace tj::trainer
