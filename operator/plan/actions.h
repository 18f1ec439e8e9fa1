// What a plan says is to be done, and how it is asked what kinds of it there are.
#pragma once
#include <iterator>
#include <string>
#include <variant>
#include <vector>

namespace tj {

struct CreateService {
  bool operator==(const CreateService&) const = default;
};
/// Makes the network policy what it must be, whether or not it is there already. Comes before the
/// first pod of each attempt, and when it must become another one.
struct PutNetworkPolicy {
  bool operator==(const PutNetworkPolicy&) const = default;
};
/// That it is gone already is fine.
struct DeleteNetworkPolicy {
  bool operator==(const DeleteNetworkPolicy&) const = default;
};
struct CreatePod {
  int worker_index = 0;
  int attempt = 0;
  bool operator==(const CreatePod&) const = default;
};
/// Deletes are bound to the uid: another pod of the same name is never hit.
struct DeletePod {
  std::string name;
  std::string uid;
  bool force = false;  // without waiting for its node, which is silent
  bool operator==(const DeletePod&) const = default;
};
/// The job itself, its time to live being over; bound to its uid, in the background.
struct DeleteJob {
  bool operator==(const DeleteJob&) const = default;
};
using Action = std::variant<PutNetworkPolicy, DeleteNetworkPolicy, CreateService, CreatePod,
                            DeletePod, DeleteJob>;
using Actions = std::vector<Action>;

/// Those of one kind, in order.
template <typename Kind>
std::vector<Kind> select(const Actions& actions) {
  std::vector<Kind> selected;
  for (const Action& action : actions) {
    if (const auto* match = std::get_if<Kind>(&action)) selected.push_back(*match);
  }
  return selected;
}

template <typename... Kinds>
int count(const Actions& actions) {
  int found = 0;
  for (const Action& action : actions) {
    found += (std::holds_alternative<Kinds>(action) || ...) ? 1 : 0;
  }
  return found;
}

template <typename... Kinds>
bool has_any(const Actions& actions) {
  return count<Kinds...>(actions) > 0;
}

/// A pod or the job itself goes.
inline bool has_deletions(const Actions& actions) { return has_any<DeletePod, DeleteJob>(actions); }

/// Something else than that: it is made or put right, and pods of the gang need it.
inline bool has_creations(const Actions& actions) {
  return count<DeletePod, DeleteJob>(actions) < std::ssize(actions);
}

}  // namespace tj
