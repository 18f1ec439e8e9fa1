#include "trainer/workloads/registry.h"

#include "trainer/workloads/gpt2/gpt2_workload.h"
#include "trainer/workloads/pi0/pi0_workload.h"
#include "trainer/workloads/qwen_vggt/qwen_vggt_workload.h"
#include "trainer/workloads/taehv/taehv_workload.h"

namespace tj::trainer {

/// The first one's first preset is what trains without --model.
Registry workloads() {
  static const WorkloadEntry kEntries[] = {
      gpt2_entry(),
      pi0_entry(),
      qwen_vggt_entry(),
      taehv_entry(),
  };
  return kEntries;
}

}  // namespace tj::trainer
