// Where the server's address and our credentials come from; each error must name file and field.
#include "operator/kube/kube_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "cli/cluster/base64.h"
#include "operator/kube/token_source.h"
#include "tests/kube/test_ca.h"

namespace tj {
namespace {
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;

class KubeConfigFile : public testing::Test {
 protected:
  KubeConfigFile() {
    dir_ =
        std::filesystem::path(testing::TempDir()) / ("tj_kubeconfig_" + std::to_string(getpid()));
    std::filesystem::create_directories(dir_);
    write("ca.crt", ca_.pem());
    write("me.crt", me_.certificate_pem);
    write("me.key", me_.key_pem);
  }
  ~KubeConfigFile() override { std::filesystem::remove_all(dir_); }

  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(dir_ / name) << text;
    return dir_ / name;
  }
  /// A kubeconfig with one cluster and one user, whose fields are given as YAML in braces.
  std::string config(const std::string& cluster, const std::string& user) {
    return write("config",
                 "current-context: here\n"
                 "contexts: [{name: here, context: {cluster: c, user: u, namespace: team}}]\n"
                 "clusters: [{name: c, cluster: {" +
                     cluster +
                     "}}]\n"
                     "users: [{name: u, user: {" +
                     user + "}}]\n");
  }
  Result<KubeConfig> load(const std::string& kubeconfig = "", const std::string& context = "") {
    return load_kube_config({.kubeconfig = kubeconfig,
                             .context = context,
                             .env = [this](const char* name) { return env_[name]; },
                             .service_account_dir = dir_});
  }
  Result<KubeConfig> load_for_person(const std::string& kubeconfig = "") {
    return load_kube_config({.kubeconfig = kubeconfig,
                             .env = [this](const char* name) { return env_[name]; },
                             .service_account_dir = dir_,
                             .reader = ConfigReader::person});
  }
  std::string persons_error_of(const std::string& cluster, const std::string& user) {
    const auto loaded = load_for_person(config(cluster, user));
    return loaded ? "loaded" : describe(loaded.error());
  }
  std::string error_of(const std::string& cluster, const std::string& user) {
    const auto loaded = load(config(cluster, user));
    return loaded ? "loaded" : describe(loaded.error());
  }

