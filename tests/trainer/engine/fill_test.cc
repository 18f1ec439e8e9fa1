// How a start reads: each rank some of the tensors, beside each other, and every rank gets all.
#include <gtest/gtest.h>

#include "tests/trainer/engine/gloo_ranks.h"
#include "trainer/checkpoint/training_state.h"

namespace tj::trainer {
namespace {

constexpr int kRanks = 3;
constexpr std::int64_t kTensors = 8;
constexpr std::int64_t kElements = 10;

/// Every second tensor is in parts, of which the last rank has none.
std::vector<NamedTensor> tensors_of(int rank) {
  const std::vector<ElementRange> parts{{0, 7}, {7, kElements}, {kElements, kElements}};
  std::vector<NamedTensor> tensors;
  for (std::int64_t index = 0; index < kTensors; ++index) {
    const auto part = parts[static_cast<std::size_t>(rank)];
    const bool is_whole = index % 2 == 0;
    const auto size = is_whole ? kElements : part.size();
    tensors.push_back({.name = "t" + std::to_string(index),
                       .tensor = size > 0 ? torch::zeros({size}) : at::Tensor(),
                       .shape = {kElements}});
    if (!is_whole) tensors.back().parts = parts;
  }
  return tensors;
}

struct Reads {
  std::mutex mutex;
  std::map<std::string, std::vector<int>> by;  // name -> ranks that have read it
};

TensorReader reader_of(int rank, Reads& reads, const std::string& bad = "") {
  return [rank, &reads, bad](const TensorTarget& target) -> Result<void> {
    const std::lock_guard lock(reads.mutex);
    reads.by[target.name].push_back(rank);
    if (target.name == bad)
      return Error{.code = Code::invalid, .message = "is damaged", .subject = target.name};
    const auto base = 100.0F * std::stof(target.name.substr(1));
    for (std::size_t i = 0; i < target.floats.size(); ++i)
      target.floats[i] = base + static_cast<float>(i);
    return {};
  };
}

void expect_filled(const std::vector<NamedTensor>& tensors, int rank) {
  for (std::size_t index = 0; index < tensors.size(); ++index) {
    if (!tensors[index].tensor.defined()) continue;
    const auto& parts = tensors[index].parts;
    const auto begin = parts.empty() ? 0 : parts[static_cast<std::size_t>(rank)].begin;
    const auto wanted = torch::arange(tensors[index].tensor.numel()) +
                        100 * static_cast<std::int64_t>(index) + begin;
    EXPECT_TRUE(tensors[index].tensor.equal(wanted.to(at::kFloat))) << tensors[index].name;
  }
}

TEST(Fill, each_rank_reads_its_share_once_and_all_get_all) {
  for (const int readers : {1, 2, kRanks}) {
    Reads reads;
    on_gloo_ranks(kRanks, [&](Communicator& communicator, PhaseClock&) {
      const int rank = communicator.rank();
      const auto tensors = tensors_of(rank);
      EXPECT_TRUE(fill(communicator, tensors, reader_of(rank, reads), readers));
      expect_filled(tensors, rank);
    });
    for (std::int64_t index = 0; index < kTensors; ++index)
      EXPECT_EQ(reads.by["t" + std::to_string(index)],
                std::vector<int>{static_cast<int>(index % readers)})
          << readers << " readers";
  }
}

TEST(Fill, a_rank_that_can_not_read_holds_nobody_up_and_knows_it) {
  Reads reads;
  on_gloo_ranks(kRanks, [&](Communicator& communicator, PhaseClock&) {
    const int rank = communicator.rank();
    const auto tensors = tensors_of(rank);
    const auto filled = fill(communicator, tensors, reader_of(rank, reads, "t1"), kRanks);
    EXPECT_EQ(filled.ok(), rank != 1);
    EXPECT_EQ(filled ? "" : describe(filled.error()), rank == 1 ? "t1: is damaged" : "");
  });
  EXPECT_EQ(reads.by.count("t4"), 0U) << "nothing is read after a failure";
}

}  // namespace
}  // namespace tj::trainer
