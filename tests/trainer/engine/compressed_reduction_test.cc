// Gradients through each codec between ranks that are threads, over real connections: what the mean
// is, that all ranks have the same, what is owed, and what must not be lost.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <barrier>
#include <cmath>

#include "tests/trainer/engine/gloo_ranks.h"
#include "tests/trainer/engine/gpt2_run.h"
#include "trainer/comm/reduce/reduce_memory.h"
#include "trainer/train/learner.h"
#include "trainer/train/reduction_state.h"

namespace tj::trainer {
namespace {

constexpr Codec kCodecs[] = {Codec::bf16, Codec::fp16, Codec::int8, Codec::powersgd};
/// The last one is ready first, and fills a bucket.
const std::vector<std::vector<std::int64_t>> kShapes{{90, 70}, {7}, {1}, {600, 500}};

/// Parameters whose gradients a test says.
class Gradients {
 public:
  Gradients(Communicator& communicator, const ReduceOptions& options) : comm_(communicator) {
    for (std::size_t i = 0; i < kShapes.size(); ++i) {
      parameters.push_back(torch::zeros(kShapes[i], at::TensorOptions().requires_grad(true)));
      names_.push_back("p" + std::to_string(i));
    }
    memory.emplace(parameters, names_, options);
    memory->steps = kPowerSgdExactSteps;
    sync_ = comm_.synchronise(parameters, names_,
                              {.bucket_bytes = 4096, .reduce = options, .memory = &*memory});
  }

  /// The mean over the ranks of what each gives, in one row.
  at::Tensor mean_of(const std::vector<at::Tensor>& gradients) {
    for (const auto& parameter : parameters)
      if (parameter.grad().defined()) parameter.mutable_grad().zero_();
    sync_->before_last_pass();
    auto loss = torch::zeros({});
    for (std::size_t i = 0; i < gradients.size(); ++i)
      loss = loss + (parameters[i] * gradients[i]).sum();
    sync_->before_backward(loss);
    loss.backward();
    // As in a training a collective follows: nobody leaves before all have what it has sent.
    (void)sum_over_ranks(comm_, {1});
    std::vector<at::Tensor> rows;
    for (const auto& parameter : parameters) rows.push_back(parameter.grad().flatten());
    return at::cat(rows);
  }
  std::optional<double> take_cosine() { return sync_->take_cosine(); }

  at::Tensor errors() const {
    std::vector<at::Tensor> rows;
    for (const auto& entry : memory->entries())
      if (entry.error.defined()) rows.push_back(entry.error);
    return rows.empty() ? torch::zeros({0}) : at::cat(rows);
  }

  std::vector<at::Tensor> parameters;
  std::optional<ReduceMemory> memory;

 private:
  Communicator& comm_;
  std::vector<std::string> names_;
  std::unique_ptr<GradientSync> sync_;
};

/// What a rank has in a step: a part that all have, and its own.
std::vector<at::Tensor> gradients_of(int rank, std::int64_t step) {
  auto common = at::detail::createCPUGenerator(static_cast<std::uint64_t>(step) + 1000);
  auto own = at::detail::createCPUGenerator(static_cast<std::uint64_t>(10 * step + rank));
  std::vector<at::Tensor> gradients;
  for (const auto& shape : kShapes) {
    auto of_all = torch::randn({shape[0]}, common);
    if (shape.size() > 1) of_all = at::outer(of_all, torch::randn({shape[1]}, common));
    gradients.push_back(of_all + 0.3 * torch::randn(shape, own));
  }
  return gradients;
}

at::Tensor row_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> rows;
  for (const auto& tensor : tensors) rows.push_back(tensor.flatten());
  return at::cat(rows);
}

at::Tensor exact_mean(int ranks, std::int64_t step) {
  auto sum = row_of(gradients_of(0, step)).to(at::kDouble);
  for (int rank = 1; rank < ranks; ++rank) sum += row_of(gradients_of(rank, step));
  return sum / ranks;
}

double cosine_of(const at::Tensor& one, const at::Tensor& other) {
  const auto left = one.to(at::kDouble), right = other.to(at::kDouble);
  return (left.dot(right) / left.norm() / right.norm()).item<double>();
}

/// Of the same on all ranks, that of rank 0.
class OnAllRanks {
 public:
  explicit OnAllRanks(int ranks) : of_(static_cast<std::size_t>(ranks)) {}
  void set(int rank, const at::Tensor& tensor) {
    of_[static_cast<std::size_t>(rank)] = tensor.clone();
  }
  at::Tensor get() const {
    for (const auto& tensor : of_)
      EXPECT_EQ(std::memcmp(tensor.const_data_ptr(), of_[0].const_data_ptr(), tensor.nbytes()), 0)
          << "all ranks have the same bits";
    return of_[0];
  }

