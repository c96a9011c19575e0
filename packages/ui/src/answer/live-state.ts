import { signal } from "@preact/signals";

/** Whether a live view is on, and whether it stands still because someone reads. */
export const live = signal(false);
export const livePause = signal(false);
/** Starts the live view again for another query. */
export const liveRestart = signal<(() => void) | undefined>(undefined);
/** Rises when another answer takes the place of the lines of a live view that has ended. */
export const liveOver = signal(0);
