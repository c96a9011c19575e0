import { Explore, shareLink } from "./explore/explore.js";
import { keysOpen } from "./explore/keys.js";
import { KeysDialog } from "./explore/keys-dialog.js";
import { Icon, type IconName, Mark } from "./parts/icon.js";
import { Toasts } from "./parts/toast.js";
import { config } from "./state/config.js";
import { goTo, route, theme } from "./state/explore.js";
import type { Screen } from "./state/route.js";

const screens: readonly (readonly [Screen, string, IconName])[] = [["explore", "Explore", "rows"]];

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
            </a>
          ))}
        </nav>
        <div class="tools">
          <button
            class="tool"
            type="button"
            title="Copy a link with absolute times (S)"
            aria-label="Share"
            onClick={shareLink}
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
        <Explore />
      </div>
      {keysOpen.value && <KeysDialog />}
      <Toasts />
    </div>
  );
}