 private:
  std::vector<at::Tensor> of_;
};

double loss_max(Codec codec) {
  switch (codec) {
    case Codec::bf16: return 0.01;
    case Codec::fp16: return 0.001;
    case Codec::int8: return 0.04;
    default: return 1;
  }
}

TEST(CompressedReduction, is_the_mean_but_for_what_the_codec_may_lose) {
  for (const int ranks : {2, 3}) {
    for (const Codec codec : kCodecs) {
      OnAllRanks mean(ranks);
      on_gloo_ranks(ranks, [&](Communicator& communicator, PhaseClock&) {
        Gradients gradients(communicator, {.codec = codec});
        // The second backward has other buckets than the first.
        for (std::int64_t step = 0; step < 3; ++step)
          mean.set(communicator.rank(), gradients.mean_of(gradients_of(communicator.rank(), step)));
      });
      const auto wanted = exact_mean(ranks, 2);
      const auto lost =
          (mean.get() - wanted).abs().max().item<double>() / wanted.abs().max().item<double>();
      SCOPED_TRACE(std::string(to_string(codec)) + " on " + std::to_string(ranks) + " ranks");
      if (codec != Codec::powersgd) {
        EXPECT_LT(lost, loss_max(codec));
        EXPECT_GT(lost, 0) << "there was a codec at all";
      }
      EXPECT_GT(cosine_of(mean.get(), wanted), codec == Codec::powersgd ? 0.8 : 0.999);
    }
  }
}

TEST(CompressedReduction, what_is_given_and_what_is_owed_are_all_that_there_was) {
  constexpr std::int64_t kSteps = 12;
  for (const int ranks : {2, 3}) {
    for (const Codec codec : {Codec::int8, Codec::powersgd}) {
      at::Tensor given, owed;
      std::mutex mutex;
      on_gloo_ranks(ranks, [&](Communicator& communicator, PhaseClock&) {
        Gradients gradients(communicator, {.codec = codec});
        at::Tensor sum;
        for (std::int64_t step = 0; step < kSteps; ++step) {
          const auto mean =
              gradients.mean_of(gradients_of(communicator.rank(), step)).to(at::kDouble);
          sum = sum.defined() ? sum + mean : mean;
        }
        const std::scoped_lock lock(mutex);
        given = sum;
        const auto errors = gradients.errors().to(at::kDouble);
        owed = owed.defined() ? owed + errors : errors;
      });
      auto wanted = exact_mean(ranks, 0);
      for (std::int64_t step = 1; step < kSteps; ++step) wanted += exact_mean(ranks, step);
      EXPECT_LT((given + owed - wanted).abs().max().item<double>(), 1e-4)
          << to_string(codec) << " on " << ranks << " ranks";
      EXPECT_GT(owed.abs().max().item<double>(), 1e-4);
    }
  }
}

TEST(CompressedReduction, what_is_not_finite_comes_out_so_and_is_not_remembered) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const int ranks : {2, 3}) {
    for (const Codec codec : kCodecs) {
      for (const double bad : {kInfinity, std::numeric_limits<double>::quiet_NaN()}) {
        for (const std::size_t tensor : {0, 1}) {
          on_gloo_ranks(ranks, [&](Communicator& communicator, PhaseClock&) {
            const int rank = communicator.rank();
            Gradients gradients(communicator, {.codec = codec});
            (void)gradients.mean_of(gradients_of(rank, 0));
            auto own = gradients_of(rank, 1);
            if (rank == 1) own[tensor].flatten()[5].fill_(bad);
            EXPECT_FALSE(at::isfinite(gradients.mean_of(own)).all().item<bool>());
            EXPECT_TRUE(at::isfinite(gradients.errors()).all().item<bool>());
            EXPECT_TRUE(at::isfinite(gradients.mean_of(gradients_of(rank, 2))).all().item<bool>())
                << to_string(codec) << ": the next step is well again";
          });
        }
      }
    }
  }
}

