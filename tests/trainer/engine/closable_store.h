// A store in memory that can close as that of a rank 0 does that has ended, and counts questions.
#pragma once
#include <atomic>
#include <memory>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

namespace tj::trainer {

class ClosableStore final : public c10d::Store {
 public:
  using Bytes = std::vector<std::uint8_t>;

  void close() { is_closed_ = true; }
  /// How often somebody has asked whether keys exist.
  int check_count() const { return check_count_; }

  c10::intrusive_ptr<c10d::Store> clone() override { return open().clone(); }
  void set(const std::string& key, const Bytes& value) override { open().set(key, value); }
  Bytes compareSet(const std::string& key, const Bytes& old, const Bytes& desired) override {
    return open().compareSet(key, old, desired);
  }
  Bytes get(const std::string& key) override { return open().get(key); }
  std::int64_t add(const std::string& key, std::int64_t value) override {
    return open().add(key, value);
  }
  bool deleteKey(const std::string& key) override { return open().deleteKey(key); }
  bool check(const std::vector<std::string>& keys) override {
    ++check_count_;
    return open().check(keys);
  }
  std::int64_t getNumKeys() override { return open().getNumKeys(); }
  void wait(const std::vector<std::string>& keys) override { open().wait(keys); }
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override {
    open().wait(keys, timeout);
  }

 private:
  c10d::Store& open() {
    if (is_closed_) throw std::runtime_error("Connection reset by peer");
    return *store_;
  }

  c10::intrusive_ptr<c10d::HashStore> store_ = c10::make_intrusive<c10d::HashStore>();
  std::atomic<bool> is_closed_ = false;
  std::atomic<int> check_count_ = 0;
};

}  // namespace tj::trainer
