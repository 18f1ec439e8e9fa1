#include "cli/slurm/batch_flags.h"

#include <algorithm>
#include <string_view>

#include "cli/plain_text.h"
#include "cli/slurm/pod_worker.h"
#include "contract/launch_env.h"

namespace tj::slurm {
namespace {

constexpr int kNodesMax = 10'000;
constexpr int kPerNodeMax = 1024;
constexpr int kSignalSecondsMax = 65'535;  // what sbatch takes
constexpr int kRestartsMax = 1000;
constexpr std::size_t kNameCharsMax = 200;
constexpr std::string_view kDigits = "0123456789";

Error wrong(std::string flag, std::string message) {
  return Error{Code::invalid, std::move(message), std::move(flag), {}};
}

Error wrong_value(const char* flag, const std::string& value, const std::string& right) {
  return wrong(flag, "is \"" + plain_line(value) + "\"; it must be " + right);
}

/// Letters that a shell, sbatch and its patterns of file names all take for themselves.
bool is_plain(std::string_view text, std::string_view more) {
  return std::ranges::all_of(text, [&](char letter) {
    const bool is_letter = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
    return is_letter || kDigits.find(letter) != std::string_view::npos ||
           more.find(letter) != std::string_view::npos;
  });
}

/// Of a job, a partition or an account.
Result<void> check_name(const char* flag, const std::string& name) {
  const bool is_right = is_plain(name, "._+-") && !name.starts_with('-') && name != "." &&
                        name != ".." && name.size() <= kNameCharsMax;
  if (is_right) return {};
  return wrong_value(flag, name,
                     "letters, digits, \".\", \"_\", \"+\" and \"-\", and begin with none "
                     "of \"-\"");
}

/// MIN, MIN:SEC, HOURS:MIN:SEC, DAYS-HOURS, DAYS-HOURS:MIN or DAYS-HOURS:MIN:SEC.
bool is_time(std::string_view text) {
  const auto dash = text.find('-');
  const bool has_days = dash != std::string_view::npos;
  std::string_view rest = has_days ? text.substr(dash + 1) : text;
  const auto is_number = [](std::string_view part) {
    return !part.empty() && part.size() <= 6 &&
           part.find_first_not_of(kDigits) == std::string_view::npos;
  };
  if (has_days && !is_number(text.substr(0, dash))) return false;
  for (int parts = 1; parts <= 3; ++parts) {
    const auto colon = rest.find(':');
    if (!is_number(rest.substr(0, colon))) return false;
    if (colon == std::string_view::npos) return true;
    rest.remove_prefix(colon + 1);
  }
  return false;
}

template <typename Number>
Result<void> take_number(const char* flag, const std::string& text, int min, int max,
                         Number& number) {
  if (text.empty()) return {};
  const auto given = parse_int(flag, text, min, max);
  if (!given) return given.error();
  number = *given;
  return {};
}

Result<void> take_env(const BatchFlags& flags, BatchJob& job) {
  for (const std::string& entry : flags.env) {
    const auto equals = entry.find('=');
    const std::string name = entry.substr(0, equals);
    if (equals == std::string::npos || !is_variable_name(name) || !is_printable(entry))
      return wrong_value("--env", entry, "NAME=VALUE, as in OMP_NUM_THREADS=8");
    if (is_set_for_tasks(name))
      return wrong_value("--env", entry,
                         "another name: the script sets this variable for each task");
    job.env.emplace_back(name, ShellText(entry.substr(equals + 1)));
  }
  return {};
}

Result<void> take_command(const BatchFlags& flags, BatchJob& job) {
  if (flags.command.empty())
    return wrong("tj slurm",
                 "has neither -f nor a command; a command stands behind --, as in "
                 "-- trainer launch -- python3 train.py");
  for (const std::string& word : flags.command) {
    if (!is_printable(word))
      return wrong("the command", "has a word with a control letter, or one that is not UTF-8: \"" +
                                      plain_line(word) + "\"");
    job.command.emplace_back(word);
  }
  if (add_resume(job.command))
    job.notes.emplace_back(
        "--resume is added to trainer train: the job goes on when it comes back "
        "from the queue");
  return {};
}

Result<Runtime> runtime_of(const std::string& word) {
  if (word.empty() || word == "none") return Runtime::none;
  if (word == "apptainer") return Runtime::apptainer;
  if (word == "pyxis") return Runtime::pyxis;
  return wrong_value("--container", word, "apptainer, pyxis or none");
}

Result<void> check_path(const char* flag, const std::string& path) {
  const bool is_right =
      !path.empty() && is_printable(path) && path.find_first_of("\n\t") == std::string::npos;
  if (is_right) return {};
  return wrong_value(flag, path, "a path in one line");
}

}  // namespace

Result<SlurmPlace> place_of(const BatchFlags& flags) {
  SlurmPlace place;
  const auto runtime = runtime_of(flags.container);
  if (!runtime) return runtime.error();
  place.runtime = *runtime;
  for (const std::string& entry : flags.volumes) {
    const auto equals = entry.find('=');
    const std::string folder = equals == std::string::npos ? "" : entry.substr(equals + 1);
    if (equals == 0 || !folder.starts_with('/') || !check_path("--volume", folder))
      return wrong_value("--volume", entry,
                         "NAME=FOLDER: a volume of the manifest, and an absolute "
                         "path on the nodes");
    place.volumes[entry.substr(0, equals)] = folder;
  }
  return place;
}

Result<void> apply(const BatchFlags& flags, BatchJob& job) {
  for (const auto& [flag, text, field] :
       {std::tuple("--partition", &flags.partition, &job.partition),
        std::tuple("--account", &flags.account, &job.account)}) {
    if (auto checked = check_name(flag, *text); !checked) return checked;
    *field = *text;
  }
  if (!flags.time_limit.empty() && !is_time(flags.time_limit))
    return wrong_value("--time-limit", flags.time_limit,
                       "as sbatch's --time: MINUTES, HOURS:MIN:SEC or DAYS-HOURS:MIN:SEC");
  job.time_limit = flags.time_limit;
  if (job.time_limit.empty() && job.deadline)
    job.time_limit = std::to_string((job.deadline->count() + 59) / 60);
  if (auto taken = take_number("--signal-seconds", flags.signal_seconds, 1, kSignalSecondsMax,
                               job.signal_seconds);
      !taken)
    return taken;
  job.output_folder = flags.output_folder.empty() ? "out/" + job.name : flags.output_folder;
  if (auto checked = check_path("--output-dir", job.output_folder); !checked) return checked;
  for (const std::string& option : flags.sbatch_options) {
    if (!option.starts_with("--") || option.size() < 3 || !is_plain(option, "-_=.,:+@/%[]&|*!()"))
      return wrong_value("--sbatch", option, "--NAME or --NAME=VALUE, without spaces and quotes");
    job.sbatch_options.push_back(option);
  }
  return {};
}

Result<BatchJob> from_flags(const BatchFlags& flags) {
  BatchJob job;
  job.made_from = "flags";
  job.name = flags.name;
  if (job.name.empty()) return wrong("--job-name", "is missing; it must be the name of the job");
  if (auto checked = check_name("--job-name", job.name); !checked) return checked.error();
  int cpus = 0;
  const auto number = [&](const char* flag, const std::string& text, int min, int max,
                          auto& value) -> Result<void> {
    return take_number(flag, text, min, max, value);
  };
  for (const auto& taken :
       {number("--num-nodes", flags.nodes, 1, kNodesMax, job.node_count),
        number("--gpus-per-node", flags.gpus_per_node, 0, kPerNodeMax, job.gpus_per_node),
        number("--cpus-per-node", flags.cpus_per_node, 1, 65'536, cpus),
        number("--tasks-per-node", flags.tasks_per_node, 1, kPerNodeMax, job.tasks_per_node),
        number("--max-restarts", flags.restarts_max, 0, kRestartsMax, job.restarts_max),
        number("--port", flags.port, 1, 65'535, job.master_port)}) {
    if (!taken) return taken.error();
  }
  if (cpus > 0) job.cpus_per_node = cpus;
  if (cpus > 0 && cpus < job.tasks_per_node)
    return wrong_value(
        "--cpus-per-node", flags.cpus_per_node,
        "at least 1 for each of the " + std::to_string(job.tasks_per_node) + " tasks of a node");
  if (job.gpus_per_node > 0) job.nproc_per_node = job.gpus_per_node;
  const auto runtime = runtime_of(flags.container);
  if (!runtime) return runtime.error();
  job.runtime = *runtime;
  job.image = flags.image;
  const bool needs_image = job.runtime != Runtime::none;
  if (needs_image != !job.image.empty() || !is_printable(job.image))
    return wrong("--image", needs_image ? "is missing; it must be the image that --container runs"
                                        : "is given; --container must say what runs it");
  if (auto taken = take_env(flags, job); !taken) return taken.error();
  if (auto taken = take_command(flags, job); !taken) return taken.error();
  if (auto applied = apply(flags, job); !applied) return applied.error();
  return job;
}

}  // namespace tj::slurm
