#include "trainer/data/prepare_command.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "contract/utf8.h"
#include "trainer/data/prepare.h"
#include "trainer/data/prepare_conversations_command.h"
#include "trainer/data/prepare_lerobot_command.h"
#include "trainer/data/prepare_options.h"
#include "trainer/data/prepare_tokenizer_command.h"
#include "trainer/data/prepare_video_command.h"
#include "trainer/launch/host.h"
#include "trainer/process/command_words.h"
#include "trainer/process/progress_line.h"
#include "trainer/process/stop_request.h"
#include "trainer/values/settings.h"

namespace tj::trainer {
namespace {

void define(CLI::App& app, PrepareOptions& options) {
  app.add_option("--input", options.inputs, "files and folders of text or Parquet, in this order")
      ->type_name("PATH...")
      ->required();
  app.add_option("--output", options.output, "folder of tokens: new, empty, or of the same command")
      ->type_name("FOLDER")
      ->required();
  app.add_option("--tokenizer", options.tokenizer,
                 "byte, bpe or gpt2-bpe (" + options.tokenizer + ")")
      ->type_name("NAME");
  app.add_option("--vocabulary", options.vocabulary,
                 "for bpe and gpt2-bpe: tokenizer.json, or a folder with vocab.json and merges.txt")
      ->type_name("PATH");
  add_text_options(app, options.format, options.field);
  app.add_option("--workers", options.workers, "threads (one for each usable core)")
      ->type_name("N")
      ->check(CLI::Range(1, kPrepareWorkersMax));
  app.add_option_function<std::int64_t>(
         "--part-mib", [&options](std::int64_t mebibytes) { options.part_bytes = mebibytes << 20; },
         "MiB of text that become one token file; memory follows it (" +
             std::to_string(options.part_bytes >> 20) + ")")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, kPartBytesMax >> 20));
  app.add_option("--val", options.val,
                 "share of the documents that is held out for evaluations, as 1% or 0.01 (" +
                     options.val + ")")
      ->type_name("SHARE");
}

/// How many documents.
std::int64_t print_split(const char* name, const std::vector<TokenFileEntry>& files) {
  std::int64_t tokens = 0;
  std::int64_t documents = 0;
  for (const auto& file : files) {
    tokens += file.tokens;
    documents += file.documents;
  }
  std::printf("%-5s  %s tokens of %s document%s in %zu token file%s\n", name,
              grouped(tokens).c_str(), grouped(documents).c_str(), documents == 1 ? "" : "s",
              files.size(), files.size() == 1 ? "" : "s");
  return documents;
}

/// Train and val, and what is in neither.
void print_splits(const PrepareEnd& end) {
  const auto train = print_split("train", end.manifest.train);
  const bool has_val = !end.manifest.val.empty();
  const auto val = has_val ? print_split("val", end.manifest.val) : 0;
  if (has_val && val == 0)
    std::printf("val is empty: none of the few documents fell into it; a larger --val may help\n");
  if (has_val && train == 0)
    std::printf("train is empty: all documents fell into val; a smaller --val may help\n");
  if (end.rows > train + val) {
    std::printf("rows   %s of %s are left out, having no text\n",
                grouped(end.rows - train - val).c_str(), grouped(end.rows).c_str());
  }
}

void print_end(const PrepareOptions& options, const PrepareEnd& end) {
  const auto& progress = end.progress;
  const bool was_done = progress.bytes_kept == progress.bytes;
  print_splits(end);
  const auto fresh = static_cast<double>(progress.bytes_done - progress.bytes_kept) / 1e6;
  const auto kept = static_cast<double>(progress.bytes_kept) / 1e6;
  if (was_done) {
    std::printf("prepared %s: it was done already\n", options.output.c_str());
  } else {
    std::printf("prepared %s: %.1f MB in %.1f s, %.1f MB/s with %d worker%s\n",
                options.output.c_str(), fresh, progress.seconds,
                progress.seconds > 0 ? fresh / progress.seconds : 0, progress.workers,
                progress.workers == 1 ? "" : "s");
    if (progress.bytes_kept > 0) std::printf("kept from before: %.1f MB\n", kept);
  }
}

}  // namespace

int run_prepare(const std::vector<std::string>& arguments) {
  if (!arguments.empty() && arguments.front() == "video")
    return run_prepare_video({arguments.begin() + 1, arguments.end()});
  if (!arguments.empty() && arguments.front() == "conversations")
    return run_prepare_conversations({arguments.begin() + 1, arguments.end()});
  if (!arguments.empty() && arguments.front() == "lerobot")
    return run_prepare_lerobot({arguments.begin() + 1, arguments.end()});
  if (!arguments.empty() && arguments.front() == "tokenizer")
    return run_prepare_tokenizer({arguments.begin() + 1, arguments.end()});
  CLI::App app("Turns text into tokens to train from; started again it goes on where it was.",
               "trainer prepare");
  PrepareOptions options;
  define(app, options);
  app.footer(
      "Commands of their own: trainer prepare tokenizer learns a vocabulary, trainer prepare video "
      "looks through videos, trainer prepare lerobot through a robot's data set, trainer prepare "
      "conversations through those of vision-language models.");
  if (const auto code = read_words(app, arguments)) return *code;
  options.field = with_invalid_utf8_replaced(options.field);  // as the members of JSON are
  if (options.workers == 0) options.workers = usable_cores();
  catch_stop_signals();
  const ProgressLine line;
  const PrepareHooks hooks{
      .progress = [&line](const PrepareProgress& progress) { line.show(progress_line(progress)); },
      .stop_signal = stop_signal,
      .progress_interval = line.interval()};
  const PrepareEnd end = prepare(options, hooks);
  if (end.failure) return fail_command(app.get_name(), *end.failure, line.line_start());
  line.end(progress_line(end.progress));
  print_end(options, end);
  return exit_code::kDone;
}

}  // namespace tj::trainer
