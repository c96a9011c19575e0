import { useSignal } from "@preact/signals";
import { Icon } from "../parts/icon.js";
import { Menu } from "../parts/menu.js";
import { navigate, route } from "../state/explore.js";
import {
  describeRange,
  formatTime,
  parseTimeInput,
  presets,
  type RangeText,
  resolveRange,
  shiftRange,
} from "../state/range.js";

interface TimePickerProps {
  readonly open: { value: boolean };
  readonly onRange: (range: RangeText) => void;
}

/** The range of time: the last so and so long, or two times, in UTC or the browser's zone. */
export function TimePicker({ open, onRange }: TimePickerProps) {
  const { from, to, tz } = route.value;
  const wrong = useSignal("");
  const now = Date.now();
  const { fromNs, toNs } = resolveRange({ from, to }, now);
  const apply = (range: RangeText) => {
    open.value = false;
    onRange(range);
  };
  const submit = (form: HTMLFormElement) => {
    const data = new FormData(form);
    const start = parseTimeInput(String(data.get("from")), tz);
    const end = parseTimeInput(String(data.get("to")), tz);
    if (start === undefined || end === undefined) {
      wrong.value = "A time is written 2026-11-23 06:00, or now-3h";
    } else if (
      resolveRange({ from: start, to: end }, now).toNs !== toNsOf(end, now) ||
      !isBefore(start, end, now)
    ) {
      wrong.value = "The start must be before the end";
    } else {
      wrong.value = "";
      apply({ from: start, to: end });
    }
  };
  return (
    <div class="anchor">
      <button
        class="button"
        type="button"
        id="time"
        title="Time range (T)"
        aria-expanded={open.value}
        onClick={() => (open.value = !open.value)}
        onKeyDown={(event) => {
          if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
          apply(shiftRange({ fromNs, toNs }, event.key === "ArrowLeft" ? -1 : 1));
        }}
      >
        <Icon name="clock" />
        {describeRange({ from, to }, tz, now)}
        <span class="dim zone">{tz === "utc" ? "UTC" : "local"}</span>
        <span aria-hidden="true">▾</span>
      </button>
      {open.value && (
        <Menu class="time-menu" label="Time range" onClose={() => (open.value = false)}>
          <div>
            {presets.map((preset) => (
              <button
                class="item"
                type="button"
                key={preset}
                aria-pressed={from === `now-${preset}`}
                onClick={() => apply({ from: `now-${preset}`, to: "now" })}
              >
                {describeRange({ from: `now-${preset}`, to: "now" }, tz, now)}
              </button>
            ))}
          </div>
          <form
            onSubmit={(event) => {
              event.preventDefault();
              submit(event.currentTarget);
            }}
          >
            <label>
              From
              <input
                class="field mono"
                name="from"
                value={from.startsWith("now") ? from : formatTime(fromNs, tz, "s")}
              />
            </label>
            <label>
              To
              <input
                class="field mono"
                name="to"
                value={to.startsWith("now") ? to : formatTime(toNs, tz, "s")}
              />
            </label>
            <p class="bad" role="alert">
              {wrong.value}
            </p>
            <div class="row">
              <button class="button small primary" type="submit">
                Apply
              </button>
              <button
                class="button small"
                type="button"
                title="Half a range earlier (←)"
                onClick={() => apply(shiftRange({ fromNs, toNs }, -1))}
              >
                ← earlier
              </button>
              <button
                class="button small"
                type="button"
                title="Half a range later (→)"
                onClick={() => apply(shiftRange({ fromNs, toNs }, 1))}
              >
                later →
              </button>
            </div>
            <p class="row">
              <button
                class="tool"
                type="button"
                aria-pressed={tz === "utc"}
                onClick={() => navigate({ tz: tz === "utc" ? "local" : "utc" })}
              >
                Times are {tz === "utc" ? "UTC" : "local"}: change (U)
              </button>
            </p>
          </form>
        </Menu>
      )}
    </div>
  );
}

function toNsOf(text: string, now: number): bigint {
  return resolveRange({ from: "0", to: text }, now).toNs;
}

function isBefore(from: string, to: string, now: number): boolean {
  return toNsOf(from, now) < toNsOf(to, now);
}
