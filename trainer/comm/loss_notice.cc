#include "trainer/comm/loss_notice.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

namespace tj::trainer {
namespace {
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr const char* kKey = "lost";
constexpr milliseconds kPollEvery{10};
constexpr milliseconds kTellMax{750};  // a frozen rank never answers

LossNotice notice_of(const std::string& text) {
  const auto document = nlohmann::json::parse(text);
  return {.rank = document.at("rank").get<int>(),
          .reason = document.at("reason").get<std::string>(),
          .message = document.at("message").get<std::string>()};
}

std::string known_key(int rank) { return "told/" + std::to_string(rank); }

}  // namespace

LossNotice settle_loss(c10d::Store& store, const LossNotice& mine) {
  const nlohmann::json document = {
      {"rank", mine.rank}, {"reason", mine.reason}, {"message", mine.message}};
  const std::string text = document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const std::vector<std::uint8_t> nothing, bytes(text.begin(), text.end());
  const auto decided = store.compareSet(kKey, nothing, bytes);
  return notice_of({decided.begin(), decided.end()});
}

std::optional<LossNotice> settled_loss(c10d::Store& store) {
  if (!store.check({kKey})) return std::nullopt;
  return notice_of(store.get_to_str(kKey));
}

void acknowledge_loss(c10d::Store& store, int rank, int world_size) {
  store.set(known_key(rank), std::vector<std::uint8_t>{1});
  if (rank != 0) return;
  std::vector<std::string> keys;
  for (int other = 1; other < world_size; ++other) keys.push_back(known_key(other));
  const auto end = steady_clock::now() + kTellMax;
  while (!store.check(keys) && steady_clock::now() < end) std::this_thread::sleep_for(kPollEvery);
}

}  // namespace tj::trainer
