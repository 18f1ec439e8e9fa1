#include "trainer/checkpoint/export_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdio>

#include "trainer/checkpoint/adapter_export.h"
#include "trainer/checkpoint/export.h"
#include "trainer/process/command_words.h"
#include "trainer/values/settings.h"

namespace tj::trainer {
namespace {

struct Words {
  std::string from, to, weights = "raw", module_prefix;
  bool is_adapter = false;
};

void define(CLI::App& app, Words& words) {
  app.add_option("--from", words.from,
                 "a checkpoint, the folder of a training (its newest usable checkpoint), a folder "
                 "with model.safetensors, or a .safetensors file")
      ->type_name("PATH")
      ->required();
  app.add_option("--to", words.to,
                 "the file to write: .pth (.pt) for torch.load, or .safetensors; replaces one of "
                 "its name. With --adapter a folder")
      ->type_name("PATH")
      ->required();
  app.add_option("--weights", words.weights,
                 "raw, or ema: the averages, where the training kept some (" + words.weights + ")")
      ->type_name("NAME")
      ->check(CLI::IsMember({"raw", "ema"}));
  auto* const adapter = app.add_flag("--adapter", words.is_adapter,
                                     "low-rank adapters (LoRA) alone, as PEFT's files");
  app.add_option("--module-prefix", words.module_prefix,
                 "with --adapter: what stands before the names of modules in the program that "
                 "loads it (nothing; model. in LeRobot's policies)")
      ->type_name("TEXT")
      ->needs(adapter);
}

Failure bad_usage(const std::string& message) {
  return {.exit_code = exit_code::kUsage, .reason = "BadUsage", .message = message};
}

/// What --from names can't be used, or --to not be written.
Failure failure_of(const Error& error) {
  if (error.code == Code::invalid) return bad_data(error);
  return {.exit_code = exit_code::kInputOutput, .reason = "SaveFailed", .message = describe(error)};
}

void print_damaged(const std::vector<DamagedCheckpoint>& damaged) {
  for (const auto& each : damaged)
    std::fprintf(stderr, "trainer export: passed over %s\n", describe(each).c_str());
}

void print_end(const ExportOrder& order, const ExportEnd& end) {
  print_damaged(end.damaged);
  const std::string step = end.step ? " (step " + std::to_string(*end.step) + ")" : "";
  std::printf("exported %s%s%s to %s: %zu tensors, %s parameters, %s bytes\n",
              order.weights == ExportedWeights::ema ? "averages of " : "", end.source.c_str(),
              step.c_str(), order.to.c_str(), end.tensors, grouped(end.elements).c_str(),
              grouped(end.bytes).c_str());
}

bool is_of_module_name(char each) {
  return std::isalnum(static_cast<unsigned char>(each)) != 0 || each == '_' || each == '.';
}

int run_adapter_export(const Words& words) {
  const char* const name = "trainer export";
  if (words.weights != "raw")
    return fail_command(name, bad_usage("--weights: is \"" + words.weights +
                                        "\"; it must be raw with --adapter: averages are of the "
                                        "merged weights"));
  if (!std::ranges::all_of(words.module_prefix, is_of_module_name))
    return fail_command(name, bad_usage("--module-prefix: it must be of letters, digits, _ and ."));
  const auto end =
      export_adapter({.from = words.from, .to = words.to, .module_prefix = words.module_prefix});
  if (!end) return fail_command(name, failure_of(end.error()));
  print_damaged(end->damaged);
  const std::string whole =
      end->whole > 0 ? ", and " + grouped(static_cast<std::int64_t>(end->whole)) + " as a whole"
                     : "";
  std::printf("exported adapters of %s (step %s) to %s: rank %s, %s modules%s, %s bytes\n",
              end->source.c_str(), std::to_string(end->step).c_str(), words.to.c_str(),
              std::to_string(end->rank).c_str(),
              grouped(static_cast<std::int64_t>(end->adapted)).c_str(), whole.c_str(),
              grouped(end->bytes).c_str());
  return exit_code::kDone;
}

}  // namespace

int run_export(const std::vector<std::string>& arguments) {
  CLI::App app("Writes the weights of a checkpoint as one file for other programs.",
               "trainer export");
  Words words;
  define(app, words);
  if (const auto code = read_words(app, arguments)) return *code;
  if (words.is_adapter) return run_adapter_export(words);
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
