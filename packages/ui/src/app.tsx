import { effect, signal } from "@preact/signals";
import { shareLink } from "./answer/clicks.js";
import { fetchRules } from "./api/rules.js";
import { Explore } from "./explore/explore.js";
import { keysOpen } from "./explore/keys.js";
import { KeysDialog } from "./explore/keys-dialog.js";
import { TenantMenu } from "./explore/tenant-menu.js";
import { Icon, type IconName, Mark } from "./parts/icon.js";
import { Lazy } from "./parts/lazy.js";
import { Toasts } from "./parts/toast.js";
import { config } from "./state/config.js";
import { goTo, route, tenant, theme } from "./state/explore.js";
import type { Screen } from "./state/route.js";

const screens: readonly (readonly [Screen, string, IconName])[] = [
  ["explore", "Explore", "rows"],
  ["streams", "Streams", "chart"],
  ["alerts", "Alerts", "bell"],
  ["system", "System", "server"],
];

const loaders = {
  streams: () => import("./streams/streams.js"),
  alerts: () => import("./alerts/alerts.js"),
  system: () => import("./system/system.js"),
};

/** How many alerts fire. */
const firing = signal(0);
const askEveryMs = 30_000;

/** Asks for alerts while the server has rules. */
export function watchAlerts(): void {
  effect(() => {
    if (!config.value.rules) return;
    tenant.value;
    const ask = async () => {
      const groups = (await fetchRules().catch(() => undefined)) ?? [];
      const alerts = groups.flatMap(({ rules }) => rules.flatMap(({ alerts: own }) => own ?? []));
      firing.value = alerts.filter(({ state }) => state === "firing").length;
    };
    void ask();
    const timer = setInterval(ask, askEveryMs);
    return () => clearInterval(timer);
  });
}

/** The frame: a bar with the screens, and the one that the address names. */
export function App() {
  const { screen } = route.value;
  return (
    <div class="frame">
      <header class="top">
        <a class="mark" href="explore">
          <Mark />
          {config.value.title}
        </a>
        <nav aria-label="Screens">
          {screens.map(([name, label, icon]) => (
            <a
              key={name}
              href={name}
              aria-current={screen === name ? "page" : undefined}
              onClick={(event) => {
                if (event.ctrlKey || event.metaKey || event.shiftKey) return;
                event.preventDefault();
                goTo(name);
              }}
            >
              <Icon name={icon} />
              {label}
              {name === "alerts" && firing.value > 0 && <span class="badge">{firing.value}</span>}
            </a>
          ))}
        </nav>
        <div class="tools">
          {config.value.multiTenant && <TenantMenu />}
          <button
            class="tool"
            type="button"
            title="Copy a link with absolute times (S)"
            aria-label="Share"
            onClick={() => shareLink()}
          >
            <Icon name="link" />
          </button>
          <button
            class="tool"
            type="button"
            title="Dark or light"
            aria-label={theme.value === "dark" ? "Light colours" : "Dark colours"}
            onClick={() => (theme.value = theme.value === "dark" ? "light" : "dark")}
          >
            <Icon name="sun" />
          </button>
          <button
            class="tool"
            type="button"
            title="Keys (?)"
            aria-label="Keys"
            onClick={() => (keysOpen.value = true)}
          >
            ?
          </button>
        </div>
      </header>
      <div class="screen">
        {screen === "explore" ? (
          <Explore />
        ) : (
          <Lazy key={screen} load={loaders[screen]} props={{}} />
        )}
      </div>
      {keysOpen.value && <KeysDialog />}
      <Toasts />
    </div>
  );
}
