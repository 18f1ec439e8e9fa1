// Who writes which tensor of a checkpoint, and how the files are called: Hugging Face's layout, one
// file, or several with an index. Pure.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "trainer/checkpoint/state_group.h"

namespace tj::trainer {

/// One file of a checkpoint.
struct PlannedFile {
  std::size_t group = 0;  // index among the groups
  int writer = 0;
  std::string name;
  std::vector<std::size_t> tensors;  // indices in the group, ascending
};

/// Every tensor in exactly one file: that of the only rank that has it, or else the bytes of all
/// groups together are spread evenly over the writers (largest first, to whoever has least). A
/// writer has at most one file of a group.
std::vector<PlannedFile> plan_files(std::span<const StateGroup> groups, int writers);

std::size_t bytes_of_writer(std::span<const StateGroup> groups, std::span<const PlannedFile> plan,
                            int writer);

/// "model.safetensors" of one, else "model-00002-of-00004.safetensors" (`index` from 0).
std::string group_file_name(const std::string& stem, std::size_t index, std::size_t count);
/// "model.safetensors.index.json"
std::string index_name(const std::string& stem);

/// The index of a group that has more than one file: total_size and weight_map.
std::string index_text(std::span<const StateGroup> groups, std::size_t group,
                       std::span<const PlannedFile> files);

}  // namespace tj::trainer
