#include "trainer/train/deepspeed_config.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

namespace tj::trainer {
namespace {
using nlohmann::ordered_json;
constexpr int kDepthMax = 32;          // the keys that are known need four
constexpr int kCountMax = 10'000'000;  // two of them times the ranks hold in 64 bits

Error wrong(const std::string& key, std::string message) {
  return {.code = Code::invalid, .message = std::move(message), .subject = "--deepspeed: " + key};
}

bool is_auto(const ordered_json& value) { return value.is_string() && value == "auto"; }

std::string text_of(const ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_number_float()) return value.dump();
  const auto number = value.get<double>();
  constexpr double kExactMax = 9e15;
  const bool is_whole = std::trunc(number) == number && std::abs(number) < kExactMax;
  return is_whole ? std::to_string(static_cast<std::int64_t>(number)) : value.dump();
}

/// A key that sets a flag of ours.
struct Honoured {
  std::string_view key;
  const char* flag;
};
constexpr Honoured kHonoured[] = {
    {"train_batch_size", "--batch-size"},
    {"gradient_accumulation_steps", "--accumulation"},
    {"gradient_clipping", "--grad-clip"},
    {"steps_per_print", "--log-every"},
    {"zero_optimization.stage", "--zero"},
    {"optimizer.params.lr", "--lr"},
    {"optimizer.params.weight_decay", "--weight-decay"},
    {"scheduler.params.warmup_max_lr", "--lr"},
    {"scheduler.params.warmup_num_steps", "--warmup-steps"},
    {"scheduler.params.total_num_steps", "--steps"},
};

constexpr Honoured kOfStage3[] = {
    {"zero_optimization.stage3_prefetch_bucket_size", "--zero-prefetch"},
    {"zero_optimization.stage3_param_persistence_threshold", "--zero-persist"},
    {"zero_optimization.stage3_max_live_parameters", "--zero-live-max"},
    {"zero_optimization.stage3_max_reuse_distance", "--zero-reuse"},
};

/// What becomes of a key whatever its value, unless that is `already` what is done.
struct Fixed {
  std::string_view key;
  const char* already;  // "": none
  const char* outcome;
};
constexpr Fixed kFixed[] = {
    {"zero_optimization.overlap_comm", "true", "collectives always overlap with the computation"},
    {"zero_optimization.contiguous_gradients", "true",
     "gradients of a block always lie in one buffer"},
    {"zero_optimization.reduce_scatter", "true", "gradients are always reduced to their shards"},
    {"zero_optimization.reduce_bucket_size", "", "gradients are reduced block by block"},
    {"zero_optimization.allgather_bucket_size", "", "weights are gathered block by block"},
    {"zero_optimization.allgather_partitions", "true", "weights are always gathered"},
    {"zero_optimization.zero_hpz_partition_size", "1",
     "only weights lie in its groups; --zero-group shares out everything there"},
    {"zero_optimization.mics_hierarchical_params_gather", "false",
     "weights are gathered within the group"},
    {"zero_optimization.sub_group_size", "",
     "it cuts the update into tiles for offloading, and nothing is offloaded"},
    {"zero_optimization.stage3_gather_16bit_weights_on_model_save", "",
     "checkpoints hold whole tensors in float32 at every stage; no 16-bit file is written"},
    {"zero_optimization.offload_optimizer.device", "none", "moments stay where the weights are"},
    {"zero_optimization.offload_param.device", "none", "weights stay on their device"},
    {"optimizer.params.eps", "1e-08", "it is 1e-8"},
    {"optimizer.params.torch_adam", "", "there is one AdamW"},
    {"optimizer.params.adam_w_mode", "true", "decay is always decoupled"},
    {"scheduler.params.warmup_min_lr", "0", "the warm-up begins at 0"},
    {"scheduler.params.warmup_type", "linear", "the warm-up is linear"},
    {"fp16.loss_scale", "0", "the loss scale is always dynamic"},
    {"fp16.initial_scale_power", "16", "the loss scale begins at 2^16"},
    {"fp16.loss_scale_window", "2000", "the loss scale doubles after 2000 good steps"},
    {"fp16.hysteresis", "1", "the loss scale is halved at each overflow"},
    {"fp16.auto_cast", "", "precision is that of --precision"},
};

class Reader {
 public:
  explicit Reader(int world_size) : world_size_(world_size) {}

