// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax under test
import { describe, expect, it } from "@jest/globals";
import { expandEnv } from "./load-settings.js";

const env = { HOST: "db", EMPTY: "", OTHER: "o" };

describe("expandEnv", () => {
  it.each([
    ["no variable", "a: 1", "a: 1"],
    ["set", "a: ${HOST}:80", "a: db:80"],
    ["missing", "a: ${GONE}!", "a: !"],
    ["default of a missing one", "${GONE:-x y}", "x y"],
    ["default not needed", "${HOST:-x}", "db"],
    ["default of an empty one", "${EMPTY:-x}", "x"],
    ["empty stays without the colon", "${EMPTY-x}", ""],
    ["assigning form", "${GONE:=x}", "x"],
    ["default with a colon", "${GONE:-http://h:1}", "http://h:1"],
    ["variable in a default", "${GONE:-${OTHER}}-", "o-"],
    ["two on a line", "${HOST}${OTHER}", "dbo"],
    ["escaped", "$${HOST}", "${HOST}"],
    ["dollar of an expression", "$1 and $HOST", "$1 and $HOST"],
  ])("%s", (_, text, want) => {
    expect(expandEnv(text, env)).toEqual({ text: want, problems: [] });
  });

  it.each([
    ["a: ${HOST", '"${HOST" has no closing brace'],
    ["a: ${HOST\n}", '"${HOST\n}" has no closing brace'],
    ["${1X}", 'cannot expand "${1X}"; write ${NAME} or ${NAME:-default}'],
    ["${HOST:?no}", 'cannot expand "${HOST:?no}"; write ${NAME} or ${NAME:-default}'],
  ])("tells what is wrong with %j", (text, problem) => {
    expect(expandEnv(text, env).problems).toEqual([problem]);
  });
});
