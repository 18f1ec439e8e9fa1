// What is shown for which address: #/ the list of jobs, #/job/NAMESPACE/NAME one of them. Where people sign in, that comes first.
import {fetchDocument, onSignedOut} from "./api.js";
import {JobsView} from "./jobs.js";
import {JobView} from "./job.js";
import {CallerBar, SignInView} from "./session.js";
import {startTheme} from "./theme.js";
import {setText} from "./dom.js";

const main = document.getElementById("main");
const problem = document.getElementById("problem");
const source = document.getElementById("source");
const bar = new CallerBar(enter, askToSignIn, (text) => frame.problem(text));
let view = null;
let firstNamespace = "";
let isSignedOut = false;

/** What views tell the frame around them. */
const frame = {
  source(text) {
    setText(source, text);
  },
  problem(text) {
    setText(problem, text ?? "");
    problem.hidden = !text;
  },
};

function viewOf(hash) {
  const parts = hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  if (parts[0] === "job" && parts.length === 3) return new JobView(frame, parts[1], parts[2]);
  return new JobsView(frame);
}

function change(make) {
  const isFirst = view === null;
  view?.close();
  frame.problem("");
  view = make();
  document.title = view.title;
  main.replaceChildren(view.element);
  scrollTo(0, 0);
  if (!isFirst) main.focus();
}

function show() {
  if (isSignedOut) return;
  if (location.hash && !location.hash.startsWith("#/")) return;  // a place within the page
  change(() => viewOf(location.hash));
}

function askToSignIn(why) {
  if (isSignedOut) return;  // what was asked before has been answered since
  isSignedOut = true;
  bar.show(null);
  frame.source("");
  change(() => new SignInView(firstNamespace, why, enter));
}

/** Somebody has signed in, or looks at another namespace. */
function enter(session) {
  isSignedOut = false;
  firstNamespace = session.namespace;
  bar.show(session);
  show();
}

async function begin() {
  const session = await fetchDocument("/api/session").catch(() => null);
  if (session?.sign_in) firstNamespace = session.namespace;
  if (isSignedOut) return;
  if (session?.sign_in && !session.user) return askToSignIn("");
  if (session?.sign_in) return enter(session);
  show();
}

document.querySelector("header").append(bar.element);
startTheme(document.getElementById("theme"));
onSignedOut(askToSignIn);
addEventListener("hashchange", show);
begin();
