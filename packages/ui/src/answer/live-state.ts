import { signal } from "@preact/signals";

/** Whether a live view is on, and whether it stands still because someone reads. */
export const live = signal(false);
export const livePause = signal(false);
