// manifest.json of a checkpoint: written last, it commits the set of files, and says where training
// stood.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "contract/result.h"
#include "trainer/checkpoint/model_shape.h"
#include "trainer/process/durable_file.h"
#include "trainer/values/data_mark.h"
#include "trainer/values/loss_scale.h"
#include "trainer/values/reduction_mark.h"

namespace tj::trainer {

inline constexpr int kManifestVersion = 2;

/// What must stay the same for a resumed run to go on as the uninterrupted one would.
struct Numerics {
  std::int64_t logical_shards = 0;  // 0: not deterministic, and then the others don't matter
  std::int64_t batch_size = 0;
  int threads = 0;
  bool has_averages = false;
  bool operator==(const Numerics&) const = default;
};

/// How ranks became the same, where it is not in each step: what of its files is of use then.
struct SyncMark {
  std::string kind = "step";
  int ranks = 0;  // 0: it does not matter how many
  bool operator==(const SyncMark&) const = default;
};

struct Manifest {
  std::int64_t step = 0;             // finished optimizer steps
  std::int64_t next_sample = 0;      // global number of the first sample not yet trained on
  std::int64_t optimizer_steps = 0;  // fewer than `step` when fp16 overflowed
  LossScale loss_scale;
  std::uint64_t seed = 0;
  DataMark data;    // what it was trained on
  double loss = 0;  // of the last finished step
  ModelShape model;
  Numerics numerics;
  std::int64_t memory_rows = 0;  // ever written into the model's memory
  SyncMark sync;
  ReductionMark reduction;
  std::map<std::string, FileDigest> files;
  /// Whether some of the files are of this group of tensors.
  bool has_group(std::string_view stem) const;
  bool operator==(const Manifest&) const = default;
};

std::string manifest_text(const Manifest& manifest);
/// Fails with Code::invalid when the text is cut, is of another version or lacks a field.
Result<Manifest> manifest_from(std::string_view text);

}  // namespace tj::trainer
