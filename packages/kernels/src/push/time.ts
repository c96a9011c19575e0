/** `seconds` of a row that came without a timestamp: the start of year 1, which every age check refuses. */
export const noTimestampSeconds = -62135596800;

/** Seconds beyond this do not fit into 64 bits of nanoseconds. */
export const maxTimestampSeconds = 9_200_000_000;
