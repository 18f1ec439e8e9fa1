#include "trainer/launch/options.h"

#include <CLI/CLI.hpp>
#include <climits>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "contract/launch_env.h"
#include "contract/names.h"
#include "trainer/launch/engine_commands.h"

namespace tj::trainer {
namespace {

constexpr std::string_view kHelpBegin = R"(trainer: the entrypoint of a training worker

  trainer launch [FLAGS] -- COMMAND...
      turns this worker into one process per GPU (one on a CPU), each with torchrun's variables
  trainer env [--explain] [FLAGS]
      says who this worker is, as launch would find it: variables, or a table with origins
  trainer check [--data PATH...] [--out FOLDER] [FLAGS]
      looks, on all workers together, whether a training could begin: network, disk, memory, NCCL
  trainer prepare --input PATH... --output FOLDER ARGUMENTS...
      turns text into tokens to train from; `trainer prepare --help` lists the arguments
  trainer prepare tokenizer --input PATH... --vocabulary-size N --output FILE.json ARGUMENTS...
      learns a vocabulary from text, of any size; `--help` lists the arguments
  trainer prepare video --input FOLDER ARGUMENTS...
      looks through videos once, so that training need not; `--help` lists the arguments
  trainer prepare lerobot --input FOLDER ARGUMENTS...
      looks through a robot's data set once: files, videos, statistics; `--help` lists the arguments
  trainer export --from PATH --to FILE [--weights raw|ema]
      writes the weights of a checkpoint as one .pth or .safetensors file
)";
constexpr std::string_view kHelpEnd = R"(  trainer --version
  trainer --help

Examples
  trainer launch -- trainer train --model gpt2-nano --data /data/text
  trainer launch -- python3 train.py --lr 3e-4
  trainer launch --nproc 2 --grace-seconds 60 -- bash start.sh
)";

constexpr const char* kConventions = "workers, processes, pet, nnodes, slurm or none";

constexpr const char* kLaunchNotes =
    R"(Each process gets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK, MASTER_ADDR and
MASTER_PORT as torchrun sets them, and OMP_NUM_THREADS if unset. TERM, INT, HUP, QUIT, USR1 and
USR2 are forwarded. The first process that fails ends the others, and its exit code (128+n for
signal n) is the launcher's own.

Examples
  trainer launch -- python3 train.py --lr 3e-4
  trainer launch --nproc 2 -- trainer train --model gpt2-nano --data /data/text
  trainer launch --world-size 16 --gpus-per-node 8 --node-rank 1 --master-addr node-a -- bash run.sh)";

constexpr const char* kCheckNotes =
    R"(Exit codes: 0 (pass, or warn: training can begin), 69 (retry: something is not there yet), 78
(fatal: training would fail). Rank 0 prints the findings of all workers.

Examples
  trainer check --data /data/text --out /out
  trainer launch --nproc 2 -- trainer check --json)";

Error usage(std::string_view subject, std::string message) {
  return Error{.code = Code::invalid,
               .message = std::move(message),
               .subject = std::string(subject),
               .retry_after = {}};
}

/// CLI11's, but for the words that follow the flags.
class HelpLayout final : public CLI::Formatter {
 public:
  explicit HelpLayout(std::string usage) : usage_(std::move(usage)) { column_width(34); }
  std::string make_usage(const CLI::App*, std::string) const override {
    return "Usage: " + usage_ + "\n";
  }

 private:
  std::string usage_;
};

struct Flag {
  std::string name;  // with its dashes
  const char* value = "";
  const char* what = "a number";  // that value must be
  std::string help;
};

std::string with_default(const std::string& help, std::int64_t value) {
  return help + " (" + std::to_string(value) + ")";
}

/// One command and its flags. CLI11 finds them and writes the help; what is wrong with a value is
/// said in our words: the flag, the value, and what would be right.
class Command {
 public:
  Command(const std::string& name, const std::string& arguments, const std::string& does)
      : name_("trainer " + name), app_(name_ + ": " + does, name_) {
    app_.formatter(std::make_shared<HelpLayout>(name_ + " " + arguments));
    app_.prefix_command();  // the words from the first that is no flag are left alone
  }

  void group(std::string title) { group_ = std::move(title); }
  void footer(const char* notes) { app_.footer(notes); }

