#include "operator/local/object_store.h"

#include <gtest/gtest.h>

#include "tests/local/hand_loop.h"

namespace tj {
namespace {

using Json = nlohmann::json;

struct ObjectStoreTest : testing::Test {
  HandLoop loop;
  ObjectStore store{loop.clock(), {.list_objects_max = 2, .history_changes_max = 6}};

  static Json pod(const std::string& name, const std::string& owner_uid = "") {
    Json object = {{"metadata", {{"name", name}, {"labels", {{"app", "a"}}}}},
                   {"spec", {{"containers", Json::array({{{"name", "c"}}})}}}};
    if (!owner_uid.empty()) {
      object["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", names::kApiVersion},
                                                            {"kind", names::kKind},
                                                            {"name", "job"},
                                                            {"uid", owner_uid}}});
    }
    return object;
  }
  static Json job(const std::string& name) {
    return {{"apiVersion", names::kApiVersion},
            {"kind", names::kKind},
            {"metadata", {{"name", name}}},
            {"spec", {{"n", 1}}}};
  }
  Json create(Resource resource, const Json& object) {
    return store.create(resource, "default", object).value();
  }
  static std::string version_of(const Json& object) {
    return object["metadata"]["resourceVersion"];
  }
};

TEST_F(ObjectStoreTest, creation_gives_identity_and_drops_what_the_server_owns) {
  Json object = job("a");
  object["status"] = {{"phase", "Succeeded"}};
  object["metadata"]["uid"] = "mine";
  const Json made = create(Resource::training_jobs, object);
  EXPECT_EQ(made["metadata"]["uid"], "00000000-0000-4000-8000-000000000001");
  EXPECT_EQ(made["metadata"]["creationTimestamp"], format_time(loop.now));
  EXPECT_EQ(made["metadata"]["generation"], 1);
  EXPECT_EQ(made["metadata"]["namespace"], "default");
  EXPECT_EQ(made["metadata"]["resourceVersion"], "2");
  EXPECT_FALSE(made.contains("status"));
}

TEST_F(ObjectStoreTest, a_name_can_be_taken_once_and_again_after_deletion_with_a_new_uid) {
  const Json first = create(Resource::pods, pod("a"));
  const auto second = store.create(Resource::pods, "default", pod("a"));
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, Code::conflict);
  EXPECT_EQ(second.error().message, "pods \"a\" already exists");
  ASSERT_TRUE(store.remove(Resource::pods, {"default", "a"}).ok());
  EXPECT_NE(create(Resource::pods, pod("a"))["metadata"]["uid"], first["metadata"]["uid"]);
}

TEST_F(ObjectStoreTest, refusals_are_worded_as_the_real_server_words_them) {
  EXPECT_EQ(store.get(Resource::training_jobs, {"default", "a"}).error().message,
            "trainingjobs.kubebrain.io \"a\" not found");
  EXPECT_EQ(
      store.create(Resource::pods, "default", {{"metadata", {{"name", "p"}}}}).error().message,
      "Pod \"p\" is invalid: spec.containers: Required value");
  EXPECT_EQ(store.create(Resource::pods, "default", pod("Big")).error().code, Code::invalid);
  Json elsewhere = pod("a");
  elsewhere["metadata"]["namespace"] = "other";
  EXPECT_EQ(
      store.create(Resource::pods, "default", elsewhere).error().message,
      "the namespace of the provided object does not match the namespace sent on the request");
}

TEST_F(ObjectStoreTest, only_a_changed_spec_is_a_new_generation) {
  const Json made = create(Resource::training_jobs, job("a"));
  const ObjectKey key{"default", "a"};
  const Json labelled =
      store.patch(Resource::training_jobs, key, {{"metadata", {{"labels", {{"x", "y"}}}}}}).value();
  EXPECT_EQ(labelled["metadata"]["generation"], 1);
  EXPECT_NE(version_of(labelled), version_of(made));
  const Json respecified =
      store.patch(Resource::training_jobs, key, {{"spec", {{"n", 2}}}}).value();
  EXPECT_EQ(respecified["metadata"]["generation"], 2);
  const Json untouched = store.patch(Resource::training_jobs, key, {{"spec", {{"n", 2}}}}).value();
  EXPECT_EQ(version_of(untouched), version_of(respecified))
      << "a write that changes nothing is no new version";
}

