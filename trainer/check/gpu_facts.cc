// Asks NVIDIA's management library (NVML), which is part of the driver and loaded only where it is.
// Its functions and structures are those of nvml.h, API version 11 and later.
#include <dlfcn.h>

#include <algorithm>

#include <memory>

#include "trainer/check/machine.h"

namespace tj::trainer {
namespace {

constexpr const char* kLibrary = "libnvidia-ml.so.1";
constexpr int kSuccess = 0;
constexpr int kUncorrected = 1;  // NVML_MEMORY_ERROR_TYPE_UNCORRECTED
constexpr int kSinceReset = 0;   // NVML_VOLATILE_ECC
constexpr int kRead = 0;         // NVML_P2P_CAPS_INDEX_READ
constexpr int kP2pOk = 0;        // NVML_P2P_STATUS_OK
constexpr unsigned kNameBytes = 96;
constexpr unsigned kGpusMax = 64;

using Device = void*;
struct Memory {
  unsigned long long total = 0, free = 0, used = 0;
};

using Library = std::unique_ptr<void, int (*)(void*)>;

template <typename Function>
Function* symbol(const Library& library, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(library.get(), name));
}

/// The functions that are asked; a driver may be too old for some.
struct Nvml {
  explicit Nvml(const Library& library)
      : init(symbol<int()>(library, "nvmlInit_v2")),
        shutdown(symbol<int()>(library, "nvmlShutdown")),
        count(symbol<int(unsigned*)>(library, "nvmlDeviceGetCount_v2")),
        handle(symbol<int(unsigned, Device*)>(library, "nvmlDeviceGetHandleByIndex_v2")),
        name(symbol<int(Device, char*, unsigned)>(library, "nvmlDeviceGetName")),
        memory(symbol<int(Device, Memory*)>(library, "nvmlDeviceGetMemoryInfo")),
        errors(symbol<int(Device, int, int, unsigned long long*)>(library,
                                                                  "nvmlDeviceGetTotalEccErrors")),
        peer(symbol<int(Device, Device, int, int*)>(library, "nvmlDeviceGetP2PStatus")) {}
  bool is_whole() const { return init && shutdown && count && handle && name && memory; }

  int (*init)();
  int (*shutdown)();
  int (*count)(unsigned*);
  int (*handle)(unsigned, Device*);
  int (*name)(Device, char*, unsigned);
  int (*memory)(Device, Memory*);
  int (*errors)(Device, int, int, unsigned long long*);
  int (*peer)(Device, Device, int, int*);
};

GpuFacts facts_of(const Nvml& nvml, Device device) {
  GpuFacts facts{.name = "unknown"};
  char name[kNameBytes] = {};
  if (nvml.name(device, name, sizeof name) == kSuccess) facts.name = name;
  Memory memory;
  if (nvml.memory(device, &memory) == kSuccess) {
    facts.memory_bytes = memory.total;
    facts.used_bytes = memory.used;
  }
  unsigned long long errors = 0;
  // Fails where the GPU has no ECC, or has it off.
  if (nvml.errors && nvml.errors(device, kUncorrected, kSinceReset, &errors) == kSuccess)
    facts.uncorrected_errors = errors;
  return facts;
}

void read_gpus(const Nvml& nvml, GpusFacts& facts) {
  unsigned count = 0;
  std::vector<Device> devices;
  if (nvml.count(&count) != kSuccess) return;
  for (unsigned index = 0; index < std::min(count, kGpusMax); ++index) {
    Device device = nullptr;
    if (nvml.handle(index, &device) != kSuccess) continue;
    devices.push_back(device);
    facts.gpus.push_back(facts_of(nvml, device));
  }
  for (std::size_t left = 0; nvml.peer && left < devices.size(); ++left) {
    for (std::size_t right = left + 1; right < devices.size(); ++right) {
      int status = kP2pOk;
      if (nvml.peer(devices[left], devices[right], kRead, &status) == kSuccess && status != kP2pOk)
        facts.without_peer_access.push_back(std::to_string(left) + " and " + std::to_string(right));
    }
  }
}

}  // namespace

GpusFacts gpus_facts(int visible) {
  GpusFacts facts{.visible = visible};
  const Library library(::dlopen(kLibrary, RTLD_LAZY | RTLD_LOCAL), &::dlclose);
  if (!library) {
    facts.error = std::string(kLibrary) + " is missing";
    return facts;
  }
  const Nvml nvml(library);
  if (!nvml.is_whole()) {
    facts.error = std::string(kLibrary) + " is of a driver that is too old";
    return facts;
  }
  if (const int code = nvml.init(); code != kSuccess) {
    facts.error = std::string(kLibrary) + " can't be used: code " + std::to_string(code);
    return facts;
  }
  read_gpus(nvml, facts);
  nvml.shutdown();
  return facts;
}

}  // namespace tj::trainer
