#include "trainer/predict/advice.h"

#include <algorithm>
#include <span>

#include "contract/result.h"

namespace tj::trainer {
namespace {

/// In ascending risk; fp16 has the bytes of bf16 and less range.
constexpr std::array kAdvised{Codec::fp32, Codec::bf16, Codec::int8};

double rate_of(const CodecRates& rates, Codec codec) {
  const auto found = std::ranges::find(rates, codec, &CodecRates::value_type::first);
  return found == rates.end() ? 0 : found->second;
}

std::vector<std::int64_t> passes_tried(std::int64_t own) {
  std::vector<std::int64_t> passes(kPassesTried.begin(), kPassesTried.end());
  if (std::ranges::find(passes, own) == passes.end()) passes.push_back(own);
  std::ranges::sort(passes);
  return passes;
}

std::string why_text(const ReduceChoice& choice, const ReduceChoice& own) {
  std::string why = choice.codec == Codec::fp32   ? "gradients cross the wire as they are"
                    : choice.codec == Codec::bf16 ? "gradients are rounded for the wire"
                                                  : "what is rounded away is sent in later steps";
  if (choice.passes != own.passes) why += "; more passes are a larger batch";
  return why;
}

}  // namespace

std::vector<TableRow> table_of(const StepInputs& inputs, const CodecRates& rates) {
  std::vector<TableRow> table;
  const std::span<const Codec> codecs =
      inputs.zero_stage == 0 ? std::span<const Codec>(kCodecs) : std::span(kCodecs).first(1);
  for (const auto passes : passes_tried(inputs.passes)) {
    for (const auto codec : codecs) {
      auto changed = inputs;
      changed.passes = passes;
      changed.reduction.codec = codec;
      changed.reduction.codec_bytes_per_second = rate_of(rates, codec);
      table.push_back(
          {.setting = {.passes = passes, .codec = codec}, .step = predict_step(changed)});
    }
  }
  return table;
}

const TableRow& row_of(const std::vector<TableRow>& table, const ReduceChoice& setting) {
  const auto found = std::ranges::find(table, setting, &TableRow::setting);
  TJ_CHECK(found != table.end(), "a setting of the table");
  return *found;
}

Advice advise(const std::vector<TableRow>& table, const ReduceChoice& own, double target) {
  const auto reaches = [&](const TableRow& row) { return row.step.efficiency() >= target; };
  std::vector<std::int64_t> passes{own.passes};
  for (const auto& row : table)
    if (row.setting.passes > passes.back()) passes.push_back(row.setting.passes);
  Advice advice;
  const auto look = [&](std::int64_t count, Codec codec, std::optional<ReduceChoice>& place) {
    const ReduceChoice choice{.passes = count, .codec = codec};
    const auto row = std::ranges::find(table, choice, &TableRow::setting);
    if (!place && row != table.end() && reaches(*row)) place = choice;
  };
  for (const auto count : passes)
    for (const auto codec : kAdvised) look(count, codec, advice.setting);
  for (const auto count : passes) look(count, Codec::powersgd, advice.by_consent);
  if (advice.setting) {
    advice.why = why_text(*advice.setting, own);
    if (advice.setting->passes == own.passes) advice.by_consent.reset();
  }
  return advice;
}

Codec codec_by_share(double bare_share) {
  if (bare_share < 0.1) return Codec::fp32;
  if (bare_share < 0.5) return Codec::bf16;
  if (bare_share < 0.75) return Codec::int8;
  return Codec::powersgd;
}

}  // namespace tj::trainer
