// Log-in plug-ins, as real programs: one that prints a token, an expired one, one that fails, talks
// nonsense, is slow or is not there. What kubectl says to the same: tests/kube/kubectl_test.py.
#include "cli/cluster/exec_plug_in.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/cluster/captured_program.h"
#include "cli/cluster/credentials.h"
#include "operator/kube/file_text.h"
#include "tests/kube/test_ca.h"

namespace tj {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;
using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kV1 = "client.authentication.k8s.io/v1";

std::string credential(const json& status, const std::string& version = kV1) {
  return json{{"kind", "ExecCredential"}, {"apiVersion", version}, {"status", status}}.dump();
}

class ExecPlugInTest : public testing::Test {
 protected:
  ExecPlugInTest() {
    dir_ = fs::path(testing::TempDir()) / ("tj_plug_in_" + std::to_string(getpid()));
    fs::create_directories(dir_);
  }
  ~ExecPlugInTest() override { fs::remove_all(dir_); }

  /// A program of shell commands.
  std::string program(const std::string& commands) {
    const fs::path path = dir_ / "login";
    std::ofstream(path) << "#!/bin/sh\n" << commands << "\n";
    fs::permissions(path, fs::perms::owner_all);
    return path;
  }
  std::string prints(const std::string& text) { return program("cat <<'END'\n" + text + "\nEND"); }

  KubeConfig config(const std::string& command) {
    KubeConfig made{.server = "https://api:6443", .source = "kc"};
    made.exec = ExecPlugIn{.api_version = kV1,
                           .command = command,
                           .interactive = ExecPlugIn::Interactive::never,
                           .field = "kc: users[u].user.exec"};
    return made;
  }
  std::string error_of(const std::string& command) {
    const auto answer = run_exec_plug_in(config(command));
    return answer ? "answered" : describe(answer.error());
  }

