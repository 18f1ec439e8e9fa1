#include "trainer/train/accelerate_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

namespace tj::trainer {
namespace {
using nlohmann::json;

constexpr const char* kTypes = "DEEPSPEED, FSDP, MULTI_GPU, MULTI_CPU or NO";
constexpr std::string_view kOfDeepSpeed = "deepspeed_config.";
constexpr std::string_view kOfFsdp = "fsdp_config.";

/// A key that sets a flag of ours to its number.
struct Honoured {
  std::string_view key;
  const char* flag;
};
constexpr Honoured kHonoured[] = {
    {"deepspeed_config.gradient_accumulation_steps", "--accumulation"},
    {"deepspeed_config.gradient_clipping", "--grad-clip"},
    {"deepspeed_config.zero_stage", "--zero"},
};

/// What becomes of a key whatever its value, unless that is `already` what is done.
struct Fixed {
  std::string_view key;
  const char* already;  // "": none
  const char* outcome;
};
constexpr Fixed kFixed[] = {
    {"compute_environment", "LOCAL_MACHINE", "training runs where it is started"},
    {"debug", "false", "ranks are always compared when they meet, and watched after"},
    {"enable_cpu_affinity", "false", "no process is bound to cores"},
    {"gpu_ids", "all", "CUDA_VISIBLE_DEVICES says which GPUs there are"},
    {"rdzv_backend", "static", "ranks meet at MASTER_ADDR and MASTER_PORT"},
    {"deepspeed_config.offload_optimizer_device", "none", "moments stay where the weights are"},
    {"deepspeed_config.offload_param_device", "none", "weights stay on their device"},
    {"deepspeed_config.zero3_save_16bit_model", "false",
     "checkpoints hold whole tensors in float32 at every stage; no 16-bit file is written"},
    {"fsdp_config.fsdp_offload_params", "false", "weights stay on their device"},
    {"fsdp_config.fsdp_sync_module_states", "true", "all ranks begin with the same weights"},
};

/// Of these it is said why nothing becomes of them. A name with "_" at its end is that of
/// all that begin so.
struct NotUsed {
  std::string_view key;
  const char* why;
};
constexpr NotUsed kNotUsed[] = {
    {"downcast_bf16", "it is of TPUs"},
    {"tpu_", "it is of TPUs"},
    {"command_file", "it is of TPUs"},
    {"commands", "it is of TPUs"},
    {"main_training_function", "there is one entrypoint"},
    {"same_network", "ranks meet by an address, on whatever network"},
    {"deepspeed_config.zero3_init_flag",
     "initial weights are a function of the seed, the same at every stage"},
    {"deepspeed_config.deepspeed_hostfile", "trainer launch starts the processes"},
    {"deepspeed_config.deepspeed_exclusion_filter", "trainer launch starts the processes"},
    {"deepspeed_config.deepspeed_inclusion_filter", "trainer launch starts the processes"},
    {"deepspeed_config.deepspeed_multinode_launcher", "trainer launch starts the processes"},
    {"deepspeed_config.offload_", "nothing is offloaded"},
    {"fsdp_config.fsdp_backward_prefetch", "the next block is always gathered ahead"},
    {"fsdp_config.fsdp_backward_prefetch_policy", "the next block is always gathered ahead"},
    {"fsdp_config.fsdp_forward_prefetch", "the next block is always gathered ahead"},
    {"fsdp_config.fsdp_auto_wrap_policy", "the model itself says its blocks"},
    {"fsdp_config.fsdp_transformer_layer_cls_to_wrap", "the model itself says its blocks"},
    {"fsdp_config.fsdp_min_num_params", "the model itself says its blocks"},
    {"fsdp_config.fsdp_state_dict_type", "checkpoints hold whole tensors at every stage"},
    {"fsdp_config.fsdp_version", "both versions are one --zero here"},
};

/// Of FSDP's ways to share out, by name and by number.
struct Sharding {
  std::string_view name;
  std::string_view number;
  const char* stage;
  bool is_hybrid = false;
};
constexpr Sharding kShardings[] = {
    {"FULL_SHARD", "1", "3"},
    {"SHARD_GRAD_OP", "2", "2"},
    {"NO_SHARD", "3", "0"},
    {"HYBRID_SHARD", "4", "3", true},
    {"HYBRID_SHARD_ZERO2", "5", "2", true},
    {"true", "", "3"},  // fsdp_reshard_after_forward of version 2
    {"false", "", "2"},
};

/// In one line.
std::string shown(const json& value) {
  if (!value.is_string()) return value.dump();
  const auto& text = value.get_ref<const std::string&>();
  const bool is_plain =
      std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) < ' '; });
  return is_plain ? text : value.dump();
}

