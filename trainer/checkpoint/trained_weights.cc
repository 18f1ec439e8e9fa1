#include "trainer/checkpoint/trained_weights.h"

#include "trainer/checkpoint/file_plan.h"
#include "trainer/checkpoint/folder.h"
#include "trainer/process/lines.h"
#include "trainer/process/stop_request.h"

namespace tj::trainer {

namespace fs = std::filesystem;

Result<fs::path> find_trained_weights(const fs::path& named, const std::string& flag) {
  const std::string subject = flag + " " + named.string();
  const auto wrong = [&](const char* message) {
    return Error{.code = Code::invalid, .message = message, .subject = subject};
  };
  std::error_code unreadable;
  const auto status = fs::status(named, unreadable);
  if (!fs::exists(status)) return wrong("is not there");
  if (!fs::is_directory(status)) return named;
  if (checkpoint_names(named).empty()) {
    const bool has_model = fs::exists(named / group_file_name(kModelStem, 0, 1), unreadable) ||
                           fs::exists(named / index_name(kModelStem), unreadable);
    if (has_model) return named;
    return wrong("holds no checkpoint (step-...) and no model.safetensors");
  }
  const auto search = newest_usable_checkpoint(named, [] { return stop_signal() != 0; });
  for (const auto& damaged : search.damaged)
    say_error(subject + ": left out: " + describe(damaged));
  if (!search.found) return wrong("holds no checkpoint that is whole");
  return search.found->folder;
}

}  // namespace tj::trainer
