import { computed, effect, signal } from "@preact/signals";
import { setTenantHeader } from "../api/client.js";
import { defaultRoute, formatRoute, parseRoute, type Route, type Screen } from "./route.js";
import { recall, remember } from "./store.js";

/** The route of the page. Everything on screen follows it, and the address bar shows it. */
export const route = signal<Route>(parseRoute(location.pathname, location.search));

/** The text in the editor, which may not have run yet. */
export const draft = signal(route.value.q);

export const theme = signal<"dark" | "light">(
  recall<"dark" | "light">(
    "theme",
    matchMedia("(prefers-color-scheme: light)").matches ? "light" : "dark",
  ),
);

/** Whether the parser checks regular expressions, for which it needs a part that is loaded later. */
export const regexChecked = signal(false);

/** How lines are shown; kept by this browser. */
export const wrap = signal(recall("wrap", false));
export const raw = signal(recall("raw", false));
export const oldestFirst = signal(recall("oldestFirst", false));
export const chipsFolded = signal(recall("chipsFolded", false));
export const chartFolded = signal(recall("chartFolded", false));

export const zone = computed(() => route.value.tz);
export const tenant = computed(() => route.value.tenant);

/** Changes the route; `push` makes an entry that the back button returns from. */
export function navigate(change: Partial<Route>, how: "push" | "replace" = "push"): void {
  const next = { ...route.peek(), ...change };
  const address = formatRoute(next);
  if (address === formatRoute(route.peek())) return;
  if (how === "push") window.history.pushState(null, "", address);
  else window.history.replaceState(null, "", address);
  route.value = next;
}

export function goTo(screen: Screen): void {
  navigate({ screen });
}

/** Follows the back button, and keeps what the browser remembers. */
export function startState(): void {
  addEventListener("popstate", () => {
    const next = parseRoute(location.pathname, location.search);
    route.value = next;
    draft.value = next.q;
  });
  if (route.peek().tenant === "") {
    const known = recall("tenant", defaultRoute.tenant);
    if (known !== "") navigate({ tenant: known }, "replace");
  }
  effect(() => setTenantHeader(tenant.value));
  effect(() => {
    document.documentElement.dataset.theme = theme.value;
    remember("theme", theme.value);
  });
  for (const [name, flag] of Object.entries({
    ...{ wrap, raw, oldestFirst, chipsFolded, chartFolded },
  })) {
    effect(() => remember(name, flag.value));
  }
}

/** The address of the page with absolute times. */
export function shareAddress(from: string, to: string, line = route.peek().line): string {
  const address = formatRoute({ ...route.peek(), from, to, line });
  return new URL(address, document.baseURI).href;
}
