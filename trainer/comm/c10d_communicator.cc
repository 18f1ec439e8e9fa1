#include "trainer/comm/c10d_communicator.h"

#include <torch/types.h>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <cstdlib>
#include <functional>
#include <limits>
#include <type_traits>

#include "trainer/comm/lost_peer.h"
#include "trainer/comm/nccl_words.h"
#include "trainer/comm/reduce/coded_reduction.h"
#include "trainer/comm/tree_all_reduce.h"
#include "trainer/values/failure.h"

namespace tj::trainer {
namespace {

constexpr int kExchangeTag = 1;
constexpr int kFirstCollectiveTag = 2;  // of all_gather and reduce_scatter, which overlap
constexpr std::int64_t kCollectiveTags = 1 << 16;
/// The watchdog ends a wait, by the limits of the rank that is waited for; a library that gave up
/// before would end those who rightly wait. As long as fits into poll()'s milliseconds.
constexpr std::chrono::hours kCollectiveTimeout{24 * 24};
static_assert(std::chrono::milliseconds(kCollectiveTimeout).count() <=
              std::numeric_limits<int>::max());

/// torch's flight recorder keeps a list of collectives that nobody here reads, and puts each new
/// process group into an unguarded map (FlightRecorderDetail.hpp, recordWithResetEnabled: torch
/// 2.11): two ranks in one process, as in tests, damage it. Before main() no thread reads the
/// environment.
[[maybe_unused]] const bool kIsFlightRecorderOff =
    ::setenv("TORCH_FR_BUFFER_SIZE", "0", /*overwrite=*/0) == 0;

class ReducerSync final : public GradientSync {
 public:
  /// `before_step` is called at the beginning of each; `coded` is null for the exact reduction.
  ReducerSync(std::shared_ptr<c10d::Reducer> reducer, bool leaves_unused,
              std::function<void()> before_step, std::shared_ptr<CodedReduction> coded)
      : reducer_(std::move(reducer)),
        leaves_unused_(leaves_unused),
        before_step_(std::move(before_step)),
        coded_(std::move(coded)) {
    if (!leaves_unused) return;
    // The search for unused parameters asks the logger without a look whether there is one.
    logger_ = std::make_shared<c10d::Logger>(reducer_);
    reducer_->set_logger(logger_);
  }
  void before_last_pass() override {
    before_step_();
    reducer_->rebuild_buckets();  // once, after the first backward has shown the order of gradients
    reducer_->prepare_for_forward();
  }
  void before_backward(const at::Tensor& loss) override {
    // With what it is given it looks for parameters that no path leads to.
    reducer_->prepare_for_backward(leaves_unused_ ? std::vector{loss} : std::vector<at::Tensor>());
  }

  std::optional<double> take_cosine() override {
    return coded_ ? coded_->take_cosine() : std::nullopt;
  }

 private:
  std::shared_ptr<c10d::Reducer> reducer_;
  std::shared_ptr<c10d::Logger> logger_;
  bool leaves_unused_;
  std::function<void()> before_step_;
  std::shared_ptr<CodedReduction> coded_;
};

class C10dCommunicator final : public Communicator {
 public:
  C10dCommunicator(const c10::intrusive_ptr<c10d::Store>& store, Peers peers,
                   const C10dOptions& options)
      : options_(options), peers_(std::move(peers)), store_(store), gloo_(open_gloo(store)) {
    open_groups();
  }
  /// Split off `of`; `options` have the place among `ranks`, which are of that one.
  C10dCommunicator(const c10::intrusive_ptr<c10d::Store>& store, C10dCommunicator& of,
                   std::span<const int> ranks, const C10dOptions& options)
      : options_(options),
        split_off_(&of),
        ranks_(ranks.begin(), ranks.end()),
        store_(store),
        gloo_(open_gloo(store)) {
    open_groups();
  }
  ~C10dCommunicator() override {
    if (nccl_) unfollow(nccl_.get());
  }

  int rank() const override { return options_.rank; }
  int world_size() const override { return options_.world_size; }
  std::string named(int rank) const override {
    return peers_ ? peers_->named(rank) : split_off_->named(ranks_[static_cast<std::size_t>(rank)]);
  }

  void all_reduce_sum(at::Tensor& tensor) override {
    count(tensor.numel(), tensor.element_size(), 2);
    std::vector<at::Tensor> tensors{tensor};
    const auto timed = options_.clock->collective("all-reduce");
    wait([&] { return backend_of(tensor).allreduce(tensors, c10d::AllreduceOptions()); });
  }

