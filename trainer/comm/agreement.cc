#include "trainer/comm/agreement.h"

#include <torch/types.h>

#include <cstring>

#include "contract/utf8.h"

namespace tj::trainer {
namespace {
constexpr std::int64_t kTextBytesMax = 2048;  // reason, newline, message; cut there

at::Tensor text_tensor(const std::string& text) {
  auto tensor = torch::zeros({kTextBytesMax}, torch::kUInt8);
  const auto kept = utf8_prefix(text, static_cast<std::size_t>(kTextBytesMax - 1));
  std::memcpy(tensor.data_ptr(), kept.data(), kept.size());
  return tensor;
}

}  // namespace

std::optional<Failure> agree(Communicator& communicator, const std::optional<Failure>& mine) {
  if (communicator.world_size() == 1) return mine;
  auto codes = torch::zeros({communicator.world_size()}, torch::kInt64);
  if (mine) codes[communicator.rank()] = mine->exit_code;
  communicator.all_reduce_sum(codes);
  const std::span all(codes.data_ptr<std::int64_t>(),
                      static_cast<std::size_t>(communicator.world_size()));
  const auto first = std::ranges::find_if(all, [](std::int64_t code) { return code != 0; });
  if (first == all.end()) return std::nullopt;
  const int rank = static_cast<int>(first - all.begin());
  auto text = text_tensor(mine ? mine->reason + "\n" + mine->message : "");
  communicator.broadcast(text, rank);
  if (mine) return mine;
  const std::string words(static_cast<const char*>(text.data_ptr()));
  const auto line_end = words.find('\n');
  return Failure{.exit_code = static_cast<int>(*first),
                 .reason = words.substr(0, line_end),
                 .message = communicator.named(rank) + ": " + words.substr(line_end + 1)};
}

std::vector<double> sum_over_ranks(Communicator& communicator, const std::vector<double>& mine) {
  if (communicator.world_size() == 1) return mine;
  auto tensor = torch::tensor(mine, torch::kFloat64);
  communicator.all_reduce_sum(tensor);
  const auto* const sums = tensor.data_ptr<double>();
  return {sums, sums + mine.size()};
}

std::string shared_text(Communicator& communicator, const std::string& text, int root) {
  if (communicator.world_size() == 1) return text;
  auto length = torch::tensor({static_cast<std::int64_t>(text.size())}, torch::kInt64);
  communicator.broadcast(length, root);
  auto bytes = torch::zeros({length.item<std::int64_t>()}, torch::kUInt8);
  if (bytes.numel() == 0) return "";
  if (communicator.rank() == root) std::memcpy(bytes.data_ptr(), text.data(), text.size());
  communicator.broadcast(bytes, root);
  return {static_cast<const char*>(bytes.data_ptr()), static_cast<std::size_t>(bytes.numel())};
}

}  // namespace tj::trainer
