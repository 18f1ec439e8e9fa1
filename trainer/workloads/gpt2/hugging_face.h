// GPT-2 in Hugging Face's files, a folder or one .safetensors file, ours or anybody's: what
// --init-from reads, and the config.json that stands in each checkpoint.
#pragma once
#include <filesystem>
#include <span>

#include "contract/result.h"
#include "trainer/checkpoint/catalog.h"
#include "trainer/workloads/gpt2/gpt2_config.h"

namespace tj::trainer {

struct InitialModel {
  std::filesystem::path path;
  Gpt2Config model;         // without a config.json beside the weights heads are 0
  bool has_config = false;  // without it GELU's form is not said, either
  /// Ids below it are of the tokenizer, the rows of the others only fill up; 0: nobody says so.
  std::int64_t tokenizer_vocabulary = 0;
};

/// Reads headers and config.json only. Fails with Code::invalid and both values when they disagree,
/// or when it is a model that this trainer does not compute.
Result<InitialModel> read_initial_model(const std::filesystem::path& path);

/// Opens the weights for a model of tensors `names` (ours). What the reader reads is converted to
/// float32. Names may lack "transformer."; attention masks are skipped; lm_head.weight must equal
/// wte, to which it is tied. Fails with Code::invalid for tensors that are too many; the reader for
/// those that are missing or of another shape or type.
Result<TensorReader> open_initial_weights(const std::filesystem::path& path,
                                          std::span<const std::string> names);

/// config.json as Hugging Face's GPT2LMHeadModel reads it, so that a checkpoint loads there as it
/// is. `tokenizer_vocabulary` as in InitialModel.
std::string gpt2_config_json(const Gpt2Config& model, std::int64_t tokenizer_vocabulary = 0);

}  // namespace tj::trainer
