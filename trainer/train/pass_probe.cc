#include "trainer/train/pass_probe.h"

#include <c10/core/Allocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>

#include "trainer/predict/forecast.h"
#include "trainer/train/device_memory.h"
#include "trainer/train/learner.h"
#include "trainer/train/pass_reader.h"
#include "trainer/train/tuning.h"
#include "trainer/workload/initial_tensor.h"

namespace tj::trainer {
namespace {
using std::chrono::duration;
using std::chrono::steady_clock;

constexpr std::int64_t kPassesOfStep = 2;
constexpr int kStepsMax = 5;
constexpr double kStateBytesOfElement = 16;  // weight, gradient, two moments
constexpr double kMemoryShareMax = 0.8;      // of what is free: others live here, too

double since(steady_clock::time_point begun) {
  return duration<double>(steady_clock::now() - begun).count();
}

/// Bytes of tensors on the CPU, as torch's allocator tells them to whoever profiles.
class LiveBytes final : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t,
                         c10::Device device) override {
    if (!device.is_cpu()) return;
    const std::int64_t live = live_ += bytes;
    std::int64_t peak = peak_;
    while (live > peak && !peak_.compare_exchange_weak(peak, live)) {}
  }
  bool memoryProfilingEnabled() const override { return true; }
  std::int64_t live() const { return live_; }
  std::int64_t peak() const { return peak_; }
  void forget_peak() { peak_ = live_.load(); }

 private:
  std::atomic<std::int64_t> live_ = 0;
  std::atomic<std::int64_t> peak_ = 0;
};

/// When backward completes each gradient, since the pass began.
class Arrivals {
 public:
  explicit Arrivals(const std::vector<at::Tensor>& parameters)
      : seconds_(std::make_shared<std::vector<double>>(parameters.size())),
        begun_(std::make_shared<steady_clock::time_point>()) {
    for (std::size_t index = 0; index < parameters.size(); ++index) {
      const auto accumulator = torch::autograd::impl::grad_accumulator(parameters[index]);
      accumulator->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
          [seconds = seconds_, begun = begun_, index](const torch::autograd::variable_list& outputs,
                                                      const torch::autograd::variable_list&) {
            (*seconds)[index] = since(*begun);
            return outputs;
          }));
      accumulators_.push_back(accumulator);
    }
  }

  void begin() {
    *begun_ = steady_clock::now();
    std::ranges::fill(*seconds_, 0);
  }
  /// 0: none has come.
  const std::vector<double>& seconds() const { return *seconds_; }

 private:
  std::shared_ptr<std::vector<double>> seconds_;
  std::shared_ptr<steady_clock::time_point> begun_;
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators_;  // tensors hold theirs weakly
};

/// Alone, with everything whole: what ranks share out changes what they hold, not the computing.
TrainPlan alone(TrainPlan plan) {
  plan.accumulation = kPassesOfStep;
  plan.zero = {};
  plan.logical_shards = 0;
  plan.ema_decay = 0;
  return plan;
}

TrainPlan with_samples(TrainPlan plan, std::int64_t samples) {
  plan.micro_batch = samples;
  plan.batch_size = samples * kPassesOfStep;
  return plan;
}

PassMemory of_one_sample(const PassProbeRequest& request) {
  return request.workload.pass_memory({.precision = request.plan.precision,
                                       .recompute = request.plan.recompute,
                                       .is_gpu = request.plan.gpu.has_value()});
}

/// Of weights, gradients and moments, and of what the workload holds beside them.
double state_bytes(const PassProbeRequest& request) {
  double bytes = kStateBytesOfElement *
                 static_cast<double>(trained_elements(tensors_of(request.plan, request.workload)));
  for (const auto& part : of_one_sample(request).held) bytes += part.bytes_of_rank(1);
  return bytes;
}

struct SeenPass {
  double forward_s = 0;
  double backward_s = 0;
  double activation_bytes = 0;
};

