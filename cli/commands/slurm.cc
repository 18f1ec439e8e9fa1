// tj slurm: a batch script of SLURM, from a manifest or from flags.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>

#include "cli/command_words.h"
#include "cli/commands/commands.h"
#include "cli/manifest_file.h"
#include "cli/plain_text.h"
#include "cli/slurm/batch_flags.h"
#include "cli/slurm/batch_script.h"

namespace tj {
namespace {

using namespace slurm;

constexpr const char* kJobFlags = "In place of a manifest";
constexpr const char* kNotes = R"(
The script goes back into the queue after preemption, a lost node, a failure that another try may
mend, and at the time limit, before which the tasks are asked to save. What a manifest says that has
no equivalent is said on standard error and in comments of the script.

Examples:
  tj slurm -f job.yaml -o job.sh && sbatch job.sh
  tj slurm -f job.yaml --container apptainer --volume data=/lustre/data | sbatch
  tj slurm --job-name pi0 --num-nodes 2 --gpus-per-node 8 --time-limit 24:00:00 --partition gpu \
     --output-dir /shared/pi0 -- trainer launch -- trainer train --model gpt2-nano --data /shared/text \
     --out /shared/pi0/run
                                      a worker on each node, which starts a process for each GPU
  tj slurm --job-name pi0 --num-nodes 2 --gpus-per-node 8 --tasks-per-node 8 -- python3 train.py
                                      a task for each GPU, with torchrun's variables

Exit codes: 0 the script is made, 2 wrong input.)";

struct SlurmArguments {
  BatchFlags flags;
  std::string file;
  std::string output;
};

Error wrong(std::string subject, std::string message) {
  return Error{Code::invalid, std::move(message), std::move(subject), {}};
}

Result<BatchJob> from_file(const SlurmArguments& arguments) {
  const auto place = place_of(arguments.flags);
  if (!place) return place.error();
  const auto documents = read_documents(arguments.file);
  if (!documents) return documents.error();
  const auto manifest = job_manifest(*documents, arguments.file);
  if (!manifest) return manifest.error();
  const std::string source = source_name(arguments.file);
  auto job = from_manifest(manifest->job, *place);
  if (!job) {
    std::string lines = job.error().message;
    for (auto at = lines.find('\n'); at != std::string::npos; at = lines.find('\n', at + 1))
      lines.insert(at + 1, source + ": ");
    return wrong(source, lines);
  }
  job->made_from = source;
  for (const std::string& other : manifest->ignored)
    job->notes.push_back(other + " is left out: SLURM has nothing like it");
  if (const auto applied = apply(arguments.flags, *job); !applied) return applied.error();
  return job;
}

int print(const std::string& script, const std::string& output) {
  if (output.empty() || output == "-") {
    std::fputs(script.c_str(), stdout);
    return std::fflush(stdout) == 0 ? tj_exit::kSucceeded : tj_exit::kFailed;
  }
  std::ofstream file(output, std::ios::binary | std::ios::trunc);
  file << script;
  file.close();
  if (file) return tj_exit::kSucceeded;
  return refuse(
      wrong("-o", "\"" + plain_line(output) + "\" cannot be written: " + std::strerror(errno)));
}

/// A manifest says all that the flags of a job say.
Result<void> check_file_alone(const CLI::App& command, const SlurmArguments& arguments) {
  if (arguments.file.empty()) return {};
  if (!arguments.flags.command.empty())
    return wrong("tj slurm", "has -f and a command behind --; one of them must go");
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group() == kJobFlags && option->count() > 0)
      return wrong(option->get_name(), "is given beside -f; the manifest must say it");
  }
  return {};
}

int make_script(const SlurmArguments& arguments) {
  if (arguments.file.empty() && !arguments.flags.volumes.empty())
    return refuse(wrong("--volume", "is given without -f; it names a volume of a manifest"));
  auto job = arguments.file.empty() ? from_flags(arguments.flags) : from_file(arguments);
  if (!job) return refuse(job.error());
  const int code = print(batch_script(*job), arguments.output);
  if (code != tj_exit::kSucceeded) return code;
  const std::string source = job->made_from == "flags" ? "tj slurm" : job->made_from;
  for (const std::string& note : job->notes)
    std::fprintf(stderr, "%s: %s\n", plain_line(source).c_str(), plain_line(note).c_str());
  return code;
}

void add_job_flags(CLI::App& command, BatchFlags& flags) {
  const auto add = [&](const char* names, std::string& value, const char* type, const char* help) {
    command.add_option(names, value, help)->type_name(type)->group(kJobFlags);
  };
  add("--job-name,--name", flags.name, "NAME", "name of the job");
  add("--num-nodes,--nodes", flags.nodes, "N", "number of nodes (1)");
  add("--gpus-per-node", flags.gpus_per_node, "N", "GPUs of each node (0)");
  add("--cpus-per-node", flags.cpus_per_node, "N", "cores of each node (all: --exclusive)");
  add("--tasks-per-node", flags.tasks_per_node, "N",
      "times that the command runs on each node (1): once, and it starts a process for each GPU "
      "itself, or as many as there are GPUs, and it is one of these processes");
  add("--max-restarts", flags.restarts_max, "N", "restarts after failures (3)");
  add("--port,--master-port", flags.port, "PORT", "where rank 0 is met (by the job's number)");
  add("--image", flags.image, "IMAGE", "what --container runs");
  command.add_option("--env", flags.env, "NAME=VALUE, a variable of the tasks")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false)
      ->group(kJobFlags);
}

}  // namespace

void add_slurm(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("slurm", "a batch script of SLURM, from a manifest or from flags");
  auto arguments = std::make_shared<SlurmArguments>();
  BatchFlags& flags = arguments->flags;
  command->add_option("-f,--file", arguments->file, "a manifest; - reads standard input");
  command->add_option("-o,--output", arguments->output, "the script (standard output)")
      ->type_name("FILE");
  const auto add = [&](const char* names, std::string& value, const char* type, const char* help) {
    command->add_option(names, value, help)->type_name(type);
  };
  add("--time-limit", flags.time_limit, "TIME", "of one run, as sbatch's --time");
  add("--partition", flags.partition, "NAME", "the queue");
  add("--account", flags.account, "NAME", "who pays");
  add("--output-dir", flags.output_folder, "FOLDER",
      "logs, in a folder for each job; on a disk that all nodes see (out/NAME)");
  add("--signal-seconds", flags.signal_seconds, "N",
      "how long before the time limit tasks are asked to save (120)");
  add("--container", flags.container, "RUNTIME", "what runs the image: apptainer, pyxis or none");
  command
      ->add_option("--volume", flags.volumes, "a volume of the manifest, as a folder of the nodes")
      ->type_name("NAME=FOLDER")
      ->allow_extra_args(false);
  command
      ->add_option("--sbatch", flags.sbatch_options, "a further option, as in --sbatch=--qos=high")
      ->type_name("OPTION")
      ->allow_extra_args(false);
  add_job_flags(*command, flags);
  add_command_words(*command, flags.command, "-- COMMAND...");
  command->footer(kNotes);
  command->callback([command, arguments, &exit_code] {
    const auto checked = check_file_alone(*command, *arguments);
    exit_code = checked ? make_script(*arguments) : refuse(checked.error());
  });
}

}  // namespace tj
