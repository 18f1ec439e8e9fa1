// One failing server, one client: what the tests of requests and of watches share. Both clients of
// a real server are held to the same rules: the operator's and that of a person's tools.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "cli/cluster/cluster_api.h"
#include "tests/kube/client_loop.h"
#include "tests/kube/fault_server.h"

namespace tj {

inline const TestCa& test_ca() {
  static const TestCa authority("test-ca");
  return authority;
}

inline KubeConfig config_for(const std::string& url) {
  return {.server = url,
          .ca_pem = test_ca().pem(),
          .token = "t0",
          .source = "test",
          .ca_source = "the test's ca"};
}

inline std::string status_body(int code, const std::string& message) {
  return R"({"kind":"Status","apiVersion":"v1","status":"Failure","message":")" + message +
         R"(","code":)" + std::to_string(code) + "}";
}

enum class Client { of_operator, of_person };

inline std::string client_name(const testing::TestParamInfo<Client>& info) {
  return info.param == Client::of_operator ? "of_operator" : "of_person";
}

inline Request get_pod() {
  return {.verb = Verb::get,
          .resource = Resource::pods,
          .ns = "ns",
          .name = "p",
          .deadline = std::chrono::seconds(20)};
}

/// A header's line, whether or not a blank follows its colon.
inline auto has_header(const std::string& name, const std::string& value) {
  return testing::AnyOf(testing::HasSubstr("\r\n" + name + ":" + value),
                        testing::HasSubstr("\r\n" + name + ": " + value));
}

inline std::unique_ptr<KubeApi> make_client(Client client, ClientLoop& loop,
                                            const KubeConfig& config, RestOptions options = {}) {
  if (client == Client::of_operator)
    return std::make_unique<RestKubeApi>(config, loop.post(), std::move(options));
  const auto no_variables = [](const char*) { return std::string(); };
  return std::make_unique<ClusterApi>(loop.io(), config, no_variables, std::move(options));
}

class RestFixture : public testing::TestWithParam<Client> {
 protected:
  void serve(FaultServer::Handler handler, const CertificateSpec& spec = {}) {
    server_ = std::make_unique<FaultServer>(test_ca().issue(spec), std::move(handler));
  }
  KubeApi& connect(const KubeConfig& config, RestOptions options = {}) {
    api_ = make_client(GetParam(), loop_, config, std::move(options));
    return *api_;
  }
  KubeApi& connect(RestOptions options = {}) {
    return connect(config_for(server_->url()), std::move(options));
  }
  Error error_of(Request request) {
    const auto answer = loop_.ask(*api_, std::move(request));
    return answer ? Error{Code::internal, "succeeded: " + *answer, "", {}} : answer.error();
  }

  ClientLoop loop_;
  std::unique_ptr<FaultServer> server_;
  std::unique_ptr<KubeApi> api_;
};

}  // namespace tj
