// Conversations about rendered pictures of which the right answers are known, as the tensors that a
// source of conversations gives. Without files: the tokenizer is one token for each byte.
#pragma once
#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "trainer/values/counter_random.h"
#include "trainer/workloads/qwen_vggt/conversation_data.h"

namespace tj::trainer {

enum class SceneTask {
  rooms,  // the way to the door of the colour that the user names; in older frames it is elsewhere
  depth,  // whether a wall is near or far: a shade in the noise, which only a VGGT makes plain
};

struct SceneSet {
  SceneTask task = SceneTask::rooms;
  std::int64_t count = 0;
  std::int64_t first = 0;         // number of the first one: scenes of other numbers are others
  std::int64_t text_percent = 0;  // of the conversations have no pictures
  std::int64_t history = 1;       // older frames
};

/// uint8 [3, side, side]
using Frame = std::vector<std::uint8_t>;

struct Scene {
  std::vector<Frame> frames;  // the newest last
  std::string question, answer;

  static constexpr std::int64_t kSide = 84;  // pixels: 3 x 3 tokens
};

namespace scenes {

struct Colour {
  const char* name;
  std::array<int, 3> rgb;
};
inline constexpr std::array<Colour, 4> kColours4{
    Colour{"red", {220, 40, 40}}, Colour{"green", {40, 200, 60}}, Colour{"blue", {50, 70, 230}},
    Colour{"yellow", {230, 220, 50}}};
inline constexpr std::array<const char*, 3> kWays{"left", "forward", "right"};

/// Words of one scene, one after the other.
class Dice {
 public:
  explicit Dice(std::int64_t number) : word_(mixed(static_cast<std::uint64_t>(number) + 77)) {}
  std::int64_t below(std::int64_t count) {
    word_ = mixed(word_ + 1);
    return static_cast<std::int64_t>((word_ >> 16) % static_cast<std::uint64_t>(count));
  }

 private:
  std::uint64_t word_;
};

inline void put(Frame& frame, int colour, std::int64_t y, std::int64_t x, std::int64_t value) {
  frame[static_cast<std::size_t>((colour * Scene::kSide + y) * Scene::kSide + x)] =
      static_cast<std::uint8_t>(std::clamp<std::int64_t>(value, 0, 255));
}

/// A room lit from the left, with a door of a colour in each third.
inline Frame room(const std::array<std::size_t, 4>& order, Dice& dice) {
  Frame frame(3 * Scene::kSide * Scene::kSide);
  const auto light = 90 + dice.below(40);
  for (std::int64_t y = 0; y < Scene::kSide; ++y)
    for (std::int64_t x = 0; x < Scene::kSide; ++x) {
      const auto third = x / 28, inside = x % 28;
      const bool is_door = y >= 24 && inside >= 6 && inside < 22;
      const auto shade = light + 50 - 100 * third / 2 + (y < 12 ? 30 : 0);
      for (int colour = 0; colour < 3; ++colour) {
        const auto door =
            kColours4[order[static_cast<std::size_t>(third)]].rgb[static_cast<std::size_t>(colour)];
        put(frame, colour, y, x, (is_door ? door : shade) + dice.below(9) - 4);
      }
    }
  return frame;
}

inline std::array<std::size_t, 4> order_of_doors(Dice& dice) {
  std::array<std::size_t, 4> order{0, 1, 2, 3};
  for (std::size_t i = 3; i > 0; --i)
    std::swap(order[i],
              order[static_cast<std::size_t>(dice.below(static_cast<std::int64_t>(i) + 1))]);
  return order;
}

inline Scene rooms(std::int64_t number, std::int64_t history) {
  Dice dice(number);
  Scene scene;
  std::array<std::size_t, 4> doors{};
  for (std::int64_t frame = 0; frame <= history; ++frame) {
    doors = order_of_doors(dice);
    scene.frames.push_back(room(doors, dice));
  }
  const auto wanted = static_cast<std::size_t>(dice.below(4));
  scene.question = std::string("go to the ") + kColours4[doors[wanted]].name + " door";
  scene.answer = wanted < kWays.size() ? kWays[wanted] : "stop";
  return scene;
}

inline Scene depth(std::int64_t number, std::int64_t history) {
  Dice dice(number);
  Scene scene;
  const bool is_near = dice.below(2) == 1;
  for (std::int64_t frame = 0; frame <= history; ++frame) {
    Frame wall(3 * Scene::kSide * Scene::kSide);
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(wall.size()); ++i)
      wall[static_cast<std::size_t>(i)] =
          static_cast<std::uint8_t>(128 + (is_near ? 2 : -2) + dice.below(161) - 80);
    scene.frames.push_back(std::move(wall));
  }
  scene.question = "how far";
  scene.answer = is_near ? "near" : "far";
  return scene;
}

}  // namespace scenes

