export { runTool } from "./command.js";