  std::unique_ptr<Pending> begin_all_reduce_sum(at::Tensor& tensor) override {
    count(tensor.numel(), tensor.element_size(), 2);
    std::vector<at::Tensor> tensors{tensor};
    return pending("all-reduce", {started([&] { return beside(tensor).allreduce(tensors); })});
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
    const auto timed = options_.clock->wait_for("exchange");
    std::vector<at::Tensor> outgoing{out}, incoming{in};
    const auto is_empty = [](const at::Tensor& tensor) { return tensor.numel() == 0; };
    add_sent(out.numel(), static_cast<std::int64_t>(out.nbytes()));
    // Both are under way before either is waited for, or two ranks would wait for each other.
    const auto sent = is_empty(out)
                          ? nullptr
                          : started([&] { return gloo_->send(outgoing, peer, kExchangeTag); });
    if (!is_empty(in)) wait([&] { return gloo_->recv(incoming, peer, kExchangeTag); });
    if (sent) wait([&] { return sent; });
  }

  std::unique_ptr<Pending> all_gather(const at::Tensor& mine, at::Tensor& whole) override {
    const at::NoGradGuard no_grad;
    count(whole.numel(), whole.element_size(), 1);
    if (whole.is_cuda()) {
      auto input = mine;
      return pending("all-gather", {started([&] { return nccl_->_allgather_base(whole, input); })});
    }
    auto rows = rows_of(whole);
    auto& own = rows[static_cast<std::size_t>(rank())];
    if (own.data_ptr() != mine.data_ptr()) own.copy_(mine);
    return pending("all-gather",
                   with_all_peers([&](int) { return own; },
                                  [&](int peer) { return rows[static_cast<std::size_t>(peer)]; }));
  }

  std::unique_ptr<Pending> reduce_scatter(const at::Tensor& whole, at::Tensor& mine) override {
    const at::NoGradGuard no_grad;
    count(whole.numel(), whole.element_size(), 1);
    // Sums of another type, wider than what is sent, NCCL doesn't have.
    if (whole.is_cuda() && whole.scalar_type() == mine.scalar_type()) {
      auto input = whole;
      return pending("reduce-scatter",
                     {started([&] { return nccl_->_reduce_scatter_base(mine, input); })});
    }
    auto place = torch::empty_like(whole);
    auto received = rows_of(place);
    const auto rows = rows_of(whole);
    std::vector<WorkPtr> works;
    if (whole.is_cuda()) {
      std::vector<std::int64_t> even;
      auto input = whole;
      works.push_back(started([&] { return nccl_->alltoall_base(place, input, even, even); }));
    } else {
      works = with_all_peers([&](int peer) { return rows[static_cast<std::size_t>(peer)]; },
                             [&](int peer) { return received[static_cast<std::size_t>(peer)]; });
    }
    received[static_cast<std::size_t>(rank())] = rows[static_cast<std::size_t>(rank())];
    return pending("reduce-scatter", std::move(works),
                   [received, mine]() mutable { tree_sum(received, mine); });
  }

  CommVolume volume() const override {
    auto volume = volume_;
    const auto coded = coded_.lock();
    if (!coded) return volume;
    volume.elements_sent += coded->volume().elements_sent;
    volume.bytes_sent += coded->volume().bytes_sent;
    return volume;
  }

  std::unique_ptr<Communicator> split(std::span<const int> ranks) override {
    const auto own = std::ranges::find(ranks, rank());
    TORCH_CHECK(own != ranks.end(), "a rank splits off what it is in");
    // Lists that are made together have no rank in common: their first ones tell them apart.
    const auto store = c10::make_intrusive<c10d::PrefixStore>(
        "split/" + std::to_string(splits_++) + "/" + std::to_string(ranks.front()), store_);
    auto options = options_;
    options.rank = static_cast<int>(own - ranks.begin());
    options.world_size = static_cast<int>(ranks.size());
    if (options.world_size == 1) return make_single_communicator();
    return started(
        [&] { return std::make_unique<C10dCommunicator>(store, *this, ranks, options); });
  }

