#include "trainer/comm/gloo_communicator.h"

#include <torch/torch.h>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "trainer/train/failure.h"

namespace tj::trainer {
namespace {

constexpr std::int64_t kFirstBucketBytes = 1 << 20;  // as PyTorch's DistributedDataParallel
constexpr int kExchangeTag = 1;
constexpr std::chrono::minutes kCollectiveTimeout{10};  // others wait while rank 0 saves

class ReducerSync final : public GradientSync {
 public:
  explicit ReducerSync(std::shared_ptr<c10d::Reducer> reducer) : reducer_(std::move(reducer)) {}
  void before_last_pass() override {
    reducer_->rebuild_buckets();  // once, after the first backward has shown the order of gradients
    reducer_->prepare_for_forward();
    reducer_->prepare_for_backward({});
  }

 private:
  std::shared_ptr<c10d::Reducer> reducer_;
};

class GlooCommunicator final : public Communicator {
 public:
  GlooCommunicator(const c10::intrusive_ptr<c10d::Store>& store, Peers peers,
                   const GlooOptions& options)
      : options_(options), peers_(std::move(peers)) {
    auto gloo_options = c10d::ProcessGroupGloo::Options::create(kCollectiveTimeout);
    for (const auto& interface : options.interfaces) {
      gloo_options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForInterface(interface));
    }
    if (gloo_options->devices.empty()) {
      gloo_options->devices.push_back(
          c10d::ProcessGroupGloo::createDeviceForHostname(options.address));
    }
    gloo_ = c10::make_intrusive<c10d::ProcessGroupGloo>(store, options.rank, options.world_size,
                                                        gloo_options);
    group_ = c10::make_intrusive<c10d::ProcessGroup>(store, options.rank, options.world_size);
    group_->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::GLOO, gloo_);
    group_->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
    if (options.accelerator.plugin != nullptr) open_nccl(store);
  }

  int rank() const override { return options_.rank; }
  int world_size() const override { return options_.world_size; }

  void all_reduce_sum(at::Tensor& tensor) override {
    std::vector<at::Tensor> tensors{tensor};
    const auto timed = options_.clock->collective("all-reduce");
    wait([&] { return backend_of(tensor).allreduce(tensors, c10d::AllreduceOptions()); });
  }

  void broadcast(at::Tensor& tensor, int root) override {
    std::vector<at::Tensor> tensors{tensor};
    c10d::BroadcastOptions broadcast_options;
    broadcast_options.rootRank = root;
    const auto timed = options_.clock->collective("broadcast");
    wait([&] { return backend_of(tensor).broadcast(tensors, broadcast_options); });
  }

  void exchange(const at::Tensor& out, at::Tensor& in, int peer) override {
    if (out.is_cuda()) return exchange_through_host(out, in, peer);
    const auto timed = options_.clock->collective("exchange");
    std::vector<at::Tensor> outgoing{out}, incoming{in};
    const auto is_empty = [](const at::Tensor& tensor) { return tensor.numel() == 0; };
    // Both are under way before either is waited for, or two ranks would wait for each other.
    const auto sent = is_empty(out)
                          ? nullptr
                          : started([&] { return gloo_->send(outgoing, peer, kExchangeTag); });
    if (!is_empty(in)) wait([&] { return gloo_->recv(incoming, peer, kExchangeTag); });
    if (sent) wait([&] { return sent; });
  }

  std::unique_ptr<GradientSync> synchronise(const std::vector<at::Tensor>& parameters,
                                            std::span<const std::string> names) override {
    const std::vector<bool> sparse(parameters.size(), false);
    auto [buckets, limits] =
        c10d::compute_bucket_assignment_by_size(parameters,
                                                {static_cast<std::size_t>(kFirstBucketBytes),
                                                 static_cast<std::size_t>(kGradientBucketBytes)},
                                                sparse);
    // Gradients become ready from the last layer to the first.
    std::reverse(buckets.begin(), buckets.end());
    std::unordered_map<std::size_t, std::string> names_by_index;
    for (std::size_t index = 0; index < names.size(); ++index) names_by_index[index] = names[index];
    return std::make_unique<ReducerSync>(std::make_shared<c10d::Reducer>(
        parameters, buckets, group_, sparse, kGradientBucketBytes, /*find_unused_parameters=*/false,
        /*gradient_as_bucket_view=*/true, names_by_index, kFirstBucketBytes,
        /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false,
        std::vector<std::int64_t>{}));
  }

  void check_peers(const std::string& what) override {
    // Gloo throws plain texts; all of them carry its source path. NCCL's carry its name.
    const bool is_of_network =
        what.find("gloo/") != std::string::npos || what.find("NCCL") != std::string::npos;
    if (!is_of_network) return;
    throw PeerLostError(peers_.describe_loss(what));
  }

  void finish() noexcept override { peers_.part(); }

 private:
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  void open_nccl(const c10::intrusive_ptr<c10d::Store>& store) {
    // Its keys in the store are not those of Gloo.
    nccl_store_ = c10::make_intrusive<c10d::PrefixStore>("nccl", store);
    const NcclGroup request{.store = nccl_store_.get(),
                            .rank = options_.rank,
                            .world_size = options_.world_size,
                            .device = options_.accelerator.device,
                            .timeout_ms = std::chrono::milliseconds(kCollectiveTimeout).count()};
    NcclText text;
    void* const backend = options_.accelerator.plugin->open_backend(&request, &text);
    if (backend == nullptr) throw std::runtime_error(std::string("NCCL: ") + text.bytes);
    nccl_ = c10::intrusive_ptr<c10d::Backend>::reclaim(static_cast<c10d::Backend*>(backend));
    group_->setBackend(c10::DeviceType::CUDA, c10d::ProcessGroup::BackendType::NCCL, nccl_);
  }

  c10d::Backend& backend_of(const at::Tensor& tensor) const {
    return tensor.is_cuda() ? *nccl_ : static_cast<c10d::Backend&>(*gloo_);
  }

  /// Pairs of NCCL's sends and receives would each need an order of their own; this is right, and
  /// only --deterministic takes it.
  void exchange_through_host(const at::Tensor& out, at::Tensor& in, int peer) {
    auto incoming = torch::empty_like(in, at::TensorOptions().device(at::kCPU));
    exchange(out.cpu(), incoming, peer);
    in.copy_(incoming);
  }

  template <typename Start>
  void wait(Start&& start) {
    started([&] {
      const WorkPtr work = start();
      work->wait();
      return work;
    });
  }

  template <typename Start>
  WorkPtr started(Start&& start) {
    try {
      return start();
    } catch (const std::exception& failure) {
      check_peers(failure.what());
      throw;
    }
  }

  GlooOptions options_;
  Peers peers_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo_;
  c10::intrusive_ptr<c10d::Store> nccl_store_;
  c10::intrusive_ptr<c10d::Backend> nccl_;  // null without a GPU
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
};

}  // namespace

std::unique_ptr<Communicator> make_gloo_communicator(const c10::intrusive_ptr<c10d::Store>& store,
                                                     Peers peers, const GlooOptions& options) {
  return std::make_unique<GlooCommunicator>(store, std::move(peers), options);
}

}  // namespace tj::trainer
