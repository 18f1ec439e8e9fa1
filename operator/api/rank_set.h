// Which ranks of a gang, in the form in which a Job writes its completedIndexes: "0,2-5".
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace tj {

class RankSet {
 public:
  /// Reads until the first thing that is no rank of the largest gang, no range, or out of order.
  static RankSet parse(const std::string& text);
  std::string text() const;

  void insert(int rank);
  bool contains(int rank) const;
  int size() const;
  bool empty() const { return ranges_.empty(); }
  void clear() { ranges_.clear(); }
  bool operator==(const RankSet&) const = default;

 private:
  std::vector<std::pair<int, int>> ranges_;  // first and last, in order; between two is a gap
};

}  // namespace tj
