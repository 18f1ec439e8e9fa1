// How a start reads (each rank some of the tensors, beside each other, and every rank gets all),
// and what of a sharded state each rank saves.
#include <gtest/gtest.h>

#include <algorithm>

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
      target.floats[i] = base + static_cast<float>(target.begin) + static_cast<float>(i);
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
    for (std::int64_t index = 0; index < kTensors; ++index) {
      auto& by = reads.by["t" + std::to_string(index)];
      std::ranges::sort(by);
      const bool is_read_in_parts = readers == kRanks && index % 2 == 1;
      EXPECT_EQ(by, is_read_in_parts ? std::vector<int>({0, 1})
                                     : std::vector<int>{static_cast<int>(index % readers)})
          << readers << " readers";
    }
  }
}

TEST(Fill, a_rank_that_can_not_read_holds_nobody_up_and_knows_it) {
  Reads reads;
  on_gloo_ranks(kRanks, [&](Communicator& communicator, PhaseClock&) {
    const int rank = communicator.rank();
    const auto tensors = tensors_of(rank);
    const auto filled = fill(communicator, tensors, reader_of(rank, reads, "t0"), kRanks);
    EXPECT_EQ(filled.ok(), rank != 0);
    EXPECT_EQ(filled ? "" : describe(filled.error()), rank == 0 ? "t0: is damaged" : "");
  });
  EXPECT_EQ(reads.by.count("t6"), 0U) << "nothing is read after a failure";
}

/// A weight that every rank has, and a moment in parts: of 7 and 3 elements, and none.
StateTensors sharded_state(int rank) {
  StateTensors state;
  const auto tensors = tensors_of(rank);
  state.model = {tensors[1]};
  state.model.front().whole = torch::ones({kElements});
  state.optimizer = {tensors[3]};
  return state;
}

struct Saved {
  std::string name;
  std::optional<int> holder;
  bool is_copied_here;
  bool is_gathered;
  bool operator==(const Saved&) const = default;
};

std::vector<Saved> saved_of(const StateGroup& group) {
  std::vector<Saved> saved;
  for (const auto& tensor : group.tensors)
    saved.push_back(
        {tensor.name, tensor.holder, tensor.copy_to != nullptr, tensor.send_to != nullptr});
  return saved;
}

TEST(StateGroups, each_rank_saves_the_slices_that_it_has_and_gathers_nothing) {
  on_gloo_ranks(kRanks, [&](Communicator& communicator, PhaseClock&) {
    const int rank = communicator.rank();
    const auto groups =
        state_groups(sharded_state(rank), communicator, /*all_write=*/true, nullptr);
    EXPECT_EQ(saved_of(groups[0]), (std::vector<Saved>{{"t1", std::nullopt, true, false}}));
    EXPECT_EQ(saved_of(groups[1]), (std::vector<Saved>{{"t3[0:7]", 0, rank == 0, false},
                                                       {"t3[7:10]", 1, rank == 1, false}}));
  });
}

/// Of two groups of two ranks, which each have all.
std::vector<NamedTensor> two_copies(int rank) {
  const std::vector<ElementRange> parts{{0, 7}, {7, kElements}, {0, 7}, {7, kElements}};
  const auto part = parts[static_cast<std::size_t>(rank)];
  std::vector<NamedTensor> tensors;
  for (const char* const name : {"t0", "t1", "t2"})
    tensors.push_back(
        {.name = name,
         .tensor = torch::arange(static_cast<float>(part.begin), static_cast<float>(part.end)),
         .shape = {kElements},
         .parts = parts,
         .ranks_of_a_copy = 2});
  return tensors;
}

TEST(StateGroups, of_copies_each_slice_is_saved_once_and_the_copies_take_turns) {
  on_gloo_ranks(4, [&](Communicator& communicator, PhaseClock&) {
    const int rank = communicator.rank();
    StateTensors state;
    state.model = state.optimizer = two_copies(rank);
    const auto groups = state_groups(state, communicator, /*all_write=*/true, nullptr);
    EXPECT_EQ(saved_of(groups[1]), (std::vector<Saved>{{"t0[0:7]", 0, rank == 0, false},
                                                       {"t0[7:10]", 1, rank == 1, false},
                                                       {"t1[0:7]", 2, rank == 2, false},
                                                       {"t1[7:10]", 3, rank == 3, false},
                                                       {"t2[0:7]", 0, rank == 0, false},
                                                       {"t2[7:10]", 1, rank == 1, false}}));
  });
}

TEST(StateGroups, a_writer_gathers_from_the_ranks_of_its_own_copy) {
  for (const int writer : {0, 3}) {
    on_gloo_ranks(4, [&](Communicator& communicator, PhaseClock&) {
      StateTensors state;
      state.model = two_copies(communicator.rank());
      const auto groups = state_groups(state, communicator, /*all_write=*/false, nullptr);
      const auto& tensor = groups[0].tensors[0];
      if (communicator.rank() != writer) return tensor.send_to(writer);
      std::vector<float> got(kElements);
      const auto sent_before = communicator.volume().elements_sent;
      tensor.copy_to(std::as_writable_bytes(std::span(got)));
      for (std::int64_t i = 0; i < kElements; ++i)
        EXPECT_EQ(got[static_cast<std::size_t>(i)], static_cast<float>(i));
      EXPECT_EQ(communicator.volume().elements_sent, sent_before);
    });
  }
}

TEST(Fill, all_copies_get_their_parts_whoever_reads) {
  for (const int readers : {1, 4}) {
    Reads reads;
    on_gloo_ranks(4, [&](Communicator& communicator, PhaseClock&) {
      const int rank = communicator.rank();
      const auto tensors = two_copies(rank);
      for (const auto& named : tensors) named.tensor.zero_();
      EXPECT_TRUE(fill(communicator, tensors, reader_of(rank, reads), readers));
      expect_filled(tensors, rank);
    });
  }
}

TEST(StateGroups, the_only_writer_gathers_what_others_have) {
  on_gloo_ranks(kRanks, [&](Communicator& communicator, PhaseClock&) {
    const auto groups = state_groups(sharded_state(communicator.rank()), communicator,
                                     /*all_write=*/false, nullptr);
    EXPECT_EQ(saved_of(groups[1]), (std::vector<Saved>{{"t3", std::nullopt, true, true}}));
  });
}

}  // namespace
}  // namespace tj::trainer
