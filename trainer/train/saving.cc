#include "trainer/train/saving.h"

#include <torch/torch.h>

#include "trainer/checkpoint/training_state.h"
#include "trainer/comm/agreement.h"
#include "trainer/report/progress.h"

namespace tj::trainer {

class Saving::Impl {
 public:
  Impl(Communicator& communicator, SavingOptions options, StateTensors state)
      : comm_(communicator), options_(std::move(options)), state_(std::move(state)) {}

  std::optional<Failure> begin(const Manifest& manifest) {
    std::optional<Failure> mine;
    if (comm_.rank() == 0) {
      const auto path = save_checkpoint(options_.out, state_, manifest);
      if (path) {
        last_path = path->string();
        say("checkpoint " + last_path);
        prune_checkpoints(options_.out, options_.keep);
      } else {
        mine = save_failure(manifest.step, path.error());
      }
    }
    return agree(comm_, mine);
  }

  std::string last_path;

 private:
  Communicator& comm_;
  SavingOptions options_;
  StateTensors state_;
};

Saving::Saving(Communicator& communicator, SavingOptions options, StateTensors state)
    : impl_(std::make_unique<Impl>(communicator, std::move(options), std::move(state))) {}
Saving::~Saving() = default;

std::optional<Failure> Saving::begin(const Manifest& manifest) { return impl_->begin(manifest); }
void Saving::wait_until_copied() {}
bool Saving::has_failed() const { return false; }
std::optional<Failure> Saving::finish() { return std::nullopt; }
const std::string& Saving::last_path() const { return impl_->last_path; }

Failure save_failure(std::int64_t step, const Error& error) {
  return {.exit_code = exit_code::kSaveFailed,
          .reason = "SaveFailed",
          .message = "step " + std::to_string(step) + " could not be saved: " + describe(error)};
}

}  // namespace tj::trainer
