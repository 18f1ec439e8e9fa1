#include "trainer/checkpoint/file_plan.h"

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
    const auto& tensor = group.tensors[index];
    const auto least = std::ranges::min_element(loads) - loads.begin();
    writers[index] = tensor.holder.value_or(static_cast<int>(least));
    loads[static_cast<std::size_t>(writers[index])] += tensor.bytes();
  }
  return writers;
}

}  // namespace

std::size_t bytes_of_writer(std::span<const StateGroup> groups, std::span<const PlannedFile> plan,
                            int writer) {
  std::size_t bytes = 0;
  for (const auto& file : plan) {
    if (file.writer != writer) continue;
    for (const auto index : file.tensors) bytes += groups[file.group].tensors[index].bytes();
  }
  return bytes;
}

std::string group_file_name(const std::string& stem, std::size_t index, std::size_t count) {
  if (count == 1) return stem + ".safetensors";
  char numbers[48];
  std::snprintf(numbers, sizeof numbers, "-%05zu-of-%05zu", index + 1, count);
  return stem + numbers + ".safetensors";
}

std::string index_name(const std::string& stem) { return stem + ".safetensors.index.json"; }

std::vector<PlannedFile> plan_files(std::span<const StateGroup> groups, int writers) {
  std::vector<std::size_t> loads(static_cast<std::size_t>(writers));
  std::vector<PlannedFile> plan;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    const auto writer_of = assign(groups[group], loads);
    std::vector<PlannedFile> files(static_cast<std::size_t>(writers));
    for (std::size_t index = 0; index < writer_of.size(); ++index)
      files[static_cast<std::size_t>(writer_of[index])].tensors.push_back(index);
    for (int writer = 0; writer < writers; ++writer) {
      files[static_cast<std::size_t>(writer)].group = group;
      files[static_cast<std::size_t>(writer)].writer = writer;
    }
    std::erase_if(files, [](const PlannedFile& file) { return file.tensors.empty(); });
    for (std::size_t index = 0; index < files.size(); ++index)
      files[index].name = group_file_name(groups[group].stem, index, files.size());
    std::ranges::move(files, std::back_inserter(plan));
  }
  return plan;
}

std::string index_text(std::span<const StateGroup> groups, std::size_t group,
                       std::span<const PlannedFile> files) {
  std::size_t total_bytes = 0;
  std::map<std::string, std::string> file_of;
  for (const auto& file : files) {
    if (file.group != group) continue;
    for (const std::size_t index : file.tensors) {
      const auto& tensor = groups[group].tensors[index];
      total_bytes += tensor.bytes();
      file_of[tensor.name] = file.name;
    }
  }
  const nlohmann::ordered_json document = {{"metadata", {{"total_size", total_bytes}}},
                                           {"weight_map", file_of}};
  return document.dump(kIndent) + "\n";
}

}  // namespace tj::trainer
