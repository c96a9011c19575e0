import { describe, expect, it } from "@jest/globals";
import { levelCode, normaliseLevel } from "./index.js";
import { forms } from "./testing/forms.js";
import { defaultLevelFields, detect } from "./testing/level-lines.js";

type LevelName = keyof typeof levelCode;

describe.each(forms)("detectLevels, %s", (_name, kernels) => {
  it.each<[string, LevelName]>([
    // As recorded from the reference.
    ["level=ERROR something", "error"],
    ["lvl=warning thing", "warn"],
    ['{"severity":"critical","m":1}', "critical"],
    ["this is an Error in text", "error"],
    ["INFO started", "info"],
    ["level=Trace x", "trace"],
    ["[WARN] low disk", "warn"],
    ["nothing to see", "unknown"],
    ['{"log":{"level":"debug"}}', "debug"],
    ["fatal: cannot open", "fatal"],
    ['level=info msg="contains error word"', "info"],
    ["panic: boom", "unknown"],
    ["LEVEL=dbg y", "debug"],
    ["dEbUg mode", "debug"],
    ["\u001b[31mERROR\u001b[0m disk", "unknown"],
    ['level=error msg="unterminated quote n=4', "error"],
    ["=novalue level=warn n=9 a==b", "warn"],
    // Fields of JSON.
    ['  {"level":"wrn"}\n', "warn"],
    ['{"level" : "INFORMATION"}', "info"],
    ['{"a":{"b":{"level":"dbg"}},"x":1}', "unknown"],
    ['{"a":[{"level":"error"}],"level":"info"}', "info"],
    ['{"a":"level","lvl":"debug","level":"error"}', "debug"],
    ['{"a":"{\\"level\\":\\"info\\"}","level":"error"}', "error"],
    ['{"LeVeL":"error"}', "error"],
    ['{"LeVeL":"err0r"}', "unknown"],
    ['{"level":5,"msg":"an error came"}', "error"],
    ['{"level":"strange","msg":"a warning came"}', "warn"],
    ['{"level":"fatal","broken', "fatal"],
    ['{"msg":"x"} level=info }', "info"],
    ["{level=info}", "info"],
    ["{}", "unknown"],
    ["{", "unknown"],
    // Fields of logfmt.
    ["severity=debug level=error", "error"],
    ["severity=debug Level=error", "error"],
    ["lvl=debug severity=error", "error"],
    ["level=info level=error", "info"],
    ['msg="level=error" level=info', "info"],
    ['msg="a \\" level=error" level=info', "info"],
    ["msg=level=error lvl=info", "info"],
    ['"level"=error level=info', "info"],
    ['level="warn"', "warn"],
    ["level=nope this is an error", "error"],
    ["level= error", "error"],
    ["level", "unknown"],
    // Words.
    ["terror", "unknown"],
    ["errors", "unknown"],
    ["error", "error"],
    ["a error", "error"],
    ["a:error", "unknown"],
    ["(err)", "error"],
    ["an err!or error", "error"],
    ["warn: then error", "warn"],
    ["warning,error", "warn"],
    ["'info'", "info"],
    ["x|trace|", "trace"],
    ["[critical]", "critical"],
    ["information", "unknown"],
    ["debugx fatal", "fatal"],
    ["infoé info", "info"],
    ["éinfo", "unknown"],
    ["error\r", "unknown"],
    ["\tinfo\t", "info"],
    ["0123456789 0123456789 0123456789 tail of a line err", "error"],
    ["", "unknown"],
    ["   ", "unknown"],
  ])("reads %j as %s", (line, want) => {
    expect(detect(kernels, [line], { fields: defaultLevelFields, jsonMaxDepth: 2 })).toEqual([
      levelCode[want],
    ]);
  });

  it.each<[number, LevelName]>([
    [1, "unknown"],
    [2, "unknown"],
    [3, "debug"],
    [0, "debug"],
    [-1, "debug"],
  ])("searches objects to depth %i", (jsonMaxDepth, want) => {
    const options = { fields: defaultLevelFields, jsonMaxDepth };
    expect(detect(kernels, ['{"a":{"b":{"level":"dbg"}}}'], options)).toEqual([levelCode[want]]);
  });

  it("knows only the fields it is given", () => {
    const options = { fields: ["Stufe"], jsonMaxDepth: 2 };
    const lines = ['{"level":"info","Stufe":"warn"}', "level=info stufe=warn", '{"stufe":"wrn"}'];
    expect(detect(kernels, lines, options)).toEqual([5, 5, 1]);
    expect(detect(kernels, ["level=info"], { fields: [], jsonMaxDepth: 2 })).toEqual([4]);
  });

  it("keeps the rows apart", () => {
    const lines = ["err", "or", "", "info", "a=", "level=warn"];
    const options = { fields: defaultLevelFields, jsonMaxDepth: 2 };
    expect(detect(kernels, lines, options)).toEqual([6, 1, 1, 4, 1, 5]);
  });

  it("survives ranges beyond the bytes", () => {
    const out = new Uint8Array(2);
    const bytes = new TextEncoder().encode("an error");
    const start = Uint32Array.of(3, 4_000_000_000);
    const options = { fields: defaultLevelFields, jsonMaxDepth: 2 };
    kernels.detectLevels(bytes, start, Uint32Array.of(4_000_000_000, 5), 2, out, options);
    expect([...out]).toEqual([6, 1]);
  });
});

describe("normaliseLevel", () => {
  it.each<[string, LevelName]>([
    ["WARN", "warn"],
    ["Information", "info"],
    ["trc", "trace"],
    ["critical", "critical"],
    ["unknown", "none"],
    ["", "none"],
    ["warn ", "none"],
    ["a very long text that is no level", "none"],
  ])("reads %j as %s", (text, want) => {
    expect(normaliseLevel(text)).toBe(levelCode[want]);
  });
});