TEST_F(ObjectStoreTest, a_status_patch_touches_the_status_alone) {
  create(Resource::training_jobs, job("a"));
  const Json patch = {{"metadata", {{"labels", {{"x", "y"}}}, {"uid", "other"}}},
                      {"spec", {{"n", 7}}},
                      {"status", {{"phase", "Running"}, {"gone", nullptr}}}};
  const Json patched = store.patch_status(Resource::training_jobs, {"default", "a"}, patch).value();
  EXPECT_EQ(patched["status"], Json({{"phase", "Running"}}));
  EXPECT_EQ(patched["spec"]["n"], 1);
  EXPECT_FALSE(patched["metadata"].contains("labels"));
  EXPECT_EQ(patched["metadata"]["generation"], 1);
}

TEST_F(ObjectStoreTest, a_stale_version_is_a_conflict_for_patch_and_put) {
  const Json made = create(Resource::training_jobs, job("a"));
  ASSERT_TRUE(store
                  .patch_status(Resource::training_jobs, {"default", "a"},
                                {{"status", {{"phase", "Running"}}}})
                  .ok());
  const Json guarded = {{"metadata", {{"resourceVersion", version_of(made)}}},
                        {"status", {{"phase", "Failed"}}}};
  const auto patched = store.patch_status(Resource::training_jobs, {"default", "a"}, guarded);
  ASSERT_FALSE(patched.ok());
  EXPECT_EQ(patched.error().code, Code::conflict);
  EXPECT_EQ(patched.error().message,
            "Operation cannot be fulfilled on trainingjobs.kubebrain.io \"a\": the object has been "
            "modified; please "
            "apply your changes to the latest version and try again");
  EXPECT_EQ(store.replace(Resource::training_jobs, made).error().code, Code::conflict);
  Json fresh = store.get(Resource::training_jobs, {"default", "a"}).value();
  fresh["spec"]["n"] = 5;
  fresh["status"] = {{"phase", "Pending"}};
  const Json put = store.replace(Resource::training_jobs, fresh).value();
  EXPECT_EQ(put["spec"]["n"], 5);
  EXPECT_EQ(put["status"]["phase"], "Running") << "PUT of the object does not write the status";
}

TEST_F(ObjectStoreTest, the_validation_hook_refuses_jobs) {
  ObjectStore strict(loop.clock(), {.validate_job = [](const Json& object) {
                       return object["spec"]["n"] == 0 ? "spec.n: Invalid value: 0" : "";
                     }});
  Json wrong = job("a");
  wrong["spec"]["n"] = 0;
  EXPECT_EQ(strict.apply(wrong).error().message,
            "TrainingJob.kubebrain.io \"a\" is invalid: spec.n: Invalid value: 0");
  ASSERT_TRUE(strict.apply(job("a")).ok());
  EXPECT_EQ(strict.apply(wrong).error().code, Code::invalid);
  EXPECT_EQ(strict.apply({{"kind", "Deployment"}, {"apiVersion", "apps/v1"}}).error().message,
            "no matches for kind \"Deployment\" in version \"apps/v1\"");
}

