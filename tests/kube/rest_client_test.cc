// The client against servers that fail: each fault ends within its deadline, as an error that names
// the server and the cause.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/x509.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "contract/utf8.h"
#include "tests/kube/rest_fixture.h"

namespace tj {
namespace {
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;

using RestClient = RestFixture;

TEST_P(RestClient, an_answer_comes_with_its_body_and_the_connection_is_kept) {
  serve([](const std::string&) { return reply(200, R"({"kind":"Pod"})"); });
  connect();
  for (int i = 0; i < 5; ++i) {
    const auto answer = loop_.ask(*api_, get_pod());
    ASSERT_TRUE(answer) << describe(answer.error());
    EXPECT_EQ(*answer, R"({"kind":"Pod"})");
  }
  EXPECT_EQ(server_->connections(), 1);
  EXPECT_THAT(server_->requests().front(),
              AllOf(HasSubstr("GET /api/v1/namespaces/ns/pods/p HTTP/1.1\r\n"),
                    has_header("Authorization", "Bearer t0\r\n"), HasSubstr("Host: 127.0.0.1:")));
}

TEST_P(RestClient, connections_are_kept_after_errors_too) {
  serve(
      [](const std::string&) { return reply(404, status_body(404, "pods \\\"p\\\" not found")); });
  connect();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(error_of(get_pod()), (Error{Code::not_found,
                                          "pods \"p\" not found",
                                          "GET " + server_->url() + "/api/v1/namespaces/ns/pods/p",
                                          {}}));
  }
  EXPECT_EQ(server_->connections(), 1);
}

TEST_P(RestClient, a_server_that_never_answers_meets_the_deadline) {
  serve([](const std::string&) { return Reply{.pieces = {}, .after = After::hang}; });
  connect();
  Request request = get_pod();
  request.deadline = milliseconds(200);
  const Error error = error_of(request);
  EXPECT_EQ(error.code, Code::timeout);
  EXPECT_THAT(describe(error),
              AllOf(HasSubstr(server_->url()), HasSubstr("no answer within 200 ms")));
}

TEST_P(RestClient, a_server_that_accepts_no_handshake_meets_the_deadline) {
  boost::asio::io_context io;
  boost::asio::ip::tcp::acceptor silent(
      io, {boost::asio::ip::make_address("127.0.0.1"), 0});  // connects, and that is all
  connect(config_for("https://127.0.0.1:" + std::to_string(silent.local_endpoint().port())));
  Request request = get_pod();
  request.deadline = milliseconds(200);
  EXPECT_EQ(error_of(request).code, Code::timeout);
}

TEST_P(RestClient, a_slow_drip_meets_the_deadline_of_the_whole_request) {
  serve([](const std::string&) {
    Reply drip{.pieces = {chunked_head()}, .between = milliseconds(20), .after = After::hang};
    for (int i = 0; i < 500; ++i) drip.pieces.push_back(chunk("x"));
    return drip;
  });
  connect();
  Request request = get_pod();
  std::string message;
  const auto has_begun = [&] { return message.find("bytes of the answer") != std::string::npos; };
  // The shortest deadline before which this machine brings the answer's first bytes.
  for (milliseconds deadline(300); !has_begun() && deadline < seconds(8); deadline *= 4) {
    request.deadline = deadline;
    const Error error = error_of(request);
    EXPECT_EQ(error.code, Code::timeout);
    message = error.message;
  }
  EXPECT_THAT(message, HasSubstr("bytes of the answer within " +
                                 std::to_string(request.deadline.count()) + " ms"));
}

TEST_P(RestClient, a_refused_connection_is_named) {
  boost::asio::io_context io;
  boost::asio::ip::tcp::acceptor taken(io, {boost::asio::ip::make_address("127.0.0.1"), 0});
  const std::string url = "https://127.0.0.1:" + std::to_string(taken.local_endpoint().port());
  taken.close();
  connect(config_for(url));
  const Error error = error_of(get_pod());
  EXPECT_EQ(error.code, Code::unavailable);
  EXPECT_THAT(describe(error), AllOf(HasSubstr(url), HasSubstr("connection refused")));
}

TEST_P(RestClient, an_authority_that_is_not_ours_is_refused) {
  const TestCa other("other-ca");
  serve([](const std::string&) { return reply(200, "{}"); });
  KubeConfig config = config_for(server_->url());
  config.ca_pem = other.pem();
  connect(config);
  const Error error = error_of(get_pod());
  EXPECT_EQ(error.code, Code::unavailable);
  EXPECT_THAT(describe(error), AllOf(HasSubstr(server_->url()), HasSubstr("CN=test-server"),
                                     HasSubstr("issuer certificate"), HasSubstr("the test's ca")));
  EXPECT_THAT(server_->requests(), SizeIs(0)) << "the token must not reach a stranger";
}

TEST_P(RestClient, an_expired_certificate_is_refused_with_its_dates) {
  serve([](const std::string&) { return reply(200, "{}"); },
        {.valid_from_seconds = -7200, .valid_to_seconds = -3600});
  connect();
  EXPECT_THAT(describe(error_of(get_pod())),
              AllOf(HasSubstr(server_->url()), HasSubstr("certificate has expired (valid from")));
}

TEST_P(RestClient, a_certificate_for_another_host_is_refused_with_its_names) {
  serve([](const std::string&) { return reply(200, "{}"); },
        {.names = "DNS:elsewhere,IP:10.0.0.1"});
  connect();
  EXPECT_THAT(describe(error_of(get_pod())),
              AllOf(HasSubstr(server_->url()), HasSubstr("DNS:elsewhere, IP Address:10.0.0.1"),
                    HasSubstr("not for 127.0.0.1")));
}

TEST_P(RestClient, tls_server_name_is_what_the_certificate_must_be_for) {
  serve([](const std::string&) { return reply(200, "{}"); }, {.names = "DNS:elsewhere"});
  KubeConfig config = config_for(server_->url());
  config.tls_server_name = "elsewhere";
  connect(config);
  const auto answer = loop_.ask(*api_, get_pod());
  EXPECT_TRUE(answer) << describe(answer.error());
}

TEST_P(RestClient, a_server_without_tls_is_named) {
  boost::asio::io_context io;
  boost::asio::ip::tcp::acceptor plain(io, {boost::asio::ip::make_address("127.0.0.1"), 0});
  std::jthread serve_once([&] {
    auto socket = plain.accept();
    boost::system::error_code ignored;
    boost::asio::write(socket, boost::asio::buffer(std::string("HTTP/1.1 400 Bad Request\r\n\r\n")),
                       ignored);
    std::array<char, 512> hello{};
    while (socket.read_some(boost::asio::buffer(hello), ignored) > 0) {}
  });
  connect(config_for("https://127.0.0.1:" + std::to_string(plain.local_endpoint().port())));
  EXPECT_THAT(error_of(get_pod()).message, HasSubstr("TLS: "));
}

TEST_P(RestClient, a_name_that_does_not_resolve_is_named) {
  connect(config_for("https://no-such-host.invalid:1"));
  EXPECT_THAT(describe(error_of(get_pod())),
              AllOf(HasSubstr("no-such-host.invalid"), HasSubstr("can't be resolved")));
}

TEST_P(RestClient, statuses_become_codes) {
  const std::vector<std::pair<int, Code>> table = {
      {400, Code::forbidden},   {401, Code::forbidden},   {403, Code::forbidden},
      {404, Code::not_found},   {409, Code::conflict},    {410, Code::gone},
      {405, Code::forbidden},   {413, Code::forbidden},   {415, Code::forbidden},
      {422, Code::forbidden},   {429, Code::unavailable}, {500, Code::unavailable},
      {503, Code::unavailable}, {504, Code::unavailable}, {301, Code::internal}};
  int status = 0;
  serve([&](const std::string&) { return reply(status, status_body(status, "because")); });
  connect();
  for (const auto& [number, code] : table) {
    status = number;
    const Error error = error_of(get_pod());
    EXPECT_EQ(error.code, code) << number;
    EXPECT_THAT(error.message, HasSubstr("because"));
  }
}

TEST_P(RestClient, only_the_servers_own_validation_is_final) {
  struct Row {
    const char* what;
    Code code;
    int status;
    const char* rest;  // of the Status
  };
  const std::vector<Row> table = {
      {"validation", Code::invalid, 422,
       R"("reason":"Invalid","message":"Pod \"a\" is invalid: spec: Required value",
          "details":{"kind":"Pod","causes":[{"reason":"FieldValueRequired","field":"spec"}]})"},
      {"a webhook without a code", Code::forbidden, 400,
       R"("message":"admission webhook \"w\" denied the request: not now")"},
      {"a webhook that says 422", Code::forbidden, 422,
       R"("reason":"Invalid","message":"admission webhook \"w\" denied the request: no",
          "details":{"causes":[{"field":"spec"}]})"},
      {"an admission policy", Code::forbidden, 422,
       R"("reason":"Invalid","message":"pods \"a\" is forbidden: ValidatingAdmissionPolicy 'p'
          with binding 'b' denied request: no","details":{"causes":[{"message":"no"}]})"},
      {"a 422 without words", Code::forbidden, 422, R"("reason":"Invalid")"},
      {"causes of another type", Code::forbidden, 422,
       R"("reason":"Invalid","details":{"causes":[3]})"},
      {"a field of the wrong type", Code::forbidden, 400,
       R"("reason":"BadRequest","message":"Pod in version \"v1\" cannot be handled as a Pod")"}};
  const Row* row = nullptr;
  serve([&](const std::string&) {
    std::string body = R"({"kind":"Status",)" + std::string(row->rest) + "}";
    std::erase(body, '\n');
    return reply(row->status, body);
  });
  connect();
  for (const Row& each : table) {
    row = &each;
    EXPECT_EQ(error_of(get_pod()).code, each.code) << each.what;
  }
}

TEST_P(RestClient, a_proxys_refusal_is_no_verdict_and_any_bytes_are_text) {
  int status = 413;
  serve([&](const std::string&) {
    return reply(status, "r\xe9sum\xe9 " + std::string(500, '\xff'));
  });
  connect();
  for (status = 400; status <= 418; ++status) {
    if (status == 401 || status == 407) continue;
    const Error error = error_of(get_pod());
    EXPECT_NE(error.code, Code::invalid) << status;
    EXPECT_EQ(valid_utf8_bytes(error.message), error.message.size()) << status;
    EXPECT_LE(error.message.size(), 210U);
    EXPECT_THAT(error.message, HasSubstr("r\xef\xbf\xbdsum\xef\xbf\xbd"));
  }
}

TEST_P(RestClient, an_answer_that_is_no_status_keeps_its_number_and_text) {
  serve([](const std::string&) { return reply(502, "<html>bad gateway</html>"); });
  connect();
  EXPECT_EQ(error_of(get_pod()).message, "HTTP 502: <html>bad gateway</html>");
}

TEST_P(RestClient, a_404_that_is_not_the_api_servers_says_nothing_of_the_object) {
  serve([](const std::string&) { return reply(404, "404 page not found"); });
  connect();
  const Error error = error_of(get_pod());
  EXPECT_EQ(error.code, Code::unavailable);
  EXPECT_EQ(error.message, "HTTP 404: 404 page not found");
}

TEST_P(RestClient, retry_after_is_read_from_header_and_body) {
  std::string headers = "Retry-After: 7\r\n";
  std::string body = status_body(429, "slow down");
  serve([&](const std::string&) { return reply(429, body, headers); });
  connect();
  EXPECT_EQ(error_of(get_pod()).retry_after, milliseconds(7'000));
  headers = "";
  body = R"({"kind":"Status","message":"m","code":429,"details":{"retryAfterSeconds":3}})";
  EXPECT_EQ(error_of(get_pod()).retry_after, milliseconds(3'000));
  body = R"({"kind":"Status","message":"m","code":429,"details":{"retryAfterSeconds":-1}})";
  EXPECT_EQ(error_of(get_pod()).retry_after, std::nullopt) << "time does not go back";
  headers = "Retry-After: soon\r\n";
  body = status_body(429, "slow down");
  EXPECT_EQ(error_of(get_pod()).retry_after, std::nullopt);
}

TEST_P(RestClient, a_body_beyond_the_bound_is_refused_however_it_is_sent) {
  const std::string large(300'000, 'x');
  bool chunked = false;
  serve([&](const std::string&) {
    if (!chunked) return reply(200, large);
    return Reply{.pieces = {chunked_head(), chunk(large.substr(0, 150'000)),
                            chunk(large.substr(150'000)), chunk("")}};
  });
  connect({.body_bytes_max = 100'000});
  for (const bool each : {false, true}) {
    chunked = each;
    const Error error = error_of(get_pod());
    EXPECT_THAT(describe(error),
                AllOf(HasSubstr(server_->url()), HasSubstr("larger than 100000 bytes")))
        << "chunked=" << chunked;
  }
}

TEST_P(RestClient, an_answer_cut_short_is_an_error) {
  serve([](const std::string&) {
    return Reply{.pieces = {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"},
                 .after = After::close};
  });
  connect();
  const Error error = error_of(get_pod());
  EXPECT_EQ(error.code, Code::unavailable);
  EXPECT_THAT(describe(error), AllOf(HasSubstr(server_->url()), HasSubstr("the connection broke")));
}

TEST_P(RestClient, a_rotated_token_is_used_after_a_401_at_once) {
  const auto file =
      std::filesystem::temp_directory_path() / ("tj_token_" + std::to_string(getpid()));
  const auto write = [&](const std::string& token) { std::ofstream(file) << token << "\n"; };
  write("old");
  serve([&](const std::string& request) {
    const bool fresh = request.find("Bearer new\r\n") != std::string::npos;
    if (fresh) return reply(200, "{}");
    write("new");  // as the kubelet does
    return reply(401, status_body(401, "Unauthorized"));
  });
  KubeConfig config = config_for(server_->url());
  config.token_file = file;
  connect(config);
  EXPECT_TRUE(loop_.ask(*api_, get_pod()));
  EXPECT_TRUE(loop_.ask(*api_, get_pod()));
  EXPECT_THAT(server_->requests(), SizeIs(3));
  std::filesystem::remove(file);
  EXPECT_TRUE(loop_.ask(*api_, get_pod())) << "a token we have outlives its file";
}

TEST_P(RestClient, a_401_without_a_new_token_is_not_repeated) {
  serve([](const std::string&) { return reply(401, status_body(401, "Unauthorized")); });
  connect();
  const Error error = error_of(get_pod());
  EXPECT_EQ(error.code, Code::forbidden);
  EXPECT_THAT(error.message, AllOf(HasSubstr("401"), HasSubstr("does not accept our certificate")));
  EXPECT_THAT(server_->requests(), SizeIs(1));
}

TEST_P(RestClient, a_token_file_that_is_missing_is_named) {
  serve([](const std::string&) { return reply(200, "{}"); });
  KubeConfig config = config_for(server_->url());
  config.token_file = "/nonexistent/token";
  connect(config);
  const Error error = error_of(get_pod());
  EXPECT_EQ(error.code, Code::forbidden) << "not_found would mean the pod";
  EXPECT_THAT(error.message, HasSubstr("/nonexistent/token: can't be read"));
}

TEST_P(RestClient, a_config_that_can_not_be_used_fails_each_request) {
  connect({.server = "https://127.0.0.1:1", .ca_pem = "no certificate", .ca_source = "ca.crt"});
  const Error error = error_of(get_pod());
  EXPECT_EQ(error.code, Code::unavailable) << "invalid would mean the object";
  EXPECT_EQ(error.message, "ca.crt: holds no PEM certificate");
}

TEST_P(RestClient, writes_carry_method_type_and_body) {
  serve([](const std::string&) { return reply(201, "{}"); });
  connect();
  using enum Verb;
  ASSERT_TRUE(
      loop_.ask(*api_, {.verb = create, .resource = Resource::pods, .ns = "n", .body = "{1}"}));
  ASSERT_TRUE(loop_.ask(*api_, {.verb = patch_status,
                                .resource = Resource::training_jobs,
                                .ns = "n",
                                .name = "j",
                                .body = "{2}"}));
  ASSERT_TRUE(loop_.ask(
      *api_,
      {.verb = remove, .resource = Resource::services, .ns = "n", .name = "s", .body = "{3}"}));
  ASSERT_TRUE(loop_.ask(
      *api_,
      {.verb = replace, .resource = Resource::leases, .ns = "n", .name = "l", .body = "{4}"}));
  const auto requests = server_->requests();
  EXPECT_THAT(requests[0], AllOf(HasSubstr("POST /api/v1/namespaces/n/pods HTTP"),
                                 has_header("Content-Type", "application/json"), HasSubstr("{1}")));
  EXPECT_THAT(
      requests[1],
      AllOf(HasSubstr("PATCH /apis/kubebrain.io/v1/namespaces/n/trainingjobs/j/status HTTP"),
            has_header("Content-Type", "application/merge-patch+json"), HasSubstr("{2}")));
  EXPECT_THAT(requests[2],
              AllOf(HasSubstr("DELETE /api/v1/namespaces/n/services/s HTTP"), HasSubstr("{3}")));
  EXPECT_THAT(requests[3],
              AllOf(HasSubstr("PUT /apis/coordination.k8s.io/v1/namespaces/n/leases/l HTTP"),
                    has_header("Content-Type", "application/json"), HasSubstr("{4}")));
}

TEST_P(RestClient, lists_and_watches_carry_encoded_parameters) {
  serve([](const std::string&) { return reply(200, "{}"); });
  connect();
  ASSERT_TRUE(loop_.ask(*api_, {.verb = Verb::list,
                                .resource = Resource::pods,
                                .label_selector = "a/b=c,d!=e",
                                .continue_token = "x+/="}));
  ASSERT_TRUE(loop_.ask(*api_, {.verb = Verb::list,
                                .resource = Resource::events,
                                .ns = "n",
                                .field_selector = "involvedObject.name=p"}));
  ASSERT_TRUE(loop_.ask(*api_, {.verb = Verb::get, .resource = Resource::nodes, .name = "n1"}));
  ASSERT_TRUE(loop_.ask(*api_, {.verb = Verb::list, .resource = Resource::network_policies}));
  WatchLog log;
  const auto stream = api_->watch({.resource = Resource::training_jobs,
                                   .ns = "n",
                                   .resource_version = "7",
                                   .timeout = seconds(30)},
                                  log.handler());
  ASSERT_TRUE(loop_.run_until([&] { return log.end.has_value(); }));
  EXPECT_THAT(server_->requests()[0],
              HasSubstr("GET /api/v1/pods?labelSelector=a%2Fb%3Dc%2Cd%21%3De&limit=500&continue="
                        "x%2B%2F%3D HTTP"));
  EXPECT_THAT(server_->requests()[1],
              HasSubstr("GET /api/v1/namespaces/n/events?fieldSelector=involvedObject.name%3Dp&"
                        "limit=500 HTTP"));
  EXPECT_THAT(server_->requests()[2], HasSubstr("GET /api/v1/nodes/n1 HTTP"));
  EXPECT_THAT(server_->requests()[3],
              HasSubstr("GET /apis/networking.k8s.io/v1/networkpolicies?limit=500 HTTP"));
  EXPECT_THAT(server_->requests()[4],
              HasSubstr("GET /apis/kubebrain.io/v1/namespaces/n/trainingjobs?watch=true&"
                        "allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=30 HTTP"));
}

TEST_P(RestClient, each_finished_request_is_observed_before_its_callback) {
  serve([](const std::string&) { return reply(404, status_body(404, "no")); });
  std::vector<std::string> codes;
  connect({.observe = [&](const RequestObservation& seen) {
    codes.push_back(to_string(seen.verb) + std::string(" ") + to_string(seen.resource) + " " +
                    seen.code);
    EXPECT_GT(seen.seconds.count(), 0);
  }});
  static_cast<void>(loop_.ask(*api_, get_pod()));
  EXPECT_THAT(codes, testing::ElementsAre("get pods 404"));
}

TEST_P(RestClient, no_callback_starts_after_the_client_is_gone) {
  serve([](const std::string&) { return Reply{.pieces = {}, .after = After::hang}; });
  connect();
  bool called = false;
  api_->send(get_pod(), [&](Result<std::string>) { called = true; });
  ASSERT_TRUE(loop_.run_until([&] { return !server_->requests().empty(); }));
  api_.reset();
  EXPECT_FALSE(loop_.run_until([&] { return called; }, milliseconds(100)));
}

INSTANTIATE_TEST_SUITE_P(Clients, RestClient,
                         testing::Values(Client::of_operator, Client::of_person), client_name);

/// The last handler of exit() that runs, after all that OpenSSL may have registered.
void end_as_openssl_is() { ::_exit(X509_STORE_new() == nullptr ? 1 : 0); }

TEST(RestClientDeathTest, openssl_is_still_there_when_the_http_thread_ends) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process in which nobody has used it before
  EXPECT_EXIT(
      {
        std::atexit(end_as_openssl_is);
        ClientLoop loop;
        const RestKubeApi api({.server = "https://127.0.0.1:1", .source = "test"}, loop.post());
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tj