  std::unique_ptr<GradientSync> synchronise(const std::vector<at::Tensor>& parameters,
                                            std::span<const std::string> names,
                                            const SyncOptions& options) override {
    const std::vector<bool> sparse(parameters.size(), false);
    auto [buckets, limits] =
        c10d::compute_bucket_assignment_by_size(parameters,
                                                {static_cast<std::size_t>(kFirstBucketBytes),
                                                 static_cast<std::size_t>(options.bucket_bytes)},
                                                sparse);
    // Gradients become ready from the last layer to the first.
    std::reverse(buckets.begin(), buckets.end());
    std::unordered_map<std::size_t, std::string> names_by_index;
    for (std::size_t index = 0; index < names.size(); ++index) names_by_index[index] = names[index];
    std::int64_t elements = 0;
    for (const auto& parameter : parameters) elements += parameter.numel();
    auto reducer = std::make_shared<c10d::Reducer>(
        parameters, buckets, group_, sparse, options.bucket_bytes, options.leaves_unused,
        /*gradient_as_bucket_view=*/true, names_by_index, kFirstBucketBytes,
        /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false,
        std::vector<std::int64_t>{});
    const auto coded = coded_reduction(*reducer, options);
    return std::make_unique<ReducerSync>(
        std::move(reducer), options.leaves_unused,
        [this, elements, coded] {
          if (!coded) return count(elements, sizeof(float), 2);
          coded->begin_step();
        },
        coded);
  }

  void check_peers(const std::exception& failure) override {
    if (!means_lost_peer(failure)) return;
    if (!peers_) return split_off_->check_peers(failure);
    // Of NCCL's text all: its cause does not stand in the first line.
    throw PeerLostError(peers_->describe_failure(
        is_of_nccl(failure.what()) ? failure.what() : cause_of(failure), options_.clock->seen()));
  }

  void finish() noexcept override {
    if (peers_) peers_->part();
  }

 private:
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  class PendingWorks final : public Pending {
   public:
    PendingWorks(C10dCommunicator& owner, const char* name, std::vector<WorkPtr> works,
                 std::function<void()> then)
        : owner_(owner), name_(name), works_(std::move(works)), then_(std::move(then)) {}
    void wait() override {
      const auto timed = owner_.options_.clock->collective(name_);
      for (const auto& work : works_) owner_.wait([&] { return work; });
      if (then_) then_();
      then_ = nullptr;  // lets go of its buffers
    }

   private:
    C10dCommunicator& owner_;
    const char* name_;
    std::vector<WorkPtr> works_;
    std::function<void()> then_;
  };

  std::unique_ptr<Pending> pending(const char* name, std::vector<WorkPtr> works,
                                   std::function<void()> then = {}) {
    return std::make_unique<PendingWorks>(*this, name, std::move(works), std::move(then));
  }

  /// world_size equal slices.
  std::vector<at::Tensor> rows_of(const at::Tensor& whole) const {
    return whole.chunk(world_size());
  }

  /// Begins to send `out(peer)` to each peer and to fill `in(peer)` with what it sends. Gloo's own
  /// all-gather copies everything twice, and its reduce-scatter moves as much as an all-reduce.
  template <typename Out, typename In>
  std::vector<WorkPtr> with_all_peers(Out&& out, In&& in) {
    const int tag = kFirstCollectiveTag + static_cast<int>(tagged_collectives_++ % kCollectiveTags);
    std::vector<WorkPtr> works;
    for (int distance = 1; distance < world_size(); ++distance) {
      const int from = (rank() + distance) % world_size();
      const int to = (rank() - distance + world_size()) % world_size();
      std::vector<at::Tensor> outgoing{out(to)}, incoming{in(from)};
      works.push_back(started([&] { return gloo_->recv(incoming, from, tag); }));
      works.push_back(started([&] { return gloo_->send(outgoing, to, tag); }));
    }
    return works;
  }

  /// Null for the exact reduction, which is the Reducer's own.
  std::shared_ptr<CodedReduction> coded_reduction(c10d::Reducer& reducer,
                                                  const SyncOptions& options) {
    if (options.reduce.codec == Codec::fp32) return nullptr;
    TORCH_CHECK(options.memory != nullptr, "a compressed reduction has a memory");
    auto coded = std::make_shared<CodedReduction>(*gloo_, rank(), world_size(), options.reduce,
                                                  *options.memory);
    reducer.register_comm_hook(hook_of(coded));
    coded_ = coded;
    return coded;
  }

  /// `times` trips of a whole tensor of so many elements around the ring.
  void count(std::int64_t elements, std::int64_t bytes_each, int times) {
    const std::int64_t sent = elements * (world_size() - 1) / world_size() * times;
    add_sent(sent, sent * bytes_each);
  }

  void add_sent(std::int64_t elements, std::int64_t bytes) {
    volume_.elements_sent += elements;
    volume_.bytes_sent += bytes;
    if (split_off_ != nullptr) split_off_->add_sent(elements, bytes);
  }