TEST_F(ObjectStoreTest, a_pod_that_runs_is_marked_first_and_goes_when_its_kubelet_says_so) {
  const Json made = create(Resource::pods, pod("a"));
  const ObjectKey key{"default", "a"};
  ASSERT_TRUE(store.bind_pod(key, "node-1").ok());
  const Json marked = store.remove(Resource::pods, key).value();
  EXPECT_EQ(marked["metadata"]["deletionGracePeriodSeconds"], 30);
  EXPECT_EQ(marked["metadata"]["deletionTimestamp"],
            format_time(loop.now + std::chrono::seconds{30}));
  const Json again = store.remove(Resource::pods, key).value();
  EXPECT_EQ(version_of(again), version_of(marked));
  const Json sooner = store.remove(Resource::pods, key, {{"gracePeriodSeconds", 5}}).value();
  EXPECT_EQ(sooner["metadata"]["deletionGracePeriodSeconds"], 5);
  EXPECT_EQ(store.finish_delete(key, "another-uid").error().code, Code::conflict);
  ASSERT_TRUE(store.finish_delete(key, made["metadata"]["uid"]).ok());
  EXPECT_EQ(store.get(Resource::pods, key).error().code, Code::not_found);
}

TEST_F(ObjectStoreTest, pods_that_never_started_or_have_ended_or_get_no_grace_go_at_once) {
  const ObjectKey key{"default", "a"};
  create(Resource::pods, pod("a"));
  ASSERT_TRUE(store.remove(Resource::pods, key).ok());
  EXPECT_FALSE(store.get(Resource::pods, key).ok()) << "never bound";

  create(Resource::pods, pod("a"));
  ASSERT_TRUE(store.bind_pod(key, "node-1").ok());
  ASSERT_TRUE(store.patch_status(Resource::pods, key, {{"status", {{"phase", "Failed"}}}}).ok());
  ASSERT_TRUE(store.remove(Resource::pods, key).ok());
  EXPECT_FALSE(store.get(Resource::pods, key).ok()) << "ended";

  create(Resource::pods, pod("a"));
  ASSERT_TRUE(store.bind_pod(key, "node-1").ok());
  ASSERT_TRUE(store.remove(Resource::pods, key, {{"gracePeriodSeconds", 0}}).ok());
  EXPECT_FALSE(store.get(Resource::pods, key).ok()) << "by force";
}

TEST_F(ObjectStoreTest, a_deletion_hits_only_the_uid_it_names) {
  const Json made = create(Resource::pods, pod("a"));
  const auto refused =
      store.remove(Resource::pods, {"default", "a"}, {{"preconditions", {{"uid", "other"}}}});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::conflict);
  EXPECT_EQ(refused.error().message,
            "Operation cannot be fulfilled on pods \"a\": Precondition failed: UID in "
            "precondition: other, UID in "
            "object meta: 00000000-0000-4000-8000-000000000001");
  EXPECT_TRUE(store
                  .remove(Resource::pods, {"default", "a"},
                          {{"preconditions", {{"uid", made["metadata"]["uid"]}}}})
                  .ok());
}