inline Scene scene_of(const SceneSet& set, std::int64_t number) {
  auto scene = set.task == SceneTask::rooms ? scenes::rooms(number, set.history)
                                            : scenes::depth(number, set.history);
  scenes::Dice dice(number + 1'000'003);
  if (dice.below(100) >= set.text_percent) return scene;
  scene.frames.clear();
  scene.question = "say " + scene.answer;
  return scene;
}

/// One token for each byte.
inline std::vector<std::int32_t> bytes_of(std::string_view text) {
  std::vector<std::int32_t> ids;
  for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
  return ids;
}

class SceneSamples final : public SampleSource {
 public:
  SceneSamples(SceneSet set, ConversationShape shape) : set_(set), shape_(std::move(shape)) {}

  std::int64_t sample_count() const override { return set_.count; }
  DataMark mark() const override { return {.unit = "scenes", .count = set_.count, .digest = ""}; }
  std::string description() const override { return std::to_string(set_.count) + " scenes"; }

  Result<SampleBatch> read(std::span<const Sample> samples) const override {
    std::vector<Row> rows;
    for (const auto& sample : samples) rows.push_back(row_of(set_.first + sample.index));
    return joined(rows);
  }

 private:
  struct Row {
    ChatTokens tokens;
    MropePositions positions;
    std::vector<VisionGrid> grids;
    std::vector<std::uint8_t> patches;
    std::vector<std::uint8_t> frames;
    std::vector<std::int32_t> hashes;
    std::int64_t number = 0;
  };

  Row row_of(std::int64_t number) const {
    const auto scene = scene_of(set_, number);
    const auto side = Scene::kSide;
    const auto grid = image_grid({side, side}, shape_.patches);
    Row row{.number = number};
    std::vector<ChatVision> vision;
    std::vector<VisionInput> inputs;
    std::string question;
    for (const auto& frame : scene.frames) {
      vision.push_back({.tokens = token_count(grid, shape_.patches)});
      inputs.push_back({.grid = grid});
      row.grids.push_back(grid);
      question += "<image>";
      add_patches(frame, grid, row.patches);
      if (!shape_.has_geometry) continue;
      row.frames.insert(row.frames.end(), frame.begin(), frame.end());
      std::uint64_t hash = 1;
      for (const auto value : frame) hash = mixed(hash + value);
      row.hashes.push_back(static_cast<std::int32_t>(static_cast<std::uint32_t>(hash >> 32)));
      row.hashes.push_back(static_cast<std::int32_t>(static_cast<std::uint32_t>(hash)));
    }
    const ChatTurn turns[] = {{ChatRole::system, "go"},
                              {ChatRole::user, question + scene.question},
                              {ChatRole::assistant, scene.answer}};
    auto tokens = chat_tokens(turns, vision, shape_.ids, bytes_of);
    TJ_CHECK(tokens.ok(), "a whole conversation");
    row.tokens = std::move(*tokens);
    auto positions = mrope_positions(row.tokens.ids, inputs, shape_.mrope);
    TJ_CHECK(positions.ok(), "pads of its pictures");
    row.positions = std::move(*positions);
    return row;
  }