/// YAML 1.1 reads a bare `no` as false.
bool is_no(const json& value) { return value == false || value == "no" || value == "NO"; }

struct Count {
  int count = 0;
  const char* one;
  const char* many;
};

/// "16 processes"
std::string text_of(const Count& number) {
  return std::to_string(number.count) + " " + (number.count == 1 ? number.one : number.many);
}

class Reader {
 public:
  Reader(const json& document, const ProcessEnv& env) : env_(env), document_(document) {}

  std::optional<Error> read() {
    const auto type = document_.find("distributed_type");
    if (type != document_.end()) type_ = is_no(*type) ? "NO" : shown(*type);
    walk(document_, "");
    return error_;
  }

  AccelerateConfig config;

 private:
  void walk(const json& object, const std::string& prefix) {
    for (const auto& [name, value] : object.items()) {
      const std::string key = prefix + shown(name);
      if (value.is_object()) {
        walk(value, key + ".");
      } else if (!error_) {
        config.keys.push_back({.key = key, .value = shown(value), .outcome = outcome(key, value)});
      }
    }
  }

  std::string outcome(const std::string& key, const json& value) {
    if (value.is_null() || value == "auto") return "left to our flags and defaults";
    const bool is_of_other = (key.starts_with(kOfDeepSpeed) && type_ != "DEEPSPEED") ||
                             (key.starts_with(kOfFsdp) && type_ != "FSDP");
    if (is_of_other) return "not used: distributed_type is " + (type_.empty() ? "not set" : type_);
    for (const auto& known : kHonoured)
      if (known.key == key) return set_number(key, value, known.flag);
    for (const auto& known : kFixed) {
      if (known.key != key) continue;
      const bool is_so = shown(value) == known.already;
      return std::string(is_so ? "as it is: " : "not honoured: ") + known.outcome;
    }
    if (auto told = of_job(key, value)) return *told;
    if (auto told = of_training(key, value)) return *told;
    for (const auto& known : kNotUsed) {
      const bool is_family = known.key.ends_with('_');
      if (is_family ? key.starts_with(known.key) : key == known.key)
        return std::string("not used: ") + known.why;
    }
    return "not used: this trainer has no such setting";
  }

  /// What the job is: that of the launch environment, with which these must agree or which they
  /// can't change.
  std::optional<std::string> of_job(const std::string& key, const json& value) {
    const int nodes = env_.world_size / env_.local_world_size;
    if (key == "num_processes") return same(key, value, {env_.world_size, "process", "processes"});
    if (key == "num_machines") return same(key, value, {nodes, "node", "nodes"});
    if (key == "machine_rank") return told_by_launch(value, std::to_string(env_.worker_index));
    if (key == "main_process_ip") return told_by_launch(value, env_.master_addr);
    if (key == "main_process_port") return told_by_launch(value, std::to_string(env_.master_port));
    if (key == "distributed_type") return distributed_type(key);
    return std::nullopt;
  }

  std::optional<std::string> of_training(const std::string& key, const json& value) {
    if (key == "mixed_precision") return mixed_precision(key, value);
    if (key == "use_cpu") return switched(key, value, "--device", "cpu");
    if (key == "dynamo_backend" || key == "dynamo_config.dynamo_backend") {
      return is_no(value) ? "as it is: nothing is compiled by TorchDynamo"
                          : "not honoured: nothing is compiled by TorchDynamo";
    }
    if (key == "deepspeed_config.deepspeed_config_file") {
      config.deepspeed_file = shown(value);
      return "read, see the lines of deepspeed";
    }
    if (key == "fsdp_config.fsdp_activation_checkpointing")
      return switched(key, value, "--recompute", "true");
    const bool is_sharding = key == "fsdp_config.fsdp_sharding_strategy" ||
                             key == "fsdp_config.fsdp_reshard_after_forward";
    if (is_sharding) return sharding(key, value);
    return std::nullopt;
  }

  /// A job of another size would train something else than the file says.
  std::string same(const std::string& key, const json& value, const Count& ours) {
    if (value.is_number_integer() && value == ours.count)
      return "as it is: " + std::to_string(ours.count);
    fail(key, "is " + value.dump() + ", and this job has " + text_of(ours) + " (" + env_.origin +
                  "); the two must be the same, or the key must go");
    return "";
  }

