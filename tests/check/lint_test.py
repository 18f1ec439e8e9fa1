"""tools/check/lint finds what it is there to find, and leaves the rest alone."""
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from support import modules  # noqa: E402

lint = modules.load(ROOT / "tools/check/lint", "lint")


class InCheckout(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def rules(self, path, text):
        """The rules that `text`, written as `path`, breaks."""
        self.write(path, text)
        return [rule for _, _, rule, _ in lint.check_file(path, self.root)]


def function_of(lines):
    return "// Head.\nint f(int a) {\n" + "  ++a;\n" * (lines - 3) + "  return a;\n}\n"


class Sizes(InCheckout):
    def test_a_function_of_70_lines_passes(self):
        self.assertEqual(self.rules("cli/a.cc", function_of(70)), [])

    def test_a_function_of_71_lines_is_found(self):
        self.assertEqual(self.rules("cli/a.cc", function_of(71)), ["function-size"])

    def test_a_method_with_initialisers_is_a_function(self):
        text = "// Head.\nclass A {\n public:\n  A(int x)\n      : x_(x), y_{x} {\n" + "    ++x_;\n" * 80 + "  }\n};\n"
        self.assertEqual(self.rules("cli/a.cc", text), ["function-size"])

    def test_a_long_class_is_no_function(self):
        self.assertEqual(self.rules("cli/a.h", "// Head.\nstruct A {\n" + "  int f();\n" * 90 + "};\n"), [])

    def test_a_long_table_is_no_function(self):
        text = "// Head.\nstatic const char* words[] = {\n" + '  "{(word)}",\n' * 90 + "};\n"
        self.assertEqual(self.rules("cli/a.cc", text), [])

    def test_a_brace_in_a_string_is_text(self):
        text = '// Head.\nint f() { return g("}{") + \'{\'; }\nint h() { return 1; }\n' + "int x();\n" * 90
        self.assertEqual(self.rules("cli/a.cc", text), [])

    def test_101_columns_are_too_wide(self):
        self.assertEqual(self.rules("cli/a.cc", "// " + "x" * 98 + "\n"), ["columns"])

    def test_a_raw_string_may_be_as_wide_as_its_data(self):
        self.assertEqual(self.rules("cli/a.cc", '// Head.\nauto a = R"(' + "x" * 99 + ')";\n'), [])

    def test_501_lines_are_too_many(self):
        self.assertEqual(self.rules("cli/a.cc", "// Head.\n" + "int a();\n" * 500), ["file-size"])


class Includes(InCheckout):
    CASES = [
        ("operator/plan/plan.cc", "boost/asio.hpp", False),
        ("operator/kube/watcher.cc", "spdlog/spdlog.h", False),
        ("operator/kube/cache.h", "cpprest/http_client.h", False),
        ("operator/kube/rest_kube_api.cc", "cpprest/http_client.h", True),
        ("operator/loop/controller.cc", "cpprest/http_client.h", False),
        ("operator/loop/controller.cc", "boost/asio.hpp", True),
        ("operator/loop/controller.cc", "torch/torch.h", False),
        ("trainer/train/step.cc", "torch/torch.h", True),
        ("trainer/train/step.cc", "operator/plan/plan.h", False),
        ("trainer/train/step.cc", "trainer/report/reporter.h", True),
        ("trainer/train/zero/zero.cc", "trainer/train/adamw.h", True),
        ("trainer/report/reporter.cc", "trainer/train/plan.h", False),
        ("trainer/watch/judge.cc", "trainer/comm/peers.h", False),
        ("trainer/train/step.cc", "trainer/workloads/gpt2/gpt2.h", False),
        ("trainer/workloads/gpt2/gpt2.cc", "trainer/workloads/gpt2/head_loss.h", True),
        ("trainer/workloads/gpt2/gpt2.cc", "trainer/workload/model.h", True),
        ("trainer/workloads/gpt2/gpt2.cc", "trainer/data/token_source.h", True),
        ("trainer/workloads/gpt2/gpt2.cc", "trainer/train/plan.h", False),
        ("trainer/workloads/gpt2/gpt2.cc", "trainer/workloads/pi0/policy.h", False),
        ("trainer/workloads/main.cc", "trainer/train/engine.h", True),
        ("trainer/main.cc", "trainer/launch/launch.h", True),
        ("trainer/somewhere/new.cc", "vector", False),
        ("cli/run.cc", "operator/local/memory_api.h", True),
        ("trainer/train/chosen_flags.cc", "yaml/yaml_json.h", True),
        ("operator/plan/plan.cc", "yaml/yaml_json.h", False),
        ("operator/api/types.cc", "cli/run.h", False),
        ("operator/plan/plan.cc", "operator/loop/controller.h", False),
        ("contract/outcome.cc", "nlohmann/json.hpp", True),
        ("contract/outcome.h", "nlohmann/json.hpp", False),
        ("contract/outcome.h", "nlohmann/json_fwd.hpp", True),
        ("contract/outcome.cc", "operator/api/types.h", False),
    ]

    def test_each_part_includes_only_what_it_may(self):
        for path, included, allowed in self.CASES:
            with self.subTest(path=path, included=included):
                rules = self.rules(path, f"// Head.\n#include <{included}>\n")
                self.assertEqual(rules, [] if allowed else ["include"])


class Calls(InCheckout):
    CASES = [
        ("cli/run.cc", "sleep(1);", ["sleep"]),
        ("tests/loop/a_test.cc", "std::this_thread::sleep_for(1ms);", ["sleep"]),
        ("trainer/comm/rendezvous.cc", "std::this_thread::sleep_for(1ms);", []),
        ("cli/run.cc", 'std::system("ls");', ["system"]),
        ("cli/run.cc", "error_code.system();", []),
        ("cli/run.cc", "std::cout << 1;", ["cout"]),
        ("cli/run.cc", 'getenv("A");', ["getenv"]),
        ("contract/launch_env.cc", 'getenv("A");', []),
        ("operator/main.cc", 'getenv("A");', []),
        ("trainer/launch/options.cc", 'getenv("A");', []),
        ("cli/run.cc", "// sleep(1) is what we don't do", []),
        ("cli/run.cc", "usleep(1);  // lint-ok(sleep): the child is stopped", []),
        ("cli/run.cc", "usleep(1);  // lint-ok(sleep):", ["sleep"]),
        ("cli/run.cc", "std::string text{std::istreambuf_iterator<char>(file), {}};", ["istreambuf_iterator"]),
    ]

    def test_each_banned_call_is_found_where_it_is_banned(self):
        for path, line, rules in self.CASES:
            with self.subTest(path=path, line=line):
                self.assertEqual(self.rules(path, f"// Head.\nvoid f() {{\n  {line}\n}}\n"), rules)


class Names(InCheckout):
    def test_a_drawer_is_found(self):
        for name in ("util", "string_helpers", "common"):
            self.assertEqual(self.rules(f"cli/{name}.h", "// Head.\n"), ["drawer-name"])

    def test_a_header_says_what_it_is(self):
        self.assertEqual(self.rules("cli/a.h", "#pragma once\n"), ["file-head"])

    def test_a_source_with_a_header_needs_no_head(self):
        self.write("cli/a.h", "// Head.\n")
        self.assertEqual(self.rules("cli/a.cc", '#include "cli/a.h"\n'), [])

    def test_a_path_of_one_machine_is_found(self):
        for text in ("see /ro" + "ot/x", "/wo" + "rk/main", "/ho" + "me/anna/x"):
            self.assertEqual(self.rules("docs/a.txt", text + "\n"), ["machine-path"])
        self.assertEqual(self.rules("docs/a.txt", "a/root/b and ${HOME}/work\n"), [])


class Links(InCheckout):
    def test_a_link_to_a_file_and_a_heading_resolves(self):
        self.write("docs/b.md", "# A `title`, in words\n")
        self.assertEqual(self.rules("docs/a.md", "[b](b.md#a-title-in-words) [c](https://example.org/x)\n"), [])

    def test_a_link_to_nothing_is_found(self):
        self.write("docs/b.md", "# Title\n")
        text = "[x](missing.md) [y](b.md#other) <img src=\"missing.svg\">\n"
        self.assertEqual(self.rules("docs/a.md", text), ["link", "link", "link"])

    def test_a_fence_holds_no_links(self):
        self.assertEqual(self.rules("docs/a.md", "```\n[x](missing.md)\n```\n"), [])


class Scripts(InCheckout):
    def test_a_script_that_does_not_parse_is_found(self):
        self.assertIn("shell", self.rules("tools/a", "#!/usr/bin/env bash\nif true; then\n"))
        self.assertEqual(self.rules("tools/b", "#!/usr/bin/python3\ndef f(:\n"), ["python"])

    def test_a_sound_script_passes(self):
        self.assertEqual(self.rules("tools/a", "#!/usr/bin/env bash\nprintf '%s\\n' \"$1\"\n"), [])


class Checkout(InCheckout):
    def test_a_source_that_nothing_builds_is_found(self):
        self.write("cli/CMakeLists.txt", "tj_program(tj SOURCES main.cc sub/run.cc ../api/a.cc ${CMAKE_SOURCE_DIR}/api/b.cc)\n")
        files = ["cli/CMakeLists.txt", "cli/main.cc", "cli/sub/run.cc", "api/a.cc", "api/b.cc", "cli/lost.cc", "cli/domain.cc"]
        self.assertEqual([found[0] for found in lint.check_listed(files, self.root)], ["cli/lost.cc", "cli/domain.cc"])

    def test_two_types_of_one_name_are_found(self):
        texts = {"cli/a.h": "namespace tj {\nstruct Size {\n  int a;\n};\nstruct Later;\n}  // namespace tj\n",
                 "cli/b.h": "namespace tj {\nclass Size final : public Base {};\n}  // namespace tj\n",
                 "cli/b.cc": "namespace tj {\nnamespace {\nstruct Size {};\nint f() {\n}\n}  // namespace\nstruct Size::Impl {};\n}  // namespace tj\n",
                 "cli/c.h": "namespace tj::other {\nstruct Size {};\n}  // namespace tj::other\n",
                 "tests/cli/d.h": "namespace tj {\nstruct Size {};\n}  // namespace tj\n"}
        for path, text in texts.items():
            self.write(path, text)
        self.assertEqual(list(lint.check_one_type(sorted(texts), self.root)),
                         [("cli/b.h", 2, "one-type", "tj::Size is another type in cli/a.h")])

    def test_a_test_that_nothing_runs_is_found(self):
        texts = {"tools/test/stages.py": 'STAGES = ["tests/soak/run --short"]\n',
                 "tests/soak/run": "#!/usr/bin/python3\nimport lives\nfrom support.waiting import until  # as orphan does\n",
                 "tests/soak/lives.py": "", "tests/soak/orphan.py": "import lives\n",
                 "tests/support/__init__.py": "", "tests/support/waiting.py": "",
                 "tests/check/run": "#!/bin/bash\n",
                 "tests/trainer/CMakeLists.txt": "foreach(story zero)\n  add_test(COMMAND python -m unittest test_${story})\n"
                                                 "add_test(COMMAND python -m unittest -v test_check.Pair)\n"
                                                 "add_test(COMMAND python ${CMAKE_CURRENT_SOURCE_DIR}/prepare_test.py)\n",
                 "tests/trainer/test_zero.py": "from world import World\n", "tests/trainer/test_one.py": "",
                 "tests/trainer/test_check.py": "", "tests/trainer/prepare_test.py": "",
                 "tests/trainer/job.yaml": "command: [python3, dump.py]\n", "tests/trainer/dump.py": "", "tests/trainer/world.py": "", "tests/soak/world.py": ""}
        for path, text in texts.items():
            self.write(path, text)
        self.assertEqual([found[0] for found in lint.check_run(sorted(texts), self.root)],
                         ["tests/check/run", "tests/soak/orphan.py", "tests/soak/world.py", "tests/trainer/test_one.py"])

    def test_a_folder_of_tests_is_run_by_a_pattern(self):
        texts = {"Makefile": "check:\n\ttests/check/run\n", "tests/check/run": '#!/bin/bash\ndiscover(".", pattern="*_test.py")\n',
                 "tests/check/a_test.py": "", "tests/check/other.py": "", "tests/soak/b_test.py": ""}
        for path, text in texts.items():
            self.write(path, text)
        self.assertEqual([found[0] for found in lint.check_run(sorted(texts), self.root)],
                         ["tests/check/other.py", "tests/soak/b_test.py"])

    def test_the_contract_stays_small(self):
        small = ["contract/names.h", "contract/result.h", "contract/a.h", "contract/a.cc", "contract/b.h", "contract/c.h"]
        small += [f"contract/part{i}.h" for i in range(lint.CONTRACT_PAIRS_MAX - 3)]
        self.assertEqual(list(lint.check_contract(small)), [])
        self.assertEqual(len(list(lint.check_contract(small + ["contract/d.h"]))), 1)


if __name__ == "__main__":
    unittest.main()
