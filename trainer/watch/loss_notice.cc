#include "trainer/watch/loss_notice.h"

#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

namespace tj::trainer {
namespace {
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr const char* kKey = "lost";
constexpr milliseconds kPollEvery{10};

std::string text_of(const LossNotice& notice) {
  const nlohmann::json document = {{"rank", notice.rank},
                                   {"reason", notice.reason},
                                   {"message", notice.message},
                                   {"absent", notice.absent}};
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

LossNotice notice_of(const std::string& text) {
  const auto document = nlohmann::json::parse(text);
  return {.rank = document.at("rank").get<int>(),
          .reason = document.at("reason").get<std::string>(),
          .message = document.at("message").get<std::string>(),
          .absent = document.at("absent").get<int>()};
}

std::string heard_key(int rank) { return "told/" + std::to_string(rank); }

}  // namespace

LossNotice KnownLoss::settle(c10d::Store& store, const LossNotice& mine) {
  const std::string text = text_of(mine);
  const std::vector<std::uint8_t> nothing, bytes(text.begin(), text.end());
  const auto decided = store.compareSet(kKey, nothing, bytes);
  return remember(notice_of({decided.begin(), decided.end()}));
}

std::optional<LossNotice> KnownLoss::ask(c10d::Store& store) {
  if (auto notice = known()) return notice;
  if (!store.check({kKey})) return std::nullopt;
  return remember(notice_of(store.get_to_str(kKey)));
}

std::optional<LossNotice> KnownLoss::known() const {
  const std::scoped_lock lock(mutex_);
  return known_;
}

LossNotice KnownLoss::remember(const LossNotice& notice) {
  const std::scoped_lock lock(mutex_);
  known_ = notice;
  return notice;
}

void KnownLoss::acknowledge(c10d::Store& store) {
  const auto notice = known();
  store.set(heard_key(rank_), std::vector<std::uint8_t>{1});
  if (rank_ != 0) return;
  std::vector<std::string> keys;
  for (int other = 1; other < world_size_; ++other) {
    if (!notice || other != notice->absent) keys.push_back(heard_key(other));
  }
  if (keys.empty()) return;
  const auto end = steady_clock::now() + kHearMax;
  while (!store.check(keys) && steady_clock::now() < end) std::this_thread::sleep_for(kPollEvery);
}

}  // namespace tj::trainer