  /// What the Reducer and the collectives go through, once Gloo is there.
  void open_groups() {
    group_ = c10::make_intrusive<c10d::ProcessGroup>(store_, options_.rank, options_.world_size);
    group_->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::GLOO, gloo_);
    group_->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
    if (options_.accelerator.plugin != nullptr) open_nccl(store_);
  }

  /// Connections of its own to all other ranks.
  c10::intrusive_ptr<c10d::ProcessGroupGloo> open_gloo(
      const c10::intrusive_ptr<c10d::Store>& store) const {
    auto gloo_options = c10d::ProcessGroupGloo::Options::create(kCollectiveTimeout);
    for (const auto& interface : options_.interfaces) {
      gloo_options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForInterface(interface));
    }
    if (gloo_options->devices.empty()) {
      gloo_options->devices.push_back(
          c10d::ProcessGroupGloo::createDeviceForHostname(options_.address));
    }
    return c10::make_intrusive<c10d::ProcessGroupGloo>(store, options_.rank, options_.world_size,
                                                       gloo_options);
  }

  /// What is large goes beside the rest: a small message would stand behind what of it waits in the
  /// same connection, on a slow wire for seconds.
  c10d::Backend& beside(const at::Tensor& tensor) {
    if (tensor.is_cuda()) return *nccl_;
    if (!gloo_beside_) {
      gloo_beside_ = open_gloo(c10::make_intrusive<c10d::PrefixStore>("beside", store_));
    }
    return *gloo_beside_;
  }

  void open_nccl(const c10::intrusive_ptr<c10d::Store>& store) {
    // Its keys in the store are not those of Gloo.
    nccl_store_ = c10::make_intrusive<c10d::PrefixStore>("nccl", store);
    const NcclGroup request{.store = nccl_store_.get(),
                            .rank = options_.rank,
                            .world_size = options_.world_size,
                            .device = options_.accelerator.device,
                            .timeout_ms = std::chrono::milliseconds(kCollectiveTimeout).count()};
    PluginText text;
    void* const backend = options_.accelerator.plugin->open_backend(&request, &text);
    if (backend == nullptr) throw NcclStartError(nccl_words(text.bytes));
    nccl_ = c10::intrusive_ptr<c10d::Backend>::reclaim(static_cast<c10d::Backend*>(backend));
    group_->setBackend(c10::DeviceType::CUDA, c10d::ProcessGroup::BackendType::NCCL, nccl_);
    follow(backend);
  }

  /// The clock counts the collectives of all backends together: they come in one order on all
  /// ranks.
  void follow(const void* backend) {
    if (split_off_ != nullptr) return split_off_->follow(backend);
    followed_.push_back(backend);
    tell_clock();
  }
  void unfollow(const void* backend) {
    if (split_off_ != nullptr) return split_off_->unfollow(backend);
    std::erase(followed_, backend);
    tell_clock();
  }
  void tell_clock() const {
    if (followed_.empty()) return options_.clock->follow_device({});
    options_.clock->follow_device([plugin = options_.accelerator.plugin, backends = followed_] {
      DeviceCollectives all;
      for (const auto* const backend : backends) {
        const NcclProgress progress = plugin->progress(backend);
        all.begun += progress.begun;
        all.ended += progress.ended;
      }
      return all;
    });
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
  std::invoke_result_t<Start> started(Start&& start) {
    try {
      return start();
    } catch (const std::exception& failure) {
      check_peers(failure);
      throw;
    }
  }

  C10dOptions options_;
  std::optional<Peers> peers_;             // none of what was split off
  C10dCommunicator* split_off_ = nullptr;  // of which this one was; it outlives this one
  std::vector<int> ranks_;                 // there; of that alone
  c10::intrusive_ptr<c10d::Store> store_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo_beside_;  // null until it is needed
  c10::intrusive_ptr<c10d::Store> nccl_store_;
  c10::intrusive_ptr<c10d::Backend> nccl_;  // null without a GPU
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  CommVolume volume_;
  std::weak_ptr<CodedReduction> coded_;  // the hook of a Reducer
  std::int64_t tagged_collectives_ = 0;
  std::int64_t splits_ = 0;
  std::vector<const void*> followed_;  // NCCL's backends; of what was not split off alone
};

}  // namespace

std::unique_ptr<Communicator> make_c10d_communicator(const c10::intrusive_ptr<c10d::Store>& store,
                                                     Peers peers, const C10dOptions& options) {
  return std::make_unique<C10dCommunicator>(store, std::move(peers), options);
}

}  // namespace tj::trainer
