#include "cli/submit/submit_flags.h"

#include <CLI/CLI.hpp>

#include "cli/command_words.h"
#include "cli/submit/made_job.h"

namespace tj::submit {
namespace {

CLI::Option* add_text(CLI::App& command, const char* names, std::string& value, const char* help) {
  return command.add_option(names, value, help)->group(kJobFlags);
}

/// May be given several times, with one value each.
CLI::Option* add_list(CLI::App& command, const char* names, std::vector<std::string>& values,
                      const char* help) {
  return command.add_option(names, values, help)->allow_extra_args(false)->group(kJobFlags);
}

}  // namespace

void add_submit_flags(CLI::App& command, SubmitFlags& flags) {
  add_text(command, "--name,--job-name", flags.name, "the job's name")->type_name("NAME");
  add_text(command, "--workers,--nodes,--num-nodes", flags.workers, "number of workers (pods)")
      ->type_name("N")
      ->capture_default_str();
  add_text(command, "--gpus-per-worker,--gpus-per-node", flags.gpus_per_worker,
           "GPUs of each worker; 0: it runs on CPUs")
      ->type_name("N")
      ->capture_default_str();
  add_text(command, "--image", flags.image, "the container image (the variable TJ_IMAGE)")
      ->type_name("IMAGE");
  add_text(command, "--script", flags.script,
           "a script of this machine, at most 1 MiB: each worker runs it; words after -- are its "
           "arguments")
      ->type_name("FILE");
  add_list(command, "--env", flags.env, "a variable of the container; may be repeated")
      ->type_name("NAME=VALUE");
  add_list(command, "--mount", flags.mounts,
           "a folder of the nodes, a claim (pvc:NAME:PATH) or a ConfigMap (configmap:NAME:PATH); "
           "may be repeated")
      ->type_name("FOLDER:PATH[:ro]");
  add_list(command, "--label", flags.labels,
           "a label of the job and its pods, as queueing systems read it; may be repeated")
      ->type_name("NAME=VALUE");
  add_text(command, "--shm", flags.shm, "the size of /dev/shm, as in 64Gi (64 MB without it)")
      ->type_name("SIZE");
  add_text(command, "--ib", flags.ib,
           "InfiniBand: one of the resource by which the cluster gives it, and IPC_LOCK")
      ->type_name("[RESOURCE]")
      ->expected(0, 1)
      ->default_str(kInfiniBandResource);
  add_text(command, "--port,--master-port", flags.port, "where rank 0 is met (29500)")
      ->type_name("PORT");
  add_text(command, "--workdir", flags.workdir, "in which folder the container starts")
      ->type_name("PATH");
  add_command_words(command, flags.command, "-- COMMAND...");
}

}  // namespace tj::submit
