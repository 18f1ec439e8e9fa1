// By what a run that goes on knows the data it began with.
#pragma once
#include <cstdint>
#include <string>

namespace tj::trainer {

struct DataMark {
  std::string unit;        // what `count` counts, in the plural: "tokens"
  std::int64_t count = 0;  // of all the data
  std::string digest;      // of what else the samples depend on; empty: of nothing that is known
  bool operator==(const DataMark&) const = default;
};

}  // namespace tj::trainer
