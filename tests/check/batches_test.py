"""Sources share a batch only where none sees a name of another."""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from support import modules  # noqa: E402

batches = modules.load(ROOT / "tools/cmake/batches", "batches")


def own(text):
    return set(batches.read(f"namespace tj {{\nnamespace {{\n{text}\n}}  // namespace\n}}\n").own)


def shared(*texts, size=8):
    return batches.batches(size, [batches.read(text) for text in texts])


WRONG = "namespace tj { namespace { Error wrong(const fs::path& file) { return {file}; } } void a() { wrong(x); } }"


class OwnNames(unittest.TestCase):
    def test_of_each_kind_of_declaration(self):
        for text, names in (("constexpr int kMax = 3;", {"kMax"}),
                            ("volatile sig_atomic_t caught{0};", {"caught"}),
                            ("const char* const kNames[] = {\"a\", \"b\"};", {"kNames"}),
                            ("std::string joined(const std::vector<std::string>& words) { return words[0]; }", {"joined"}),
                            ("template <typename T>\nT twice(T x) { return x + x; }", {"twice"}),
                            ("struct Site final : Base { int inner = 0; void go(); };", {"Site"}),
                            ("enum class Channel { input, output };", {"Channel"}),
                            ("enum Input : std::size_t { kX, kWeight = 3 };", {"Input", "kX", "kWeight"}),
                            ("using Clock = std::chrono::steady_clock;", {"Clock"}),
                            ("using nlohmann::json;", {"json"}),
                            ("namespace fs = std::filesystem;", {"fs"}),
                            ("#define TJ_INLINE inline", {"TJ_INLINE"})):
            self.assertEqual(own(text), names, text)

    def test_not_of_comments_texts_or_what_others_may_see(self):
        self.assertEqual(own("// int seen = 1;\n/* int hidden = 2; */"), set())
        self.assertEqual(own('const char* const kText = R"(namespace { int quoted = 1; })";'), {"kText"})
        self.assertEqual(set(batches.read("namespace tj { void f() { int inside = 1; } }").own), set())


class Batches(unittest.TestCase):
    def test_the_same_name_twice_is_two_batches(self):
        self.assertEqual(shared(WRONG, "int b;", WRONG, "int c;"), ["0", "0", "-", "0"])

    def test_a_name_of_one_that_is_a_word_of_the_other_parts_them(self):
        self.assertEqual(shared(WRONG, "void b() { wrong(y); }"), ["-", "-"])
        self.assertEqual(shared("void b() { wrong(y); }", WRONG), ["-", "-"])

    def test_a_word_of_a_comment_parts_nobody(self):
        self.assertEqual(shared(WRONG, "int b;  // wrong"), ["0", "0"])

    def test_what_both_write_alike_may_stand_in_either(self):
        alike = "namespace tj { namespace { using nlohmann::json; } void %s(json x); }"
        self.assertEqual(shared(alike % "a", alike % "b"), ["0", "0"])
        self.assertEqual(shared(alike % "a", "namespace tj { namespace { using json = ordered_json; } }"), ["-", "-"])
        self.assertEqual(shared(alike % "a", "namespace tj { void c(nlohmann::json x); }"), ["-", "-"])

    def test_no_batch_is_larger_than_it_may_be(self):
        self.assertEqual(shared(*["int b;"] * 5, size=2), ["0", "0", "1", "1", "-"])


if __name__ == "__main__":
    unittest.main()
