// tj submit: a job made from flags, or from a manifest, is created in a cluster.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "cli/cluster/session.h"
#include "cli/commands/commands.h"
#include "cli/jobs/place.h"
#include "cli/manifest_file.h"
#include "cli/plain_text.h"
#include "cli/submit/creation.h"
#include "cli/submit/following.h"
#include "cli/submit/made_job.h"
#include "cli/submit/output.h"
#include "cli/submit/submit_flags.h"
#include "contract/launch_env.h"
#include "contract/utf8.h"
#include "operator/api/json.h"

namespace tj {
namespace {

using namespace submit;
using Json = nlohmann::json;

constexpr const char* kNotes = R"(
The manifest that was made is on standard output (with a ConfigMap, where a script travels), what
became of it on standard error. A script is run by what its #! line says, else by its name's end.

Examples:
  tj submit --name taehv-16gpu --workers 2 --gpus-per-worker 8 --image registry/taehv:1 \
     --script start.sh --mount /mnt/project:/mnt/project --shm 64Gi --watch
  tj submit --name probe --workers 2 --image debian:bookworm -- bash -c 'echo $RANK'
  tj submit --name probe --image debian:bookworm --dry-run -- env > job.yaml
  tj submit -f job.yaml --replace

Exit codes: 0 created (with --watch: succeeded), 1 failed, 2 wrong input, 4 refused, 5 no answer,
130 interrupted.)";

struct SubmitArguments {
  SessionOptions session;
  SubmitFlags flags;
  std::string file;
  std::string format;
  bool is_dry_run = false;
  bool is_watched = false;
  bool replaces = false;
};

Error wrong(std::string subject, std::string message) {
  return Error{Code::invalid, std::move(message), std::move(subject), {}};
}

/// JSON and YAML take nothing else; a shell hands over any bytes.
Result<void> check_texts(const SubmitFlags& flags) {
  const auto check = [](const char* flag, const std::string& text) -> Result<void> {
    if (valid_utf8_bytes(text) == text.size()) return {};
    return wrong(flag, "is \"" + plain_line(text) + "\", which is not UTF-8");
  };
  const std::pair<const char*, const std::string*> kTexts[] = {
      {"--name", &flags.name}, {"--image", &flags.image}, {"--shm", &flags.shm},
      {"--ib", &flags.ib},     {"--port", &flags.port},   {"--workdir", &flags.workdir}};
  for (const auto& [flag, text] : kTexts) {
    if (auto checked = check(flag, *text); !checked) return checked;
  }
  const std::pair<const char*, const std::vector<std::string>*> kLists[] = {
      {"--env", &flags.env},
      {"--mount", &flags.mounts},
      {"--label", &flags.labels},
      {"the command", &flags.command}};
  for (const auto& [flag, texts] : kLists) {
    for (const std::string& text : *texts) {
      if (auto checked = check(flag, text); !checked) return checked;
    }
  }
  return {};
}

/// `tj submit job.yaml`: the manifest was meant, and no command.
Result<void> check_words(const SubmitFlags& flags) {
  const bool is_manifest =
      flags.command.size() == 1 && flags.script.empty() &&
      (flags.command[0].ends_with(".yaml") || flags.command[0].ends_with(".yml"));
  if (!is_manifest) return {};
  return wrong("tj submit", "a manifest is given by -f " + plain_line(flags.command[0]) +
                                "; a command stands behind --");
}

Result<MadeJob> from_flags(const SubmitFlags& flags) {
  if (const auto checked = check_texts(flags); !checked) return checked.error();
  if (const auto checked = check_words(flags); !checked) return checked.error();
  std::optional<Script> script;
  if (!flags.script.empty()) {
    auto read = read_script(flags.script);
    if (!read) return read.error();
    script = *std::move(read);
  }
  std::vector<FieldError> errors;
  MadeJob made = make_job(flags, script, errors);
  if (errors.empty()) return made;
  return wrong("", describe(errors));
}

Result<MadeJob> from_file(const std::string& file) {
  const auto documents = read_documents(file);
  if (!documents) return documents.error();
  auto manifest = job_manifest(*documents, file);
  if (!manifest) return manifest.error();
  for (const std::string& other : manifest->ignored) {
    std::fprintf(stderr, "%s: %s is not created (`kubectl apply -f` takes it)\n",
                 source_name(file).c_str(), plain_line(other).c_str());
  }
  return MadeJob{.job = std::move(manifest->job), .config_map = {}};
}

/// -n goes into the manifest, too.
Result<void> take_namespace(MadeJob& made, const std::string& ns) {
  const std::string own = meta_from_json(made.job).ns;
  if (ns.empty() || own == ns) return {};
  if (!own.empty())
    return wrong("-n",
                 "is \"" + plain_line(ns) + "\"; the manifest says \"" + plain_line(own) + "\"");
  made.job["metadata"]["namespace"] = ns;
  if (made.config_map) (*made.config_map)["metadata"]["namespace"] = ns;
  return {};
}

std::vector<Json> objects_of(const MadeJob& made) {
  std::vector<Json> objects{made.job};
  if (made.config_map) objects.push_back(*made.config_map);
  return objects;
}

/// Prints what was made; a manifest of the person's own only where it is asked for.
void print(const SubmitArguments& arguments, const MadeJob& made, Format format) {
  const bool is_wanted =
      arguments.file.empty() || arguments.is_dry_run || !arguments.format.empty();
  if (is_wanted) std::fputs(printed(objects_of(made), format).c_str(), stdout);
  std::fflush(stdout);
}

/// Part of the status line of `tj status --watch`, until that does it.
int watch(Session& session, const ObjectMeta& meta, const Interrupts& interrupts) {
  const auto job = follow(session, meta, interrupts, {.print = [](const std::string& line) {
                            std::fprintf(stderr, "%s\n", line.c_str());
                          }});
  if (!job) return refuse_or_fail(job.error());
  if (*job)
    return (*job)->status.phase == Phase::succeeded ? tj_exit::kSucceeded : tj_exit::kFailed;
  std::fprintf(stderr, "job %s goes on; it is watched no longer\n", to_string(meta.key()).c_str());
  return interrupts.exit_code();
}

int create_and_watch(const SubmitArguments& arguments, const MadeJob& made, Format format) {
  const auto session = Session::open(arguments.session);
  if (!session && is_without_cluster(session.error()))
    std::fputs("tj run -f FILE runs a manifest on this machine; --dry-run prints one\n", stderr);
  if (!session) return refuse(session.error());
  // A job is never left without its script by a Ctrl-C between the two calls.
  const Interrupts interrupts((*session)->loop());
  const auto job = create(**session, made, {.replaces = arguments.replaces});
  if (!job) return refuse_or_fail(job.error());
  print(arguments, made, format);
  const ObjectMeta meta = meta_from_json(*job);
  std::fprintf(stderr, "job %s created\n", to_string(meta.key()).c_str());
  if (arguments.is_watched) return watch(**session, meta, interrupts);
  return interrupts.number() ? interrupts.exit_code() : tj_exit::kSucceeded;
}

/// A manifest says all that the flags of a job say.
Result<void> check_file_alone(const CLI::App& command, const SubmitArguments& arguments) {
  if (arguments.file.empty()) return {};
  if (!arguments.flags.command.empty())
    return wrong("tj submit", "has -f and a command behind --; one of them must go");
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group() == kJobFlags && option->count() > 0)
      return wrong(option->get_name(), "is given beside -f; the manifest must say it");
  }
  return {};
}

