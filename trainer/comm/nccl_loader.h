// Brings libtrainer_nccl.so in, on machines that have what it needs. Every way in which that can
// fail is one sentence that names a file or two versions. No torch here.
#pragma once
#include <filesystem>
#include <string>

#include "contract/result.h"
#include "trainer/comm/nccl_plugin/abi.h"

namespace tj::trainer {

struct NcclPlace {
  std::filesystem::path plugin;
  std::string cuda_library = "libtorch_cuda.so";  // searched as every library is
  std::string libtorch;                           // the version that the caller is compiled with
};

/// libtrainer_nccl.so beside this program.
std::filesystem::path default_nccl_plugin();

/// The plug-in stays loaded for the rest of the process. Fails with Code::not_found when a file is
/// missing, with Code::invalid when it is not ours or of other versions.
Result<const NcclPlugin*> load_nccl_plugin(const NcclPlace& place);

}  // namespace tj::trainer
