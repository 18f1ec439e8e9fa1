#include "trainer/launch/options.h"

#include <array>
#include <climits>
#include <optional>
#include <utility>

#include "contract/launch_env.h"

namespace tj::trainer {
namespace {

constexpr std::string_view kHelp = R"(trainer: the entrypoint of a training worker

  trainer launch [FLAGS] -- COMMAND...
      turns this worker into one process per GPU (one on a CPU), each with torchrun's variables
  trainer env [--explain] [FLAGS]
      says who this worker is, as launch would find it: variables, or a table with origins
  trainer check [--data PATH...] [--out FOLDER] [FLAGS]
      looks, on all workers together, whether a training could begin: network, disk, memory, NCCL
  trainer prepare --input PATH... --output FOLDER ARGUMENTS...
      turns text into tokens to train from; `trainer prepare --help` lists the arguments
  trainer train ARGUMENTS...
      trains; `trainer train --help` lists the arguments
  trainer --version
  trainer --help

Examples
  trainer launch -- trainer train --model gpt2-nano --data /data/text
  trainer launch -- python3 train.py --lr 3e-4
  trainer launch --nproc 2 --grace-seconds 60 -- bash start.sh
)";

constexpr std::string_view kIdentityHelp = R"(
  --nproc N          processes on this worker; without it what the variables say, else as with auto
  --nproc auto       one per GPU in CUDA_VISIBLE_DEVICES, else per /dev/nvidia<n>, else one
  --convention NAME  whose variables to follow: workers, processes, pet, nnodes, slurm or none;
                     without it the first that is set, by the rules in docs/launching.md

By hand, instead of variables; ranks and sizes count processes:
  --world-size N     processes of the job; the other flags below need it
  --gpus-per-node N  processes on each node
  --node-rank N      which node this is, from 0
  --rank N           the one process to start, from 0
  --local-rank N     the same on its node, from 0
  --master-addr HOST where rank 0 runs; without it MASTER_ADDR
  --master-port N    a TCP port there; without it MASTER_PORT, else 29500
)";

constexpr std::string_view kLaunchHelp = R"(trainer launch: turns this worker into processes

  trainer launch [FLAGS] -- COMMAND...

  --grace-seconds S  time from SIGTERM to SIGKILL when processes must stop (default 30)
  --frozen-seconds S a process that a signal (SIGSTOP) has stopped for so long is killed, as the
                     others wait for it; 0: never (default 9)
  --max-restarts N   start all processes of this worker again after a failure, N times at most
                     (default 0); for use without a cluster, where no operator does it
)";

constexpr std::string_view kLaunchNotes = R"(
Each process gets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK, MASTER_ADDR and
MASTER_PORT as torchrun sets them, and OMP_NUM_THREADS if unset. TERM, INT, HUP, QUIT, USR1 and
USR2 are forwarded. The first process that fails ends the others, and its exit code (128+n for
signal n) is the launcher's own.

Examples
  trainer launch -- python3 train.py --lr 3e-4
  trainer launch --nproc 2 -- trainer train --model gpt2-nano --data /data/text
  trainer launch --world-size 16 --gpus-per-node 8 --node-rank 1 --master-addr node-a -- bash run.sh
)";

constexpr std::string_view kEnvHelp =
    R"(trainer env: says who this worker is, as launch would find it

  trainer env [--explain] [FLAGS]

  --explain          a table of each value and where it came from; without it the variables of the
                     worker's first process, for a shell
)";

constexpr std::string_view kCheckHelp =
    R"(trainer check: looks whether a training could begin; to be run on every worker, as training is

  trainer check [FLAGS]

  --model NAME       what trainer train would be given: how the data is read
  --data PATH        the same; may be given several times
  --out FOLDER       the same; 64 MB are written there, for a second at most, and removed
  --init-from PATH   the same
  --rendezvous-timeout-seconds S
                     how long ranks wait for each other (default 60)
  --json             one JSON document instead of a table
)";