  std::optional<Error> read(const ordered_json& document) {
    stage_ = stage_of(document);
    walk(document, "");
    if (!error_) settle_batch(document);
    return error_;
  }

  DeepSpeedConfig config;

 private:
  static std::int64_t stage_of(const ordered_json& document) {
    const auto zero = document.find("zero_optimization");
    if (zero == document.end() || !zero->is_object()) return 0;
    const auto stage = zero->find("stage");
    return stage != zero->end() && stage->is_number_integer() ? stage->get<std::int64_t>() : 0;
  }

  void walk(const ordered_json& object, const std::string& prefix) {
    for (const auto& [name, value] : object.items()) {
      const std::string key = prefix + name;
      if (value.is_object()) {
        walk(value, key + ".");
      } else if (!error_) {
        config.keys.push_back(
            {.key = key, .value = text_of(value), .outcome = outcome(key, value)});
      }
    }
  }

  std::string outcome(const std::string& key, const ordered_json& value) {
    if (is_auto(value)) return "left to our flags and defaults";
    for (const auto& known : kHonoured)
      if (known.key == key) return set_number(key, value, known.flag);
    for (const auto& known : kOfStage3) {
      if (known.key != key) continue;
      return stage_ == 3 ? set_number(key, value, known.flag) : "not used: it is of stage 3";
    }
    for (const auto& known : kFixed) {
      if (known.key != key) continue;
      const bool is_so = text_of(value) == known.already;
      return std::string(is_so ? "as it is: " : "not honoured: ") + known.outcome;
    }
    return special(key, value);
  }

  std::string special(const std::string& key, const ordered_json& value) {
    if (key == "train_micro_batch_size_per_gpu") return "see train_batch_size";
    if (key == "bf16.enabled" || key == "fp16.enabled") return precision(key, value);
    if (key == "optimizer.type") {
      const auto name = text_of(value);
      return name == "AdamW" || name == "Adam" ? "as it is: AdamW"
                                               : "not honoured: AdamW is the one optimizer";
    }
    if (key == "optimizer.params.betas") return betas(key, value);
    if (key == "scheduler.type") return schedule(value);
    if (key == "zero_optimization.mics_shard_size") {
      const bool is_off = value.is_number() && value.get<double>() < 1;
      return is_off ? "as it is: all ranks share out" : set_number(key, value, "--zero-group");
    }
    return "not used: this trainer has no such setting";
  }

  std::string set(const std::string& key, const char* flag, const std::string& value) {
    const auto [known, is_new] = config.flags.emplace(flag, value);
    if (!is_new && known->second != value)
      fail(key, "is " + value + ", and the file has set " + flag + " to " + known->second);
    return std::string(flag) + " " + value;
  }

  std::string set_number(const std::string& key, const ordered_json& value, const char* flag) {
    if (!value.is_number()) fail(key, "is " + value.dump() + "; it must be a number or \"auto\"");
    return set(key, flag, text_of(value));
  }

  std::string precision(const std::string& key, const ordered_json& value) {
    if (!value.is_boolean())
      fail(key, "is " + value.dump() + "; it must be true, false or \"auto\"");
    if (value != true) return "as it is";
    return set(key, "--precision", key.substr(0, key.find('.')));
  }

  std::string betas(const std::string& key, const ordered_json& value) {
    const bool is_pair =
        value.is_array() && value.size() == 2 && value[0].is_number() && value[1].is_number();
    if (!is_pair) {
      fail(key, "is " + value.dump() + "; it must be two numbers");
      return "";
    }
    return set(key, "--beta1", text_of(value[0])) + " " + set(key, "--beta2", text_of(value[1]));
  }

