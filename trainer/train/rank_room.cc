#include "trainer/train/rank_room.h"

#include <sys/resource.h>

#include <algorithm>

#include "trainer/check/machine.h"

namespace tj::trainer {

std::optional<double> address_space_bytes() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return static_cast<double>(limit.rlim_cur);
}

RankRoom rank_room(const RankPlace& place) {
  if (place.gpu) {
    const auto kind = gpu_kind_named(place.gpu_name);
    if (!kind) return {};
    return {usable_bytes(*kind), "that can be used of one " + std::string(kind->name)};
  }
  const auto facts = memory_facts();
  const bool is_grouped = facts.group_limit_bytes && facts.available_bytes &&
                          *facts.group_limit_bytes < *facts.available_bytes;
  const double bytes = free_bytes(place.env) + place.process_bytes;
  const auto addresses = address_space_bytes();
  if (addresses && *addresses < bytes)
    return {*addresses, "of addresses, by the limit of this process (ulimit -v)"};
  return {bytes, is_grouped ? "of this control group, for each of its processes"
                            : "that are free on this machine, for each of its processes"};
}

double free_bytes(const ProcessEnv& env) {
  const auto facts = memory_facts();
  double bytes = static_cast<double>(facts.available_bytes.value_or(0));
  if (facts.group_limit_bytes) {
    const auto used = facts.group_used_bytes.value_or(0);
    const auto left = *facts.group_limit_bytes - std::min(*facts.group_limit_bytes, used);
    bytes = std::min(bytes, static_cast<double>(left));
  }
  return bytes / env.local_world_size;
}

}  // namespace tj::trainer
