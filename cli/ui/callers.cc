#include "cli/ui/callers.h"

#include <algorithm>
#include <vector>

#include "cli/plain_text.h"
#include "cli/ui/gate.h"

namespace tj::ui {
namespace {

constexpr std::size_t kEndedMax = 64;

/// RFC 6750, section 2.1: b64token.
bool is_bearer_token(const std::string& text) {
  constexpr std::string_view kMarks = "-._~+/=";
  return !text.empty() && text.size() <= Callers::kTokenBytesMax &&
         std::ranges::all_of(text, [&](char c) {
           const bool is_letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
           return is_letter || (c >= '0' && c <= '9') || kMarks.find(c) != std::string_view::npos;
         });
}

}  // namespace

Callers::Callers(boost::asio::io_context& loop, MakeApi make_api, CallersOptions options)
    : loop_(loop),
      make_api_(std::move(make_api)),
      options_(std::move(options)),
      alarm_(loop, options_.now) {
  sweep_later();
}

void Callers::sweep_later() {
  const auto every = std::min<std::chrono::milliseconds>(kSweepEvery, options_.check_every);
  alarm_.set_after("sweep", every, [this] {
    sweep();
    sweep_later();
  });
}

void Callers::sign_in(const Claim& claim, Done done) {
  if (!is_bearer_token(claim.token))
    return done(Error{Code::invalid,
                      "this is no bearer token: it has other characters, none, or too many",
                      "",
                      {}});
  if (checks_.size() >= kChecksMax)
    return done(Error{Code::unavailable, "too many sign in at once: try again", "", {}});
  const auto number = ++last_number_;
  KubeApi& api = *(checks_[number] = make_api_(claim.token));
  ask_who_we_are(api,
                 [this, number, claim, done = std::move(done)](const Result<std::string>& user) {
                   if (user) return take(number, claim, *user, done);
                   destroy_later(std::move(checks_.extract(number).mapped()));
                   tell("refused: " + describe(user.error()));
                   done(user.error());
                 });
}

void Callers::take(unsigned long long number, const Claim& claim, const std::string& user,
                   const Done& done) {
  auto api = std::move(checks_.extract(number).mapped());
  if (claim.is_of_a_header) {
    if (Caller* known = find_by_token(claim.token)) {  // by another request of the same moment
      destroy_later(std::move(api));
      return done(SignedIn{known, ""});
    }
  }
  const std::string session = claim.is_of_a_header ? "" : random_token();
  if (session.empty() && !claim.is_of_a_header) {
    destroy_later(std::move(api));
    return done(Error{Code::internal, "the system gives no random numbers", "", {}});
  }
  make_room(user);
  const SteadyTime now = alarm_.now();
  Entry entry{.token = claim.is_of_a_header ? claim.token : "",
              .session = session,
              .caller = std::make_unique<Caller>(loop_, std::move(api), user, claim.ns),
              .began = now,
              .seen = now,
              .checked = now};
  Caller* const caller = entry.caller.get();
  callers_.emplace(number, std::move(entry));
  tell("signed in: " + user);
  done(SignedIn{caller, session});
}

void Callers::make_room(const std::string& user) {
  std::vector<Entries::iterator> all, own;
  for (auto entry = callers_.begin(); entry != callers_.end(); ++entry) {
    all.push_back(entry);
    if (entry->second.caller->user() == user) own.push_back(entry);
  }
  const auto longest_idle = [](const std::vector<Entries::iterator>& of) {
    return *std::ranges::min_element(of, {}, [](auto entry) { return entry->second.seen; });
  };
  if (own.size() >= kOfOneUserMax)
    end(longest_idle(own), "you have signed in too often elsewhere");
  else if (all.size() >= kCallersMax)
    end(longest_idle(all), "there was no room for all who have signed in");
}

/// A few comparisons of the whole secret: none is found by the time that it takes.
Callers::Entries::iterator Callers::found(const std::string& secret, std::string Entry::*member) {
  if (secret.empty()) return callers_.end();
  return std::ranges::find_if(callers_, [&](const auto& numbered) {
    return equal_in_constant_time(numbered.second.*member, secret);
  });
}

Caller* Callers::find(const std::string& session) {
  return seen_now(found(session, &Entry::session));
}

Caller* Callers::find_by_token(const std::string& token) {
  return seen_now(found(token, &Entry::token));
}

Caller* Callers::seen_now(Entries::iterator entry) {
  if (entry == callers_.end()) return nullptr;
  const SteadyTime now = alarm_.now();
  entry->second.seen = now;
  const auto trouble = std::min<std::chrono::milliseconds>(kCheckInTrouble, options_.check_every);
  if (entry->second.caller->has_problem() && now - entry->second.checked >= trouble)
    check_again(entry);
  return entry->second.caller.get();
}

std::string Callers::why_ended(const std::string& session) const {
  const auto known =
      std::ranges::find(ended_, session, &std::pair<std::string, std::string>::first);
  return known == ended_.end() ? "" : known->second;
}

void Callers::sign_out(const std::string& session) {
  const auto entry = found(session, &Entry::session);
  if (entry != callers_.end()) end(entry, "you have signed out");
}

void Callers::sweep() {
  const SteadyTime now = alarm_.now();
  for (auto next = callers_.begin(); next != callers_.end();) {
    const auto entry = next++;
    if (now - entry->second.seen > kIdleMax)
      end(entry, "nobody has looked at it for 30 minutes");
    else if (now - entry->second.began > kLifeMax)
      end(entry, "it has lasted for 12 hours");
    else if (now - entry->second.checked >= options_.check_every)
      check_again(entry);
  }
}

/// A server that can't be asked is asked again at the next sweep.
void Callers::check_again(Entries::iterator entry) {
  if (std::exchange(entry->second.is_being_checked, true)) return;
  const auto number = entry->first;
  ask_who_we_are(entry->second.caller->api(), [this, number](const Result<std::string>& user) {
    const auto still = callers_.find(number);
    if (still == callers_.end()) return;
    still->second.is_being_checked = false;
    const bool is_refused = !user && user.error().code == Code::forbidden;
    if (is_refused) return end(still, "the cluster does not take your token any more");
    if (user) still->second.checked = alarm_.now();
  });
}

/// Not destroyed at once: we may be in a callback of its client.
void Callers::end(Entries::iterator entry, const std::string& why) {
  Entry over = std::move(callers_.extract(entry).mapped());
  tell("signed out: " + over.caller->user() + ": " + why);
  if (!over.session.empty()) ended_.emplace_back(over.session, why);
  if (ended_.size() > kEndedMax) ended_.pop_front();
  over.caller->end(why);
  destroy_later(std::move(over.caller));
}

template <typename T>
void Callers::destroy_later(std::unique_ptr<T> dead) {
  alarm_.later([dead = std::shared_ptr<T>(std::move(dead))] {});
}

void Callers::tell(const std::string& line) const {
  if (options_.tell) options_.tell(plain_line(line));
}

}  // namespace tj::ui
