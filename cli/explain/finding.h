// What `tj explain` has to say: causes in the order in which one led to the other. Pure.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/types.h"

namespace tj {

/// Where in the life of a job a cause stands; of one story the earlier come first.
enum class Stage {
  surroundings,  // a node, whatever runs on it
  failure,       // what ended an attempt
  verdict,       // what became of the job then
  control,       // what keeps pods from being made
  placement,     // what keeps them from a node
  start,         // what keeps their containers from running
  run,           // how the run itself is doing
};

/// One thing that was seen.
struct Sighting {
  std::string object;  // "pod a-worker-1", "node n2", "job a"
  std::string what;    // a sentence without its full stop
  std::optional<TimePoint> time;
  bool operator==(const Sighting&) const = default;
};

struct Finding {
  std::string cause;  // the rule's name: "NodeLost"
  Stage stage = Stage::run;
  Sighting seen;
  std::string remedy;  // what to do
  bool operator==(const Finding&) const = default;
};

struct Evidence;

/// One cause: how it is seen, and what to do about it.
struct Rule {
  const char* cause = "";
  Stage stage = Stage::run;
  const char* remedy = "";  // {job} and {ns} stand for the job's
  std::function<std::vector<Sighting>(const Evidence& evidence)> look;
};

}  // namespace tj
