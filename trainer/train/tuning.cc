#include "trainer/train/tuning.h"

#include <algorithm>
#include <sstream>

#include "trainer/values/adapter_names.h"
#include "trainer/values/settings.h"
#include "trainer/workload/frozen_tensors.h"

namespace tj::trainer {
namespace {

constexpr std::int64_t kLoraRankMax = 4096;

bool has_adapters(const TrainPlan& plan) { return plan.lora.rank > 0; }

std::vector<std::string> patterns_from(const std::string& text) {
  std::vector<std::string> patterns;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');)
    if (!word.empty()) patterns.push_back(word);
  return patterns;
}

void read_lora(FlagReader& reader, TrainPlan& plan) {
  auto& lora = plan.lora;
  for (const char* const name : {"--lora-alpha", "--lora-targets", "--lora-also"})
    if (!reader.is_given("--lora") && reader.is_given(name))
      return reader.fail(name, reader.given(name), "it needs --lora");
  if (!reader.is_given("--lora")) return;
  lora.rank = reader.whole("--lora", {.value = "8"}, {1, kLoraRankMax});
  lora.alpha = reader.whole("--lora-alpha",
                            {.value = std::to_string(lora.rank), .origin = "computed: the rank"},
                            {1, kCountMax});
  if (reader.is_given("--lora-targets"))
    lora.targets = patterns_from(reader.text("--lora-targets"));
  if (lora.targets.empty())
    return reader.fail({.code = Code::invalid,
                        .message = "is missing: --lora needs patterns of names of matrices, such "
                                   "as '*.q_proj.weight,*.v_proj.weight'",
                        .subject = "--lora-targets"});
  if (reader.is_given("--lora-also")) lora.also = patterns_from(reader.text("--lora-also"));
  if (reader.is_given("--freeze"))
    return reader.fail(
        "--freeze", reader.given("--freeze"),
        "it must go with --lora, which trains adapters and what --lora-also matches");
  if (plan.sync.kind != SyncKind::step)
    reader.fail("--sync", to_string(plan.sync.kind),
                "it must be step with --lora, whose weights follow the adapters of each step");
}

LoraTensors lora_tensors(const TrainPlan& plan, const Workload& workload) {
  auto tuned = with_lora(plan.lora, workload.tensors());
  TJ_CHECK(tuned.ok(), "a plan is made with patterns that match");
  return std::move(*tuned);
}

/// Of what the workload would train.
std::int64_t frozen_elements(const TrainPlan& plan, const Workload& workload) {
  const auto of_workload = workload.tensors();
  const auto tensors = tensors_of(plan, workload);
  return trained_elements(of_workload) -
         trained_elements(std::span(tensors).first(of_workload.size()));
}

std::int64_t adapter_elements(const TrainPlan& plan, const Workload& workload) {
  const auto tensors = tensors_of(plan, workload);
  return trained_elements(std::span(tensors).subspan(workload.tensors().size()));
}

Result<void> check_patterns(const TrainPlan& plan, const Workload& workload) {
  if (has_adapters(plan)) {
    const auto tuned = with_lora(plan.lora, workload.tensors());
    return tuned ? Result<void>() : tuned.error();
  }
  const auto tensors = frozen_by(plan.freeze, workload.tensors(), "--freeze");
  return tensors ? Result<void>() : tensors.error();
}

}  // namespace

void read_tuning(FlagReader& reader, TrainPlan& plan) {
  if (reader.is_given("--freeze")) plan.freeze = reader.names("--freeze");
  read_lora(reader, plan);
}

Result<void> settle_tuning(TrainPlan& plan, const Workload& workload) {
  if (const auto checked = check_patterns(plan, workload); !checked) return checked.error();
  const auto tensors = tensors_of(plan, workload);
  const auto row = [&](const char* name, std::int64_t elements, const char* origin) {
    plan.settings.push_back({name, grouped(elements), origin});
  };
  row("parameters", trained_elements(tensors), "computed from the model");
  if (const auto frozen = frozen_elements(plan, workload); frozen > 0)
    row("frozen", frozen,
        has_adapters(plan) ? "computed: all but adapters and --lora-also"
                           : "computed: what --freeze matches");
  if (!has_adapters(plan)) return {};
  row("adapters", adapter_elements(plan, workload), "computed: what --lora-targets matches");
  // They are whole on each rank, which merges them; at stage 3 that is what is small.
  for (const auto& target : lora_targets_of(plan, workload))
    for (const auto adapter : {target.a, target.b})
      plan.zero.persist = std::max(plan.zero.persist, element_count(tensors[adapter]));
  return {};
}

std::vector<TensorSpec> tensors_of(const TrainPlan& plan, const Workload& workload) {
  if (has_adapters(plan)) return lora_tensors(plan, workload).tensors;
  auto tensors = frozen_by(plan.freeze, workload.tensors(), "--freeze");
  TJ_CHECK(tensors.ok(), "a plan is made with patterns that match");
  return std::move(*tensors);
}

std::vector<ModelBlock> blocks_of(const TrainPlan& plan, const Workload& workload) {
  return with_lora(lora_targets_of(plan, workload), workload.blocks());
}

std::vector<LoraTarget> lora_targets_of(const TrainPlan& plan, const Workload& workload) {
  if (!has_adapters(plan)) return {};
  return lora_tensors(plan, workload).targets;
}

ModelShape shape_of(const TrainPlan& plan, const Workload& workload) {
  auto shape = workload.shape();
  if (has_adapters(plan)) {
    shape.push_back({kLoraRankKey, "--lora", plan.lora.rank});
    shape.push_back({kLoraAlphaKey, "--lora-alpha", plan.lora.alpha});
    const auto transposed =
        std::ranges::count(lora_targets_of(plan, workload), true, &LoraTarget::is_transposed);
    if (transposed > 0) shape.push_back({kLoraTransposedKey, "--lora-targets", transposed});
    shape.push_back({"lora_elements", "--lora-targets", adapter_elements(plan, workload)});
    shape.push_back({"frozen", "--lora-also", frozen_elements(plan, workload)});
  } else if (!plan.freeze.empty()) {
    shape.push_back({"frozen", "--freeze", frozen_elements(plan, workload)});
  }
  return shape;
}

}  // namespace tj::trainer
