#include "trainer/checkpoint/shard_plan.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

namespace tj::trainer {
namespace {
constexpr int kIndent = 2;

/// writer of each tensor of the group; adds what each got to `loads`.
std::vector<int> assign(const StateGroup& group, std::vector<std::size_t>& loads) {
  std::vector<std::size_t> order(group.tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t left, std::size_t right) {
    return group.tensors[left].bytes() > group.tensors[right].bytes();
  });
  std::vector<int> writers(group.tensors.size());
  for (const std::size_t index : order) {
    const auto least = std::ranges::min_element(loads);
    writers[index] = static_cast<int>(least - loads.begin());
    *least += group.tensors[index].bytes();
  }
  return writers;
}

}  // namespace

std::size_t bytes_of_writer(std::span<const StateGroup> groups, std::span<const Shard> plan,
                            int writer) {
  std::size_t bytes = 0;
  for (const auto& shard : plan) {
    if (shard.writer != writer) continue;
    for (const auto index : shard.tensors) bytes += groups[shard.group].tensors[index].bytes();
  }
  return bytes;
}

std::string shard_name(const std::string& stem, std::size_t index, std::size_t count) {
  if (count == 1) return stem + ".safetensors";
  char numbers[48];
  std::snprintf(numbers, sizeof numbers, "-%05zu-of-%05zu", index + 1, count);
  return stem + numbers + ".safetensors";
}

std::string index_name(const std::string& stem) { return stem + ".safetensors.index.json"; }

std::vector<Shard> plan_shards(std::span<const StateGroup> groups, int writers) {
  std::vector<std::size_t> loads(static_cast<std::size_t>(writers));
  std::vector<Shard> plan;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    const auto writer_of = assign(groups[group], loads);
    std::vector<Shard> shards(static_cast<std::size_t>(writers));
    for (std::size_t index = 0; index < writer_of.size(); ++index)
      shards[static_cast<std::size_t>(writer_of[index])].tensors.push_back(index);
    for (int writer = 0; writer < writers; ++writer) {
      shards[static_cast<std::size_t>(writer)].group = group;
      shards[static_cast<std::size_t>(writer)].writer = writer;
    }
    std::erase_if(shards, [](const Shard& shard) { return shard.tensors.empty(); });
    for (std::size_t index = 0; index < shards.size(); ++index)
      shards[index].file = shard_name(groups[group].stem, index, shards.size());
    std::ranges::move(shards, std::back_inserter(plan));
  }
  return plan;
}

std::string index_text(std::span<const StateGroup> groups, std::size_t group,
                       std::span<const Shard> shards) {
  std::size_t total_bytes = 0;
  std::map<std::string, std::string> file_of;
  for (const auto& shard : shards) {
    if (shard.group != group) continue;
    for (const std::size_t index : shard.tensors) {
      const auto& tensor = groups[group].tensors[index];
      total_bytes += tensor.bytes();
      file_of[tensor.name] = shard.file;
    }
  }
  const nlohmann::ordered_json document = {{"metadata", {{"total_size", total_bytes}}},
                                           {"weight_map", file_of}};
  return document.dump(kIndent) + "\n";
}

}  // namespace tj::trainer
