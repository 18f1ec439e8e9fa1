#include "trainer/checkpoint/save_job.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "trainer/checkpoint/safetensors.h"

namespace tj::trainer {
namespace {
using std::chrono::milliseconds;
using std::chrono::steady_clock;
constexpr milliseconds kLookForNotes{20};
constexpr int kLowestNice = 19;

/// Best effort: in Linux it is of this thread alone, and there is no way back for it. Not
/// SCHED_IDLE: beside other work such a thread waits for seconds even to be killed, and all of its
/// process with it.
void step_back() { (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kLowestNice); }

/// A save must not end the process, whatever it calls: on its thread nobody would catch.
template <typename Work>
auto caught(const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception& failure) {
    return Error{.code = Code::internal, .message = failure.what(), .subject = {}};
  }
}

}  // namespace

bool is_in_parts(std::span<const StateGroup> groups) {
  return std::ranges::any_of(groups, [](const StateGroup& group) {
    return std::ranges::any_of(group.tensors,
                               [](const StateTensor& tensor) { return tensor.send_to != nullptr; });
  });
}

void send_parts(std::span<const StateGroup> groups, std::span<const PlannedFile> plan) {
  for (const auto& file : plan) {
    for (const auto index : file.tensors) {
      const auto& tensor = groups[file.group].tensors[index];
      if (tensor.send_to) tensor.send_to(file.writer);
    }
  }
}

SaveJob::SaveJob(Inputs inputs) : inputs_(std::move(inputs)), begun_(steady_clock::now()) {
  if (is_in_parts(inputs_.groups)) copied_with(copy());
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

SaveJob::~SaveJob() {
  const auto end = steady_clock::now() + kUnagreedSaveMax;
  drive([&] { return is_over_ || steady_clock::now() >= end; });
}

void SaveJob::run(const std::stop_token& stop) {
  if (!is_in_parts(inputs_.groups)) copied_with(caught([this] { return copy(); }));
  step_back();
  while (!stop.stop_requested()) {
    const auto state = turn();
    if (!state) break;
    if (*state == SaveWork::State::waiting) pause();
  }
}

void SaveJob::copied_with(const Result<void>& copied) {
  if (!copied) {
    const std::scoped_lock lock(work_mutex_);
    fail(copied.error());
  }
  {
    const std::scoped_lock lock(copy_mutex_);
    is_copied_ = true;
    if (wait_begun_) stall_ += steady_clock::now() - *wait_begun_;
  }
  copied_.notify_all();
}

Result<void> SaveJob::copy() {
  const auto plan = plan_files(inputs_.groups, inputs_.order.writers);
  auto memory =
      inputs_.staging.reserve(bytes_of_writer(inputs_.groups, plan, inputs_.order.writer));
  if (!memory) return memory.error();
  std::vector<FileContent> files;
  std::map<std::string, std::string> indices;
  std::size_t offset = 0;
  for (const auto& planned : plan) {
    const auto& group = inputs_.groups[planned.group];
    if (planned.tensors.size() < group.tensors.size())
      indices[index_name(group.stem)] = index_text(inputs_.groups, planned.group, plan);
    if (planned.writer != inputs_.order.writer) {
      send_parts(inputs_.groups, {&planned, 1});
      continue;
    }
    FileContent file{.name = planned.name, .head = {}, .parts = {}};
    std::vector<TensorBytes> tensors;
    for (const auto index : planned.tensors) {
      const auto& tensor = group.tensors[index];
      const auto target = memory->subspan(offset, tensor.bytes());
      tensor.copy_to(target);
      inputs_.clock.moved();  // the next update waits for it
      offset += tensor.bytes();
      tensors.push_back(
          {.name = tensor.name, .shape = tensor.shape, .bytes = target, .dtype = tensor.dtype});
      file.parts.push_back(target);
    }
    // "format": "pt" is what Hugging Face's loader asks for.
    const std::string step = std::to_string(inputs_.order.manifest.step);
    file.head = safetensors_head(tensors, {{"format", "pt"}, {kStepKey, step}});
    files.push_back(std::move(file));
  }
  const std::scoped_lock lock(work_mutex_);
  work_ = std::make_unique<SaveWork>(inputs_.order, std::move(files), std::move(indices));
  return {};
}

/// With work_mutex_ held.
void SaveJob::fail(const Error& error) {
  if (inputs_.order.writer != 0) leave_failure_note(inputs_.order, error);
  error_ = error;
  is_over_ = has_failed_ = true;
}

/// With work_mutex_ held.
void SaveJob::report() {
  if (!inputs_.on_committed) return;
  const std::scoped_lock lock(copy_mutex_);
  const std::chrono::duration<double> taken = steady_clock::now() - begun_;
  inputs_.on_committed({.step = inputs_.order.manifest.step,
                        .path = work_->path(),
                        .stall_seconds = stall_.count(),
                        .written_seconds = taken.count()});
}

void SaveJob::wait_until_copied() {
  std::unique_lock lock(copy_mutex_);
  if (is_copied_) return;
  wait_begun_ = steady_clock::now();
  copied_.wait(lock, [this] { return is_copied_; });
}

void SaveJob::add_stall(std::chrono::duration<double> stall) {
  const std::scoped_lock lock(copy_mutex_);
  stall_ += stall;
}

/// Nobody tells: the note of another writer comes by the file system.
void SaveJob::pause() {
  std::unique_lock pause(copy_mutex_);
  copied_.wait_for(pause, kLookForNotes);
}

/// One piece of the work, and how it stands then; none when nothing is left of it.
std::optional<SaveWork::State> SaveJob::turn() {
  const std::scoped_lock lock(work_mutex_);
  if (is_over_) return std::nullopt;
  const auto state = caught([this] {
    auto reached = work_->advance();
    if (reached && *reached == SaveWork::State::committed) report();
    return reached;
  });
  if (!state) {
    fail(state.error());
    return std::nullopt;
  }
  const bool is_first = inputs_.order.writer == 0;
  if (*state == SaveWork::State::own_done) is_own_done_ = true;
  if (*state == SaveWork::State::own_done && !is_first) is_over_ = true;
  if (*state == SaveWork::State::committed) is_over_ = true;
  return *state;
}

/// Takes the work over from the thread.
void SaveJob::drive(const std::function<bool()>& is_enough) {
  wait_until_copied();
  thread_.request_stop();
  std::unique_ptr<PhaseClock::Scope> wait;
  while (!is_enough()) {
    const auto state = turn();
    if (!state) return;
    if (*state == SaveWork::State::waiting) {
      if (!wait)
        wait.reset(new PhaseClock::Scope(inputs_.clock.wait_for("wait for other writers")));
      pause();
    } else {
      wait.reset();
      inputs_.clock.moved();
    }
  }
}

Result<void> SaveJob::finish_own_part() {
  drive([this] { return is_own_done_ || is_over_; });
  const std::scoped_lock lock(work_mutex_);
  // A later failure, if it came from the thread meanwhile, is finish()'s.
  if (error_ && !is_own_done_) return *error_;
  return {};
}

Result<void> SaveJob::finish() {
  drive([this] { return is_over_.load(); });
  const std::scoped_lock lock(work_mutex_);
  if (error_) return *error_;
  return {};
}

void SaveJob::abandon() {
  wait_until_copied();
  thread_.request_stop();
  const std::scoped_lock lock(work_mutex_);
  is_over_ = true;
}

}  // namespace tj::trainer
