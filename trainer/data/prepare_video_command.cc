#include "trainer/data/prepare_video_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "trainer/data/video/prepare_video.h"
#include "trainer/data/video/video_files.h"
#include "trainer/launch/host.h"
#include "trainer/process/command_words.h"
#include "trainer/process/progress_line.h"
#include "trainer/process/stop_request.h"

namespace tj::trainer {
namespace {

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
  const ProgressLine line;
  const PrepareVideoHooks hooks{
      .plugin = VideoOpener::default_plugin(),
      .progress =
          [&line](const PrepareVideoProgress& progress) { line.show(progress_line(progress)); },
      .stop_signal = stop_signal,
      .progress_interval = line.interval()};
  const auto end = prepare_video(options, hooks);
  if (end.failure) return fail_command(app.get_name(), *end.failure, line.line_start());
  line.end(progress_line(end.progress));
  print_end(end);
  return exit_code::kDone;
}

}  // namespace tj::trainer
