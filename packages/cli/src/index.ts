export { type CommandDeps, commandNames, runCommand } from "./command.js";
