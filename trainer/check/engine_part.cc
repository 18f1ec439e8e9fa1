#include "trainer/check/engine_part.h"

#include <link.h>
#include <torch/version.h>

#include <climits>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "trainer/check/measure.h"
#include "trainer/check/report.h"
#include "trainer/comm/agreement.h"
#include "trainer/comm/rendezvous.h"
#include "trainer/launch/host.h"
#include "trainer/launch/process_identity.h"
#include "trainer/process/last_words.h"
#include "trainer/watch/limits.h"
#include "trainer/watch/phase_clock.h"

namespace tj::trainer {
namespace {

constexpr double kStandstillMaxS = 30;  // of any one collective; a bucket on a slow link takes 3

int fail(const Failure& failure, const ProcessEnv& env) {
  write_last_words({.reason = failure.reason,
                    .message = failure.message,
                    .rank = env.rank,
                    .step = {},
                    .attempt = env.attempt});
  return failure.exit_code;
}

/// The note of this program's build id, in hexadecimal digits (ELF: NT_GNU_BUILD_ID, type 3).
int find_build_id(dl_phdr_info* info, std::size_t, void* result) {
  constexpr std::uint32_t kBuildId = 3;
  for (int at = 0; at < info->dlpi_phnum; ++at) {
    const ElfW(Phdr)& header = info->dlpi_phdr[at];
    if (header.p_type != PT_NOTE) continue;
    const auto* place = reinterpret_cast<const unsigned char*>(info->dlpi_addr + header.p_vaddr);
    const auto* const end = place + header.p_memsz;
    while (place + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note{};
      std::memcpy(&note, place, sizeof note);
      const auto* const description = place + sizeof note + (note.n_namesz + 3) / 4 * 4;
      for (std::uint32_t byte = 0; note.n_type == kBuildId && byte < note.n_descsz; ++byte) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x", description[byte]);
        *static_cast<std::string*>(result) += digits;
      }
      if (note.n_type == kBuildId) return 1;
      place = description + (note.n_descsz + 3) / 4 * 4;
    }
  }
  return 1;  // the first object is the program itself
}

std::string build_id() {
  std::string digits;
  ::dl_iterate_phdr(&find_build_id, &digits);
  return digits.empty() ? "unknown" : digits.substr(0, 12);
}

/// What `trainer check` has found, with this program's versions.
Result<WorkerFacts> own_facts(const ProcessEnv& env) {
  const auto text = process_env(kEnvCheckFacts);
  const auto document = nlohmann::json::parse(text.value_or(""), nullptr, /*exceptions=*/false);
  auto facts = worker_facts_from_json(document);
  if (!facts) {
    return Error{.code = Code::invalid,
                 .message = "is not set by trainer check, which starts this program",
                 .subject = kEnvCheckFacts};
  }
  facts->index = env.worker_index;
  facts->node = env.node_name;
  facts->libtorch = TORCH_VERSION;
  facts->build = build_id();
  return facts;
}

/// Collective. The workers' facts, on all ranks.
std::vector<WorkerFacts> gather_facts(Communicator& communicator, const ProcessEnv& env,
                                      const WorkerFacts& mine) {
  std::vector<WorkerFacts> all;
  const std::string text = env.local_rank == 0 ? to_json(mine).dump() : "";
  for (int rank = 0; rank < communicator.world_size(); rank += env.local_world_size) {
    const auto theirs = shared_text(communicator, text, rank);
    const auto facts =
        worker_facts_from_json(nlohmann::json::parse(theirs, nullptr, /*exceptions=*/false));
    all.push_back(facts ? *facts : WorkerFacts{.node = "unknown"});
  }
  return all;
}

int measure_and_print(const Joined& joined, const Accelerator& accelerator, const ProcessEnv& env,
                      const WorkerFacts& mine) {
  auto& communicator = *joined.communicator;
  LinkFacts facts;
  facts.ranks_per_worker = env.local_world_size;
  facts.workers = gather_facts(communicator, env, mine);
  settle_meeting(facts.workers);
  measure_links(communicator, accelerator, facts);
  std::string report;
  if (env.rank == 0) report = report_json(facts).dump();
  report = shared_text(communicator, report, 0);
  joined.watchdog->stop();
  communicator.finish();
  if (env.local_rank == 0) std::printf("%s\n", report.c_str());
  std::fflush(stdout);
  return exit_code::kDone;
}

}  // namespace

int run_check_engine() {
  const auto found = process_env_from(process_env, this_host());
  if (!found) return fail(bad_config(found.error()), {});
  const ProcessEnv& env = *found;
  const auto facts = own_facts(env);
  if (!facts) return fail(bad_config(facts.error()), env);
  const auto wait =
      parse_int(kEnvCheckWait, process_env(kEnvCheckWait).value_or(""), 1, INT_MAX / 1000);
  if (!wait) return fail(bad_config(wait.error()), env);
  const auto accelerator =
      find_accelerator({.visible_gpus = visible_gpus(process_env),
                        .local_rank = env.local_rank,
                        .local_world_size = env.local_world_size,
                        .place = {.plugin = default_nccl_plugin(), .libtorch = TORCH_VERSION}});
  if (!accelerator) return fail(bad_config(accelerator.error()), env);
  try {
    PhaseClock clock;
    const Limits limits{.start = kStandstillMaxS};
    const auto met = rendezvous(env, *accelerator, {.clock = clock, .limits = limits},
                                {.timeout = std::chrono::seconds(*wait)});
    if (const auto* const failure = std::get_if<Failure>(&met)) return fail(*failure, env);
    return measure_and_print(std::get<Joined>(met), *accelerator, env, *facts);
  } catch (const PeerLostError& lost) {
    return fail(peer_lost(lost), env);
  } catch (const std::exception& failure) {
    return fail(
        {.exit_code = exit_code::kInternal, .reason = "Internal", .message = cause_of(failure)},
        env);
  }
}

}  // namespace tj::trainer
