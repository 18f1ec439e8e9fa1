// tj cp: files of one rank's container, to this machine: tar there, unpacked here.
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "cli/cluster/remote_command.h"
#include "cli/cluster/session.h"
#include "cli/cluster/worker_pod.h"
#include "cli/commands/commands.h"
#include "cli/copied_tree.h"
#include "cli/plain_text.h"

namespace tj {
namespace {

constexpr const char* kExamples = R"(
Examples:
  tj cp gpt2:/out/step-000100 .        the folder, into this one
  tj cp gpt2:/out/metrics.jsonl m.jsonl
  tj cp gpt2:/tmp/core . --rank 3

Exit codes: 0 done, 1 not all of it came, 2 wrong input, 3 no such job or file, 4 refused,
5 no answer.)";

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kComplaintBytesMax = 2048;  // of what tar says
constexpr std::chrono::milliseconds kProgressEvery{200};
constexpr int kNotFound = 127;  // a shell's and a runtime's

struct CopyArguments {
  SessionOptions session;
  std::string source;
  std::string target;
  int rank = 0;
  std::string container;
};

struct Source {
  std::string job;
  std::string folder;  // where tar goes to
  std::string base;    // what it packs
};

Result<Source> parse_source(const std::string& text) {
  const std::size_t colon = text.find(':');
  Source source{.job = text.substr(0, colon), .folder = ".", .base = {}};
  if (colon == std::string::npos || source.job.empty() || colon + 1 == text.size())
    return Error{Code::invalid, "must be JOB:PATH (only this direction is supported)", text, {}};
  std::string path = text.substr(colon + 1);
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  const std::size_t slash = path.rfind('/');
  source.base = slash == std::string::npos ? path : path.substr(slash + 1);
  if (slash != std::string::npos) source.folder = slash == 0 ? "/" : path.substr(0, slash);
  if (source.base.empty()) source.base = ".";  // of "/"
  if (source.base == "..") return Error{Code::invalid, "must end with a name", text, {}};
  return source;
}

/// As cp -r has it: into a folder that is there, else in its place.
fs::path target_of(const CopyArguments& arguments, const Source& source) {
  std::error_code ignored;
  std::string text = arguments.target;
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  const fs::path target = fs::path(text).lexically_normal();
  if (!fs::is_directory(target, ignored) || source.base == ".") return target;
  return target / source.base;
}

std::string size_text(std::uint64_t bytes) {
  constexpr double kMega = 1e6;
  char text[64];
  std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(bytes) / kMega);
  return text;
}

class Progress {
 public:
  explicit Progress(const CopiedTree& tree) : tree_(tree) {}
  void show() {
    const auto now = Clock::now();
    if (!is_terminal_ || now - shown_ < kProgressEvery) return;
    shown_ = now;
    const double seconds = std::chrono::duration<double>(now - began_).count();
    const double rate = static_cast<double>(tree_.bytes()) / std::max(seconds, 1e-3);
    std::fprintf(stderr, "\r%d files, %s, %s/s\x1b[K", tree_.files(),
                 size_text(tree_.bytes()).c_str(),
                 size_text(static_cast<std::uint64_t>(rate)).c_str());
  }
  void close() {
    if (is_terminal_) std::fprintf(stderr, "\r\x1b[K");
    const double seconds = std::chrono::duration<double>(Clock::now() - began_).count();
    std::fprintf(stderr, "copied %d files, %s, in %.1f s\n", tree_.files(),
                 size_text(tree_.bytes()).c_str(), seconds);
    for (const std::string& name : tree_.left_out())
      std::fprintf(stderr, "left out %s\n", plain_line(name).c_str());
    const int more = tree_.left_out_count() - static_cast<int>(tree_.left_out().size());
    if (more > 0) std::fprintf(stderr, "left out %d more\n", more);
  }

 private:
  const CopiedTree& tree_;
  const bool is_terminal_ = ::isatty(STDERR_FILENO) == 1;
  const Clock::time_point began_ = Clock::now();
  Clock::time_point shown_{};
};

Result<void> copy(Session& session, const WorkerPlace& place, const Source& source,
                  const fs::path& target) {
  const RemoteCommand command{
      .ns = place.ns,
      .pod = place.pod,
      .container = place.container,
      .command = {"tar", "-cf", "-", "-C", source.folder, "./" + source.base}};
  CopiedTree tree(target, source.base);
  TarReader reader(tree.handlers());
  Progress progress(tree);
  Result<void> written;
  std::string complaint;
  const RemoteIo io{.on_output =
                        [&](std::string_view bytes) {
                          written = reader.feed(bytes);
                          progress.show();
                          return written.ok();
                        },
                    .on_error =
                        [&complaint](std::string_view bytes) {
                          complaint +=
                              bytes.substr(0, kComplaintBytesMax -
                                                  std::min(kComplaintBytesMax, complaint.size()));
                          return true;
                        }};
  const Result<int> ended = run_remotely(session.link(), command, io);
  progress.close();
  if (!written) return written.error();
  const std::string where = "tar in " + place.pod;
  const bool has_no_tar =
      ended ? *ended == kNotFound
            : ended.error().message.find("executable file not found") != std::string::npos;
  if (has_no_tar) return Error{Code::not_found, "the image has no tar; tj cp needs it", where, {}};
  if (!ended) return ended.error();
  if (*ended != 0)
    return Error{
        Code::internal, plain_line(complaint.empty() ? "it failed" : complaint), where, {}};
  if (!reader.is_complete())
    return Error{Code::unavailable, "the archive ended too early", where, {}};
  return {};
}

int copy_from_job(const CopyArguments& arguments) {
  const auto source = parse_source(arguments.source);
  if (!source) return refuse(source.error());
  const fs::path target = target_of(arguments, *source);
  std::error_code ignored;
  const fs::path parent = target.has_parent_path() ? target.parent_path() : fs::path(".");
  if (!fs::is_directory(parent, ignored))
    return refuse(Error{Code::invalid, "is no folder on this machine", parent.string(), {}});
  const auto session = Session::open(arguments.session);
  if (!session) return refuse(session.error());
  const auto place = find_worker(**session, source->job, arguments.rank, arguments.container);
  if (!place) return fail(place.error());
  const Result<void> copied = copy(**session, *place, *source, target);
  return copied ? tj_exit::kSucceeded : fail(copied.error());
}

}  // namespace

void add_cp(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "cp", "copy files, such as a checkpoint, out of the container of one rank");
  auto arguments = std::make_shared<CopyArguments>();
  add_session_flags(*command, arguments->session);
  command->add_option("source", arguments->source, "a file or a folder in the container")
      ->required()
      ->type_name("JOB:PATH");
  command->add_option("target", arguments->target, "where to: into this folder, or by this name")
      ->required()
      ->type_name("LOCAL");
  add_rank_flag(*command, arguments->rank);
  add_container_flag(*command, arguments->container);
  command->footer(kExamples);
  command->callback([arguments, &exit_code] { exit_code = copy_from_job(*arguments); });
}

}  // namespace tj
