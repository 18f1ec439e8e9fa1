"""The page of the chart behind a reverse proxy with TLS, set up as docs/page.md says: each person sees what their own token may read, and a
log comes line by line."""
import pathlib
import tempfile

import installs
import proxy
import stand_in
import world
import yaml
from world import equal, expect, get, kubectl, until

PAGE = f"{world.RELEASE}-page"
TEAMS = ("red", "blue")
SCRIPT = f"echo first; {stand_in.waits_for('page-second')}; echo second; {stand_in.waits_for('page-third')}; echo third; {stand_in.waits_for('page-end')}"


def upgraded(*arguments):
    installs.brought_up("upgrade", installs.CHART, "--reset-then-reuse-values", *arguments)


def the_page_is_switched_on():
    _, values = proxy.documented()
    with tempfile.TemporaryDirectory(prefix="tj-e2e-values-") as folder:
        path = pathlib.Path(folder, "page.yaml")
        path.write_text(values)
        upgraded("--values", path)
    wanted = yaml.safe_load(values)["page"]
    equal(wanted["hosts"], [proxy.HOST], "the host in the document")
    (rule,) = get("networkpolicy", PAGE, world.OPERATOR_NAMESPACE)["spec"]["ingress"]
    equal(rule, {"from": wanted["from"], "ports": [{"protocol": "TCP", "port": "http"}]}, "who may connect to the page")


def a_person_of(team):
    """A namespace in which somebody has the role `view` that Kubernetes has for people, and a job of theirs; a token."""
    kubectl("create", "namespace", team)
    kubectl("create", "serviceaccount", team, "-n", team)
    kubectl("create", "rolebinding", team, "-n", team, "--clusterrole=view", f"--serviceaccount={team}:{team}")
    world.apply(stand_in.job(f"job-of-{team}", SCRIPT), namespace=team)
    return kubectl("create", "token", team, "-n", team).strip()


def sees(entry, who, *jobs):
    entry.until(f"the page to list {jobs}", "/api/jobs", lambda content: [job["name"] for job in content["jobs"]] == list(jobs), **who)


def each_sees_their_own(entry, tokens):
    status, headers, _ = entry.ask("/api/sign-in", {"token": tokens["red"], "namespace": "red"})
    cookie = headers.get("Set-Cookie", "")
    expect(status == 200 and cookie.startswith("__Host-tj-page=") and "; Secure" in cookie, f"signing in: {status}, {cookie}")
    red = {"Cookie": cookie.partition(";")[0]}
    sees(entry, red, "job-of-red")
    equal(entry.ask("/api/session", **red)[2]["user"], "system:serviceaccount:red:red", "who has signed in")
    equal(entry.ask("/api/namespace", {"namespace": "blue"}, **red)[0], 200, "another namespace")
    told = entry.until("the page to say what is missing", "/api/jobs", lambda content: content["problem"], **red)
    expect(not told["jobs"] and 'User "system:serviceaccount:red:red" cannot list resource "trainingjobs"' in told["problem"], f"it told {told}")
    equal(entry.ask("/api/namespace", {"namespace": "red"}, **red)[0], 200, "the way back")
    # As a proxy does that logs people in: the token comes with each request.
    blue = {"Authorization": f"Bearer {tokens['blue']}"}
    equal(entry.ask("/api/namespace", {"namespace": "blue"}, **blue)[0], 200, "the namespace of the bearer")
    sees(entry, blue, "job-of-blue")
    sees(entry, red, "job-of-red")
    return red


def nobody_else_is_let_in(entry, tokens):
    equal(entry.ask("/api/jobs")[0], 401, "who shows nothing")
    equal(entry.ask("/api/jobs", Authorization="Bearer " + tokens["red"][:-4] + "AAAA")[0], 401, "who shows a forged token")
    status, _, said = entry.ask("/api/jobs", Authorization=f"Bearer {tokens['red']}", Host="evil.example")
    expect(status == 403 and "page.hosts" in str(said), f"another Host: {status}, {said}")
    equal(entry.ask("/api/sign-in", {"token": tokens["red"]}, Origin="https://evil.example")[0], 403, "another origin")


def a_log_comes_line_by_line(entry, who):
    """Each line is written only when the one before has been read: a proxy that keeps some back gets no further."""
    path = "/api/jobs/red/job-of-red/log?rank=1&attempt=0"
    stream = proxy.EventStream(entry, path, **who)
    stream.until_line("first")
    stand_in.release("page-second")
    stream.until_line("second")
    stream.close()
    again = proxy.EventStream(entry, path, Last_Event_ID=stream.last_id, **who)
    stand_in.release("page-third")
    again.until_line("third")
    again.close()
    equal((stream.lines, again.lines), (["first", "second"], ["third"]), "the lines before and after the break")


def removed():
    upgraded("--set", "page.enabled=false")
    until(60, "the page to go", lambda: not get("deployment", PAGE, world.OPERATOR_NAMESPACE) and not get("networkpolicy", PAGE, world.OPERATOR_NAMESPACE))
    stand_in.release("page-end")
    for team in TEAMS:
        kubectl("delete", "namespace", team, "--timeout=90s")
    proxy.Proxy.remove()


def the_page_behind_a_proxy_with_tls_shows_each_person_their_own():
    the_page_is_switched_on()
    tokens = {team: a_person_of(team) for team in TEAMS}
    entry = proxy.Proxy()
    red = each_sees_their_own(entry, tokens)
    nobody_else_is_let_in(entry, tokens)
    until(60, "the worker to run", lambda: (get("pod", "job-of-red-worker-1", "red") or {}).get("status", {}).get("phase") == "Running")
    a_log_comes_line_by_line(entry, red)
    said = kubectl("logs", f"deployment/{PAGE}", "-n", world.OPERATOR_NAMESPACE)
    expect("signed in: system:serviceaccount:red:red\n" in said, f"the page says {said}")
    equal([team for team, token in tokens.items() if token in said], [], "whose token the page has written down")
    removed()
