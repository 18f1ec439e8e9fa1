#include "trainer/network/remedies.h"

#include <algorithm>
#include <string_view>

namespace tj::trainer {
namespace {

struct Remedy {
  std::string_view words;  // of the cause: the kernel's, the resolver's, or our own
  std::string_view text;
};

/// The first whose words are found counts.
constexpr Remedy kRemedies[] = {
    {" of world size ",
     "every worker must be started, and reach that port of rank 0's node: no firewall or "
     "NetworkPolicy may close it"},
    {"Connection refused",
     "nobody listens there: rank 0 must run on that host, with the same MASTER_PORT; if it has "
     "ended, its own last line says why"},
    {"no answer",
     "nothing comes back: a firewall or a NetworkPolicy drops what goes to that port, which must "
     "be open between the nodes, or the address is that of a pod that is gone"},
    {"the name does not resolve",
     "MASTER_ADDR must be an address, or a name that this node's DNS knows; that of a pod needs a "
     "headless Service"},
    {"No route to host",
     "a firewall rejects what goes there, or the host is down: that port must be open between the "
     "nodes"},
    {"Network is unreachable",
     "this node has no route there: MASTER_ADDR must lead to a network that all nodes share"},
    {"no route: ",
     "this node has no route there: MASTER_ADDR must lead to a network that all nodes share"},
    {"it accepts connections but does not answer",
     "another program has that port, or rank 0 stands still: another MASTER_PORT keeps clear of "
     "the former"},
    {"it serves another job or attempt",
     "the earlier attempt must have ended, and two jobs on one host need two MASTER_PORTs"},
    {"its store is not one of ours",
     "another program has that port: another MASTER_PORT is needed"},
};

constexpr std::string_view kBetween = "; ";

}  // namespace

std::string with_remedy(std::string cause) {
  const auto known = std::ranges::find_if(kRemedies, [&](const Remedy& remedy) {
    return cause.find(remedy.words) != std::string::npos;
  });
  if (known == std::end(kRemedies)) return cause;
  return cause.append(kBetween).append(known->text);
}

CauseAndRemedy split_remedy(const std::string& told) {
  for (const Remedy& remedy : kRemedies) {
    const auto end = kBetween.size() + remedy.text.size();
    if (told.size() > end && told.ends_with(remedy.text))
      return {.cause = told.substr(0, told.size() - end), .remedy = std::string(remedy.text)};
  }
  return {.cause = told, .remedy = {}};
}

}  // namespace tj::trainer