class Prober {
 public:
  explicit Prober(const PassProbeRequest& request)
      : request_(request),
        resident_before_(resident_bytes()),
        live_(std::make_shared<LiveBytes>()),
        profiled_(c10::DebugInfoKind::PROFILER_STATE, live_),
        plan_(alone(request.plan)),
        device_(device_of(plan_.gpu)),
        specs_(tensors_of(plan_, request.workload)),
        communicator_(make_single_communicator()),
        learner_(plan_, request.workload, *communicator_, clock_),
        parameters_(trained()),
        arrivals_(parameters_) {
    learner_.begin();
    clock_.enter(Phase::step);
  }

  PassProbe measure() {
    if (request_.measures_time) {
      measure_time();
    } else {
      measure_memory();
    }
    probe_.gradients = gradients();
    probe_.scratch_bytes =
        std::max(0.0, resident_bytes() - resident_before_ - static_cast<double>(highest_live_));
    return probe_;
  }

 private:
  std::vector<at::Tensor> trained() const {
    std::vector<at::Tensor> parameters;
    for (std::size_t index = 0; index < specs_.size(); ++index)
      if (specs_[index].kind == TensorKind::trained)
        parameters.push_back(learner_.tensors()[index]);
    return parameters;
  }

  std::vector<Pass> passes_of(std::int64_t samples) {
    const auto plan = with_samples(plan_, samples);
    PassReader reader(request_.source, plan, /*rank=*/0, /*next_sample=*/0, clock_);
    std::vector<Pass> passes;
    for (std::int64_t pass = 0; pass < kPassesOfStep; ++pass) passes.push_back(reader.next());
    return passes;
  }

  void wait_for_device() const {
    if (device_.is_cpu()) return;
    c10::impl::VirtualGuardImpl(device_.type()).synchronizeDevice(device_.index());
  }

  /// Gradients are there before a pass adds to them, as with several ranks.
  void make_gradients() {
    for (const auto& parameter : parameters_)
      if (!parameter.grad().defined()) parameter.mutable_grad() = torch::zeros_like(parameter);
  }

  SeenPass pass(const Pass& given) {
    make_gradients();
    wait_for_device();
    live_->forget_peak();
    const auto live_before = live_->live();
    const double forward_before_s = clock_.seen().forward_seconds;
    arrivals_.begin();
    const auto begun = steady_clock::now();
    learner_.pass(given.batch, given.first_sample, std::max<std::int64_t>(1, given.weight));
    wait_for_device();
    const double all_s = since(begun);
    // The host is ahead of a GPU: what it saw of forward says nothing.
    constexpr double kForwardShare = 1.0 / 3;
    const double forward_s =
        device_.is_cpu() ? clock_.seen().forward_seconds - forward_before_s : kForwardShare * all_s;
    highest_live_ = std::max(highest_live_, live_->peak());
    // What it has left for later passes, as in a cache, is none of its activations.
    const auto staying = std::max(live_before, live_->live());
    seen_ = {.forward_s = forward_s,
             .backward_s = all_s - forward_s,
             .activation_bytes = static_cast<double>(live_->peak() - staying)};
    return seen_;
  }

  /// The second pass of a step: the first one makes room and chooses kernels.
  SeenPass step(const std::vector<Pass>& passes) {
    SeenPass second;
    for (const auto& given : passes) second = pass(given);
    const auto begun = steady_clock::now();
    learner_.update(/*lr=*/0, std::max<std::int64_t>(1, passes.front().weight));
    wait_for_device();
    update_s_.push_back(since(begun));
    return second;
  }

  void measure_memory() {
    const auto one = pass(passes_of(1).front());
    const std::int64_t micro_batch = request_.plan.micro_batch;
    probe_.activation_bytes = one.activation_bytes;
    if (micro_batch == 1) return;
    const auto two = pass(passes_of(2).front());
    probe_.samples = 2;
    scale(one, two, micro_batch);
  }