  /// One file may lie on all nodes: what differs between them comes from the launch environment.
  std::string told_by_launch(const json& value, const std::string& ours) const {
    return shown(value) == ours ? "as it is: " + ours
                                : "not used: it is " + ours + ", by " + env_.origin;
  }

  std::string distributed_type(const std::string& key) {
    if (type_ == "NO" && env_.world_size > 1) {
      fail(key, "is NO, and this job has " + text_of({env_.world_size, "process", "processes"}) +
                    " (" + env_.origin + ")");
    }
    if (type_ == "FSDP") return fsdp(key);
    if (type_ == "DEEPSPEED" || type_ == "MULTI_GPU" || type_ == "MULTI_CPU" || type_ == "NO")
      return "as it is: " + text_of({env_.world_size, "rank", "ranks"});
    fail(key, "is " + type_ + "; it must be " + std::string(kTypes));
    return "";
  }

  /// Weights, gradients and moments are shared out, unless the strategy says less.
  std::string fsdp(const std::string& key) {
    const auto own = document_.find("fsdp_config");
    const bool is_said =
        own != document_.end() && own->is_object() &&
        (own->contains("fsdp_sharding_strategy") || own->contains("fsdp_reshard_after_forward"));
    return is_said ? "see fsdp_config" : set(key, "--zero", "3");
  }

  std::string sharding(const std::string& key, const json& value) {
    const auto text = shown(value);
    for (const auto& known : kShardings) {
      if (text != known.name && (known.number.empty() || text != known.number)) continue;
      const auto outcome = set(key, "--zero", known.stage);
      // FSDP's groups are the nodes (torch/distributed/fsdp/_init_utils.py).
      return known.is_hybrid
                 ? outcome + " " + set(key, "--zero-group", std::to_string(env_.local_world_size)) +
                       ", the ranks of a node"
                 : outcome;
    }
    fail(key, "is " + value.dump() +
                  "; it must be FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD, "
                  "HYBRID_SHARD_ZERO2, true or false");
    return "";
  }

  std::string mixed_precision(const std::string& key, const json& value) {
    if (is_no(value)) return set(key, "--precision", "fp32");
    if (value == "bf16" || value == "fp16")
      return set(key, "--precision", value.get<std::string>());
    fail(key, "is " + value.dump() + "; it must be \"no\", \"fp16\" or \"bf16\"");
    return "";
  }

  std::string switched(const std::string& key, const json& value, const char* flag,
                       const std::string& text) {
    if (!value.is_boolean()) {
      fail(key, "is " + value.dump() + "; it must be true or false");
      return "";
    }
    return value == true ? set(key, flag, text)
                         : "left to " + std::string(flag) + " and its default";
  }

  std::string set(const std::string& key, const char* flag, const std::string& value) {
    const auto [known, is_new] = config.flags.emplace(flag, value);
    if (!is_new && known->second != value)
      fail(key, "is " + value + ", and the file has set " + flag + " to " + known->second);
    return std::string(flag) + " " + value;
  }

  std::string set_number(const std::string& key, const json& value, const char* flag) {
    if (!value.is_number()) fail(key, "is " + value.dump() + "; it must be a number or \"auto\"");
    return set(key, flag, shown(value));
  }

  void fail(const std::string& key, std::string message) {
    if (error_) return;
    error_ =
        Error{.code = Code::invalid, .message = std::move(message), .subject = "--config: " + key};
  }

  const ProcessEnv& env_;
  const json& document_;
  std::string type_;  // distributed_type
  std::optional<Error> error_;
};

}  // namespace

Result<AccelerateConfig> accelerate_config_from(const json& document, const ProcessEnv& env) {
  if (!document.is_object()) {
    return Error{.code = Code::invalid,
                 .message = "holds no keys with values, as accelerate writes them",
                 .subject = "--config"};
  }
  Reader reader(document, env);
  if (const auto error = reader.read()) return *error;
  return std::move(reader.config);
}

std::vector<std::string> accelerate_lines(const AccelerateConfig& config) {
  std::vector<std::string> lines;
  for (const auto& key : config.keys)
    lines.push_back("accelerate: " + key.key + " " + key.value + " | " + key.outcome);
  return lines;
}

}  // namespace tj::trainer
