/**
 * Gives the event loop turns until a condition is true, and soon leaves time to the threads and the disk that it may wait for.
 * There is no deadline but that of the test: how many turns pass says how busy the machine is.
 */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let turn = 0; !(await condition()); turn++)
    await new Promise<void>((resolve) => {
      if (turn < 50) setImmediate(resolve);
      else setTimeout(resolve, 1);
    });
}
