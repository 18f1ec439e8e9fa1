// What a run is asked for: the command line, completed by the files that it names. Reads those.
#pragma once
#include <string>
#include <vector>

#include "contract/result.h"
#include "trainer/values/process_env.h"
#include "trainer/values/settings.h"
#include "trainer/workload/flag.h"

namespace tj::trainer {

struct ChosenFlags {
  Flags flags;
  Flags origins;                   // of those that a file has set: "deepspeed" or "accelerate"
  std::vector<std::string> notes;  // about the files: what becomes of each key
};

/// Reads the files of --deepspeed and --config, where there are such; a --config that names a file
/// is then no longer among the flags. A flag that contradicts the file of --deepspeed is refused,
/// as the two are one program's; one that contradicts a file of accelerate goes before it, as with
/// accelerate. Fails with Code::invalid, naming file and key.
Result<ChosenFlags> choose_flags(const Flags& given, const ProcessEnv& env);

/// The table says of rows that a file has set, which.
void name_origin(std::vector<Setting>& settings, const Flags& origins);

}  // namespace tj::trainer
