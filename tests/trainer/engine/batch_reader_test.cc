#include "trainer/train/batch_reader.h"

#include <gtest/gtest.h>

#include <chrono>

#include "tests/temporary_folder.h"
#include "tests/trainer/data/token_bytes.h"
#include "trainer/workloads/gpt2/token_samples.h"

namespace tj::trainer {
namespace {

using Rows = std::vector<std::int32_t>;

/// Samples of eight tokens and the one that follows.
struct Data {
  explicit Data(const std::string& bytes) : path(folder.write("a.tok", bytes).string()) {}
  TemporaryFolder folder;
  std::string path;
  TokenSamples samples{std::move(*TokenSource::open({&path, 1}, "--data")), 8, {}};
};

std::string numbers(std::size_t count) {
  std::vector<std::uint64_t> tokens(count);
  for (std::size_t i = 0; i < count; ++i) tokens[i] = i;
  return our_file(tokens);
}

BatchOrder order_of(BatchShare share) { return {.seed = 7, .share = share, .batch_size = 12}; }

Rows take(BatchReader& reader, int batches) {
  Rows all;
  for (int i = 0; i < batches; ++i) {
    auto batch = reader.next();
    EXPECT_TRUE(batch) << describe(batch.error());
    if (!batch) continue;
    const HostTensor& tokens = batch->tensors.at(0);
    const auto* const first = reinterpret_cast<const std::int32_t*>(tokens.bytes.data());
    all.insert(all.end(), first, first + tokens.shape.at(0) * tokens.shape.at(1));
  }
  return all;
}

TEST(BatchReader, threads_change_nothing) {
  const Data data(numbers(1000));
  Rows first;
  for (const int threads : {1, 2, 5}) {
    BatchReader reader(data.samples, order_of({.micro_batch = 3, .passes = 4}), threads);
    const auto rows = take(reader, 40);
    if (threads == 1) first = rows;
    EXPECT_EQ(rows, first) << threads;
  }
  EXPECT_EQ(first.size(), 40U * 3 * 9);
  for (std::size_t i = 1; i < 9; ++i) EXPECT_EQ(first[i], first[0] + static_cast<int>(i));
}

TEST(BatchReader, ranks_share_out_what_one_rank_has_alone) {
  const Data data(numbers(1000));
  BatchReader alone(data.samples, order_of({.micro_batch = 12}), 1);
  BatchReader rank0(data.samples, order_of({.micro_batch = 3, .passes = 2, .rank = 0}), 2);
  BatchReader rank1(data.samples, order_of({.micro_batch = 3, .passes = 2, .rank = 1}), 2);
  const auto step = take(alone, 1);
  Rows shared;
  for (auto* const rank : {&rank0, &rank1}) {
    const auto rows = take(*rank, 2);
    shared.insert(shared.end(), rows.begin(), rows.end());
  }
  EXPECT_EQ(shared, step);
}

TEST(BatchReader, begins_anywhere) {
  const Data data(numbers(1000));
  auto order = order_of({.micro_batch = 12});
  BatchReader whole(data.samples, order, 2);
  const auto rows = take(whole, 30);
  order.next_sample = 12 * 20;
  BatchReader later(data.samples, order, 2);
  EXPECT_EQ(take(later, 10), Rows(rows.begin() + 20 * 12 * 9, rows.end()));
}

TEST(BatchReader, gives_early_only_what_it_has_read) {
  const Data data(numbers(1000));
  const auto order = order_of({.micro_batch = 12});
  BatchReader reader(data.samples, order, 2);
  BatchReader early(data.samples, order, 2);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (int number = 0; number < 20; ++number) {
    auto batch = early.next_if_ready();
    while (!batch && std::chrono::steady_clock::now() < end) batch = early.next_if_ready();
    ASSERT_TRUE(batch && *batch);
    EXPECT_EQ((*batch)->first_sample, reader.next()->first_sample);
  }
}

TEST(BatchReader, damage_is_an_error_in_its_turn) {
  std::string bytes = numbers(1000);
  bytes[kTokenHeaderBytes + 100] ^= 1;
  const Data data(bytes);
  BatchReader reader(data.samples, order_of({.micro_batch = 3, .passes = 4}), 2);
  const auto batch = reader.next();
  ASSERT_FALSE(batch);
  EXPECT_EQ(batch.error().code, Code::invalid);
  EXPECT_EQ(batch.error().subject, data.path);
}

TEST(BatchReader, ends_while_its_threads_are_ahead) {
  const Data data(numbers(1000));
  for (int i = 0; i < 50; ++i)
    const BatchReader reader(data.samples, order_of({.micro_batch = 1, .passes = 12}), 4);
}

}  // namespace
}  // namespace tj::trainer
