// What trainer-engine and libtrainer_nccl.so know of each other. The engine runs where there is no
// CUDA at all, so everything that needs it lies behind this table, and is loaded where a GPU is
// visible. Pointers of libtorch's classes cross it: both sides must have been compiled against the
// same libtorch, hence the two checks. No torch here.
#pragma once
#include "trainer/values/plugin_text.h"

namespace tj::trainer {

/// Changes with every change of this file.
inline constexpr int kNcclAbi = 5;
inline constexpr const char* kNcclFactory = "trainer_nccl_plugin";

struct NcclGroup {
  void* store = nullptr;  // c10d::Store*, borrowed
  int rank = 0;
  int world_size = 1;
  int device = 0;
  long long timeout_ms = 0;  // of one collective
};

/// Collectives of this rank that its GPU has begun and ended. NCCL numbers them alike on all ranks.
struct NcclProgress {
  long long begun = 0;
  long long ended = 0;
};

/// Philox words (workload/draws.h). Pointers to at::Tensor, of int64 on the GPU.
struct WordRequest {
  const void* elements = nullptr;  // numbers in a row: [1, count]
  const void* samples = nullptr;   // of each row: [rows, 1]
  long long seed = 0;
  long long purpose = 0;
  void* words = nullptr;  // becomes [rows, count]
};

/// In the stream of the calling thread.
struct KernelLaunch {
  const void* kernel = nullptr;  // from compile_kernel()
  long long blocks = 1;          // of the grid, x
  long long blocks_y = 1;        // of the grid, y
  long long threads = 1;         // of a block
  void** arguments = nullptr;    // pointers to the values, in order
};

struct NcclPlugin {
  // The first two stay where they are in every version; the rest counts only where both are ours.
  int abi = kNcclAbi;
  const char* libtorch = "";  // the version it was compiled with
  /// Makes GPU `index` this process's own. `text` becomes its name, or why it can't be used; `card`
  /// becomes the same for two processes that use the same one.
  bool (*use_device)(int index, PluginText* text, PluginText* card) = nullptr;
  /// Collectives among GPUs, by NCCL: a c10d::Backend* of which the caller owns one reference; null
  /// with the cause in `text`. use_device() must have been called.
  void* (*open_backend)(const NcclGroup* group, PluginText* text) = nullptr;
  /// Of one that open_backend() has made. On any thread, at once.
  NcclProgress (*progress)(const void* backend) = nullptr;
  /// By one kernel, which is compiled at the first call. False with the cause in `text`.
  bool (*make_words)(const WordRequest* request, PluginText* text) = nullptr;
  /// The function `name` of a text in CUDA C++ that includes nothing. Null with the cause in
  /// `why`. Compiled once, and valid for the rest of the process.
  const void* (*compile_kernel)(const char* text, const char* name, PluginText* why) = nullptr;
  bool (*launch_kernel)(const KernelLaunch* launch, PluginText* why) = nullptr;
};

}  // namespace tj::trainer

/// The one symbol of the plug-in. Never null.
extern "C" __attribute__((visibility("default"))) const tj::trainer::NcclPlugin*
trainer_nccl_plugin();
