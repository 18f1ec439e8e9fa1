#include "trainer/launch/identity.h"

#include <climits>
#include <utility>

#include "contract/names.h"
#include "contract/utf8.h"
#include "trainer/launch/conventions.h"
#include "trainer/launch/slurm.h"
#include "trainer/values/process_env.h"

namespace tj::trainer {
namespace {

/// Which convention holds, in words why, and what else was seen.
struct Choice {
  Convention convention = Convention::none;
  std::string because;
  std::vector<std::string> notes;
};

bool any_flag(const PlaceFlags& place) { return place != PlaceFlags{}; }

std::string set_ones(const EnvReader& env, std::initializer_list<std::string_view> names) {
  std::string text;
  for (const auto name : names) {
    if (env.has(name)) text += (text.empty() ? "" : ", ") + std::string(name);
  }
  return text;
}

/// WORLD_SIZE and RANK without LOCAL_RANK, of a platform: workers, unless NNODES says otherwise.
Choice choose_by_world(const IdentityRequest& request, const EnvReader& env) {
  const auto nodes = request.lookup("NNODES");
  const auto world = request.lookup("WORLD_SIZE");
  if (nodes && world && *nodes != *world) {
    return {Convention::nnodes, "set: NNODES, and WORLD_SIZE counts something else", {}};
  }
  return {Convention::workers,
          "set: " + set_ones(env, {"WORLD_SIZE", "RANK", "MASTER_ADDR", "MASTER_PORT"}) +
              ", without LOCAL_RANK (a platform's worker)",
          {}};
}

/// The first rule that matches; docs/launching.md lists them.
Choice choose_by_rules(const IdentityRequest& request, const EnvReader& env) {
  const auto slurm = look_for_slurm(request.lookup);
  const auto with_slurm = [&](Choice choice) {
    if (slurm.is_there && !slurm.has_tasks) choice.notes.push_back("not followed: " + slurm.why);
    if (slurm.has_tasks) choice.notes.push_back("not followed: the variables of SLURM");
    return choice;
  };
  if (const auto local = set_ones(env, {"LOCAL_RANK", "LOCAL_WORLD_SIZE"}); !local.empty()) {
    return with_slurm(
        {Convention::processes, "set: " + local + " (a launcher has started this process)", {}});
  }
  if (env.has(names::kEnvJobUid)) {
    return with_slurm({Convention::workers, "set: TRAININGJOB_UID (the operator's worker)", {}});
  }
  if (const auto pet = set_ones(env, {"PET_NNODES", "PET_NODE_RANK"}); !pet.empty()) {
    return with_slurm({Convention::pet, "set: " + pet + " (torchrun's own variables)", {}});
  }
  if (slurm.has_tasks) return {Convention::slurm, slurm.why, {}};
  if (env.has("WORLD_SIZE") || env.has("RANK")) return with_slurm(choose_by_world(request, env));
  if (const auto nodes = set_ones(env, {"NNODES", "NODE_RANK"}); !nodes.empty()) {
    return with_slurm({Convention::nnodes, "set: " + nodes, {}});
  }
  if (env.has("MASTER_ADDR") || env.has("MASTER_PORT"))
    return with_slurm(choose_by_world(request, env));
  return with_slurm({Convention::none, "no launch variable is set", {}});
}

Choice choose(const IdentityRequest& request, EnvReader& env) {
  const auto& options = request.options;
  if (any_flag(options.place)) {
    if (options.convention) {
      env.refuse("--convention", "is " + std::string(to_string(*options.convention)) +
                                     " beside flags that say who this is; it must not be given");
    }
    return {Convention::flags, "flags say who this is", {}};
  }
  if (options.convention) return {*options.convention, "--convention", {}};
  return choose_by_rules(request, env);
}

Identity follow(const IdentityRequest& request, EnvReader& env, Identity id) {
  switch (id.convention) {
    case Convention::flags: return follow_flags(request, env, std::move(id));
    case Convention::processes: return follow_processes(request, env, std::move(id));
    case Convention::workers: return follow_workers(request, env, std::move(id));
    case Convention::pet:
    case Convention::nnodes: return follow_nodes(request, env, std::move(id));
    case Convention::slurm: return follow_slurm(request, env, std::move(id));
    case Convention::none: break;
  }
  return follow_nothing(request, env, std::move(id));
}

/// Processes would fill whole nodes, and nobody has said how many of them a worker has.
bool may_count_processes(const IdentityRequest& request, const EnvReader& env, const Identity& id) {
  const bool is_by_world = id.convention == Convention::workers && !request.options.convention &&
                           !env.has(names::kEnvJobUid) && !env.has("NNODES");
  const bool is_told =
      request.options.nproc.source != NprocChoice::Source::environment || env.has("NPROC_PER_NODE");
  const int world_size = id.worker_count.value;
  const int gpus = request.host.gpus;
  return is_by_world && !is_told && !request.is_process && gpus > 1 && world_size > 1 &&
         world_size % gpus == 0;
}

/// By what it is told itself, or by what its launcher was told.
bool is_on_platform(const EnvReader& env, const Identity& id) {
  const bool is_launched = id.convention == Convention::processes && env.has(kEnvOnPlatform);
  const bool is_of_operator = env.has(names::kEnvJobUid) || env.has(names::kEnvJobName);
  return !is_of_operator && (id.convention == Convention::workers || is_launched);
}

void require_countable(EnvReader& env, const Identity& id) {
  if (env.error() || id.worker_count.value <= INT_MAX / id.nproc.value) return;
  env.refuse(id.worker_count.origin, "is " + std::to_string(id.worker_count.value) + "; with " +
                                         std::to_string(id.nproc.value) +
                                         " processes per worker it must be at most " +
                                         std::to_string(INT_MAX / id.nproc.value));
}

}  // namespace

std::string_view to_string(Convention convention) {
  switch (convention) {
    case Convention::flags: return "flags";
    case Convention::processes: return "processes";
    case Convention::workers: return "workers";
    case Convention::pet: return "pet";
    case Convention::nnodes: return "nnodes";
    case Convention::slurm: return "slurm";
    case Convention::none: return "none";
  }
  return "none";
}

std::optional<Convention> convention_named(std::string_view word) {
  using enum Convention;
  for (const auto convention : {processes, workers, pet, nnodes, slurm, none}) {
    if (word == to_string(convention)) return convention;
  }
  return std::nullopt;
}

std::string_view source_of(Convention convention) {
  switch (convention) {
    case Convention::flags: return "flags";
    case Convention::processes: return "a launcher's variables";
    case Convention::workers: return "WORLD_SIZE and RANK";
    case Convention::pet: return "PET_NNODES and PET_NODE_RANK";
    case Convention::nnodes: return "NNODES and NODE_RANK";
    case Convention::slurm: return "SLURM";
    case Convention::none: break;
  }
  return "no launch variables";
}

Result<Identity> identify(const IdentityRequest& request) {
  EnvReader env(request.lookup);
  Choice choice = choose(request, env);
  Identity id{.convention = choice.convention,
              .because = std::move(choice.because),
              .notes = std::move(choice.notes)};
  const auto given = [&](const char* name, std::string otherwise, const char* origin) {
    const auto value = request.lookup(name).value_or("");
    return value.empty() ? Fact<std::string>{std::move(otherwise), origin}
                         : Fact<std::string>{value, name};
  };
  id.job_uid = given(names::kEnvJobUid, "", "default");
  id.node_name = given(names::kEnvNodeName, request.host.name, "the host's name");
  id.attempt =
      env.integer_or({.name = names::kEnvAttempt, .what = "the attempt, from 0"}, {0, "default"});
  id = follow(request, env, std::move(id));
  // They go into JSON, where only UTF-8 is right; a name that is none is nobody's address.
  for (auto* const name : {&id.job_uid.value, &id.node_name.value})
    *name = with_invalid_utf8_replaced(*name);
  require_countable(env, id);
  if (env.error()) return *env.error();
  id.is_ambiguous = may_count_processes(request, env, id);
  id.is_on_platform = is_on_platform(env, id);
  return id;
}

}  // namespace tj::trainer