  std::string schedule(const ordered_json& value) {
    const auto name = text_of(value);
    const char* const kind = name == "WarmupLR"         ? "constant"
                             : name == "WarmupDecayLR"  ? "linear"
                             : name == "WarmupCosineLR" ? "cosine"
                                                        : nullptr;
    if (kind == nullptr) return "not honoured: --schedule has constant, linear and cosine";
    return set("scheduler.type", "--schedule", kind);
  }

  std::optional<std::int64_t> count(const ordered_json& document, const char* key) {
    const auto found = document.find(key);
    if (found == document.end() || !found->is_number()) return std::nullopt;
    const auto number = found->get<double>();
    if (std::abs(number) <= kCountMax) return static_cast<std::int64_t>(number);
    fail(key, "is " + found->dump() + "; it must be at most " + std::to_string(kCountMax));
    return std::nullopt;
  }

  /// DeepSpeed's rule: batch = micro-batch x accumulation x ranks, of which one may be missing.
  void settle_batch(const ordered_json& document) {
    const auto micro = count(document, "train_micro_batch_size_per_gpu");
    const auto batch = count(document, "train_batch_size");
    const auto passes = count(document, "gradient_accumulation_steps");
    if (!micro || error_) return;
    if (*micro < 1 || (passes && *passes < 1)) {
      fail("train_micro_batch_size_per_gpu", "and gradient_accumulation_steps must be from 1");
      return;
    }
    const std::string ranks = std::to_string(world_size_);
    if (!batch) {
      const auto total = *micro * passes.value_or(1) * world_size_;
      config.flags["--batch-size"] = std::to_string(total);
    } else if (!passes) {
      if (*batch % (*micro * world_size_) == 0)
        config.flags["--accumulation"] = std::to_string(*batch / *micro / world_size_);
    }
    const auto total = batch.value_or(*micro * passes.value_or(1) * world_size_);
    const auto needed = passes.value_or(std::max<std::int64_t>(1, total / *micro / world_size_));
    if (total == *micro * needed * world_size_) return;
    fail("train_batch_size", "is " + std::to_string(total) +
                                 "; train_micro_batch_size_per_gpu x gradient_accumulation_steps "
                                 "x ranks is " +
                                 std::to_string(*micro) + " x " + std::to_string(needed) + " x " +
                                 ranks);
  }

  void fail(const std::string& key, std::string message) {
    if (!error_) error_ = wrong(key, std::move(message));
  }

  int world_size_;
  std::int64_t stage_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Result<DeepSpeedConfig> deepspeed_config_from(std::string_view text, int world_size) {
  bool is_too_deep = false;
  const auto watch_depth = [&](int depth, nlohmann::json::parse_event_t, const ordered_json&) {
    is_too_deep |= depth > kDepthMax;
    return !is_too_deep;
  };
  const auto document = ordered_json::parse(text, watch_depth, false);
  if (is_too_deep) {
    return wrong("the file", "is nested more than " + std::to_string(kDepthMax) + " levels deep");
  }
  if (!document.is_object()) return wrong("the file", "is not a JSON object (cut short?)");
  Reader reader(world_size);
  if (const auto error = reader.read(document)) return *error;
  return std::move(reader.config);
}

bool is_same_value(const std::string& one, const std::string& other) {
  const auto number = [](const std::string& text) -> std::optional<double> {
    double value = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
  };
  const auto left = number(one);
  const auto right = number(other);
  return left && right ? *left == *right : one == other;
}

Result<Flags> with_deepspeed(const Flags& given, const DeepSpeedConfig& config) {
  Flags all = given;
  for (const auto& [name, value] : config.flags) {
    const auto [known, is_new] = all.emplace(name, value);
    if (is_new || is_same_value(known->second, value)) continue;
    return Error{.code = Code::invalid,
                 .message = "is \"" + known->second + "\"; the file of --deepspeed says " + value +
                            ", and one of the two must go",
                 .subject = name};
  }
  return all;
}

std::vector<std::string> deepspeed_lines(const DeepSpeedConfig& config) {
  std::vector<std::string> lines;
  for (const auto& key : config.keys)
    lines.push_back("deepspeed: " + key.key + " " + key.value + " | " + key.outcome);
  return lines;
}

}  // namespace tj::trainer
