#include "trainer/checkpoint/catalog.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/temporary_folder.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

constexpr const char* kFirst = "model-00001-of-00002.safetensors";
constexpr const char* kSecond = "model-00002-of-00002.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
const std::vector<float> kNumbers{1, 2};

void write_file(const fs::path& file, const std::vector<std::string>& names) {
  std::vector<TensorBytes> tensors;
  for (const auto& name : names)
    tensors.push_back({.name = name, .shape = {2}, .bytes = std::as_bytes(std::span(kNumbers))});
  ASSERT_TRUE(write_safetensors(file, tensors, {}));
}

void write_index(const TemporaryFolder& folder, const std::string& weight_map) {
  folder.write(kIndex, R"({"metadata": {}, "weight_map": )" + weight_map + "}");
}

std::string error_of(const TemporaryFolder& folder) {
  const auto catalog = TensorCatalog::open(folder.path(), "model");
  return catalog ? "" : describe(catalog.error());
}

class Catalog : public testing::Test {
 protected:
  void SetUp() override {
    write_file(folder_.path() / kFirst, {"a"});
    write_file(folder_.path() / kSecond, {"b"});
    write_index(folder_, R"({"a": "model-00001-of-00002.safetensors", )"
                         R"("b": "model-00002-of-00002.safetensors"})");
  }
  TemporaryFolder folder_;
};

TEST_F(Catalog, finds_each_tensor_in_whichever_file_it_is) {
  const auto catalog = TensorCatalog::open(folder_.path(), "model");
  ASSERT_TRUE(catalog) << describe(catalog.error());
  EXPECT_NE(catalog->find("a"), nullptr);
  EXPECT_NE(catalog->find("b"), nullptr);
  EXPECT_EQ(catalog->find("c"), nullptr);
  EXPECT_EQ(catalog->tensors().size(), 2U);
}

TEST_F(Catalog, a_file_that_is_missing_is_named) {
  fs::remove(folder_.path() / kSecond);
  EXPECT_EQ(error_of(folder_),
            std::string(kSecond) +
                ": is missing; model.safetensors.index.json says that tensor b is "
                "in it, and it must lie beside that file");
}

TEST_F(Catalog, files_that_changed_places_contradict_the_index) {
  fs::rename(folder_.path() / kFirst, folder_.path() / "x");
  fs::rename(folder_.path() / kSecond, folder_.path() / kFirst);
  fs::rename(folder_.path() / "x", folder_.path() / kSecond);
  EXPECT_EQ(error_of(folder_),
            std::string(kIndex) + ": says that tensor a is in " + kFirst + "; it is in " + kSecond);
}

TEST_F(Catalog, a_tensor_in_two_files_is_refused) {
  write_file(folder_.path() / kSecond, {"b", "a"});
  EXPECT_EQ(error_of(folder_), std::string(kSecond) + ": tensor a is in " + kFirst + " as well");
}

TEST_F(Catalog, an_index_that_knows_too_much_or_too_little_is_refused) {
  write_index(folder_, R"({"a": "model-00001-of-00002.safetensors", )"
                       R"("b": "model-00002-of-00002.safetensors", )"
                       R"("c": "model-00002-of-00002.safetensors"})");
  EXPECT_EQ(error_of(folder_),
            std::string(kIndex) + ": says that tensor c is in " + kSecond + "; it is not");
  write_file(folder_.path() / kSecond, {"b", "c", "d"});
  EXPECT_EQ(error_of(folder_), std::string(kIndex) + ": does not know tensor d of " + kSecond);
}

TEST_F(Catalog, an_index_that_is_cut_or_leads_elsewhere_is_refused) {
  write_index(folder_, R"({"a": "../model.safetensors"})");
  EXPECT_EQ(error_of(folder_),
            std::string(kIndex) + ": names a file outside of the folder: \"../model.safetensors\"");
  folder_.write(kIndex, R"({"weight_map": {"a")");
  EXPECT_EQ(error_of(folder_), std::string(kIndex) + ": has no weight_map (cut short?)");
}

TEST_F(Catalog, missing_tensors_and_other_shapes_are_named_with_both) {
  auto catalog = TensorCatalog::open(folder_.path(), "model");
  ASSERT_TRUE(catalog);
  const auto read = reader_of(std::move(*catalog));
  std::vector<float> floats(3);
  const TensorTarget other{.name = "a", .shape = {3}, .floats = floats};
  EXPECT_EQ(describe(read(other).error()), "tensor a: has the shape [2]; this model's is [3]");
  const TensorTarget missing{.name = "z", .shape = {3}, .floats = floats};
  EXPECT_EQ(describe(read(missing).error()), "tensor z: is missing");
}

/// What ranks of a sharded run have written: "w" of four elements in slices of two.
class SlicedCatalog : public Catalog {
 protected:
  void SetUp() override { write("w[0:2]", "w[2:4]"); }
  void write(const std::string& first, const std::string& second) {
    write_file(folder_.path() / kFirst, {first});
    write_file(folder_.path() / kSecond, {second});
    write_index(folder_, nlohmann::json{{first, kFirst}, {second, kSecond}}.dump());
  }
};

TEST_F(SlicedCatalog, slices_are_read_as_one_tensor_and_any_part_of_it) {
  const auto catalog = TensorCatalog::open(folder_.path(), "model");
  ASSERT_TRUE(catalog) << describe(catalog.error());
  for (std::int64_t begin = 0; begin < 4; ++begin) {
    for (std::int64_t end = begin; end <= 4; ++end) {
      const std::vector<float> all{1, 2, 1, 2};
      std::vector<float> floats(static_cast<std::size_t>(end - begin));
      ASSERT_TRUE(read_tensor(catalog->find("w"),
                              {.name = "w", .shape = {2, 2}, .floats = floats, .begin = begin}));
      EXPECT_EQ(floats, std::vector<float>(all.begin() + begin, all.begin() + end));
    }
  }
}

TEST_F(SlicedCatalog, slices_of_another_model_are_refused) {
  const auto catalog = TensorCatalog::open(folder_.path(), "model");
  std::vector<float> floats(6);
  const auto read =
      read_tensor(catalog->find("w"), {.name = "w", .shape = {2, 3}, .floats = floats});
  EXPECT_EQ(describe(read.error()),
            "tensor w: has the shape [4] in slices; this model's is [2, 3]");
}

TEST_F(SlicedCatalog, slices_with_a_hole_or_an_overlap_are_refused) {
  const auto wrong = [](int end, int begin) {
    return "tensor w: has slices that don't join: one ends at element " + std::to_string(end) +
           ", the next begins at " + std::to_string(begin);
  };
  write("w[0:2]", "w[3:5]");
  EXPECT_EQ(error_of(folder_), wrong(2, 3));
  write("w[0:2]", "w[1:3]");
  EXPECT_EQ(error_of(folder_), wrong(2, 1));
  write("w[2:4]", "w[4:6]");
  EXPECT_EQ(error_of(folder_), wrong(0, 2));
}

TEST_F(SlicedCatalog, a_tensor_whole_and_in_slices_is_refused) {
  write("w", "w[2:4]");
  EXPECT_EQ(error_of(folder_), "tensor w: is there whole and in slices");
}

}  // namespace
}  // namespace tj::trainer