  void measure_time() {
    const auto begun = steady_clock::now();
    const std::int64_t micro_batch = request_.plan.micro_batch;
    const auto one = step(passes_of(1));
    const auto many = static_cast<double>(micro_batch);
    const double step_s = kPassesOfStep * (one.forward_s + one.backward_s) * many;
    const double left_s = request_.seconds_max - since(begun);
    const bool is_small = static_cast<double>(live_->live()) + one.activation_bytes * many <=
                          kMemoryShareMax * request_.memory_bytes;
    update_s_.clear();
    if (micro_batch > 1 && (step_s > left_s || !is_small)) {
      probe_.samples = 2;
      scale(one, step(passes_of(2)), micro_batch);
      set_update();
      return;
    }
    probe_.samples = micro_batch;
    repeat(passes_of(micro_batch), begun);
  }

  void repeat(const std::vector<Pass>& passes, steady_clock::time_point begun) {
    std::vector<double> forward_s, backward_s;
    for (int turn = 0; turn < kStepsMax; ++turn) {
      const auto turned = steady_clock::now();
      const auto second = step(passes);
      forward_s.push_back(second.forward_s);
      backward_s.push_back(second.backward_s);
      probe_.activation_bytes = std::max(probe_.activation_bytes, second.activation_bytes);
      if (since(begun) + since(turned) > request_.seconds_max) break;
    }
    probe_.compute = {.forward_s = median(forward_s), .backward_s = median(backward_s)};
    set_update();
    use_peak_of_gpu();
  }

  static double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
  }
  void set_update() { probe_.compute.update_s = median(update_s_); }

  /// A line through passes of one and of two samples.
  void scale(const SeenPass& one, const SeenPass& two, std::int64_t samples) {
    const auto at = [more = static_cast<double>(samples - 1)](double first, double second) {
      return first + std::max(0.0, second - first) * more;
    };
    probe_.activation_bytes = at(one.activation_bytes, two.activation_bytes);
    if (!request_.measures_time) return;
    probe_.compute.forward_s = at(one.forward_s, two.forward_s);
    probe_.compute.backward_s = at(one.backward_s, two.backward_s);
  }

  void use_peak_of_gpu() {
    const auto peak = peak_tensor_bytes(device_);
    if (!peak) return;
    const double state = state_bytes(request_);
    probe_.activation_bytes = std::max(0.0, static_cast<double>(*peak) - state);
  }

  std::vector<Gradient> gradients() const {
    std::vector<Gradient> gradients;
    std::size_t parameter = 0;
    for (const auto& spec : specs_) {
      if (spec.kind != TensorKind::trained) continue;
      const double arrived_s = arrivals_.seconds()[parameter++] - seen_.forward_s;
      const double share = arrived_s / std::max(seen_.backward_s, 1e-9);
      // One that has not come at all is complete when backward is over.
      const bool has_come = arrived_s > 0 && device_.is_cpu();
      gradients.push_back(
          {.shape = spec.shape, .ready = has_come ? std::clamp(share, 0.0, 1.0) : 1.0});
    }
    std::ranges::stable_sort(gradients, {}, &Gradient::ready);
    return gradients;
  }

  const PassProbeRequest& request_;
  const double resident_before_;
  std::shared_ptr<LiveBytes> live_;
  c10::DebugInfoGuard profiled_;
  const TrainPlan plan_;
  const at::Device device_;
  const std::vector<TensorSpec> specs_;
  PhaseClock clock_;
  std::unique_ptr<Communicator> communicator_;
  Learner learner_;
  std::vector<at::Tensor> parameters_;
  Arrivals arrivals_;
  SeenPass seen_;  // the last one
  std::vector<double> update_s_;
  std::int64_t highest_live_ = 0;
  PassProbe probe_;
};

}  // namespace

Result<PassProbe> probe_passes(const PassProbeRequest& request) {
  const auto activations = of_one_sample(request).activation_bytes;
  const double bytes = state_bytes(request) + activations.value_or(0);
  if (bytes > kMemoryShareMax * request.memory_bytes)
    return Error{.code = Code::unavailable,
                 .message = "a pass here would take " + bytes_text(bytes) +
                            (activations ? " with one sample" : " for the model alone") + ", and " +
                            bytes_text(request.memory_bytes) + " are free",
                 .subject = {}};
  return Prober(request).measure();
}

double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double all = 0, resident = 0;
  if (!(file >> all >> resident)) return 0;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

}  // namespace tj::trainer
