// Who is signed in to the page of `tj serve`. A token is checked with the API server before
// anything is kept of it, lies in memory only, and is asked about again while its caller is there.
// Callers are bounded in number, and in the time that they may be idle. One thread, that of the
// loop.
#pragma once
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "cli/ui/caller.h"
#include "operator/loop/alarm.h"

namespace tj::ui {

/// What somebody shows to be let in.
struct Claim {
  std::string token;
  std::string ns;               // to look at; empty: all
  bool is_of_a_header = false;  // shown with each request, so that no session is needed
};

struct CallersOptions {
  /// How often each token is asked about again.
  std::chrono::milliseconds check_every{60'000};
  Alarm::Now now = [] { return std::chrono::steady_clock::now(); };
  /// A line for each who comes, goes or is refused; tokens are in none. May be empty.
  std::function<void(const std::string& line)> tell = nullptr;
};

class Callers {
 public:
  static constexpr std::size_t kCallersMax = 32;
  static constexpr std::size_t kOfOneUserMax = 4;
  static constexpr std::size_t kChecksMax = 16;  // of new tokens, at once
  static constexpr std::size_t kTokenBytesMax = 16 * 1024;
  static constexpr std::chrono::minutes kIdleMax{30};
  static constexpr std::chrono::hours kLifeMax{12};
  static constexpr std::chrono::seconds kSweepEvery{15};
  static constexpr std::chrono::seconds kCheckInTrouble{5};

  /// Makes the client of a caller.
  using MakeApi = std::function<std::unique_ptr<KubeApi>(const std::string& token)>;
  struct SignedIn {
    Caller* caller = nullptr;  // stays until the next turn of the loop
    std::string session;       // a secret; "" for the token of a header
  };
  using Done = std::function<void(Result<SignedIn>)>;

  Callers(boost::asio::io_context& loop, MakeApi make_api, CallersOptions options);

  /// Whose the token is, is asked first. invalid: this is no token; forbidden: the API server does
  /// not take it; else it can't be asked now. Where there is no room, whoever has been idle longest
  /// goes: of the same user, who may be signed in four times, or of all.
  void sign_in(const Claim& claim, Done done);
  /// Null: nobody of this session, or this token of a header. Whoever is found is not idle.
  Caller* find(const std::string& session);
  Caller* find_by_token(const std::string& token);
  /// Why a session is no more; "" where it is not known.
  std::string why_ended(const std::string& session) const;
  void sign_out(const std::string& session);
  /// Ends who was idle, or is here for too long; asks about tokens. Called by itself, too.
  void sweep();
  std::size_t count() const { return callers_.size(); }

 private:
  struct Entry {
    std::string token;
    std::string session;
    std::unique_ptr<Caller> caller;
    SteadyTime began;
    SteadyTime seen;
    SteadyTime checked;
    bool is_being_checked = false;
  };
  using Entries = std::map<unsigned long long, Entry>;

  void take(unsigned long long number, const Claim& claim, const std::string& user,
            const Done& done);
  void make_room(const std::string& user);
  Entries::iterator found(const std::string& secret, std::string Entry::*member);
  Caller* seen_now(Entries::iterator entry);
  void check_again(Entries::iterator entry);
  void end(Entries::iterator entry, const std::string& why);
  void tell(const std::string& line) const;
  void sweep_later();
  template <typename T>
  void destroy_later(std::unique_ptr<T> dead);

  boost::asio::io_context& loop_;
  MakeApi make_api_;
  CallersOptions options_;
  Alarm alarm_;
  std::map<unsigned long long, std::unique_ptr<KubeApi>> checks_;
  Entries callers_;
  unsigned long long last_number_ = 0;
  std::deque<std::pair<std::string, std::string>> ended_;  // sessions, and why; the newest last
};

}  // namespace tj::ui
