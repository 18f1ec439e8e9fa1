// Which codec and how many passes a slow link asks for: a table of predictions, and the setting
// that reaches the wished efficiency at the least risk for the training. Pure.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/predict/step.h"

namespace tj::trainer {

/// Passes of one optimizer step that the table looks at, beside the run's own.
inline constexpr std::array<std::int64_t, 6> kPassesTried{1, 2, 4, 8, 16, 32};

struct ReduceChoice {
  std::int64_t passes = 1;
  Codec codec = Codec::fp32;
  bool operator==(const ReduceChoice&) const = default;
};

struct TableRow {
  ReduceChoice setting = {};
  StepPrediction step = {};
};

/// How fast each codec packs and unpacks float32 gradients, bytes per second; absent: not counted.
using CodecRates = std::vector<std::pair<Codec, double>>;

/// All of kPassesTried and the run's own passes by all codecs, in that order. The samples of a pass
/// stay, so that more passes are a larger batch. Under ZeRO gradients have one form: fp32 alone.
std::vector<TableRow> table_of(const StepInputs& inputs, const CodecRates& rates);
/// The row of a setting that is in it.
const TableRow& row_of(const std::vector<TableRow>& table, const ReduceChoice& setting);

struct Advice {
  std::optional<ReduceChoice> setting = {};     // absent: none reaches the target
  std::optional<ReduceChoice> by_consent = {};  // what would, but changes the optimisation itself
  std::string why = {};
};
/// Risk, from the least: the run's own passes by fp32, bf16, int8 with error feedback; then more
/// passes, which is a larger batch, by the same; PowerSGD changes the optimisation, and is only
/// named beside.
Advice advise(const std::vector<TableRow>& table, const ReduceChoice& own, double target);

/// By the share of a step that the wire would take without overlap: below a tenth nothing, below a
/// half bf16, below three quarters int8 with error feedback, else PowerSGD or local steps, by
/// consent.
Codec codec_by_share(double bare_share);

}  // namespace tj::trainer
