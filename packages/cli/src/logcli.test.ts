import { describe, expect, it } from "@jest/globals";
import { commandFirst, findCommand, isCommandLine } from "./table.js";
import { runForTest } from "./testing/run-command.js";

/** The flags of logcli 3 that every command takes, with those that take no value marked by `!`. */
const shared =
  "quiet! stats! output timezone output-timestamp-format cpuprofile memprofile stdin! addr username password ca-cert tls-skip-verify! cert key org-id query-tags nocache! bearer-token bearer-token-file retries min-backoff max-backoff auth-header proxy-url compress! envproxy!";
const range = "since from to";
const lines =
  "limit forward! no-labels! exclude-label include-label include-common-labels! labels-length store-config remote-schema! schema-store colored-output!";

const commands = {
  query: `${lines} ${range} step interval batch parallel-duration parallel-max-workers part-path-prefix overwrite-completed-parts! merge-parts! keep-parts! tail! follow! delay-for`,
  "instant-query": `${lines} now`,
  labels: range,
  series: `${range} analyze-labels!`,
  stats: range,
  volume: `${range} limit targetLabels aggregateByLabels!`,
  volume_range: `${range} limit targetLabels aggregateByLabels! step`,
  fmt: "",
  "detected-fields": `${range} limit line-limit step`,
  "delete create": `${range} max-interval`,
  "delete list": "",
  "delete cancel": "force!",
};

describe("every command of logcli is there, with its flags", () => {
  it.each(Object.entries(commands))("%s", async (name, own) => {
    const found = findCommand(name.split(" "));
    const { flags } = await found!.entry.load();
    // A query is formatted without a server, and nothing of plain lines can be deleted.
    const taken = name.startsWith("delete") ? shared.replace("stdin!", "") : shared;
    const asked = name === "fmt" ? own : `${own} ${taken}`;
    const missing = asked
      .split(" ")
      .filter(Boolean)
      .filter((flag) => {
        const declared = flags[flag.replace("!", "")];
        return declared === undefined || (declared.kind === "boolean") !== flag.endsWith("!");
      });
    expect(missing).toEqual([]);
  });
});

describe("a command line", () => {
  it.each([
    ["query {}", true],
    ["--addr=http://x query {}", true],
    ["--addr http://x -q query {}", true],
    ["--stdin query {}", true],
    ["-o raw query {}", true],
    ["nonsense", true],
    ["--help", true],
    ["", false],
    ["-help", false],
    ["-config.file=x.yaml", false],
    ["-config.file config", false],
    ["-target=all", false],
    ["--addr=http://x", false],
    ["-log.level debug -target query", false],
  ])("%j is one of a command: %s", (line, wanted) => {
    expect(isCommandLine(line.split(" ").filter(Boolean))).toBe(wanted);
  });

  it("may have its flags before the command", () => {
    const words = ["--addr", "http://x", "-q", "delete", "list", "--json"];
    expect(commandFirst(words)).toEqual(["delete", "list", "--addr", "http://x", "-q", "--json"]);
  });
});

describe("flags without a meaning", () => {
  it("are named on stderr", async () => {
    const argv = [
      "query",
      "{}",
      "--addr=http://127.0.0.1:9",
      "--cpuprofile=x",
      "--store-config=y",
      "--remote-schema",
    ];
    const { code, err } = await runForTest(argv);
    expect(code).toBe(4);
    for (const name of ["cpuprofile", "store-config", "remote-schema"])
      expect(err).toContain(`--${name} has no meaning here`);
  });
});
