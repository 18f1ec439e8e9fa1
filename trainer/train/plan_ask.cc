#include "trainer/train/plan_ask.h"

#include "trainer/launch/host.h"
#include "trainer/launch/process_identity.h"
#include "trainer/train/chosen_flags.h"
#include "trainer/train/pass_probe.h"
#include "trainer/train/plugin_kernels.h"
#include "trainer/train/process_setup.h"
#include "trainer/train/run_length.h"

namespace tj::trainer {
namespace {

/// Opens the data, or makes some up, and completes the plan by what it says.
std::optional<Failure> open_source(const Flags& given, Asked& asked) {
  const bool has_data = given.contains("--data");
  if (asked.plan.epochs > 0 && !has_data) {
    return bad_config(Error{.code = Code::invalid,
                            .message = "needs --data, whose samples are counted; --steps does not",
                            .subject = "--epochs"});
  }
  auto opened = has_data ? asked.workload->open_data({.flag = "--data", .paths = asked.plan.data})
                         : asked.workload->make_up_data();
  if (opened.failure) return opened.failure;
  asked.source = std::move(opened.source);
  if (const auto settled = settle_length(asked.plan, asked.source->sample_count()); !settled)
    return bad_config(settled.error());
  if (const auto settled = settle_model(asked.plan, *asked.workload); !settled)
    return bad_config(settled.error());
  return std::nullopt;
}

/// The plan of the run, as far as flags say it.
std::optional<Failure> read_run(const Choice& choice, const Flags& given, Asked& asked) {
  auto env = process_env_from(process_env, this_host());
  if (!env) return bad_config(env.error());
  asked.env = std::move(*env);
  auto request = read_plan_request(given, asked.env.world_size);
  if (!request) return bad_config(request.error());
  asked.request = std::move(*request);
  const auto chosen = choose_flags(train_flags_of(given), asked.env,
                                   {.known = choice.entry->environment,
                                    .lookup = process_env,
                                    .batch_size = choice.preset.batch_size});
  if (!chosen) return bad_config(chosen.error());
  asked.workload = choice.entry->make(choice.preset);
  if (const auto init = chosen->flags.find("--init-from"); init != chosen->flags.end()) {
    if (const auto read = asked.workload->read_init(init->second); !read)
      return bad_init(init->second, read.error());
  }
  auto plan = make_plan(chosen->flags, asked.request.ranks, choice.preset, *asked.workload);
  if (!plan) return bad_config(plan.error());
  asked.plan = std::move(*plan);
  return std::nullopt;
}

std::optional<Failure> choose_device(Asked& asked) {
  auto found = accelerator_for(asked.plan.device, asked.env);
  if (!found) return bad_config(found.error());
  asked.accelerator = std::move(*found);
  if (const auto settled = settle_device(asked.plan, asked.accelerator); !settled)
    return bad_config(settled.error());
  return std::nullopt;
}

}  // namespace

Asked ask(const Choice& choice, const Flags& given) {
  Asked asked;
  asked.failure = read_run(choice, given, asked);
  if (!asked.failure) asked.failure = open_source(given, asked);
  if (!asked.failure) asked.failure = choose_device(asked);
  if (asked.failure) return asked;
  use_kernels_of(asked.accelerator);
  choose_threads(asked.plan.threads, asked.env);
  asked.process_bytes = resident_bytes();
  return asked;
}

}  // namespace tj::trainer
