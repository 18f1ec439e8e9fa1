#include "trainer/comm/reduce/coded_sum.h"

#include <torch/types.h>

namespace tj::trainer {
namespace {

std::byte* data_of(const at::Tensor& tensor) {
  return static_cast<std::byte*>(tensor.mutable_data_ptr());
}

std::size_t at_rank(int rank) { return static_cast<std::size_t>(rank); }

/// Where a row's bytes begin in each of `tensors`.
std::vector<const std::byte*> places(std::span<const at::Tensor> tensors, std::size_t offset) {
  std::vector<const std::byte*> all;
  for (const auto& tensor : tensors)
    all.push_back(static_cast<const std::byte*>(tensor.const_data_ptr()) + offset);
  return all;
}

}  // namespace

RowPart CodedSum::part(const SumRow& row, int rank) const {
  if (is_of_two()) return {.begin = 0, .end = row.values.size()};
  const auto ranks = at_rank(wire_.world_size());
  return part_of(row.values.size(), (at_rank(rank) + row.first_rank) % ranks, ranks);
}

std::size_t CodedSum::elements_of(int rank) const {
  std::size_t elements = 0;
  for (const auto& row : rows_) elements += part(row, rank).size();
  return elements;
}

at::Tensor CodedSum::bytes_of(int rank) const {
  std::size_t bytes = 0;
  for (const auto& row : rows_) bytes += codec_.bytes_of(part(row, rank).size());
  return torch::empty({static_cast<std::int64_t>(bytes)}, at::kByte);
}

void CodedSum::encode_for(int rank, const at::Tensor& bytes, float factor) const {
  auto* place = data_of(bytes);
  for (const auto& row : rows_) {
    const auto of_rank = part(row, rank);
    encode_row(codec_, of_rank.of(row.values), factor, of_rank.of(row.errors), place);
    place += codec_.bytes_of(of_rank.size());
  }
}

void CodedSum::decode_from(std::span<const at::Tensor> encoded, int rank) const {
  std::size_t offset = 0;
  for (const auto& row : rows_) {
    const auto of_rank = part(row, rank);
    decode_sum(codec_, places(encoded, offset), of_rank.of(row.values));
    offset += codec_.bytes_of(of_rank.size());
  }
}

void CodedSum::start(std::vector<SumRow> rows, float factor) {
  rows_ = std::move(rows);
  const int own = wire_.rank();
  for (int rank = 0; rank < wire_.world_size(); ++rank) {
    received_.push_back(bytes_of(own));
    encoded_.push_back(is_of_two() && rank == own ? at::Tensor() : bytes_of(rank));
    if (!encoded_.back().defined()) continue;
    encode_for(rank, encoded_.back(), factor);
    if (rank != own) wire_.count_elements(static_cast<std::int64_t>(elements_of(rank)));
  }
  // What a rank keeps is what it has sent, where all have everything.
  received_[at_rank(own)] = encoded_[at_rank(is_of_two() ? 1 - own : own)];
  first_ = wire_.begin(
      tag_, [this](int peer) { return encoded_[at_rank(peer)]; },
      [this](int peer) { return received_[at_rank(peer)]; });
}

void CodedSum::finish() {
  first_.wait_received();
  if (is_of_two()) return decode_from(received_, wire_.rank());
  add_own_parts();
  const int own = wire_.rank();
  wire_.count_elements(static_cast<std::int64_t>(elements_of(own)) * (wire_.world_size() - 1));
  second_ = wire_.begin(
      tag_ + 1, [&](int) { return sums_[at_rank(own)]; },
      [this](int peer) { return sums_[at_rank(peer)]; });
  second_.wait_received();
  for (int rank = 0; rank < wire_.world_size(); ++rank)
    if (rank != own) decode_from({&sums_[at_rank(rank)], 1}, rank);
}

void CodedSum::add_own_parts() {
  const int own = wire_.rank();
  for (int rank = 0; rank < wire_.world_size(); ++rank) sums_.push_back(bytes_of(rank));
  std::size_t offset = 0;
  for (const auto& row : rows_) {
    const auto mine = part(row, own);
    decode_and_encode_sum(codec_, places(received_, offset), mine.of(row.values),
                          mine.of(row.errors), data_of(sums_[at_rank(own)]) + offset);
    offset += codec_.bytes_of(mine.size());
  }
}

void CodedSum::wait_sent() {
  first_.wait_sent();
  second_.wait_sent();
}

}  // namespace tj::trainer
