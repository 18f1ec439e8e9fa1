// When the ranks of a run become the same, and by what: the flags --sync, --sync-every, --outer-lr,
// --outer-momentum and --bucket-mib, and with what else they go. Pure.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "contract/result.h"
#include "trainer/comm/reduce_options.h"

namespace tj::trainer {

class FlagReader;
class Workload;
struct TrainPlan;

struct SyncPlan {
  SyncKind kind = SyncKind::step;
  std::int64_t every = 1;       // steps from one synchronisation to the next: local and diloco
  double outer_lr = 0.7;        // diloco
  double outer_momentum = 0.9;  // diloco, as Nesterov's
  /// Of `step`; 0: chosen by what the first steps show.
  std::int64_t bucket_bytes = kGradientBucketBytes;
};

/// "step", "late", "local", "diloco"
const char* to_string(SyncKind kind);
std::optional<SyncKind> sync_kind_from(std::string_view name);
/// True: between two synchronisations each rank has weights of its own.
bool trains_apart(SyncKind kind);

/// Needs all of the plan that other flags say. A single rank trains as with `step`, but with
/// `diloco`, whose outer optimizer changes what it does.
void read_sync(FlagReader& reader, int world_size, TrainPlan& plan);

/// Once the device is known. Fails with Code::invalid for a precision that does not go with it.
Result<void> settle_sync(TrainPlan& plan);

/// Fails with Code::invalid for a model that ranks can't train apart.
Result<void> check_sync(const TrainPlan& plan, const Workload& workload);

}  // namespace tj::trainer
