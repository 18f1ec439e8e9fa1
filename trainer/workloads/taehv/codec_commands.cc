#include "trainer/workloads/taehv/codec_commands.h"

namespace tj::trainer {

std::span<const WorkloadCommand> taehv_commands() {
  static const WorkloadCommand kCommands[] = {encode_command(), decode_command(),
                                              reconstruct_command()};
  return kCommands;
}

}  // namespace tj::trainer
