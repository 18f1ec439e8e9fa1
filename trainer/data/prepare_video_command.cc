#include "trainer/data/prepare_video_command.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "trainer/data/video/prepare_video.h"
#include "trainer/data/video/video_files.h"
#include "trainer/launch/host.h"
#include "trainer/process/command_words.h"
#include "trainer/process/stop_request.h"

namespace tj::trainer {
namespace {

constexpr std::chrono::milliseconds kBarInterval{250};
constexpr std::chrono::milliseconds kLineInterval{5000};

void define(CLI::App& app, PrepareVideoOptions& options) {
  app.add_option("--input", options.input, "folder of videos, with all folders below it")
      ->type_name("FOLDER")
      ->required();
  app.add_option("--out", options.out,
                 std::string("folder for the index, ") + kVideoIndexFile +
                     " (the folder of videos, where training finds it)")
      ->type_name("FOLDER");
  app.add_option("--threads", options.threads, "videos at a time (one for each usable core)")
      ->type_name("N")
      ->check(CLI::Range(1, kPrepareVideoThreadsMax));
}

void print_end(const PrepareVideoEnd& end) {
  const auto& progress = end.progress;
  std::fputs(video_table(end).c_str(), stdout);
  const auto fresh = static_cast<double>(progress.bytes_done - progress.bytes_kept) / 1e6;
  std::printf("wrote %s: %.1f MB looked through in %.1f s, %.1f MB were known\n", end.index.c_str(),
              fresh, progress.seconds, static_cast<double>(progress.bytes_kept) / 1e6);
}

}  // namespace

int run_prepare_video(const std::vector<std::string>& arguments) {
  CLI::App app("Looks through videos once, so that training need not at each start.",
               "trainer prepare video");
  PrepareVideoOptions options;
  define(app, options);
  if (const auto code = read_words(app, arguments)) return *code;
  if (options.threads == 0) options.threads = std::min(usable_cores(), kPrepareVideoThreadsMax);
  catch_stop_signals();
  const bool is_terminal = ::isatty(STDOUT_FILENO) != 0;
  const PrepareVideoHooks hooks{.plugin = VideoOpener::default_plugin(),
                                .progress =
                                    [is_terminal](const PrepareVideoProgress& progress) {
                                      std::printf(is_terminal ? "\r%s\x1b[K" : "%s\n",
                                                  progress_line(progress).c_str());
                                      std::fflush(stdout);
                                    },
                                .stop_signal = stop_signal,
                                .progress_interval = is_terminal ? kBarInterval : kLineInterval};
  const auto end = prepare_video(options, hooks);
  if (end.failure) return fail_command(app.get_name(), *end.failure, is_terminal ? "\n" : "");
  if (is_terminal) hooks.progress(end.progress), std::fputc('\n', stdout);
  print_end(end);
  return exit_code::kDone;
}

}  // namespace tj::trainer
