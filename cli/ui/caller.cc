#include "cli/ui/caller.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "contract/utf8.h"
#include "operator/api/read.h"

namespace tj::ui {
namespace {

constexpr int kUnauthorized = 401;
/// Who shows nothing, or nothing that the server knows, where it lets such requests in at all.
constexpr const char* kAnonymous = "system:anonymous";

std::string name_of(const std::string& ns) {
  return ns.empty() ? "cluster, all namespaces" : "cluster, namespace " + ns;
}

}  // namespace

void ask_who_we_are(KubeApi& api, std::function<void(Result<std::string> user)> done) {
  Request request{.verb = Verb::create, .resource = Resource::self_subject_reviews};
  request.body = R"({"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"})";
  api.send(std::move(request), [done = std::move(done)](const Result<std::string>& answer) {
    if (!answer) return done(answer.error());
    const auto review = read::parse(*answer);
    const auto& status = read::object_at(review, "status");
    const std::string user = read::string_at(read::object_at(status, "userInfo"), "username");
    if (user.empty() || user == kAnonymous)
      return done(Error{Code::forbidden, "the server does not know whose token this is", "", {}});
    done(std::string(utf8_prefix(with_invalid_utf8_replaced(user), Caller::kUserBytesMax)));
  });
}

/// What is seen of one namespace.
struct Caller::Sight {
  Board board;
  std::unique_ptr<Feed> feed;
  Site site;

  Sight(boost::asio::io_context& loop, KubeApi& api, const std::string& ns)
      : feed(cluster_feed(loop, api, board, ns, name_of(ns))), site(board, *feed) {
    feed->start();
  }
};

/// A log that is being read. It stands on the caller's client, so that it is ended with that.
class Caller::Log final : public HttpStream {
 public:
  Log(std::unique_ptr<HttpStream> inner, std::shared_ptr<OpenLogs> open)
      : inner_(std::move(inner)), open_(std::move(open)) {
    open_->insert(this);
  }
  ~Log() override { open_->erase(this); }
  void next(Give give) override {
    if (!inner_) return give(std::exchange(last_, {}));
    give_ = std::move(give);
    inner_->next([this](std::optional<std::string> chunk) {
      if (give_) std::exchange(give_, nullptr)(std::move(chunk));
    });
  }
  /// May end this object.
  void end(const std::string& why) {
    inner_.reset();
    last_ = end_event(why);
    if (give_) std::exchange(give_, nullptr)(std::exchange(last_, {}));
  }

 private:
  std::unique_ptr<HttpStream> inner_;
  std::shared_ptr<OpenLogs> open_;
  Give give_;
  std::optional<std::string> last_;
};

Caller::Caller(boost::asio::io_context& loop, std::unique_ptr<KubeApi> api, std::string user,
               std::string ns)
    : loop_(loop),
      api_(std::move(api)),
      user_(std::move(user)),
      ns_(std::move(ns)),
      sight_(std::make_unique<Sight>(loop_, *api_, ns_)) {}

Caller::~Caller() { end_logs("the page has ended"); }

bool Caller::has_problem() const { return sight_ && !sight_->feed->problem().empty(); }

void Caller::choose(std::string ns) {
  end_logs("another namespace was chosen");
  ns_ = std::move(ns);
  sight_ = std::make_unique<Sight>(loop_, *api_, ns_);
}

HttpReply Caller::answer(const HttpQuestion& question) {
  if (!sight_) return {.status = kUnauthorized, .body = "signed out\n"};
  HttpReply reply = sight_->site.answer_allowed(question);
  if (reply.stream) reply.stream = std::make_unique<Log>(std::move(reply.stream), logs_);
  return reply;
}

void Caller::end(const std::string& why) {
  end_logs(why);
  sight_.reset();
}

void Caller::end_logs(const std::string& why) {
  const OpenLogs open = *logs_;  // one that has ended leaves the set
  for (Log* log : open) {
    if (logs_->contains(log)) log->end(why);
  }
}

}  // namespace tj::ui
