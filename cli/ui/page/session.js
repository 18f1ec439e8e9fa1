// Who looks at the page where several people reach it (tj serve): signing in with a token of the cluster, which namespace is
// looked at, signing out. The token is sent once; what is kept is a cookie that no script can read.
import {post} from "./api.js";
import {el, setText} from "./dom.js";

const NAMESPACE = {type: "text", maxlength: "63", pattern: "[a-z0-9]([a-z0-9\\-]*[a-z0-9])?", placeholder: "all",
                   autocomplete: "off", autocapitalize: "none", spellcheck: "false"};

export class SignInView {
  /** `onSignedIn` is given the session. */
  constructor(namespace, why, onSignedIn) {
    this.title = "Sign in – TrainingJobs";
    this.onSignedIn = onSignedIn;
    this.token = el("input", {type: "password", id: "token", required: true, autocomplete: "off", "aria-describedby": "token-help"});
    this.namespace = el("input", {...NAMESPACE, id: "first-namespace", value: namespace, "aria-describedby": "namespace-help"});
    this.button = el("button", {type: "submit"}, "Sign in");
    this.message = el("p", {class: "message", role: "alert"}, why);
    this.element = el("form", {class: "sign-in", onsubmit: (event) => this.submit(event)},
      el("h1", {}, "Sign in"), this.message,
      el("label", {for: "token"}, "Token"), this.token,
      el("p", {class: "quiet", id: "token-help"}, "A bearer token of the cluster: you see what it may read, and the page has no rights " +
        "of its own. For a ServiceAccount: ", el("code", {}, "kubectl create token NAME -n NAMESPACE")),
      el("label", {for: "first-namespace"}, "Namespace"), this.namespace,
      el("p", {class: "quiet", id: "namespace-help"}, "Empty: all of them, if you may list their jobs and pods."),
      el("p", {}, this.button));
  }

  close() {}

  async submit(event) {
    event.preventDefault();
    this.button.disabled = true;
    setText(this.message, "");
    try {
      const session = await post("/api/sign-in", {token: this.token.value.trim(), namespace: this.namespace.value.trim()});
      this.token.value = "";
      this.onSignedIn(session);
    } catch (error) {
      setText(this.message, error.message);
      this.button.disabled = false;
      this.token.focus();
    }
  }
}

/** In the header: who is signed in, the namespace, and the way out. */
export class CallerBar {
  /** `onChanged` is given the session after another namespace was chosen, `onSignedOut` the reason; `problem` shows what went wrong. */
  constructor(onChanged, onSignedOut, problem) {
    this.onChanged = onChanged;
    this.onSignedOut = onSignedOut;
    this.problem = problem;
    this.user = el("span", {class: "user"});
    this.namespace = el("input", {...NAMESPACE, id: "namespace", size: "14"});
    this.out = el("button", {type: "button", id: "sign-out", onclick: () => this.signOut()}, "Sign out");
    this.element = el("form", {class: "caller", hidden: true, onsubmit: (event) => this.choose(event)},
      this.user, el("label", {for: "namespace"}, "Namespace"), this.namespace, el("button", {type: "submit"}, "Show"), this.out);
  }

  /** Null: nobody. */
  show(session) {
    this.element.hidden = !session?.user;
    setText(this.user, session?.user ?? "");
    this.namespace.value = session?.namespace ?? "";
    this.out.hidden = Boolean(session?.of_a_header);  // a proxy has signed this person in
  }

  async choose(event) {
    event.preventDefault();
    await this.tell(async () => this.onChanged(await post("/api/namespace", {namespace: this.namespace.value.trim()})));
  }

  async signOut() {
    await this.tell(async () => {
      await post("/api/sign-out", {});
      this.onSignedOut("You have signed out.");
    });
  }

  async tell(act) {
    try {
      await act();
    } catch (error) {
      this.problem(error.message);
    }
  }
}