  const TestCa ca_{"ca"};
  const Issued me_ = ca_.issue({.common_name = "me"});
  std::filesystem::path dir_;
  std::map<std::string, std::string> env_;
  const std::string server_ = "server: 'https://10.0.0.1:6443'";
};

TEST_F(KubeConfigFile, files_are_relative_to_the_kubeconfig) {
  const auto loaded = load(config(server_ + ", certificate-authority: ca.crt, tls-server-name: api",
                                  "client-certificate: me.crt, client-key: me.key"));
  ASSERT_TRUE(loaded) << describe(loaded.error());
  EXPECT_EQ(loaded->server, "https://10.0.0.1:6443");
  EXPECT_EQ(loaded->tls_server_name, "api");
  EXPECT_EQ(loaded->ca_pem, ca_.pem());
  EXPECT_EQ(loaded->client_certificate_pem, me_.certificate_pem);
  EXPECT_EQ(loaded->client_key_pem, me_.key_pem);
  EXPECT_EQ(loaded->ns, "team");
}

TEST_F(KubeConfigFile, data_fields_are_base64_and_win) {
  const auto loaded =
      load(config(server_ + ", certificate-authority: missing, certificate-authority-data: " +
                      base64(ca_.pem()),
                  "client-certificate-data: " + base64(me_.certificate_pem) +
                      ", client-key-data: " + base64(me_.key_pem)));
  ASSERT_TRUE(loaded) << describe(loaded.error());
  EXPECT_EQ(loaded->ca_pem, ca_.pem());
  EXPECT_EQ(loaded->client_key_pem, me_.key_pem);
}

TEST_F(KubeConfigFile, tokens_come_as_text_or_as_a_file) {
  write("token", "secret\n");
  EXPECT_EQ(load(config(server_, "token: abc"))->token, "abc");
  EXPECT_EQ(load(config(server_, "tokenFile: token"))->token_file, (dir_ / "token").string());
}

TEST_F(KubeConfigFile, the_flag_beats_the_variable_which_beats_the_pod) {
  const std::string file = config(server_, "token: abc");
  env_["KUBERNETES_SERVICE_HOST"] = "10.96.0.1";
  env_["KUBERNETES_SERVICE_PORT"] = "443";
  write("token", "secret");
  write("namespace", "system\n");
  const auto pod = load();
  ASSERT_TRUE(pod) << describe(pod.error());
  EXPECT_EQ(pod->server, "https://10.96.0.1:443");
  EXPECT_EQ(pod->token_file, (dir_ / "token").string());
  EXPECT_EQ(pod->ns, "system");
  env_["KUBECONFIG"] = file;
  EXPECT_EQ(load()->server, "https://10.0.0.1:6443");
  env_["KUBECONFIG"] = "/nonexistent";
  EXPECT_EQ(load(file)->server, "https://10.0.0.1:6443");
}

TEST_F(KubeConfigFile, an_ipv6_service_is_reached_by_its_name) {
  env_["KUBERNETES_SERVICE_HOST"] = "fd00::1";
  env_["KUBERNETES_SERVICE_PORT"] = "443";
  write("token", "secret");
  EXPECT_EQ(load()->server, "https://kubernetes.default.svc:443");
}

TEST_F(KubeConfigFile, several_files_are_read_as_one) {
  const std::string contexts =
      write("contexts",
            "current-context: far\ncontexts: [{name: far, context: {cluster: c, user: u}}]\n");
  env_["KUBECONFIG"] = "/nonexistent:" + contexts + ":" + config(server_, "token: abc");
  const auto loaded = load();
  ASSERT_TRUE(loaded) << describe(loaded.error());
  EXPECT_EQ(loaded->token, "abc");
  EXPECT_EQ(loaded->ns, "default");
}

TEST_F(KubeConfigFile, home_comes_last_and_nothing_is_said_so) {
  env_["HOME"] = dir_;
  EXPECT_THAT(describe(load().error()),
              AllOf(HasSubstr("--kubeconfig"), HasSubstr("KUBECONFIG"), EndsWith("/.kube/config")));
  std::filesystem::create_directories(dir_ / ".kube");
  std::filesystem::rename(config(server_, "token: abc"), dir_ / ".kube" / "config");
  EXPECT_TRUE(load());
}

TEST_F(KubeConfigFile, each_bad_field_is_named) {
  const std::string file = (dir_ / "config").string();
  struct Row {
    std::string cluster, user, expected;
  };
  const std::vector<Row> table = {
      {"", "token: t", "clusters[c].cluster.server is \"\"; it must begin with https://"},
      {"server: 'http://x'", "", "clusters[c].cluster.server is \"http://x\"; it must"},
      {"server: 'https://[fd00::1]:6443'", "", "an IPv6 address can't be used here"},
      {server_ + ", insecure-skip-tls-verify: true", "",
       "clusters[c].cluster.insecure-skip-tls-verify is true; the server's certificate is always"},
      {server_ + ", proxy-url: 'http://p'", "", "clusters[c].cluster.proxy-url"},
      {server_ + ", certificate-authority: none.crt", "",
       "clusters[c].cluster.certificate-authority: " + (dir_ / "none.crt").string() +
           ": can't be read: No such file"},
      {server_ + ", certificate-authority: me.key", "", "holds no PEM certificate"},
      {server_ + ", certificate-authority-data: '?'", "",
       "clusters[c].cluster.certificate-authority-data: is not base64"},
      {server_, "exec: {command: aws}", "users[u].user.exec: log-in plug-ins are not supported"},
      {server_, "auth-provider: {name: gcp}", "users[u].user.auth-provider: log-in plug-ins"},
      {server_, "username: admin", "users[u].user.username: is not supported"},
      {server_, "client-certificate: me.crt", "users[u].user.client-key: is missing"},
      {server_, "client-key: me.key", "users[u].user.client-certificate: is missing"},
      {server_, "client-certificate: me.crt, client-key: ca.crt", "holds no PEM private key"},
      {server_, "tokenFile: none", "users[u].user.tokenFile: " + (dir_ / "none").string()}};
  for (const Row& row : table) {
    std::string expected = row.expected;
    const auto is = expected.find(" is ");
    if (expected.rfind("clusters[c]", 0) == 0 && is != std::string::npos &&
        expected.find(": ") > is) {
      expected.replace(is, 4, ": is ");  // a field and its value are parted by a colon
    }
    EXPECT_THAT(error_of(row.cluster, row.user), HasSubstr(expected)) << row.cluster << row.user;
  }
  EXPECT_THAT(error_of("", ""), HasSubstr(file));
}

TEST_F(KubeConfigFile, a_key_of_another_certificate_is_refused) {
  write("other.key", ca_.issue().key_pem);
  EXPECT_THAT(error_of(server_, "client-certificate: me.crt, client-key: other.key"),
              AllOf(HasSubstr("other.key"), HasSubstr("is not the key of the certificate in"),
                    HasSubstr("me.crt")));
}

TEST_F(KubeConfigFile, names_that_lead_nowhere_are_named) {
  const std::string file = config(server_, "token: t");
  EXPECT_THAT(describe(load(file, "there").error()),
              HasSubstr("contexts: there is none named \"there\""));
  const std::string no_user =
      write("no_user",
            "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: nobody}}]\n"
            "clusters: [{name: c, cluster: {" +
                server_ + "}}]\n");
  EXPECT_THAT(describe(load(no_user).error()), HasSubstr("users: there is none named \"nobody\""));
  const std::string empty = write("empty", "clusters: []\n");
  EXPECT_THAT(describe(load(empty).error()), HasSubstr("current-context: is empty"));
}

TEST_F(KubeConfigFile, what_is_no_kubeconfig_is_refused) {
  EXPECT_THAT(describe(load("/nonexistent").error()), HasSubstr("/nonexistent: can't be read"));
  EXPECT_THAT(describe(load(write("a", "{unbalanced")).error()), HasSubstr("is not YAML"));
  EXPECT_THAT(describe(load(write("b", "text")).error()), HasSubstr("is not a kubeconfig"));
  EXPECT_THAT(describe(load(dir_).error()), HasSubstr("can't be read"));
  EXPECT_FALSE(load(write("c", "current-context: [1]\ncontexts: {a: b}\nclusters: 7\n")));
}

TEST_F(KubeConfigFile, a_pod_without_its_files_says_which) {
  env_["KUBERNETES_SERVICE_HOST"] = "10.96.0.1";
  EXPECT_THAT(describe(load().error()), HasSubstr("/token: can't be read"));
  write("token", " \n");
  EXPECT_THAT(describe(load().error()), HasSubstr("/token: is empty"));
  std::filesystem::remove(dir_ / "ca.crt");
  EXPECT_THAT(describe(load().error()), HasSubstr("/ca.crt: can't be read"));
}

TEST_F(KubeConfigFile, a_person_may_have_what_a_program_may_not) {
  const auto loaded = load_for_person(
      config("server: 'https://[fd00::1]:6443', insecure-skip-tls-verify: true, proxy-url: "
             "'http://p:3128'",
             "username: me, password: 's:cret', as: boss, as-uid: '7', as-groups: [a, b], "
             "as-user-extra: {scopes: [x, y]}"));
  ASSERT_TRUE(loaded) << describe(loaded.error());
  EXPECT_EQ(loaded->server, "https://[fd00::1]:6443");
  EXPECT_TRUE(loaded->insecure_skip_tls_verify);
  EXPECT_EQ(loaded->proxy_url, "http://p:3128");
  EXPECT_EQ(loaded->username, "me");
  EXPECT_EQ(loaded->password, "s:cret");
  EXPECT_EQ(loaded->impersonation, (Impersonation{.user = "boss",
                                                  .uid = "7",
                                                  .groups = {"a", "b"},
                                                  .extra = {{"scopes", "x"}, {"scopes", "y"}}}));
  EXPECT_FALSE(loaded->exec);
}

TEST_F(KubeConfigFile, an_exec_plug_in_is_read_with_all_its_fields) {
  const auto loaded = load_for_person(config(
      server_ + ", extensions: [{name: client.authentication.k8s.io/exec, extension: {a: 1}}]",
      "exec: {apiVersion: client.authentication.k8s.io/v1, command: bin/login, args: [a, '1'], "
      "env: [{name: A, value: b}], installHint: get it, interactiveMode: Never, "
      "provideClusterInfo: true}"));
  ASSERT_TRUE(loaded) << describe(loaded.error());
  EXPECT_EQ(loaded->exec,
            (ExecPlugIn{.api_version = "client.authentication.k8s.io/v1",
                        .command = (dir_ / "bin/login").string(),
                        .args = {"a", "1"},
                        .env = {{"A", "b"}},
                        .install_hint = "get it",
                        .interactive = ExecPlugIn::Interactive::never,
                        .provide_cluster_info = true,
                        .field = (dir_ / "config").string() + ": users[u].user.exec"}));
  EXPECT_THAT(loaded->exec_config_yaml, HasSubstr("a"));
  const std::string exec =
      "exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: login}";
  EXPECT_EQ(load_for_person(config(server_, exec))->exec->command, "login") << "looked for in PATH";
  EXPECT_FALSE(load_for_person(config(server_, "token: t, " + exec))->exec)
      << "as with kubectl, a token wins";
}

TEST_F(KubeConfigFile, each_field_that_is_wrong_for_a_person_is_named) {
  const std::string v1 = "apiVersion: client.authentication.k8s.io/v1";
  struct Row {
    std::string cluster, user, expected;
  };
  const std::vector<Row> table = {
      {"", "", "clusters[c].cluster.server: is \"\"; it must be scheme://host:port"},
      {"server: 'ftp://x:1'", "", "cluster.server: is \"ftp://x:1\"; it must begin with https://"},
      {"server: 'https://fd00::1:6443'", "", "an IPv6 address stands in brackets"},
      {server_ + ", insecure-skip-tls-verify: true, certificate-authority: ca.crt", "",
       "insecure-skip-tls-verify: is true, while there is a certificate-authority"},
      {server_ + ", proxy-url: 'gopher://p:1'", "",
       "proxy-url: is \"gopher://p:1\"; its scheme must be http, https or socks5"},
      {server_, "auth-provider: {name: gcp}", "user.auth-provider: is not supported, neither by"},
      {server_, "token: t, username: me", "user.username: is given beside a token"},
      {server_, "as-groups: [a]", "user.as: is missing, while there are as-groups"},
      {server_, "as: me, as-groups: a", "user.as-groups: is no list"},
      {server_, "as: \"a\\nb\"", "user.as: holds control characters"},
      {server_, "exec: {command: x}", "user.exec.apiVersion: is \"\"; it must be client"},
      {server_, "exec: {command: x, apiVersion: client.authentication.k8s.io/v1alpha1}",
       "exec.apiVersion: is \"client.authentication.k8s.io/v1alpha1\"; it must be"},
      {server_, "exec: {" + v1 + ", interactiveMode: Never}", "user.exec.command: is missing"},
      {server_, "exec: {" + v1 + ", command: x}",
       "user.exec.interactiveMode: is \"\"; it must be Never, IfAvailable or Always"},
      {server_, "exec: {" + v1 + ", command: x, interactiveMode: Never, env: [{value: x}]}",
       "exec.env[0].name: is \"\"; it must name a variable"},
      {server_, "exec: {" + v1 + ", command: x, interactiveMode: Never, args: [[1]]}",
       "exec.args[0]: is no text"}};
  for (const Row& row : table) {
    EXPECT_THAT(persons_error_of(row.cluster, row.user), HasSubstr(row.expected))
        << row.cluster << " " << row.user;
  }
}

TEST_F(KubeConfigFile, a_persons_own_file_comes_before_the_pods) {
  std::filesystem::create_directories(dir_ / ".kube");
  std::filesystem::rename(config(server_, "token: abc"), dir_ / ".kube" / "config");
  write("token", "secret");
  env_["HOME"] = dir_;
  env_["KUBERNETES_SERVICE_HOST"] = "10.96.0.1";
  EXPECT_EQ(load()->server, "https://10.96.0.1:443");
  EXPECT_EQ(load_for_person()->server, "https://10.0.0.1:6443");
}

TEST_F(KubeConfigFile, a_token_is_read_again_after_a_minute_and_outlives_its_file) {
  const std::string file = write("token", "one");
  TokenSource source("", file);
  const TokenSource::Instant start{};
  EXPECT_EQ(*source.current(start), "one");
  write("token", "two");
  EXPECT_EQ(*source.current(start + std::chrono::seconds(59)), "one");
  EXPECT_EQ(*source.current(start + std::chrono::seconds(60)), "two");
  EXPECT_FALSE(source.refresh("two", start + std::chrono::seconds(61)));
  EXPECT_TRUE(source.refresh("one", start + std::chrono::seconds(61))) << "renewed in the meantime";
  std::filesystem::remove(file);
  EXPECT_EQ(*source.current(start + std::chrono::hours(1)), "two");
  EXPECT_FALSE(TokenSource("", file).current(start));
}

}  // namespace
}  // namespace tj
