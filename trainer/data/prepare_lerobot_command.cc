#include "trainer/data/prepare_lerobot_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "trainer/data/lerobot/prepare_lerobot.h"
#include "trainer/data/parquet/parquet_plugin.h"
#include "trainer/data/video/video_files.h"
#include "trainer/launch/host.h"
#include "trainer/process/command_words.h"
#include "trainer/process/progress_line.h"
#include "trainer/process/stop_request.h"

namespace tj::trainer {
namespace {

void define(CLI::App& app, PrepareLeRobotOptions& options) {
  app.add_option("--input", options.input, "folder of a LeRobot data set, v2.0, v2.1 or v3")
      ->type_name("FOLDER")
      ->required();
  app.add_option("--out", options.out,
                 std::string("folder for ") + kStatisticsFile +
                     " and the index of the videos (meta/ and videos/ of the data set, where "
                     "training finds them)")
      ->type_name("FOLDER");
  app.add_option("--state-feature", options.state,
                 "feature of the data set (" + options.state + ")")
      ->type_name("NAME");
  app.add_option("--action-feature", options.action,
                 "feature of the data set (" + options.action + ")")
      ->type_name("NAME");
  app.add_option("--delta-actions", options.delta_actions,
                 "actions minus the state: counts of dimensions, as 6,-1 for six that are and one "
                 "that is not (none)")
      ->type_name("COUNTS");
  app.add_option("--horizon", options.horizon,
                 "actions of a chunk; matters to those minus the state (" +
                     std::to_string(options.horizon) + ")")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, kHorizonMax));
  app.add_option("--threads", options.threads, "one for each usable core")
      ->type_name("N")
      ->check(CLI::Range(1, kPrepareLeRobotThreadsMax));
}

}  // namespace

int run_prepare_lerobot(const std::vector<std::string>& arguments) {
  CLI::App app(
      "Looks through a LeRobot data set once: its files, its videos, statistics of its states and "
      "actions.",
      "trainer prepare lerobot");
  PrepareLeRobotOptions options;
  define(app, options);
  if (const auto code = read_words(app, arguments)) return *code;
  if (options.threads == 0) options.threads = std::min(usable_cores(), kPrepareLeRobotThreadsMax);
  catch_stop_signals();
  const ProgressLine line;
  std::string last;  // that was told of the progress
  const PrepareLeRobotHooks hooks{.parquet_plugin = default_parquet_plugin(),
                                  .video_plugin = VideoOpener::default_plugin(),
                                  .progress =
                                      [&line, &last](const std::string& text) {
                                        last = text;
                                        line.show(text);
                                      },
                                  .stop_signal = stop_signal,
                                  .progress_interval = line.interval()};
  const auto end = prepare_lerobot(options, hooks);
  if (end.failure) return fail_command(app.get_name(), *end.failure, line.line_start());
  if (!last.empty()) line.end(last);
  std::fputs(end.table.c_str(), stdout);
  std::printf("wrote %s\n", end.file.c_str());
  return exit_code::kDone;
}

}  // namespace tj::trainer
