// One failing server, one client: what the tests of requests and of watches share.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>

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

class RestFixture : public testing::Test {
 protected:
  void serve(FaultServer::Handler handler, const CertificateSpec& spec = {}) {
    server_ = std::make_unique<FaultServer>(test_ca().issue(spec), std::move(handler));
  }
  RestKubeApi& connect(KubeConfig config, RestOptions options = {}) {
    api_ = std::make_unique<RestKubeApi>(config, loop_.post(), std::move(options));
    return *api_;
  }
  RestKubeApi& connect(RestOptions options = {}) {
    return connect(config_for(server_->url()), std::move(options));
  }
  Error error_of(Request request) {
    const auto answer = loop_.ask(*api_, std::move(request));
    return answer ? Error{Code::internal, "succeeded: " + *answer, "", {}} : answer.error();
  }

  ClientLoop loop_;
  std::unique_ptr<FaultServer> server_;
  std::unique_ptr<RestKubeApi> api_;
};

}  // namespace tj
