#include "trainer/comm/reduce/coded_sum.h"

#include <torch/types.h>

namespace tj::trainer {
namespace {

std::byte* data_of(const at::Tensor& tensor) {
  return static_cast<std::byte*>(tensor.mutable_data_ptr());
}

std::vector<const std::byte*> pointers(const std::vector<at::Tensor>& tensors) {
  std::vector<const std::byte*> all;
  for (const auto& tensor : tensors)
    all.push_back(static_cast<const std::byte*>(tensor.const_data_ptr()));
  return all;
}

std::size_t at_rank(int rank) { return static_cast<std::size_t>(rank); }

}  // namespace

at::Tensor CodedSum::bytes(std::size_t elements) const {
  return torch::empty({static_cast<std::int64_t>(codec_.bytes_of(elements))}, at::kByte);
}

RowPart CodedSum::part(int rank) const {
  return part_of(values_.size(), at_rank(rank), at_rank(wire_.world_size()));
}

void CodedSum::start(std::span<float> values, float factor, ErrorRow errors) {
  values_ = values;
  errors_ = std::move(errors);
  wire_.world_size() == 2 ? start_whole(factor) : start_parts(factor);
}

void CodedSum::finish() { wire_.world_size() == 2 ? finish_whole() : finish_parts(); }

void CodedSum::wait_sent() {
  first_.wait_sent();
  second_.wait_sent();
}

void CodedSum::start_whole(float factor) {
  encoded_.push_back(bytes(values_.size()));
  received_.push_back(bytes(values_.size()));
  encode_row(codec_, values_, factor, errors_, 0, data_of(encoded_.front()));
  wire_.count_elements(static_cast<std::int64_t>(values_.size()));
  first_ = wire_.begin(
      tag_, [this](int) { return encoded_.front(); }, [this](int) { return received_.front(); });
}

void CodedSum::finish_whole() {
  first_.wait_received();
  std::vector<at::Tensor> in_order{encoded_.front(), received_.front()};
  if (wire_.rank() == 1) std::swap(in_order.front(), in_order.back());
  decode_sum(codec_, pointers(in_order), values_);
}

void CodedSum::start_parts(float factor) {
  const auto own = part(wire_.rank());
  for (int rank = 0; rank < wire_.world_size(); ++rank) {
    const auto of_rank = part(rank);
    encoded_.push_back(bytes(of_rank.size()));
    received_.push_back(bytes(own.size()));
    encode_row(codec_, values_.subspan(of_rank.begin, of_rank.size()), factor, errors_,
               of_rank.begin, data_of(encoded_.back()));
    if (rank != wire_.rank()) wire_.count_elements(static_cast<std::int64_t>(of_rank.size()));
  }
  received_[at_rank(wire_.rank())] = encoded_[at_rank(wire_.rank())];
  first_ = wire_.begin(
      tag_, [this](int peer) { return encoded_[at_rank(peer)]; },
      [this](int peer) { return received_[at_rank(peer)]; });
}

void CodedSum::finish_parts() {
  first_.wait_received();
  for (int rank = 0; rank < wire_.world_size(); ++rank) sums_.push_back(bytes(part(rank).size()));
  const auto own = part(wire_.rank());
  const auto& sum = sums_[at_rank(wire_.rank())];
  decode_and_encode_sum(codec_, pointers(received_), values_.subspan(own.begin, own.size()),
                        errors_, own.begin, data_of(sum));
  wire_.count_elements(static_cast<std::int64_t>(own.size()) * (wire_.world_size() - 1));
  second_ = wire_.begin(
      tag_ + 1, [&](int) { return sum; }, [this](int peer) { return sums_[at_rank(peer)]; });
  second_.wait_received();
  for (int rank = 0; rank < wire_.world_size(); ++rank) {
    if (rank == wire_.rank()) continue;
    const auto of_rank = part(rank);
    const std::byte* const encoded[] = {
        static_cast<const std::byte*>(sums_[at_rank(rank)].const_data_ptr())};
    decode_sum(codec_, encoded, values_.subspan(of_rank.begin, of_rank.size()));
  }
}

}  // namespace tj::trainer