TEST(CompressedReduction, counts_the_bytes_that_it_sends) {
  const std::int64_t elements = 90 * 70 + 7 + 1 + 600 * 500;
  const std::int64_t of_factors = 2 * (90 + 70 + 600 + 500) + 7 + 1;
  for (const Codec codec : kCodecs) {
    on_gloo_ranks(2, [&](Communicator& communicator, PhaseClock&) {
      Gradients gradients(communicator, {.codec = codec, .rank = 2});
      (void)gradients.mean_of(gradients_of(communicator.rank(), 0));
      const auto before = communicator.volume();
      (void)gradients.mean_of(gradients_of(communicator.rank(), 1));
      const auto after = communicator.volume();
      const auto bytes = after.bytes_sent - before.bytes_sent;
      if (codec == Codec::powersgd) {
        EXPECT_EQ(bytes, of_factors * 4);
        EXPECT_EQ(after.elements_sent - before.elements_sent, of_factors);
      } else {
        EXPECT_GE(bytes, elements * (codec == Codec::int8 ? 1 : 2));
        EXPECT_LT(bytes, elements * (codec == Codec::int8 ? 101 : 202) / 100);
        EXPECT_EQ(after.elements_sent - before.elements_sent, elements);
      }
    });
  }
}

TEST(CompressedReduction, is_compared_with_the_exact_gradient_when_that_is_due) {
  for (const int ranks : {2, 3}) {
    for (const Codec codec : kCodecs) {
      on_gloo_ranks(ranks, [&](Communicator& communicator, PhaseClock&) {
        Gradients gradients(communicator, {.codec = codec, .check_every = 3});
        gradients.memory->steps = 3 * kPowerSgdExactSteps;
        for (std::int64_t step = 1; step <= 6; ++step) {
          const auto mean = gradients.mean_of(gradients_of(communicator.rank(), step));
          const auto cosine = gradients.take_cosine();
          EXPECT_EQ(cosine.has_value(), step % 3 == 0) << step;
          if (cosine) {
            EXPECT_NEAR(*cosine, cosine_of(mean, exact_mean(ranks, step)), 1e-6);
          }
          EXPECT_FALSE(gradients.take_cosine()) << "once";
        }
      });
    }
  }
}

TEST(CompressedReduction, one_that_is_given_up_pays_at_once_and_is_exact_from_then_on) {
  for (const int ranks : {2, 3}) {
    for (const Codec codec : {Codec::int8, Codec::powersgd}) {
      at::Tensor owed;
      std::mutex mutex;
      on_gloo_ranks(ranks, [&](Communicator& communicator, PhaseClock&) {
        const int rank = communicator.rank();
        Gradients gradients(communicator, {.codec = codec, .check_every = 1});
        (void)gradients.mean_of(gradients_of(rank, 0));
        {
          const std::scoped_lock lock(mutex);
          owed = owed.defined() ? owed + gradients.errors() : gradients.errors().clone();
        }
        (void)sum_over_ranks(communicator, {1});  // all have told what they owe
        gradients.memory->is_exact = true;
        const auto first = gradients.mean_of(gradients_of(rank, 1));
        EXPECT_LT((first - exact_mean(ranks, 1) - owed).abs().max().item<double>(), 1e-5);
        EXPECT_EQ(gradients.errors().abs().max().item<double>(), 0);
        const auto second = gradients.mean_of(gradients_of(rank, 2));
        EXPECT_LT((second - exact_mean(ranks, 2)).abs().max().item<double>(), 1e-6);
        EXPECT_FALSE(gradients.take_cosine()) << "there is nothing to compare";
      });
    }
  }
}

TEST(CompressedReduction, a_peer_that_goes_away_is_told_by_backward) {
  for (const Codec codec : {Codec::int8, Codec::powersgd}) {
    std::atomic<int> lost = 0;
    std::barrier<> is_ready(3);
    on_rank_threads(3, [&, store = c10::make_intrusive<c10d::HashStore>()](int rank) {
      PhaseClock clock;
      auto communicator = join_gloo(store, rank, 3, clock);
      auto gradients = std::make_unique<Gradients>(*communicator, ReduceOptions{.codec = codec});
      (void)gradients->mean_of(gradients_of(rank, 0));
      is_ready.arrive_and_wait();
      if (rank == 1) {  // its sockets close
        gradients.reset();
        communicator.reset();
        return;
      }
      try {
        (void)gradients->mean_of(gradients_of(rank, 1));
      } catch (const std::exception& failure) {
        EXPECT_THROW(communicator->check_peers(failure), PeerLostError) << failure.what();
        ++lost;
      }
    });
    EXPECT_EQ(lost, 2) << to_string(codec);
  }
}

