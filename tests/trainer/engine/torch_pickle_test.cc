#include "trainer/checkpoint/torch_pickle.h"

#include <gtest/gtest.h>

namespace tj::trainer {
namespace {
using namespace std::string_literals;

std::string why(const std::string& pickle) {
  const auto read = tensors_in_pickle(pickle);
  return read ? "" : read.error().message;
}

TEST(TorchPickle, reads_what_it_writes) {
  const std::vector<TensorToPickle> tensors{
      {"encoder.0.weight", {64, 3, 3, 3}}, {"encoder.0.bias", {64}}, {"scalar", {}}};
  const auto read = tensors_in_pickle(pickle_of(tensors));
  ASSERT_TRUE(read) << describe(read.error());
  ASSERT_EQ(read->size(), 3U);
  EXPECT_EQ((*read)[0].name, "encoder.0.weight");
  EXPECT_EQ((*read)[0].dtype, "F32");
  EXPECT_EQ((*read)[0].storage, "0");
  EXPECT_EQ((*read)[0].shape, (std::vector<std::int64_t>{64, 3, 3, 3}));
  EXPECT_EQ((*read)[0].stride, (std::vector<std::int64_t>{27, 9, 3, 1}));
  EXPECT_EQ((*read)[2].shape.size(), 0U);
}

TEST(TorchPickle, names_types_as_torch_does) {
  for (const auto* const dtype :
       {"F32", "F16", "BF16", "F64", "I64", "I32", "I16", "I8", "U8", "BOOL"}) {
    ASSERT_TRUE(torch_storage(dtype)) << dtype;
    const auto read = tensors_in_pickle(pickle_of(std::vector<TensorToPickle>{{"a", {2}, dtype}}));
    ASSERT_TRUE(read) << describe(read.error());
    EXPECT_EQ((*read)[0].dtype, dtype);
  }
  EXPECT_EQ(torch_storage("BF16"), "BFloat16Storage");
  EXPECT_FALSE(torch_storage("U16"));
}

TEST(TorchPickle, every_cut_of_it_is_an_error) {
  const auto whole = pickle_of(std::vector<TensorToPickle>{{"a", {2, 3}}, {"b", {4}}});
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(tensors_in_pickle(whole.substr(0, size))) << size;
}

TEST(TorchPickle, runs_nothing) {
  // os.system("echo"): the classic.
  EXPECT_EQ(why("\x80\x02"
                "cposix\nsystem\nX\x04\0\0\0echo\x85R."s),
            "calls posix system, which no dictionary of tensors needs (byte 27 of its data.pkl)");
  EXPECT_NE(why("\x80\x02"
                "ibuiltins\neval\n."s)
                .find("opcode 0x69"),
            std::string::npos);
  EXPECT_NE(why("\x80\x04\x81."s).find("opcode 0x81"), std::string::npos);
}

TEST(TorchPickle, damage_is_an_error_with_its_place) {
  EXPECT_NE(why("").find("ends early"), std::string::npos);
  EXPECT_NE(why(".").find("takes a value that is not there"), std::string::npos);
  EXPECT_NE(why("N.").find("where a dictionary of tensors is needed"), std::string::npos);
  EXPECT_NE(why("}u.").find("no mark"), std::string::npos);
  EXPECT_NE(why("}(Nu.").find("a key without a value"), std::string::npos);
  EXPECT_NE(why("h\x05.").find("recalls a value"), std::string::npos);
  EXPECT_NE(why("\x8a\x09"
                "123456789.")
                .find("64 bits"),
            std::string::npos);
  EXPECT_NE(why("Ns.").find("not there"), std::string::npos);
}

TEST(TorchPickle, numbers_are_as_python_writes_them) {
  // A dictionary that holds itself, and keys that are no text: nothing of it is a tensor.
  const auto read = tensors_in_pickle("}q\0(h\0h\0K\x01Nu."s);
  ASSERT_TRUE(read) << describe(read.error());
  EXPECT_TRUE(read->empty());
}

}  // namespace
}  // namespace tj::trainer
