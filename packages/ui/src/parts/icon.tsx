/** The shapes of the interface, on a grid of 16. */
const paths = {
  link: "M6.5 9.5l3-3M7 4.7l1.6-1.6a2.8 2.8 0 0 1 4 4L11 8.7M9 11.3l-1.6 1.6a2.8 2.8 0 0 1-4-4L5 7.3",
  sun: "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6M8 1.5v1M8 13.5v1M1.5 8h1M13.5 8h1M3.4 3.4l.7.7M11.9 11.9l.7.7M3.4 12.6l.7-.7M11.9 4.1l.7-.7",
  clock: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11M8 5v3l2 1.5",
  star: "M8 2l1.8 3.8 4.2.5-3.1 2.9.8 4.1L8 11.3l-3.7 2 .8-4.1L2 6.3l4.2-.5z",
  play: "M5 3.5v9l7-4.5z",
  stop: "M4.5 4.5h7v7h-7z",
  rows: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  table: "M2.5 3.5h11v9h-11zM6.2 3.5v9M9.8 3.5v9",
  patterns: "M2.5 4.5h5M9.5 4.5h4M2.5 8h3M7.5 8h6M2.5 11.5h6M10.5 11.5h3",
  chart: "M2 12l3.5-5 3 3L14 4",
  wrap: "M2.5 4h11M2.5 8h8.5a2 2 0 0 1 0 4H8M9.5 10.5L8 12l1.5 1.5",
  download: "M8 2.5v7.5M5 7.5L8 10.5l3-3M3 13.5h10",
  down: "M8 3v10M4.5 9.5L8 13l3.5-3.5",
  up: "M8 13V3M4.5 6.5L8 3l3.5 3.5",
  close: "M4 4l8 8M12 4l-8 8",
  filter: "M2.5 3.5h11L9.5 8.5v4.5l-3-1.5v-3z",
  bell: "M4 11V7.5a4 4 0 0 1 8 0V11l1.2 1.2H2.8zM6.8 14h2.4",
  server: "M2.5 3h11v4.2h-11zM2.5 8.8h11V13h-11zM5 5.1h0M5 10.9h0",
  menu: "M3 5l5 5 5-5",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  format: "M3 4h10M5 8h8M5 12h6",
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={paths[name]} />
    </svg>
  );
}

export function Mark() {
  return (
    <svg viewBox="0 0 20 20" aria-hidden="true" focusable="false">
      <rect width="20" height="20" rx="5" fill="var(--accent)" />
      <path
        d="M5 6.5h10M5 10h6M5 13.5h8"
        stroke="var(--on-accent)"
        stroke-width="2"
        stroke-linecap="round"
      />
    </svg>
  );
}