TEST(CompressedReduction, ends_though_the_others_never_come) {
  on_gloo_ranks(2, [&](Communicator& communicator, PhaseClock&) {
    auto gradients = std::make_unique<Gradients>(communicator, ReduceOptions{.codec = Codec::int8});
    for (const std::int64_t step : {0, 1})  // the second one cuts the buckets anew, together
      (void)gradients->mean_of(gradients_of(communicator.rank(), step));
    if (communicator.rank() == 0) {
      // Its backward fails when it has handed a bucket over.
      gradients->parameters.front().register_hook(
          [](const at::Tensor&) -> at::Tensor { throw std::runtime_error("no memory"); });
      EXPECT_THROW((void)gradients->mean_of(gradients_of(0, 2)), std::runtime_error);
      gradients.reset();
    }
    (void)sum_over_ranks(communicator, {1});  // rank 1 comes only now
  });
}

Gpt2Run run_of(Flags flags, int ranks) {
  flags.insert({{"--data", "/text"},
                {"--out", "/out"},
                {"--threads", "1"},
                {"--layers", "2"},
                {"--width", "64"},
                {"--heads", "2"},
                {"--seq-len", "16"},
                {"--batch-size", "12"}});
  auto run = gpt2_run(flags, ranks);
  TORCH_CHECK(run, run ? "" : describe(run.error()));
  return std::move(*run);
}

/// As in text, the token before says of which kind the next one is, and chance says which.
at::Tensor tokens_of(const Gpt2Run& run, std::int64_t step, int rank) {
  auto generator =
      at::detail::createCPUGenerator(static_cast<std::uint64_t>(100 * step + rank) + 5);
  const auto context = run.workload.config().context + 1;
  const auto first = torch::randint(0, 4, {run.plan.micro_batch, 1}, generator, torch::kInt64);
  const auto which =
      torch::randint(0, 4, {run.plan.micro_batch, context}, generator, torch::kInt64);
  return 4 * which + (first + torch::arange(context)).remainder(4);
}

struct Trained {
  double loss = 0;  // of the last steps
  at::Tensor weights;
};

Trained trained(const Flags& flags, int ranks, std::int64_t steps) {
  const auto run = run_of(flags, ranks);
  Trained result;
  OnAllRanks weights(ranks);
  on_gloo_ranks(ranks, [&](Communicator& communicator, PhaseClock& clock) {
    Learner learner(run.plan, run.workload, communicator, clock);
    learner.begin();
    const auto targets = run.plan.batch_size * run.workload.config().context;
    for (std::int64_t step = 0; step < steps; ++step) {
      learner.pass({tokens_of(run, step, communicator.rank())}, 0, targets);
      const auto outcome = learner.update(2e-3, targets);
      if (communicator.rank() == 0 && step >= steps - 5) result.loss += outcome.loss / 5;
    }
    std::vector<at::Tensor> all;
    for (const auto& named : learner.state().model) all.push_back(named.tensor);
    weights.set(communicator.rank(), row_of(all).detach());
  });
  result.weights = weights.get();
  return result;
}

TEST(CompressedReduction, trains_as_the_exact_one_does) {
  constexpr std::int64_t kSteps = 60;
  for (const int ranks : {2, 3}) {
    const auto exact = trained({}, ranks, kSteps);
    EXPECT_LT(exact.loss, 2) << "ln 16 is 2.77 and ln 4 is 1.39: it has learned";
    for (const Codec codec : kCodecs) {
      const auto coded = trained({{"--reduce", to_string(codec)}}, ranks, kSteps);
      std::printf("%d ranks, %s: loss %.4f, exact %.4f\n", ranks, to_string(codec), coded.loss,
                  exact.loss);
      EXPECT_NEAR(coded.loss / exact.loss, 1, 0.01) << to_string(codec) << " on " << ranks;
      EXPECT_FALSE(coded.weights.equal(exact.weights)) << "there was a codec at all";
    }
  }
}

TEST(CompressedReduction, an_overflow_of_fp16_leaves_weights_and_memory_well) {
  for (const Codec codec : kCodecs) {
    const auto run = run_of({{"--reduce", to_string(codec)}, {"--precision", "fp16"}}, 2);
    on_gloo_ranks(2, [&](Communicator& communicator, PhaseClock& clock) {
      Learner learner(run.plan, run.workload, communicator, clock);
      learner.begin();
      learner.go_on_reducing({}, kPowerSgdExactSteps);
      const auto targets = run.plan.batch_size * run.workload.config().context;
      const auto step = [&](std::int64_t number) {
        learner.pass({tokens_of(run, number, communicator.rank())}, 0, targets);
        return learner.update(1e-3, targets);
      };
      learner.loss_scale().scale = 1024;
      EXPECT_TRUE(step(0).is_applied);
      learner.loss_scale().scale = std::ldexp(1.0, 120);
      EXPECT_FALSE(step(1).is_applied) << to_string(codec);
      for (const auto& named : learner.state().reduction)
        EXPECT_TRUE(at::isfinite(named.tensor).all().item<bool>()) << named.name;
      learner.loss_scale().scale = 1024;
      EXPECT_TRUE(step(2).is_applied) << to_string(codec);
    });
  }
}

