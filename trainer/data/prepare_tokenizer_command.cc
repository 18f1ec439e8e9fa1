#include "trainer/data/prepare_tokenizer_command.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "contract/utf8.h"
#include "trainer/data/prepare.h"
#include "trainer/data/prepare_options.h"
#include "trainer/data/train_tokenizer.h"
#include "trainer/launch/host.h"
#include "trainer/process/command_words.h"
#include "trainer/process/progress_line.h"
#include "trainer/process/stop_request.h"
#include "trainer/values/settings.h"

namespace tj::trainer {
namespace {

constexpr std::int64_t kMinFrequencyMax = std::int64_t{1} << 40;

void define(CLI::App& app, TrainTokenizerOptions& options) {
  app.add_option("--input", options.inputs, "files and folders of text to learn from")
      ->type_name("PATH...")
      ->required();
  app.add_option("--vocabulary-size", options.vocabulary_size,
                 "tokens: <|endoftext|>, the 256 bytes, and what is learned")
      ->type_name("N")
      ->required()
      ->check(CLI::Range(kTrainedVocabularyMin, kTrainedVocabularyMax));
  app.add_option("--output", options.output, "tokenizer.json that is to be written")
      ->type_name("FILE.json")
      ->required();
  app.add_option("--min-frequency", options.min_frequency,
                 "a pair that is rarer in the text becomes no token (" +
                     std::to_string(options.min_frequency) + ")")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, kMinFrequencyMax));
  add_text_options(app, options.format, options.field);
  app.add_option("--workers", options.workers, "threads that count (one for each usable core)")
      ->type_name("N")
      ->check(CLI::Range(1, kPrepareWorkersMax));
}

void print_end(const TrainTokenizerOptions& options, const TrainTokenizerEnd& end) {
  const auto& progress = end.progress;
  std::printf("text        %.1f MB, %s different words\n",
              static_cast<double>(progress.bytes) / 1e6, grouped(progress.words).c_str());
  if (progress.halvings > 0) {
    std::printf(
        "left out    of the words of more than 15 bytes all but 1 in %s, to stay in memory\n",
        grouped(std::int64_t{1} << progress.halvings).c_str());
  }
  std::printf("vocabulary  %s tokens by %s merges; %.2f bytes of the text are a token\n",
              grouped(progress.tokens).c_str(), grouped(end.merges).c_str(), end.bytes_per_token);
  if (progress.tokens < progress.tokens_wanted) {
    std::printf("too small   %s tokens were asked for, but no other pair occurs %s times\n",
                grouped(progress.tokens_wanted).c_str(), grouped(options.min_frequency).c_str());
  }
  std::printf("wrote %s in %.1f s\n", options.output.c_str(), progress.seconds);
}

}  // namespace

int run_prepare_tokenizer(const std::vector<std::string>& arguments) {
  CLI::App app("Learns a byte-level BPE of any size from text, as GPT-2's.",
               "trainer prepare tokenizer");
  TrainTokenizerOptions options;
  define(app, options);
  if (const auto code = read_words(app, arguments)) return *code;
  options.field = with_invalid_utf8_replaced(options.field);  // as the members of JSON are
  if (options.workers == 0) options.workers = usable_cores();
  catch_stop_signals();
  const ProgressLine line;
  const TrainTokenizerHooks hooks{
      .progress =
          [&line](const TrainTokenizerProgress& progress) { line.show(progress_line(progress)); },
      .stop_signal = stop_signal,
      .progress_interval = line.interval()};
  const auto end = train_tokenizer(options, hooks);
  if (end.failure) return fail_command(app.get_name(), *end.failure, line.line_start());
  line.end(progress_line(end.progress));
  print_end(options, end);
  return exit_code::kDone;
}

}  // namespace tj::trainer