int submit_job(SubmitArguments& arguments) {
  if (arguments.flags.image.empty()) arguments.flags.image = process_env("TJ_IMAGE").value_or("");
  const auto format = parse_format(arguments.format.empty() ? "yaml" : arguments.format);
  if (!format) return refuse_or_fail(format.error());
  auto made = arguments.file.empty() ? from_flags(arguments.flags) : from_file(arguments.file);
  if (!made) return refuse_or_fail(made.error());
  if (const auto taken = take_namespace(*made, arguments.session.ns); !taken)
    return refuse_or_fail(taken.error());
  if (!arguments.is_dry_run) return create_and_watch(arguments, *made, *format);
  print(arguments, *made, *format);
  return tj_exit::kSucceeded;
}

}  // namespace

void add_submit(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("submit", "create a job in a cluster");
  auto arguments = std::make_shared<SubmitArguments>();
  add_submit_flags(*command, arguments->flags);
  command->add_option("-f,--file", arguments->file,
                      "a manifest instead of these flags; - reads standard input");
  command->add_flag("--dry-run", arguments->is_dry_run, "print the manifest, create nothing");
  command->add_flag("--watch", arguments->is_watched, "follow the job to its end");
  command->add_flag("--replace", arguments->replaces, "delete a job of that name first");
  command->add_option("-o,--output", arguments->format, "yaml, json or name")->type_name("FORMAT");
  add_session_flags(*command, arguments->session);
  command->footer(kNotes);
  command->callback([command, arguments, &exit_code] {
    const auto checked = check_file_alone(*command, *arguments);
    exit_code = checked ? submit_job(*arguments) : refuse_or_fail(checked.error());
  });
}

}  // namespace tj