TEST(ReduceMemory, errors_follow_the_scale_of_the_gradients) {
  const auto run = run_of({{"--reduce", "int8"}, {"--precision", "fp16"}}, 2);
  on_gloo_ranks(2, [&](Communicator& communicator, PhaseClock& clock) {
    Learner learner(run.plan, run.workload, communicator, clock);
    auto error = learner.state().reduction.front().tensor;
    error.fill_(3);
    learner.loss_scale().scale = 512;
    learner.go_on_reducing({.ranks = 2, .scale = 1024}, 5);
    EXPECT_TRUE(error.eq(1.5).all().item<bool>());
    EXPECT_EQ(learner.reduction(), (ReductionMark{.ranks = 2, .scale = 512}));
  });
}

/// What ranks 0, 1, ... of a checkpoint owed of each element: 1, 10, 100, ... times its number.
TensorReader reader_of_rows() {
  return [](const TensorTarget& target) -> Result<void> {
    const std::int64_t elements = target.shape.at(1);
    for (std::size_t i = 0; i < target.floats.size(); ++i) {
      const auto at = target.begin + static_cast<std::int64_t>(i);
      target.floats[i] =
          static_cast<float>(std::pow(10.0, at / elements)) * static_cast<float>(at % elements);
    }
    return {};
  };
}

TEST(ReduceMemory, errors_of_other_ranks_are_shared_out_and_their_sum_stays) {
  const std::vector<float> of_saved{1, 11, 111, 1111};
  for (const int ranks : {1, 2, 3, 4}) {
    for (const int saved : {1, 2, 3, 4}) {
      const auto run = run_of({{"--reduce", "int8"}}, ranks);
      for (const int readers : {1, ranks}) {
        on_gloo_ranks(ranks, [&](Communicator& communicator, PhaseClock& clock) {
          Learner learner(run.plan, run.workload, communicator, clock);
          const auto tensors = learner.state().reduction;
          const auto failure =
              load_reduction(communicator, {.ranks = saved}, run.plan.reduce, tensors,
                             [&](const std::vector<NamedTensor>& of) -> std::optional<Failure> {
                               EXPECT_TRUE(fill(communicator, of, reader_of_rows(), readers));
                               return std::nullopt;
                             });
          EXPECT_FALSE(failure);
          const auto factor =
              saved == ranks
                  ? static_cast<float>(std::pow(10.0, communicator.rank()))
                  : of_saved[static_cast<std::size_t>(saved - 1)] / static_cast<float>(ranks);
          for (const auto& named : tensors) {
            const auto wanted = torch::arange(named.tensor.numel(), at::kFloat) * factor;
            EXPECT_TRUE(torch::allclose(named.tensor, wanted))
                << named.name << " of " << saved << " on " << ranks << " ranks";
          }
        });
      }
    }
  }
}

TEST(ReduceMemory, a_single_rank_pays_what_several_have_left_it) {
  const auto run = run_of({{"--reduce", "int8"}}, 1);
  const auto communicator = make_single_communicator();
  PhaseClock clock;
  const auto targets = run.plan.batch_size * run.workload.config().context;
  const auto norm_with = [&](double owed) {
    Learner learner(run.plan, run.workload, *communicator, clock);
    for (const auto& named : learner.state().reduction) named.tensor.fill_(owed);
    learner.go_on_reducing({.ranks = 2}, 5);
    learner.begin();
    learner.pass({tokens_of(run, 0, 0)}, 0, targets);
    const double norm = learner.update(1e-3, targets).gradient_norm;
    for (const auto& named : learner.state().reduction)
      EXPECT_TRUE(named.tensor.eq(0).all().item<bool>()) << named.name;
    return norm;
  };
  const double parameters = static_cast<double>(trained_elements(run.workload.tensors()));
  EXPECT_LT(norm_with(0), 100);
  EXPECT_NEAR(norm_with(1000) / (1000 * std::sqrt(parameters)), 1, 0.01);
}

}  // namespace
}  // namespace tj::trainer
