#include "trainer/train/sync_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "trainer/train/plan.h"
#include "trainer/workload/flag_reader.h"
#include "trainer/workload/workload.h"

namespace tj::trainer {
namespace {

constexpr std::int64_t kBucketMibMax = 1024;
constexpr std::int64_t kMib = 1 << 20;
constexpr const char* kFp16Rule =
    "has no fp16, of whose overflows each step must hear; --precision bf16 has more range";

/// DiLoCo's paper has 500 and finds that fewer are a little better (arXiv 2311.08105, ablations).
const char* default_every(SyncKind kind) { return kind == SyncKind::local ? "50" : "100"; }

std::string sync_text(SyncKind kind) { return std::string("--sync ") + to_string(kind); }

/// What all ranks must do at once in each step, or a sharing out of what each must have.
void refuse_company(FlagReader& reader, const TrainPlan& plan) {
  const SyncKind kind = plan.sync.kind;
  const auto refuse = [&](const std::string& with) {
    reader.fail("--sync", to_string(kind), "it must be step with " + with);
  };
  if (plan.zero.stage > 0) refuse("--zero " + std::to_string(plan.zero.stage));
  if (plan.logical_shards > 0) refuse("--deterministic");
  if (plan.precision == Precision::fp16)
    reader.fail("--precision", "fp16", sync_text(kind) + " " + kFp16Rule);
  if (!trains_apart(kind)) return;
  if (plan.ema_decay > 0)
    reader.fail("--ema", number_text(plan.ema_decay),
                "it must be 0 with " + sync_text(kind) +
                    ": between two synchronisations each rank has weights of its own");
  if (plan.eval_every % plan.sync.every != 0) {
    reader.fail("--eval-every", std::to_string(plan.eval_every),
                "it must be a multiple of --sync-every, " + std::to_string(plan.sync.every) +
                    ": only then all ranks have the same weights");
  }
}

void read_every(FlagReader& reader, SyncPlan& sync) {
  if (trains_apart(sync.kind)) {
    sync.every =
        reader.whole("--sync-every", {default_every(sync.kind), "default"}, {1, kCountMax});
  } else if (reader.is_given("--sync-every")) {
    reader.fail("--sync-every", reader.given("--sync-every"), "it needs --sync local or diloco");
  }
}

void read_outer(FlagReader& reader, SyncPlan& sync) {
  if (sync.kind != SyncKind::diloco) {
    for (const char* const name : {"--outer-lr", "--outer-momentum"})
      if (reader.is_given(name)) reader.fail(name, reader.given(name), "it needs --sync diloco");
    return;
  }
  constexpr double kOuterLrMax = 10;
  sync.outer_lr = reader.real("--outer-lr", {"0.7", "default"},
                              {std::numeric_limits<double>::denorm_min(), kOuterLrMax},
                              "it must be a number greater than 0, at most 10");
  sync.outer_momentum = reader.real("--outer-momentum", {"0.9", "default"},
                                    {0, std::nextafter(1.0, 0.0)}, kShareRule);
}

void read_buckets(FlagReader& reader, TrainPlan& plan) {
  const char* const name = "--bucket-mib";
  if (!reader.is_given(name)) return;
  const std::string& given = reader.given(name);
  if (plan.sync.kind != SyncKind::step)
    return reader.fail(name, given, "it needs --sync step, which alone has buckets");
  if (plan.zero.stage > 0)
    return reader.fail(name, given, "it must not be given with --zero, which reduces by blocks");
  if (plan.logical_shards > 0)
    return reader.fail(name, given,
                       "it must not be given with --deterministic, which reduces by a tree");
  if (given == "auto") {
    plan.sync.bucket_bytes = 0;
    return reader.note(name, "auto", "flag");
  }
  plan.sync.bucket_bytes = reader.whole(name, {"25", "default"}, {1, kBucketMibMax}) * kMib;
}

}  // namespace

const char* to_string(SyncKind kind) {
  switch (kind) {
    case SyncKind::step: return "step";
    case SyncKind::late: return "late";
    case SyncKind::local: return "local";
    case SyncKind::diloco: return "diloco";
  }
  return "step";
}

std::optional<SyncKind> sync_kind_from(std::string_view name) {
  for (const auto kind : {SyncKind::step, SyncKind::late, SyncKind::local, SyncKind::diloco})
    if (name == to_string(kind)) return kind;
  return std::nullopt;
}

bool trains_apart(SyncKind kind) { return kind == SyncKind::local || kind == SyncKind::diloco; }

void read_sync(FlagReader& reader, int world_size, TrainPlan& plan) {
  auto& sync = plan.sync;
  sync.kind = reader.choice("--sync", "step", "step, late, local or diloco", sync_kind_from);
  read_every(reader, sync);
  read_outer(reader, sync);
  read_buckets(reader, plan);
  if (sync.kind == SyncKind::step) return;
  refuse_company(reader, plan);
  const bool is_plain = world_size == 1 && sync.kind != SyncKind::diloco;
  if (!is_plain) return;
  reader.note("synchronised", "each step",
              "computed: a single rank has nobody to wait for, as with --sync step");
  sync.kind = SyncKind::step;
}

Result<void> settle_sync(TrainPlan& plan) {
  if (plan.gpu && plan.sync.bucket_bytes == 0) {
    plan.sync.bucket_bytes = kGradientBucketBytes;
    plan.settings.push_back(
        {"buckets", "25 MiB", "computed: on a GPU the host can't time backward"});
  }
  if (plan.sync.kind == SyncKind::step || plan.precision != Precision::fp16) return {};
  return Error{
      .code = Code::invalid,
      .message = std::string("is \"") + to_string(plan.sync.kind) + "\", which " + kFp16Rule,
      .subject = "--sync"};
}

Result<void> check_sync(const TrainPlan& plan, const Workload& workload) {
  if (!trains_apart(plan.sync.kind)) return {};
  const auto tensors = workload.tensors();
  const bool has_buffers =
      std::ranges::find(tensors, TensorKind::buffer, &TensorSpec::kind) != tensors.end();
  if (!has_buffers && !workload.memory()) return {};
  return Error{.code = Code::invalid,
               .message = std::string("is \"") + to_string(plan.sync.kind) + "\"; with " +
                          plan.model_name + " it must be step or late, as its " +
                          (has_buffers ? "buffers are means over" : "memory is of") +
                          " what all ranks see in each step",
               .subject = "--sync"};
}

}  // namespace tj::trainer
