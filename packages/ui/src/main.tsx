import { render } from "preact";
import { startList } from "./answer/list-state.js";
import { startLiveState } from "./answer/live.js";
import { startPanel } from "./answer/panel-state.js";
import { App, watchAlerts } from "./app.js";
import { startCost } from "./explore/cost-state.js";
import { onKey } from "./explore/keys.js";
import { loadWhenAnswered, startExplore } from "./explore/start.js";
import { startState } from "./state/explore.js";

startState();
// The first question is on its way while the page is drawn.
startExplore();
const root = document.getElementById("app");
if (root !== null) render(<App />, root);
document.addEventListener("keydown", onKey);
startList();
startPanel();
startLiveState();
startCost();
loadWhenAnswered();
watchAlerts();
