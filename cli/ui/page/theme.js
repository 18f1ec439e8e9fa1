// Light or dark: as the system says, or as was chosen here. Charts are drawn anew when it changes.

const KEY = "tj-theme";
const dark = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set();

function apply(choice) {
  if (choice) document.documentElement.dataset.theme = choice;
  else delete document.documentElement.dataset.theme;
  for (const listener of listeners) listener();
}

export function startTheme(select) {
  const kept = localStorage.getItem(KEY) ?? "";
  select.value = ["light", "dark"].includes(kept) ? kept : "";
  apply(select.value);
  select.addEventListener("change", () => {
    localStorage.setItem(KEY, select.value);
    apply(select.value);
  });
  dark.addEventListener("change", () => apply(select.value));
}

/** Returns how to stop listening. */
export function onTheme(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
