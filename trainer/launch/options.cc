#include "trainer/launch/options.h"

#include <optional>
#include <utility>

#include "contract/launch_env.h"

namespace tj::trainer {
namespace {

constexpr std::string_view kHelp = R"(trainer: the entrypoint of a training worker

  trainer launch [--nproc N|auto] [--grace-seconds S] -- COMMAND...
      turns this worker into one process per GPU (one on a CPU), each with torchrun's variables
  trainer train ARGUMENTS...
      trains; `trainer train --help` lists the arguments
  trainer --version
  trainer --help

Examples
  trainer launch -- trainer train --model gpt2-nano --data /data/text
  trainer launch -- python3 train.py --lr 3e-4
  trainer launch --nproc 2 --grace-seconds 60 -- bash start.sh
)";

constexpr std::string_view kLaunchHelp = R"(trainer launch: turns this worker into processes

  trainer launch [--nproc N|auto] [--grace-seconds S] -- COMMAND...

  --nproc N          processes on this worker; without it NPROC_PER_NODE, else as with auto
  --nproc auto       one per GPU in CUDA_VISIBLE_DEVICES, else per /dev/nvidia<n>, else one
  --grace-seconds S  time from SIGTERM to SIGKILL when processes must stop (default 30)

WORLD_SIZE, RANK, MASTER_ADDR and MASTER_PORT say which worker of the job this is; without
all four it is the only one. Each process gets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE,
GROUP_RANK, MASTER_ADDR and MASTER_PORT as torchrun sets them, and OMP_NUM_THREADS if unset.
TERM, INT, HUP, QUIT, USR1 and USR2 are forwarded. The first process that fails ends the
others, and its exit code (128+n for signal n) is the launcher's own.

Examples
  trainer launch -- python3 train.py --lr 3e-4
  trainer launch --nproc 2 -- trainer train --model gpt2-nano --data /data/text
)";

Error usage(std::string_view subject, std::string message) {
  return Error{.code = Code::invalid,
               .message = std::move(message),
               .subject = std::string(subject),
               .retry_after = {}};
}

/// Walks over options, each as "--name value" or "--name=value".
class Arguments {
 public:
  explicit Arguments(std::span<const std::string> left) : left_(left) {}

  bool at_option() const { return !left_.empty() && left_[0].starts_with("-"); }

  /// The next word; what follows its '=' stays for value().
  std::string name() {
    const std::string word = left_[0];
    left_ = left_.subspan(1);
    const auto equals = word.find('=');
    if (equals == std::string::npos) return word;
    inline_value_ = word.substr(equals + 1);
    return word.substr(0, equals);
  }

  Result<std::string> value(std::string_view name, std::string_view what) {
    if (inline_value_) return *std::exchange(inline_value_, std::nullopt);
    if (left_.empty()) return usage(name, "has no value; it must be " + std::string(what));
    const std::string word = left_[0];
    left_ = left_.subspan(1);
    return word;
  }

  std::vector<std::string> rest() const { return {left_.begin(), left_.end()}; }

 private:
  std::span<const std::string> left_;
  std::optional<std::string> inline_value_;
};

Result<NprocChoice> parse_nproc(const std::string& text) {
  if (text == "auto") return NprocChoice{.source = NprocChoice::Source::count_devices};
  const auto count = parse_int("--nproc", text, 1, kNprocMax);
  if (!count) {
    return usage("--nproc", "is \"" + text + "\"; it must be auto or a number from 1 to " +
                                std::to_string(kNprocMax));
  }
  return NprocChoice{.source = NprocChoice::Source::fixed, .count = *count};
}

Result<void> read_option(Arguments& arguments, const std::string& name, LaunchOptions& options) {
  if (name == "--nproc") {
    const auto text = arguments.value(name, "auto or a number of processes");
    if (!text) return text.error();
    const auto nproc = parse_nproc(*text);
    if (!nproc) return nproc.error();
    options.nproc = *nproc;
    return {};
  }
  if (name == "--grace-seconds") {
    const auto text = arguments.value(name, "a number of seconds");
    if (!text) return text.error();
    const auto seconds = parse_int(name, *text, 0, kGraceSecondsMax);
    if (!seconds) return seconds.error();
    options.grace = std::chrono::seconds(*seconds);
    return {};
  }
  return usage(name, "is not an option of trainer launch; see trainer launch --help");
}

Result<CommandLine> parse_launch(std::span<const std::string> words) {
  LaunchOptions options;
  Arguments arguments(words);
  while (arguments.at_option()) {
    const std::string name = arguments.name();
    if (name == "--") break;
    if (name == "--help" || name == "-h") return CommandLine(ShowText{std::string(kLaunchHelp)});
    if (const auto read = read_option(arguments, name, options); !read) return read.error();
  }
  options.command = arguments.rest();
  if (options.command.empty()) {
    return usage("trainer launch", "no command; give one after --, as in " +
                                       std::string("trainer launch -- python3 train.py"));
  }
  return CommandLine(std::move(options));
}

}  // namespace

Result<CommandLine> parse_command_line(std::span<const std::string> arguments,
                                       std::string_view version) {
  if (arguments.empty()) return usage("trainer", "no command; it must be launch or train");
  const std::string& command = arguments[0];
  const auto rest = arguments.subspan(1);
  if (command == "launch") return parse_launch(rest);
  if (command == "train") return CommandLine(TrainOptions{{rest.begin(), rest.end()}});
  if (command == "--help" || command == "-h") return CommandLine(ShowText{std::string(kHelp)});
  if (command == "--version")
    return CommandLine(ShowText{"trainer " + std::string(version) + "\n"});
  return usage("trainer", "\"" + command + "\" is not a command; it must be launch or train");
}

}  // namespace tj::trainer
