import { Dialog } from "../parts/dialog.js";
import { everywhereKeys, exploreKeys, keysOpen } from "./keys.js";

/** The list of keys. */
export function KeysDialog() {
  return (
    <Dialog title="Keys" onClose={() => (keysOpen.value = false)}>
      <div class="key-list">
        {[...everywhereKeys, ...exploreKeys].map(({ keys, says }) => (
          <div key={keys}>
            <span>{says}</span>
            <kbd>{keys}</kbd>
          </div>
        ))}
      </div>
    </Dialog>
  );
}
