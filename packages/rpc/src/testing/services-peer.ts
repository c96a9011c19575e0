// Another process of tests: serves echoes, tells its address, then what happens that no answer tells.
import { makeEchoes } from "./echo.js";
import { startTestServices } from "./services.js";

const seen: string[] = [];
seen.push = (...items) => {
  for (const item of items) process.send?.(item);
  return 0;
};
process.send?.((await startTestServices(makeEchoes(seen))).address);
