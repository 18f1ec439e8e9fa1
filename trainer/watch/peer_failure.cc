#include "trainer/watch/peer_failure.h"

#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

namespace tj::trainer {
namespace {
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr const char* kKey = "lost";
constexpr milliseconds kPollEvery{10};

std::string text_of(const PeerFailure& failure) {
  const nlohmann::json document = {{"rank", failure.rank},
                                   {"reason", failure.reason},
                                   {"message", failure.message},
                                   {"absent", failure.absent}};
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

PeerFailure failure_of(const std::string& text) {
  const auto document = nlohmann::json::parse(text);
  return {.rank = document.at("rank").get<int>(),
          .reason = document.at("reason").get<std::string>(),
          .message = document.at("message").get<std::string>(),
          .absent = document.at("absent").get<int>()};
}

std::string heard_key(int rank) { return "told/" + std::to_string(rank); }

}  // namespace

PeerFailure KnownPeerFailure::settle(c10d::Store& store, const PeerFailure& mine) {
  const std::string text = text_of(mine);
  const std::vector<std::uint8_t> nothing, bytes(text.begin(), text.end());
  const auto decided = store.compareSet(kKey, nothing, bytes);
  return remember(failure_of({decided.begin(), decided.end()}));
}

std::optional<PeerFailure> KnownPeerFailure::ask(c10d::Store& store) {
  if (auto failure = known()) return failure;
  if (!store.check({kKey})) return std::nullopt;
  return remember(failure_of(store.get_to_str(kKey)));
}

std::optional<PeerFailure> KnownPeerFailure::known() const {
  const std::scoped_lock lock(mutex_);
  return known_;
}

PeerFailure KnownPeerFailure::remember(const PeerFailure& failure) {
  const std::scoped_lock lock(mutex_);
  known_ = failure;
  return failure;
}

void KnownPeerFailure::acknowledge(c10d::Store& store) {
  const auto failure = known();
  store.set(heard_key(rank_), std::vector<std::uint8_t>{1});
  if (rank_ != 0) return;
  std::vector<std::string> keys;
  for (int other = 1; other < world_size_; ++other) {
    if (!failure || other != failure->absent) keys.push_back(heard_key(other));
  }
  if (keys.empty()) return;
  const auto end = steady_clock::now() + kHearMax;
  while (!store.check(keys) && steady_clock::now() < end) std::this_thread::sleep_for(kPollEvery);
}

}  // namespace tj::trainer
