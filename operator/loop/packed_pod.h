// A pod at rest: its fields in one piece of memory. Thousands are kept while few are looked at, and
// as a struct of strings each would cost a kilobyte.
#pragma once
#include <string>

#include "operator/api/types.h"

namespace tj {

class PackedPod {
 public:
  explicit PackedPod(const Pod& pod);
  Pod unpack() const;
  bool operator==(const PackedPod&) const = default;
  /// For Cache.
  friend ObjectMeta meta_of(const PackedPod& pod);

 private:
  std::string bytes_;
};

}  // namespace tj
