#include "trainer/data/prepare_command.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "contract/utf8.h"
#include "trainer/data/prepare.h"
#include "trainer/data/prepare_video_command.h"
#include "trainer/launch/host.h"
#include "trainer/process/last_words.h"
#include "trainer/process/stop_request.h"
#include "trainer/values/settings.h"

namespace tj::trainer {
namespace {

constexpr std::chrono::milliseconds kBarInterval{250};
constexpr std::chrono::milliseconds kLineInterval{5000};

void define(CLI::App& app, PrepareOptions& options) {
  app.add_option("--input", options.inputs, "files and folders of text or Parquet, in this order")
      ->type_name("PATH...")
      ->required();
  app.add_option("--output", options.output, "folder of tokens: new, empty, or of the same command")
      ->type_name("FOLDER")
      ->required();
  app.add_option("--tokenizer", options.tokenizer, "byte or gpt2-bpe (" + options.tokenizer + ")")
      ->type_name("NAME");
  app.add_option("--vocabulary", options.vocabulary,
                 "for gpt2-bpe: tokenizer.json, or a folder with vocab.json and merges.txt")
      ->type_name("PATH");
  app.add_option("--format", options.format,
                 "folder (a file is a document), jsonl, wiki or parquet (the files say it)")
      ->type_name("NAME")
      ->check(CLI::IsMember({"folder", "jsonl", "wiki", "parquet"}));
  app.add_option(
         "--field", options.field,
         "member of a JSON line, or column of Parquet, that holds the text (" + options.field + ")")
      ->type_name("NAME");
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

int fail(const Failure& failure, const char* line_start) {
  write_last_words({.reason = failure.reason, .message = failure.message, .rank = {}, .step = {}});
  std::fprintf(stderr, "%strainer prepare: %s\n", line_start, failure.message.c_str());
  return failure.exit_code;
}

/// How many documents.
std::int64_t print_split(const char* name, const std::vector<TokenFileEntry>& files) {
  std::int64_t tokens = 0;
  std::int64_t documents = 0;
  for (const auto& file : files) {
    tokens += file.tokens;
    documents += file.documents;
  }
  std::printf("%-5s  %s tokens of %s documents in %zu token file%s\n", name,
              grouped(tokens).c_str(), grouped(documents).c_str(), files.size(),
              files.size() == 1 ? "" : "s");
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
    std::printf("prepared %s: %.1f MB in %.1f s, %.1f MB/s with %d workers; %.1f MB were there\n",
                options.output.c_str(), fresh, progress.seconds,
                progress.seconds > 0 ? fresh / progress.seconds : 0, progress.workers, kept);
  }
}

}  // namespace

int run_prepare(const std::vector<std::string>& arguments) {
  if (!arguments.empty() && arguments.front() == "video")
    return run_prepare_video({arguments.begin() + 1, arguments.end()});
  CLI::App app("Turns text into tokens to train from; started again it goes on where it was.",
               "trainer prepare");
  PrepareOptions options;
  define(app, options);
  app.footer("Videos have a command of their own: trainer prepare video.");
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return exit_code::kDone;
  } catch (const CLI::ParseError& failure) {
    return fail(
        {.exit_code = exit_code::kUsage,
         .reason = "BadUsage",
         .message = std::string(failure.what()) + "; `trainer prepare --help` lists the flags"},
        "");
  }
  options.field = with_invalid_utf8_replaced(options.field);  // as the members of JSON are
  if (options.workers == 0) options.workers = usable_cores();
  catch_stop_signals();
  const bool is_terminal = ::isatty(STDOUT_FILENO) != 0;
  const PrepareHooks hooks{.progress =
                               [is_terminal](const PrepareProgress& progress) {
                                 std::printf(is_terminal ? "\r%s\x1b[K" : "%s\n",
                                             progress_line(progress).c_str());
                                 std::fflush(stdout);
                               },
                           .stop_signal = stop_signal,
                           .progress_interval = is_terminal ? kBarInterval : kLineInterval};
  const PrepareEnd end = prepare(options, hooks);
  if (end.failure) return fail(*end.failure, is_terminal ? "\n" : "");
  if (is_terminal) hooks.progress(end.progress), std::fputc('\n', stdout);
  print_end(options, end);
  return exit_code::kDone;
}

}  // namespace tj::trainer
