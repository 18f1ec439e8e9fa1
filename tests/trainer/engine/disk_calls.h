// Stands before the calls of the C library that change a disk: counts them, and plays a disk that
// says no once, or a process that is killed, whose calls no longer have any effect.
#pragma once
#include <cstdint>

namespace tj::trainer {

class DiskCalls {
 public:
  struct Fate {
    std::int64_t dies_at = -1;   // before the call of this number, from 0; -1: never
    std::int64_t fails_at = -1;  // this call alone says no
  };
  /// One at a time, on the thread whose calls it counts.
  explicit DiskCalls(const Fate& fate);
  ~DiskCalls();
  DiskCalls(const DiskCalls&) = delete;
  DiskCalls& operator=(const DiskCalls&) = delete;

  bool is_dead() const;
  std::int64_t count() const;
};

}  // namespace tj::trainer
