import { render } from "preact";
import { startList } from "./answer/list-state.js";
import { startPanel } from "./answer/panel-state.js";
import { App } from "./app.js";
import { onKey } from "./explore/keys.js";
import { startExplore } from "./explore/start.js";
import { loadConfig, loadLimits } from "./state/config.js";
import { startState } from "./state/explore.js";

startState();
const root = document.getElementById("app");
if (root !== null) render(<App />, root);
document.addEventListener("keydown", onKey);
startList();
startPanel();
void loadConfig();
void loadLimits();
startExplore();