TEST_F(ObjectStoreTest, pages_of_a_list_show_one_moment_until_their_token_expires) {
  for (const char* name : {"a", "b", "c"}) create(Resource::pods, pod(name));
  const Json first = store.list(Resource::pods, {"", "app", ""}, "").value();
  ASSERT_EQ(first["items"].size(), 2u);
  EXPECT_EQ(first["kind"], "PodList");
  EXPECT_EQ(first["metadata"]["remainingItemCount"], 1);
  const std::string token = first["metadata"]["continue"];
  ASSERT_TRUE(store.remove(Resource::pods, {"default", "c"}).ok());
  const Json second = store.list(Resource::pods, {"", "app", ""}, token).value();
  ASSERT_EQ(second["items"].size(), 1u);
  EXPECT_EQ(second["items"][0]["metadata"]["name"], "c") << "it was there when the list began";
  EXPECT_EQ(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
  EXPECT_FALSE(second["metadata"].contains("continue"));
  store.compact();
  const auto expired = store.list(Resource::pods, {"", "app", ""}, token);
  ASSERT_FALSE(expired.ok());
  EXPECT_EQ(expired.error().code, Code::gone);
}

TEST_F(ObjectStoreTest, a_list_selects_by_the_fields_that_the_real_server_knows) {
  for (const char* name : {"a", "b"}) create(Resource::pods, pod(name));
  ASSERT_TRUE(store.bind_pod({"default", "b"}, "n1").ok());
  const auto names = [&](const std::string& field_selector) {
    std::string text;
    const Json found = store.list(Resource::pods, {"", "", field_selector}, "").value();
    for (const Json& item : found["items"]) text += item["metadata"]["name"];
    return text;
  };
  EXPECT_EQ(names("spec.nodeName=n1"), "b");
  EXPECT_EQ(names("spec.nodeName="), "a") << "an absent field is an empty one";
  EXPECT_EQ(names("status.phase=Pending,metadata.name!=b"), "a");
  EXPECT_EQ(store.list(Resource::pods, {"", "", "spec.hostname=x"}, "").error().message,
            "field label not supported: spec.hostname");
}

TEST_F(ObjectStoreTest, a_node_has_no_namespace_and_keeps_the_status_it_is_made_with) {
  const Json made =
      create(Resource::nodes, {{"metadata", {{"name", "n1"}}}, {"status", {{"phase", "Running"}}}});
  EXPECT_FALSE(made["metadata"].contains("namespace"));
  EXPECT_EQ(made["status"]["phase"], "Running");
  EXPECT_EQ(store.get(Resource::nodes, {"", "n1"}).value(), made);
  ASSERT_TRUE(
      store.apply({{"kind", "Node"}, {"apiVersion", "v1"}, {"metadata", {{"name", "n2"}}}}).ok());
  EXPECT_EQ(store.objects(Resource::nodes).size(), 2u);
}

TEST_F(ObjectStoreTest, a_lease_is_replaced_only_at_the_version_that_was_read) {
  Json lease = create(Resource::leases,
                      {{"metadata", {{"name", "l"}}}, {"spec", {{"holderIdentity", "a"}}}});
  EXPECT_EQ(lease["apiVersion"], "coordination.k8s.io/v1");
  const Json first = lease;
  lease["spec"]["holderIdentity"] = "b";
  EXPECT_EQ(store.replace(Resource::leases, lease).value()["spec"]["holderIdentity"], "b");
  EXPECT_EQ(
      store.replace(Resource::leases, first).error().message,
      "Operation cannot be fulfilled on leases.coordination.k8s.io \"l\": the object has been "
      "modified; please apply your changes to the latest version and try again");
  lease["metadata"].erase("resourceVersion");
  EXPECT_EQ(store.replace(Resource::leases, lease).error().message,
            "Lease.coordination.k8s.io \"l\" is invalid: metadata.resourceVersion: Invalid value: "
            "0x0: must be specified for an update");
}

TEST_F(ObjectStoreTest, history_has_a_bound_and_tells_from_where_on_it_is_complete) {
  for (int i = 0; i < 10; ++i) create(Resource::pods, pod("p" + std::to_string(i)));
  EXPECT_EQ(store.history().size(), 6u);
  EXPECT_EQ(store.history().front().version, store.compacted_version() + 1);
  EXPECT_EQ(store.history().back().version, store.version());
}

TEST_F(ObjectStoreTest, children_go_when_their_owner_is_gone) {
  const Json owner = create(Resource::training_jobs, job("job"));
  create(Resource::pods, pod("child", owner["metadata"]["uid"]));
  create(Resource::pods, pod("stray", "uid-of-nobody"));
  create(Resource::pods, pod("free"));
  EXPECT_EQ(store.collect_garbage(), 1) << "the stray";
  ASSERT_TRUE(store.bind_pod({"default", "child"}, "node-1").ok());
  ASSERT_TRUE(store.remove(Resource::training_jobs, {"default", "job"}).ok());
  EXPECT_EQ(store.collect_garbage(), 1);
  EXPECT_EQ(store.collect_garbage(), 0) << "the child is on its way already";
  const auto left = store.objects(Resource::pods);
  ASSERT_EQ(left.size(), 2u);
  EXPECT_TRUE(left[0]["metadata"].contains("deletionTimestamp"));
  EXPECT_EQ(left[1]["metadata"]["name"], "free");
}

}  // namespace
}  // namespace tj
