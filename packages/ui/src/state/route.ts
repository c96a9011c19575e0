/** What the address bar says: a screen and what it shows. */
export interface Route {
  readonly screen: Screen;
  readonly q: string;
  readonly from: string;
  readonly to: string;
  readonly view: View;
  /** Fields that are columns of the table. */
  readonly cols: readonly string[];
  /** Fields that are open in the panel. */
  readonly open: readonly string[];
  readonly tz: "utc" | "local";
  readonly tenant: string;
  /** `<ns>.<hash>` of one line. */
  readonly line: string;
}

export const screens = ["explore", "streams", "alerts", "system"] as const;
export type Screen = (typeof screens)[number];

/** How an answer is shown; `instant` asks a metric query for its values at the end of the range. */
export const views = ["lines", "table", "patterns", "chart", "instant"] as const;
export type View = (typeof views)[number];

export const defaultRoute: Route = {
  screen: "explore",
  q: "",
  from: "now-1h",
  to: "now",
  view: "lines",
  cols: [],
  open: [],
  tz: "utc",
  tenant: "",
  line: "",
};

/** Reads an address. Parts that are missing or make no sense are the defaults, so that links of older versions work. */
export function parseRoute(pathname: string, search: string): Route {
  const params = new URLSearchParams(search);
  const text = (name: string) => params.get(name) ?? "";
  const list = (name: string) => text(name).split(",").filter(Boolean).map(decodeURIComponent);
  const last = pathname.slice(pathname.lastIndexOf("/") + 1);
  const isTime = (value: string) => timePattern.test(value);
  const line = text("line");
  return {
    screen: screens.find((one) => one === last) ?? defaultRoute.screen,
    q: text("q"),
    from: isTime(text("from")) ? text("from") : defaultRoute.from,
    to: isTime(text("to")) ? text("to") : defaultRoute.to,
    view: views.find((one) => one === text("view")) ?? defaultRoute.view,
    cols: safely(() => list("cols")),
    open: safely(() => list("open")),
    tz: text("tz") === "local" ? "local" : "utc",
    tenant: text("tenant"),
    line: /^\d{1,19}\.[0-9a-z]+$/.test(line) ? line : "",
  };
}

/** `now`, `now-30m`, or milliseconds or nanoseconds since 1970. */
const timePattern = /^(?:now(?:-\d{1,6}[smhdw])?|\d{12,19})$/;

function safely(read: () => string[]): string[] {
  try {
    return read();
  } catch {
    return [];
  }
}

/** The address of a route, relative to the page: `explore?q=...`. Defaults are left out. */
export function formatRoute(route: Route): string {
  const params = new URLSearchParams();
  const set = (name: keyof Route, value: string) => {
    if (value !== "" && value !== defaultRoute[name]) params.set(name, value);
  };
  set("q", route.q);
  set("from", route.from);
  set("to", route.to);
  set("view", route.view);
  set("cols", route.cols.map(encodeURIComponent).join(","));
  set("open", route.open.map(encodeURIComponent).join(","));
  set("tz", route.tz);
  set("tenant", route.tenant);
  set("line", route.line);
  const search = params.toString();
  return search === "" ? route.screen : `${route.screen}?${search}`;
}
