#include "trainer/train/out_sharing.h"

#include <torch/types.h>

#include <random>

#include "trainer/checkpoint/folder.h"
#include "trainer/comm/agreement.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

enum Sight { sees = 0, is_blind = 1, can_not_write = 2 };

std::string random_id() {
  std::random_device entropy;
  char text[17];
  std::snprintf(text, sizeof text, "%08x%08x", entropy(), entropy());
  return text;
}

/// Drafts by name, so that a sweep removes what a killed run leaves.
fs::path probe_path(const fs::path& out, const std::string& run_id, int rank) {
  return draft_path(out, 0, "probe-" + run_id + "-" + std::to_string(rank));
}

Sight look(const fs::path& out, const std::string& run_id, int rank) {
  const auto text = read_small_file(probe_path(out, run_id, 0), 1024);
  if (!text || *text != run_id) return is_blind;
  const fs::path own = probe_path(out, run_id, rank);
  const bool written = write_durably(own, run_id).ok();
  std::error_code ignored;
  fs::remove(own, ignored);
  return written ? sees : can_not_write;
}

}  // namespace

OutSharing prove_sharing(Communicator& communicator, const fs::path& out, const OutClaim& claim,
                         const std::string& node_name) {
  const int rank = communicator.rank();
  const int world_size = communicator.world_size();
  if (rank == 0 && check_claim(out, claim)) sweep_drafts(out);
  OutSharing sharing{
      .run_id = shared_text(communicator, random_id(), 0),
      .is_shared = true,
      .setting = {"checkpoint writers", "this rank", "computed: it is the only one"}};
  if (world_size == 1) return sharing;
  // A probe that can't be written is one that nobody sees: rank 0 then writes alone, and says why
  // it can't.
  if (rank == 0) (void)write_durably(probe_path(out, sharing.run_id, 0), sharing.run_id);
  auto sights = torch::zeros({world_size}, torch::kInt64);
  communicator.all_reduce_sum(sights);  // the probe is there before anybody looks
  if (rank != 0) sights[rank] = static_cast<std::int64_t>(look(out, sharing.run_id, rank));
  communicator.all_reduce_sum(sights);
  std::error_code ignored;
  if (rank == 0) fs::remove(probe_path(out, sharing.run_id, 0), ignored);
  int blind = 0;
  while (blind < world_size && sights[blind].item<std::int64_t>() == sees) ++blind;
  if (blind == world_size) {
    sharing.setting = {"checkpoint writers", "all " + std::to_string(world_size) + " ranks",
                       "computed: they share --out"};
    return sharing;
  }
  const bool sees_it = sights[blind].item<std::int64_t>() == can_not_write;
  sharing.is_shared = false;
  sharing.setting = {
      "checkpoint writers", "rank 0 alone",
      "computed: rank " + std::to_string(blind) + " on node " +
          shared_text(communicator, node_name, blind) +
          (sees_it ? " can't write to rank 0's --out" : " does not see rank 0's --out")};
  return sharing;
}

}  // namespace tj::trainer
