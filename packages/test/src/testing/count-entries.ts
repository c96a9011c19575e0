// A process that is started with `--import` of this file counts the functions of Skald that each of its threads enters. When
// the file `ask` in the folder ENTRIES_FOLDER changes, each thread writes a file `<text of ask>.<thread id>`: the functions that
// it entered since it last did so, one per line, as "scan/jobs#scanJobs@1042", and a full stop at the end.
// V8 counts: https://chromedevtools.github.io/devtools-protocol/v8/Profiler/#method-takePreciseCoverage
import { readFileSync, writeFileSync } from "node:fs";
import { type Profiler, Session } from "node:inspector";
import { join } from "node:path";
import { threadId } from "node:worker_threads";

const lookEveryMs = 10;
const { ENTRIES_FOLDER: folder } = process.env;

if (folder !== undefined) {
  const session = new Session();
  session.connect();
  session.post("Profiler.enable");
  session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  writeFileSync(join(folder, `thread.${threadId}`), "");
  let answered = "";
  setInterval(() => {
    const asked = readFileSync(join(folder, "ask"), "utf8");
    if (asked === answered) return;
    answered = asked;
    session.post("Profiler.takePreciseCoverage", (_, { result }) =>
      writeFileSync(join(folder, `${asked}.${threadId}`), `${namesOf(result).join("\n")}\n.`),
    );
  }, lookEveryMs).unref();
}

/** The functions of Skald that were called, without the code that sets the fields of an object, which V8 counts too. */
function namesOf(scripts: readonly Profiler.ScriptCoverage[]): string[] {
  return scripts.flatMap(({ url, functions }) => {
    const [, name, path] = /\/packages\/(?!test)([a-z-]+)\/dist\/(.+)\.js$/.exec(url) ?? [];
    if (name === undefined) return [];
    return functions.flatMap(({ functionName, ranges: [whole] }) =>
      whole === undefined || whole.count === 0 || functionName === "<instance_members_initializer>"
        ? []
        : [`${name}/${path}#${functionName}@${whole.startOffset}`],
    );
  });
}