  void on(const Flag& flag, bool& is_on) {
    app_.add_flag(flag.name, is_on, flag.help)->group(group_);
  }

  /// `read` is called each time that the flag is given.
  void text(const Flag& flag, std::function<Result<void>(const std::string&)> read) {
    what_[flag.name] = flag.what;
    const auto take = [this, read = std::move(read)](const CLI::results_t& given) {
      const auto taken = read(given.front());
      if (!taken && !refused_) refused_ = taken.error();
      return true;
    };
    app_.add_option(flag.name, CLI::callback_t(take), flag.help)
        ->type_name(flag.value)
        ->group(group_)
        ->trigger_on_parse();
  }

  void number(const Flag& flag, int min, int max, std::function<void(int)> store) {
    text(flag, [name = flag.name, min, max, store](const std::string& text) -> Result<void> {
      const auto number = parse_int(name, text, min, max);
      if (!number) return number.error();
      store(*number);
      return {};
    });
  }

  struct Parsed {
    std::optional<std::string> help;  // the text to print instead
    std::vector<std::string> rest;    // the words that follow the flags
  };
  Result<Parsed> parse(std::span<const std::string> words) {
    try {
      app_.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    } catch (const CLI::CallForHelp&) {
      return Parsed{.help = app_.help(), .rest = {}};
    } catch (const CLI::ArgumentMismatch&) {  // only the last word can lack what follows it
      return refused_.value_or(without_value(words.back()));
    } catch (const CLI::ParseError& failure) {
      return refused_.value_or(usage(name_, failure.what()));
    }
    const auto rest = app_.remaining();
    // CLI11 takes the word after "--name=" for its value.
    for (const auto& word : words.first(words.size() - rest.size())) {
      if (word.ends_with("=") && what_.contains(word.substr(0, word.size() - 1)))
        return without_value(word);
    }
    if (refused_) return *refused_;
    return Parsed{.help = {}, .rest = rest};
  }

  Error unknown(const std::string& word) const {
    return usage(word.substr(0, word.find('=')),
                 "is not an option of " + name_ + "; see " + name_ + " --help");
  }

 private:
  Error without_value(const std::string& word) const {
    const auto name = word.substr(0, word.find('='));
    const auto found = what_.find(name);
    return usage(name,
                 "has no value" + (found == what_.end() ? "" : "; it must be " + found->second));
  }