  /// In the order of write_patches().
  void add_patches(const Frame& frame, const VisionGrid& grid,
                   std::vector<std::uint8_t>& patches) const {
    const auto side = shape_.patches.patch_side;
    for (const auto& place : patch_places(grid, shape_.patches.merge_side))
      for (std::int64_t colour = 0; colour < kColours; ++colour)
        for (std::int64_t part = 0; part < shape_.patches.frames_of_patch; ++part)
          for (std::int64_t y = 0; y < side; ++y) {
            const auto line = colour * Scene::kSide + place.row * side + y;
            const auto* const first = frame.data() + line * Scene::kSide + place.column * side;
            patches.insert(patches.end(), first, first + side);
          }
  }

  /// [rows, ...], with zeros behind what a row has.
  template <typename Value>
  static HostTensor padded(HostTensor::Type type, const std::vector<std::vector<Value>>& rows,
                           std::vector<std::int64_t> shape, Value fill = 0) {
    HostTensor tensor{.type = type, .shape = shape, .bytes = {}};
    std::int64_t size = 1;
    for (const auto extent : shape) size *= extent;
    tensor.shape.insert(tensor.shape.begin(), static_cast<std::int64_t>(rows.size()));
    for (const auto& row : rows) {
      std::vector<Value> all(row);
      all.resize(static_cast<std::size_t>(size), fill);
      const auto* const bytes = reinterpret_cast<const std::byte*>(all.data());
      tensor.bytes.insert(tensor.bytes.end(), bytes, bytes + all.size() * sizeof(Value));
    }
    return tensor;
  }

  SampleBatch joined(const std::vector<Row>& rows) const {
    using enum HostTensor::Type;
    std::size_t tokens = 0, pictures = 0;
    std::int64_t weight = 0;
    for (const auto& row : rows) {
      tokens = std::max(tokens, row.tokens.ids.size());
      pictures = std::max(pictures, row.grids.size());
      weight += std::max<std::int64_t>(1, row.tokens.learned());
    }
    const auto columns = static_cast<std::int64_t>(tokens);
    const auto count = static_cast<std::int64_t>(pictures);
    const auto frames = shape_.has_geometry ? count : 0;
    const auto patches = count * image_grid({Scene::kSide, Scene::kSide}, shape_.patches).patches();
    std::vector<std::vector<std::int32_t>> ids, places, labels, grids, hashes, numbers;
    std::vector<std::vector<std::uint8_t>> pixels, seen;
    for (const auto& row : rows) {
      ids.push_back(row.tokens.ids);
      labels.push_back(row.tokens.labels);
      places.emplace_back();
      for (const auto& axis : row.positions.axes) {
        std::vector<std::int32_t> line(axis.begin(), axis.end());
        line.resize(tokens);
        places.back().insert(places.back().end(), line.begin(), line.end());
      }
      grids.emplace_back();
      for (const auto& grid : row.grids)
        for (const auto value : {grid.frames, grid.rows, grid.columns, std::int64_t{0}})
          grids.back().push_back(static_cast<std::int32_t>(value));
      hashes.push_back(row.hashes);
      numbers.push_back({static_cast<std::int32_t>(row.number)});
      pixels.push_back(row.patches);
      seen.push_back(row.frames);
    }
    SampleBatch batch{.tensors = {}, .weight = weight};
    const auto side = frames > 0 ? Scene::kSide : 0;
    batch.tensors.push_back(padded(int32, ids, {columns}));
    batch.tensors.push_back(padded(int32, places, {3, columns}));
    batch.tensors.push_back(padded(int32, labels, {columns}, kNoLabel));
    batch.tensors.push_back(padded(uint8, pixels, {patches, shape_.patches.values_of_patch()}));
    batch.tensors.push_back(padded(int32, grids, {count, 4}));
    batch.tensors.push_back(padded(uint8, seen, {frames, kColours, side, side}));
    batch.tensors.push_back(padded(int32, hashes, {frames, 2}));
    batch.tensors.push_back(padded(int32, numbers, {}));
    return batch;
  }

  SceneSet set_;
  ConversationShape shape_;
};

}  // namespace tj::trainer