constexpr std::string_view kCheckNotes = R"(
Exit codes: 0 (pass, or warn: training can begin), 69 (retry: something is not there yet), 78 (fatal:
training would fail). Rank 0 prints the findings of all workers.

Examples
  trainer check --data /data/text --out /out
  trainer launch --nproc 2 -- trainer check --json
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

/// A flag that says by hand who this is.
struct PlaceFlag {
  std::string_view name;
  int min = 0;
  int max = INT_MAX;
  std::optional<int> PlaceFlags::*member;
};
constexpr std::array<PlaceFlag, 6> kPlaceFlags = {{
    {"--world-size", 1, INT_MAX, &PlaceFlags::world_size},
    {"--gpus-per-node", 1, kNprocMax, &PlaceFlags::gpus_per_node},
    {"--rank", 0, INT_MAX, &PlaceFlags::rank},
    {"--local-rank", 0, kNprocMax - 1, &PlaceFlags::local_rank},
    {"--node-rank", 0, INT_MAX, &PlaceFlags::node_rank},
    {"--master-port", 1, 65535, &PlaceFlags::master_port},
}};

Result<int> read_int(Arguments& arguments, std::string_view name, int min, int max) {
  const auto text = arguments.value(name, "a number");
  if (!text) return text.error();
  return parse_int(name, *text, min, max);
}

/// False: it is no option about who this worker is.
Result<bool> read_identity_option(Arguments& arguments, const std::string& name,
                                  IdentityOptions& options) {
  for (const PlaceFlag& flag : kPlaceFlags) {
    if (name != flag.name) continue;
    const auto number = read_int(arguments, name, flag.min, flag.max);
    if (!number) return number.error();
    options.place.*flag.member = *number;
    return true;
  }
  if (name == "--master-addr") {
    const auto host = arguments.value(name, "a host name or address");
    if (!host) return host.error();
    if (host->empty()) return usage(name, "is empty; it must be a host name or address");
    options.place.master_addr = *host;
    return true;
  }
  if (name == "--convention") {
    const auto word = arguments.value(name, "a convention");
    if (!word) return word.error();
    options.convention = convention_named(*word);
    if (options.convention) return true;
    return usage(name,
                 "is \"" + *word + "\"; it must be workers, processes, pet, nnodes, slurm or none");
  }
  if (name == "--nproc") {
    const auto text = arguments.value(name, "auto or a number of processes");
    if (!text) return text.error();
    const auto nproc = parse_nproc(*text);
    if (!nproc) return nproc.error();
    options.nproc = *nproc;
    return true;
  }
  return false;
}

Result<void> read_launch_option(Arguments& arguments, const std::string& name,
                                LaunchOptions& options) {
  if (name == "--grace-seconds" || name == "--frozen-seconds") {
    const auto seconds = read_int(arguments, name, 0, kGraceSecondsMax);
    if (!seconds) return seconds.error();
    (name == "--grace-seconds" ? options.grace : options.frozen) = std::chrono::seconds(*seconds);
    return {};
  }
  if (name == "--max-restarts") {
    const auto restarts = read_int(arguments, name, 0, kRestartsMax);
    if (!restarts) return restarts.error();
    options.max_restarts = *restarts;
    return {};
  }
  const auto known = read_identity_option(arguments, name, options.identity);
  if (!known) return known.error();
  if (*known) return {};
  return usage(name, "is not an option of trainer launch; see trainer launch --help");
}

Result<CommandLine> parse_launch(std::span<const std::string> words) {
  LaunchOptions options;
  Arguments arguments(words);
  while (arguments.at_option()) {
    const std::string name = arguments.name();
    if (name == "--") break;
    if (name == "--help" || name == "-h") {
      return CommandLine(ShowText{std::string(kLaunchHelp) + std::string(kIdentityHelp) +
                                  std::string(kLaunchNotes)});
    }
    if (const auto read = read_launch_option(arguments, name, options); !read) return read.error();
  }
  options.command = arguments.rest();
  if (options.command.empty()) {
    return usage("trainer launch", "no command; give one after --, as in " +
                                       std::string("trainer launch -- python3 train.py"));
  }
  return CommandLine(std::move(options));
}