  std::string name_;
  CLI::App app_;
  std::string group_ = "Options";
  std::map<std::string, std::string> what_;  // that the value of a flag must be
  std::optional<Error> refused_;             // the first value that was not right
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

void add_place_flags(Command& command, PlaceFlags& place) {
  command.group("By hand, instead of variables; ranks and sizes count processes");
  const auto number = [&](const char* name, int min, int max, std::optional<int>& value,
                          const std::string& help) {
    command.number({.name = name, .value = "N", .help = help}, min, max,
                   [&value](int given) { value = given; });
  };
  number("--world-size", 1, INT_MAX, place.world_size,
         "processes of the job; the other flags below need it");
  number("--gpus-per-node", 1, kNprocMax, place.gpus_per_node, "processes on each node");
  number("--node-rank", 0, INT_MAX, place.node_rank, "which node this is, from 0");
  number("--rank", 0, INT_MAX, place.rank, "the one process to start, from 0");
  number("--local-rank", 0, kNprocMax - 1, place.local_rank, "the same on its node, from 0");
  command.text({.name = "--master-addr",
                .value = "HOST",
                .what = "a host name or address",
                .help = "where rank 0 runs; without it MASTER_ADDR"},
               [&place](const std::string& host) -> Result<void> {
                 if (host.empty())
                   return usage("--master-addr", "is empty; it must be a host name or address");
                 place.master_addr = host;
                 return {};
               });
  number("--master-port", 1, 65535, place.master_port,
         "a TCP port there; without it MASTER_PORT, else " +
             std::to_string(names::kMasterPortDefault));
}

void add_identity_flags(Command& command, IdentityOptions& options) {
  command.group("Who this worker is");
  command.text(
      {.name = "--nproc",
       .value = "N",
       .what = "auto or a number of processes",
       .help = "processes on this worker (what the variables say, else as with auto); auto: "
               "one per GPU in CUDA_VISIBLE_DEVICES, else per /dev/nvidia<n>, else one"},
      [&options](const std::string& text) -> Result<void> {
        const auto nproc = parse_nproc(text);
        if (!nproc) return nproc.error();
        options.nproc = *nproc;
        return {};
      });
  command.text({.name = "--convention",
                .value = "NAME",
                .what = kConventions,
                .help = "whose variables to follow: " + std::string(kConventions) +
                        " (the first that is set, by the rules in docs/launching.md)"},
               [&options](const std::string& word) -> Result<void> {
                 options.convention = convention_named(word);
                 if (options.convention) return {};
                 return usage("--convention",
                              "is \"" + word + "\"; it must be " + std::string(kConventions));
               });
  add_place_flags(command, options.place);
}

void add_seconds(Command& command, const Flag& flag, int min, std::chrono::seconds& value) {
  Flag shown = flag;
  shown.value = "S";
  shown.help = with_default(flag.help, value.count());
  command.number(shown, min, kGraceSecondsMax,
                 [&value](int seconds) { value = std::chrono::seconds(seconds); });
}

Result<CommandLine> parse_launch(std::span<const std::string> words) {
  LaunchOptions options;
  Command command("launch", "[FLAGS] -- COMMAND...", "turns this worker into processes");
  add_seconds(
      command,
      {.name = "--grace-seconds", .help = "time from SIGTERM to SIGKILL when processes must stop"},
      0, options.grace);
  add_seconds(
      command,
      {.name = "--frozen-seconds",
       .help = "a process that a signal (SIGSTOP) has stopped for so long is killed, as the "
               "others wait for it; 0: never"},
      0, options.frozen);
  command.number(
      {.name = "--max-restarts",
       .value = "N",
       .help = with_default("start all processes of this worker again after a failure, N times at "
                            "most; for use without a cluster, where no operator does it",
                            options.max_restarts)},
      0, kRestartsMax, [&options](int restarts) { options.max_restarts = restarts; });
  command.text({.name = "--node-log",
                .value = "FOLDER",
                .what = "a folder",
                .help = "all that this worker's processes and the launcher print goes into "
                        "FOLDER/train_node<N>_<UTC time>.log, too (none)"},
               [&options](const std::string& folder) -> Result<void> {
                 if (folder.empty()) return usage("--node-log", "is empty; it must be a folder");
                 options.node_log = folder;
                 return {};
               });
  add_identity_flags(command, options.identity);
  command.footer(kLaunchNotes);
  const auto parsed = command.parse(words);
  if (!parsed) return parsed.error();
  if (parsed->help) return CommandLine(ShowText{*parsed->help});
  std::span<const std::string> rest = parsed->rest;
  if (!rest.empty() && rest[0] == "--") {
    rest = rest.subspan(1);
  } else if (!rest.empty() && rest[0].starts_with("-")) {
    return command.unknown(rest[0]);
  }
  if (rest.empty()) {
    return usage("trainer launch",
                 "no command; give one after --, as in trainer launch -- python3 train.py");
  }
  options.command.assign(rest.begin(), rest.end());
  return CommandLine(std::move(options));
}

/// Of a command that takes flags alone.
template <typename Options>
Result<CommandLine> parse_flags(Command& command, std::span<const std::string> words,
                                Options& options) {
  const auto parsed = command.parse(words);
  if (!parsed) return parsed.error();
  if (parsed->help) return CommandLine(ShowText{*parsed->help});
  if (!parsed->rest.empty()) return command.unknown(parsed->rest[0]);
  return CommandLine(std::move(options));
}

Result<CommandLine> parse_env(std::span<const std::string> words) {
  EnvOptions options;
  Command command("env", "[FLAGS]", "says who this worker is, as launch would find it");
  command.on({.name = "--explain",
              .help = "a table of each value and where it came from (the variables of the worker's "
                      "first process, for a shell)"},
             options.explain);
  add_identity_flags(command, options.identity);
  return parse_flags(command, words, options);
}

/// What else trainer train would be given: with it, what a rank needs of memory is looked at.
void add_memory_flags(Command& command, std::vector<std::string>& training) {
  const auto pass_on = [&](const char* name, const char* value, const char* help) {
    command.text({.name = name, .value = value, .what = "what trainer train takes", .help = help},
                 [name, &training](const std::string& text) -> Result<void> {
                   training.insert(training.end(), {name, text});
                   return {};
                 });
  };
  pass_on("--batch-size", "N",
          "the same, and so all below: whether a rank's memory is enough; the model's own flags "
          "follow after --");
  pass_on("--accumulation", "N", "the same");
  pass_on("--zero", "STAGE", "the same");
  pass_on("--precision", "NAME", "the same");
  pass_on("--ema", "DECAY", "the same");
}

Result<CommandLine> parse_check(std::span<const std::string> words) {
  CheckOptions options;
  Command command(
      "check", "[FLAGS]",
      "looks whether a training could begin; to be run on every worker, as training is");
  const auto path = [&command](const std::string& name, const char* value, const char* help,
                               std::function<void(const std::string&)> store) {
    command.text({.name = name, .value = value, .what = "a path", .help = help},
                 [name, store](const std::string& text) -> Result<void> {
                   if (text.empty()) return usage(name, "is empty; it must be a path");
                   store(text);
                   return {};
                 });
  };
  command.text({.name = "--model",
                .value = "NAME",
                .what = "a name",
                .help = "what trainer train would be given: how the data is read"},
               [&options](const std::string& text) -> Result<void> {
                 options.model = text;
                 return {};
               });
  path("--data", "PATH", "the same; may be given several times",
       [&options](const std::string& text) { options.data.push_back(text); });
  path("--out", "FOLDER", "the same; 64 MB are written there, for a second at most, and removed",
       [&options](const std::string& text) { options.out = text; });
  path("--init-from", "PATH", "the same",
       [&options](const std::string& text) { options.init_from = text; });
  add_memory_flags(command, options.training);
  add_seconds(
      command,
      {.name = "--rendezvous-timeout-seconds", .help = "how long ranks wait for each other"}, 1,
      options.rendezvous_timeout);
  command.on({.name = "--json", .help = "one JSON document instead of a table"}, options.json);
  add_identity_flags(command, options.identity);
  command.footer(kCheckNotes);
  const auto parsed = command.parse(words);
  if (!parsed) return parsed.error();
  if (parsed->help) return CommandLine(ShowText{*parsed->help});
  if (parsed->rest.empty()) return CommandLine(std::move(options));
  if (parsed->rest[0] != "--") return command.unknown(parsed->rest[0]);
  options.training.insert(options.training.end(), parsed->rest.begin() + 1, parsed->rest.end());
  return CommandLine(std::move(options));
}

std::string help_text() {
  std::string text(kHelpBegin);
  for (const auto& command : kEngineCommands) {
    const std::string name = "trainer " + std::string(command.name);
    text += "  " + name + " ARGUMENTS...\n      " + std::string(command.does) + "; `" + name +
            " --help` lists the arguments\n";
  }
  return text.append(kHelpEnd);
}

/// "launch, env, check, prepare, export, train, encode or decode"
std::string command_names() {
  std::string names = "launch, env, check, prepare, export";
  for (const auto& command : kEngineCommands) {
    const bool is_last = &command == &kEngineCommands[std::size(kEngineCommands) - 1];
    names.append(is_last ? " or " : ", ").append(command.name);
  }
  return names;
}

}  // namespace

Result<CommandLine> parse_command_line(std::span<const std::string> arguments,
                                       std::string_view version) {
  if (arguments.empty()) return usage("trainer", "no command; it must be " + command_names());
  const std::string& command = arguments[0];
  const auto rest = arguments.subspan(1);
  if (command == "launch") return parse_launch(rest);
  if (command == "env") return parse_env(rest);
  if (command == "check") return parse_check(rest);
  if (command == "prepare") return CommandLine(PrepareArguments{{rest.begin(), rest.end()}});
  if (command == "export") return CommandLine(ExportArguments{{rest.begin(), rest.end()}});
  if (is_engine_command(command))
    return CommandLine(EngineOptions{command, {rest.begin(), rest.end()}});
  if (command == "--help" || command == "-h") return CommandLine(ShowText{help_text()});
  if (command == "--version")
    return CommandLine(ShowText{"trainer " + std::string(version) + "\n"});
  return usage("trainer", "\"" + command + "\" is not a command; it must be " + command_names());
}

}  // namespace tj::trainer
