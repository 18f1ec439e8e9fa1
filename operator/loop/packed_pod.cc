#include "operator/loop/packed_pod.h"

#include <cstdint>
#include <string_view>

#include "contract/result.h"

namespace tj {
namespace {

/// Numbers are written in base 128, the low digits first, as in protocol buffers' varint.
class Writer {
 public:
  void number(std::int64_t value) {
    // Zigzag: small negative numbers are short, too.
    auto rest = (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
    for (; rest >= 128; rest >>= 7) bytes_ += static_cast<char>(rest | 128);
    bytes_ += static_cast<char>(rest);
  }
  void text(const std::string& text) {
    number(static_cast<std::int64_t>(text.size()));
    bytes_ += text;
  }
  void time(const std::optional<TimePoint>& time) {
    number(time ? 1 : 0);
    if (time) number(time->time_since_epoch().count());
  }
  /// Without room to grow.
  std::string bytes() const { return {bytes_.data(), bytes_.size()}; }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  std::int64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      TJ_CHECK(!rest_.empty() && shift < 64, "a packed pod ends too early");
      const auto digit = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(digit & 127U) << shift;
      if (digit < 128) break;
    }
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
  }
  template <typename T>
  T as() {
    return static_cast<T>(number());
  }
  std::string text() {
    const auto size = as<std::size_t>();
    TJ_CHECK(size <= rest_.size(), "a packed pod ends too early");
    std::string text(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return text;
  }
  std::optional<TimePoint> time() {
    if (number() == 0) return std::nullopt;
    return TimePoint{std::chrono::milliseconds{number()}};
  }

 private:
  std::string_view rest_;
};

// Each struct is taken apart by a structured binding: a new field does not compile until it is
// packed. Braces evaluate from left to right, so that what is read stands in the order written.

void write(Writer& out, const ObjectMeta& meta) {
  const auto& [name, ns, uid, version, generation, controller, creation, deletion] = meta;
  for (const std::string* text : {&name, &ns, &uid, &version}) out.text(*text);
  out.number(generation);
  out.text(controller);
  out.time(creation);
  out.time(deletion);
}

ObjectMeta read_meta(Reader& in) {
  return {in.text(), in.text(), in.text(), in.text(), in.number(), in.text(), in.time(), in.time()};
}

void write(Writer& out, const std::optional<ContainerExit>& exit) {
  out.number(exit ? 1 : 0);
  if (!exit) return;
  const auto& [code, reason, message, finished_at, started_at] = *exit;
  out.number(code);
  out.text(reason);
  out.text(message);
  out.time(finished_at);
  out.time(started_at);
}

std::optional<ContainerExit> read_exit(Reader& in) {
  if (in.number() == 0) return std::nullopt;
  return ContainerExit{in.as<int>(), in.text(), in.text(), in.time(), in.time()};
}

void write(Writer& out, const std::vector<PodCondition>& conditions) {
  out.number(static_cast<std::int64_t>(conditions.size()));
  for (const auto& [type, reason, message] : conditions) {
    for (const std::string* text : {&type, &reason, &message}) out.text(*text);
  }
}

std::vector<PodCondition> read_conditions(Reader& in) {
  std::vector<PodCondition> conditions;
  for (auto left = in.number(); left > 0; --left) {
    conditions.push_back(PodCondition{in.text(), in.text(), in.text()});
  }
  return conditions;
}

}  // namespace

PackedPod::PackedPod(const Pod& pod) {
  const auto& [meta, job_name, worker_index, attempt, phase, ready, node, ip, reason, message,
               waiting_reason, waiting_message, waiting_since, conditions, exit] = pod;
  Writer out;
  write(out, meta);
  out.text(job_name);
  out.number(worker_index);
  out.number(attempt);
  out.number(static_cast<int>(phase));
  out.number(ready ? 1 : 0);
  for (const std::string* text :
       {&node, &ip, &reason, &message, &waiting_reason, &waiting_message}) {
    out.text(*text);
  }
  out.time(waiting_since);
  write(out, conditions);
  write(out, exit);
  bytes_ = out.bytes();
}

Pod PackedPod::unpack() const {
  Reader in(bytes_);
  return {read_meta(in),    in.text(), in.as<int>(), in.as<int>(),        in.as<PodPhase>(),
          in.number() != 0, in.text(), in.text(),    in.text(),           in.text(),
          in.text(),        in.text(), in.time(),    read_conditions(in), read_exit(in)};
}

ObjectMeta meta_of(const PackedPod& pod) {
  Reader in(pod.bytes_);
  return read_meta(in);
}

}  // namespace tj