Result<CommandLine> parse_env(std::span<const std::string> words) {
  EnvOptions options;
  Arguments arguments(words);
  while (arguments.at_option()) {
    const std::string name = arguments.name();
    if (name == "--help" || name == "-h")
      return CommandLine(ShowText{std::string(kEnvHelp) + std::string(kIdentityHelp)});
    if (name == "--explain") {
      options.explain = true;
      continue;
    }
    const auto known = read_identity_option(arguments, name, options.identity);
    if (!known) return known.error();
    if (!*known) return usage(name, "is not an option of trainer env; see trainer env --help");
  }
  const auto rest = arguments.rest();
  if (!rest.empty()) return usage(rest[0], "is not an option of trainer env");
  return CommandLine(std::move(options));
}

Result<void> read_check_option(Arguments& arguments, const std::string& name,
                               CheckOptions& options) {
  if (name == "--json") {
    options.json = true;
    return {};
  }
  if (name == "--rendezvous-timeout-seconds") {
    const auto seconds = read_int(arguments, name, 1, kGraceSecondsMax);
    if (!seconds) return seconds.error();
    options.rendezvous_timeout = std::chrono::seconds(*seconds);
    return {};
  }
  if (name == "--model") {
    const auto model = arguments.value(name, "a name");
    if (!model) return model.error();
    options.model = *model;
    return {};
  }
  if (name == "--data" || name == "--out" || name == "--init-from") {
    const auto path = arguments.value(name, "a path");
    if (!path) return path.error();
    if (path->empty()) return usage(name, "is empty; it must be a path");
    if (name == "--data") {
      options.data.push_back(*path);
    } else {
      (name == "--out" ? options.out : options.init_from) = *path;
    }
    return {};
  }
  const auto known = read_identity_option(arguments, name, options.identity);
  if (!known) return known.error();
  if (*known) return {};
  return usage(name, "is not an option of trainer check; see trainer check --help");
}

Result<CommandLine> parse_check(std::span<const std::string> words) {
  CheckOptions options;
  Arguments arguments(words);
  while (arguments.at_option()) {
    const std::string name = arguments.name();
    if (name == "--help" || name == "-h") {
      return CommandLine(ShowText{std::string(kCheckHelp) + std::string(kIdentityHelp) +
                                  std::string(kCheckNotes)});
    }
    if (const auto read = read_check_option(arguments, name, options); !read) return read.error();
  }
  const auto rest = arguments.rest();
  if (!rest.empty()) return usage(rest[0], "is not an option of trainer check");
  return CommandLine(std::move(options));
}

}  // namespace

Result<CommandLine> parse_command_line(std::span<const std::string> arguments,
                                       std::string_view version) {
  if (arguments.empty())
    return usage("trainer", "no command; it must be launch, env, check, prepare or train");
  const std::string& command = arguments[0];
  const auto rest = arguments.subspan(1);
  if (command == "launch") return parse_launch(rest);
  if (command == "env") return parse_env(rest);
  if (command == "check") return parse_check(rest);
  if (command == "prepare") return CommandLine(PrepareArguments{{rest.begin(), rest.end()}});
  if (command == "train") return CommandLine(TrainOptions{{rest.begin(), rest.end()}});
  if (command == "--help" || command == "-h") return CommandLine(ShowText{std::string(kHelp)});
  if (command == "--version")
    return CommandLine(ShowText{"trainer " + std::string(version) + "\n"});
  return usage(
      "trainer",
      "\"" + command + "\" is not a command; it must be launch, env, check, prepare or train");
}

}  // namespace tj::trainer
