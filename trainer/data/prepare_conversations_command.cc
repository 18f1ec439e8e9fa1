#include "trainer/data/prepare_conversations_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "trainer/data/conversation/prepare_conversations.h"
#include "trainer/data/picture/picture.h"
#include "trainer/data/video/video_files.h"
#include "trainer/launch/host.h"
#include "trainer/process/command_words.h"
#include "trainer/process/progress_line.h"
#include "trainer/process/stop_request.h"

namespace tj::trainer {
namespace {

void define(CLI::App& app, PrepareConversationsOptions& options) {
  app.add_option("--input", options.inputs,
                 "files of conversations, JSON or JSON lines, and folders of them")
      ->type_name("PATH...")
      ->required();
  app.add_option("--data-root", options.data_root,
                 "folder in which the paths of pictures begin (that of each file)")
      ->type_name("FOLDER");
  app.add_option("--out", options.out,
                 "folder for the indices (that of each file, where training finds them)")
      ->type_name("FOLDER");
  app.add_option("--tokenizer", options.tokenizer, "tokenizer.json, to count tokens by (none)")
      ->type_name("PATH");
  app.add_flag("--decode", options.decodes,
               "decode every picture and video to its end, not heads alone");
  app.add_option("--threads", options.threads, "one for each usable core")
      ->type_name("N")
      ->check(CLI::Range(1, kPrepareConversationsThreadsMax));
}

}  // namespace

int run_prepare_conversations(const std::vector<std::string>& arguments) {
  CLI::App app(
      "Looks through conversations, their pictures and videos once, so that training leaves out "
      "what it can't use from the start.",
      "trainer prepare conversations");
  PrepareConversationsOptions options;
  define(app, options);
  if (const auto code = read_words(app, arguments)) return *code;
  if (options.threads == 0)
    options.threads = std::min(usable_cores(), kPrepareConversationsThreadsMax);
  catch_stop_signals();
  const ProgressLine line;
  const PrepareConversationsHooks hooks{
      .picture_plugin = default_picture_plugin(),
      .video_plugin = VideoOpener::default_plugin(),
      .progress = [&line](const auto& progress) { line.show(progress_line(progress)); },
      .stop_signal = stop_signal,
      .progress_interval = line.interval()};
  const auto end = prepare_conversations(options, hooks);
  if (end.failure) return fail_command(app.get_name(), *end.failure, line.line_start());
  line.end(progress_line(end.progress));
  std::fputs(end.table.c_str(), stdout);
  for (const auto& index : end.indices) std::printf("wrote %s\n", index.c_str());
  return exit_code::kDone;
}

}  // namespace tj::trainer
