// What a run is asked for: the command line, completed by the files that it names and by variables
// of the workload's. Reads those files.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "contract/launch_env.h"
#include "contract/result.h"
#include "trainer/values/process_env.h"
#include "trainer/values/settings.h"
#include "trainer/workload/flag.h"

namespace tj::trainer {

struct ChosenFlags {
  Flags flags;
  Flags origins;  // of those set by a file, "deepspeed" or "accelerate", or "environment NAME"
  std::vector<std::string> notes;  // what becomes of each key of the files, and of variables
};

/// Variables that a workload takes flags from.
struct FlagVariables {
  std::span<const EnvironmentFlag> known = {};
  EnvLookup lookup = {};
  std::int64_t batch_size = 1;  // of the preset: what passes add up to where nothing says it
};

/// Adds to `chosen` what variables say and nobody has said otherwise; not the samples of a pass.
void add_variables(ChosenFlags& chosen, const FlagVariables& variables);

/// What to say where `flag`, which must be there, isn't, and a variable would have set it. Absent:
/// it is there, or no variable is known for it.
std::optional<Error> missing_flag(const Flags& flags, const std::string& flag,
                                  std::span<const EnvironmentFlag> known);

/// An error about a flag that a variable has set names the variable, too.
Error named_by_variable(Error error, const Flags& origins);

/// Reads the files of --deepspeed and --config, where there are such; a --config that names a file
/// is then no longer among the flags. A flag that contradicts the file of --deepspeed is refused,
/// as the two are one program's; one that contradicts a file of accelerate goes before it, as with
/// accelerate. Variables go before files that may be contradicted, and behind flags. Fails with
/// Code::invalid, naming file and key, or the variable.
Result<ChosenFlags> choose_flags(const Flags& given, const ProcessEnv& env,
                                 const FlagVariables& variables = {});

/// The table says of rows that a file has set, which.
void name_origin(std::vector<Setting>& settings, const Flags& origins);

}  // namespace tj::trainer
