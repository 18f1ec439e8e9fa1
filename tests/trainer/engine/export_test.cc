#include "trainer/checkpoint/export.h"

#include <gtest/gtest.h>

#include "tests/temporary_folder.h"
#include "trainer/checkpoint/catalog.h"
#include "trainer/checkpoint/file_plan.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

const std::vector<float> kWeights{1, 2, 3, 4, 5, 6};
const std::vector<float> kAverages{10, 20, 30, 40, 50, 60};

std::span<const std::byte> bytes_of(const std::vector<float>& values, std::size_t first,
                                    std::size_t count) {
  return std::as_bytes(std::span(values).subspan(first, count));
}

void write(const fs::path& file, const std::vector<TensorBytes>& tensors) {
  ASSERT_TRUE(write_safetensors(file, tensors, {}));
}

/// Weights w [2, 2] and f [2]; with averages of w, in two files and slices, as ranks leave them.
class ExportTest : public ::testing::Test {
 protected:
  void make_checkpoint() {
    write(source_ / "model.safetensors",
          {{.name = "f", .shape = {2}, .bytes = bytes_of(kWeights, 4, 2)},
           {.name = "w", .shape = {2, 2}, .bytes = bytes_of(kWeights, 0, 4)}});
  }
  void make_averages() {
    const auto first = group_file_name("ema", 0, 2), second = group_file_name("ema", 1, 2);
    write(source_ / first, {{.name = "w[0:3]", .shape = {3}, .bytes = bytes_of(kAverages, 0, 3)}});
    write(source_ / second, {{.name = "w[3:4]", .shape = {1}, .bytes = bytes_of(kAverages, 3, 1)}});
    folder_.write("from/ema.safetensors.index.json", "{\"weight_map\": {\"w[0:3]\": \"" + first +
                                                         "\", \"w[3:4]\": \"" + second + "\"}}");
  }
  Result<ExportEnd> run(const fs::path& from, const std::string& to, ExportedWeights weights) {
    return export_weights({.from = from, .to = folder_.path() / to, .weights = weights});
  }
  std::vector<float> exported(const std::string& file, const std::string& name,
                              std::vector<std::int64_t> shape) {
    const auto catalog = TensorCatalog::open_file(folder_.path() / file);
    EXPECT_TRUE(catalog) << describe(catalog.error());
    std::vector<float> floats(static_cast<std::size_t>(element_count(shape)));
    const auto read =
        read_tensor(catalog->find(name), {.name = name, .shape = shape, .floats = floats});
    EXPECT_TRUE(read) << describe(read.error());
    return floats;
  }
  std::vector<std::string> names_in(const fs::path& folder) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder))
      names.push_back(entry.path().filename().string());
    return names;
  }

  TemporaryFolder folder_;
  fs::path source_ = folder_.write("from/.keep", "").parent_path();
};
using Floats = std::vector<float>;

TEST_F(ExportTest, weights_become_one_file_and_nothing_else_is_left) {
  make_checkpoint();
  fs::create_directory(folder_.path() / "to");
  folder_.write("to/x.safetensors", "what was there before");
  const auto end = run(source_, "to/x.safetensors", ExportedWeights::raw);
  ASSERT_TRUE(end) << describe(end.error());
  EXPECT_EQ(end->tensors, 2U);
  EXPECT_EQ(end->elements, 6);
  EXPECT_EQ(static_cast<std::uintmax_t>(end->bytes),
            fs::file_size(folder_.path() / "to/x.safetensors"));
  EXPECT_EQ(exported("to/x.safetensors", "w", {2, 2}), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(exported("to/x.safetensors", "f", {2}), (Floats{5, 6}));
  EXPECT_EQ(names_in(folder_.path() / "to"), std::vector<std::string>{"x.safetensors"});
  // And of the file itself, in its own place.
  ASSERT_TRUE(run(folder_.path() / "to/x.safetensors", "to/x.safetensors", ExportedWeights::raw));
  EXPECT_EQ(exported("to/x.safetensors", "f", {2}), (Floats{5, 6}));
}

TEST_F(ExportTest, averages_come_together_and_what_has_none_is_the_tensor_itself) {
  make_checkpoint();
  make_averages();
  const auto end = run(source_, "x.safetensors", ExportedWeights::ema);
  ASSERT_TRUE(end) << describe(end.error());
  EXPECT_EQ(exported("x.safetensors", "w", {2, 2}), (Floats{10, 20, 30, 40}));
  EXPECT_EQ(exported("x.safetensors", "f", {2}), (Floats{5, 6}));
}

TEST_F(ExportTest, what_cant_be_exported_is_named_and_leaves_no_file) {
  const auto why = [&](const fs::path& from, const std::string& to, ExportedWeights weights) {
    const auto end = run(from, to, weights);
    return end ? "" : describe(end.error());
  };
  const auto raw = ExportedWeights::raw;
  EXPECT_NE(why(source_ / "none", "x.pth", raw).find("from/none: is not there"), std::string::npos);
  EXPECT_NE(why(source_, "x.pth", raw).find("model.safetensors"), std::string::npos);
  make_checkpoint();
  EXPECT_NE(why(source_, "x.pth", ExportedWeights::ema).find("has no averages of the weights"),
            std::string::npos);
  EXPECT_NE(why(source_, "gone/x.pth", raw).find("gone/x.pth: can't be created"),
            std::string::npos);
  const std::vector<std::byte> eight(8);
  write(source_ / "model.safetensors",
        {{.name = "odd", .shape = {4}, .bytes = std::span(eight), .dtype = "U16"}});
  EXPECT_EQ(why(source_, "x.pth", raw), "tensor odd: is of type U16, which a .pth can't have");
  EXPECT_EQ(names_in(folder_.path()), std::vector<std::string>{"from"});
}

}  // namespace
}  // namespace tj::trainer