  fs::path dir_;
};

TEST_F(ExecPlugInTest, a_token_and_its_end_are_read) {
  const auto answer = run_exec_plug_in(config(
      prints(credential({{"token", "abc"}, {"expirationTimestamp", "2030-01-02T03:04:05Z"}}))));
  ASSERT_TRUE(answer) << describe(answer.error());
  EXPECT_EQ(answer->token, "abc");
  ASSERT_TRUE(answer->expires);
  EXPECT_EQ(std::chrono::system_clock::to_time_t(*answer->expires), 1893553445);
}

TEST_F(ExecPlugInTest, a_certificate_is_checked_against_its_key) {
  const TestCa ca("ca");
  const Issued me = ca.issue();
  const auto status = [&](const std::string& key) {
    return json{{"clientCertificateData", me.certificate_pem}, {"clientKeyData", key}};
  };
  const auto answer = run_exec_plug_in(config(prints(credential(status(me.key_pem)))));
  ASSERT_TRUE(answer) << describe(answer.error());
  EXPECT_EQ(answer->certificate_pem, me.certificate_pem);
  EXPECT_THAT(error_of(prints(credential(status(ca.issue().key_pem)))),
              AllOf(HasSubstr("users[u].user.exec"), HasSubstr("is not the key of the")));
}

TEST_F(ExecPlugInTest, it_is_told_what_it_asks_for) {
  KubeConfig asked =
      config(program("printf %s \"$KUBERNETES_EXEC_INFO\" >\"$OUT\"\n"
                     "echo \"$1 $2\" >>\"$OUT\"\n"
                     "cat >>\"$OUT\"\n"
                     "echo '" +
                     credential({{"token", "t"}}) + "'"));
  asked.ca_pem = "CA";
  asked.tls_server_name = "name";
  asked.exec_config_yaml = "{a: 1, b: [x]}";
  asked.exec->args = {"a b", "c"};
  asked.exec->env = {{"OUT", dir_ / "out"}};
  asked.exec->provide_cluster_info = true;
  const auto answer = run_exec_plug_in(asked);
  ASSERT_TRUE(answer) << describe(answer.error());
  const std::string told = *read_file_text(dir_ / "out");
  const json info = json::parse(told.substr(0, told.find('\n') - std::string("a b c").size()));
  EXPECT_EQ(info, (json{{"kind", "ExecCredential"},
                        {"apiVersion", kV1},
                        {"spec",
                         {{"interactive", false},
                          {"cluster",
                           {{"server", "https://api:6443"},
                            {"tls-server-name", "name"},
                            {"certificate-authority-data", "Q0E="},
                            {"config", {{"a", 1}, {"b", {"x"}}}}}}}}}));
  EXPECT_THAT(told, HasSubstr("a b c\n")) << "its arguments, and an empty standard input";
}

TEST_F(ExecPlugInTest, what_goes_wrong_names_the_field_and_the_program) {
  const std::string login = dir_ / "login";
  const std::string field = "kc: users[u].user.exec: ";
  struct Row {
    std::string command, expected;
  };
  EXPECT_EQ(error_of(program("exit 3")), field + login + ": failed with exit code 3");
  EXPECT_EQ(error_of(program("kill -9 $$")), field + login + ": was ended by signal 9 (Killed)");
  EXPECT_EQ(error_of(prints("hello")),
            field + login + " printed no ExecCredential on its standard output");
  EXPECT_EQ(error_of(prints("")),
            field + login + " printed no ExecCredential on its standard output");
  EXPECT_EQ(error_of(prints(credential({{"token", ""}}))),
            field + login + " didn't return a token or cert/key pair");
  EXPECT_EQ(error_of(prints(credential(nullptr))), field + login + " didn't return a status field");
  EXPECT_EQ(error_of(prints(credential({{"clientKeyData", "x"}}))),
            field + login + " returned only certificate or key, not both");
  EXPECT_THAT(
      error_of(prints(credential({{"token", "t"}}, "client.authentication.k8s.io/v1beta1"))),
      AllOf(HasSubstr(field), HasSubstr("is configured to use API version"),
            HasSubstr("returned version client.authentication.k8s.io/v1beta1")));
  EXPECT_THAT(error_of(prints(credential({{"token", "a\nb"}}))), HasSubstr("of several lines"));
  EXPECT_THAT(error_of(prints(credential({{"token", "t"}, {"expirationTimestamp", "soon"}}))),
              HasSubstr("that is no time of RFC 3339"));
}

TEST_F(ExecPlugInTest, one_that_is_not_installed_says_how_to_get_it) {
  KubeConfig missing = config("no-such-login-program");
  missing.exec->install_hint = "Get it from\nhttps://example.com\n";
  EXPECT_EQ(describe(run_exec_plug_in(missing).error()),
            "kc: users[u].user.exec: no-such-login-program: not found; this program logs in to the "
            "cluster and is not installed, or not in PATH\nGet it from\nhttps://example.com");
  EXPECT_THAT(error_of((dir_ / "none").string()), HasSubstr("none: not found"));
}

TEST_F(ExecPlugInTest, always_interactive_needs_a_terminal) {
  KubeConfig needs = config(prints("x"));
  needs.exec->interactive = ExecPlugIn::Interactive::always;
  if (::isatty(0) == 1) GTEST_SKIP() << "this test's standard input is a terminal";
  EXPECT_THAT(describe(run_exec_plug_in(needs).error()),
              HasSubstr("its interactiveMode is Always, and standard input is no terminal"));
}

TEST_F(ExecPlugInTest, a_program_has_a_deadline_and_a_bound) {
  const auto slow =
      run_captured({.program = program("exec sleep 60"), .deadline = milliseconds(100)});
  ASSERT_FALSE(slow);
  EXPECT_EQ(slow.error().code, Code::timeout);
  const auto closed =
      run_captured({.program = program("exec >&-; exec sleep 60"), .deadline = milliseconds(100)});
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code, Code::timeout) << "it has closed its output and does not end";
  const auto loud = run_captured({.program = program("yes"), .output_bytes_max = 10'000});
  ASSERT_FALSE(loud);
  EXPECT_EQ(loud.error().message, "prints more than 10000 bytes");
  EXPECT_EQ(*run_captured({.program = "sh", .args = {"-c", "echo $HOME"}, .env = {"HOME=/x"}}),
            "/x\n");
}

TEST_F(ExecPlugInTest, it_runs_once_and_again_after_its_end_and_after_a_401) {
  int runs = 0;
  auto now = std::chrono::system_clock::time_point(std::chrono::hours(1));
  Credentials credentials(
      config("x"),
      [&](const KubeConfig&) -> Result<ExecCredential> {
        return ExecCredential{.token = "t" + std::to_string(++runs),
                              .expires = now + std::chrono::minutes(1)};
      },
      [&] { return now; });
  const auto token = [&] { return credentials.current()->token; };
  EXPECT_EQ(token(), "t1");
  EXPECT_EQ(token(), "t1");
  now += std::chrono::seconds(61);
  EXPECT_EQ(token(), "t2");
  const Authority refused = *credentials.current();
  EXPECT_TRUE(credentials.renew(refused));
  EXPECT_EQ(token(), "t3");
  EXPECT_TRUE(credentials.renew(refused)) << "renewed already: the next one is tried";
  EXPECT_EQ(runs, 3);
}

TEST_F(ExecPlugInTest, headers_say_who_we_are_and_for_whom) {
  KubeConfig basic{.server = "https://api:6443", .username = "me", .password = "p:w"};
  basic.impersonation = {
      .user = "boss", .uid = "7", .groups = {"a", "b"}, .extra = {{"example.com/x", "y"}}};
  const auto authority = Credentials(basic).current();
  ASSERT_TRUE(authority) << describe(authority.error());
  std::string all;
  for (const Header& header : authority->headers) all += header.name + ": " + header.value + "\n";
  EXPECT_EQ(all,
            "Authorization: Basic bWU6cDp3\nImpersonate-User: boss\nImpersonate-Uid: 7\n"
            "Impersonate-Group: a\nImpersonate-Group: b\nImpersonate-Extra-example.com%2Fx: y\n");
}

}  // namespace
}  // namespace tj
