import { createHash } from "node:crypto";
import {
  compileRegex,
  invalidArgument,
  type Labels,
  labelValue,
  makeLabels,
  type Regex,
} from "@skald/model";
import { pairsOf } from "../evaluate/series-ends.js";

/** Changes labels; undefined when it drops the label set. */
export type Relabel = (labels: Labels) => Labels | undefined;

const actions = [
  "replace",
  "lowercase",
  "uppercase",
  "keep",
  "drop",
  "keepequal",
  "dropequal",
  "hashmod",
  "labelmap",
  "labeldrop",
  "labelkeep",
] as const;

interface Step {
  readonly action: (typeof actions)[number];
  readonly sources: readonly string[];
  readonly separator: string;
  readonly target: string;
  readonly regex: Regex;
  readonly replacement: string;
  readonly modulus: bigint;
}

const labelName = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

/** Compiles a list of Prometheus relabel configs, which run in order. Throws invalid_argument. */
export function compileRelabels(configs: readonly Readonly<Record<string, unknown>>[]): Relabel {
  const steps = configs.map(readStep);
  return (labels) => {
    let current: Labels | undefined = labels;
    for (const step of steps) {
      if (current === undefined) return undefined;
      current = apply(step, current);
    }
    return current;
  };
}

function readStep(config: Readonly<Record<string, unknown>>): Step {
  const text = (key: string, usual: string) => String(config[key] ?? usual);
  const action = text("action", "replace").toLowerCase() as Step["action"];
  if (!actions.includes(action)) throw invalidArgument(`unknown relabel action "${action}"`);
  const sources = config.source_labels ?? [];
  if (!Array.isArray(sources))
    throw invalidArgument("source_labels of a relabel config is no list");
  const target = text("target_label", "");
  const modulus = Number(config.modulus ?? 0);
  const needsTarget = ["replace", "hashmod", "lowercase", "uppercase", "keepequal", "dropequal"];
  if (needsTarget.includes(action) && target === "")
    throw invalidArgument(
      `relabel configuration for ${action} action requires 'target_label' value`,
    );
  if (action === "hashmod" && !(Number.isInteger(modulus) && modulus > 0))
    throw invalidArgument("relabel configuration for hashmod requires non-zero modulus");
  return {
    action,
    sources: sources.map(String),
    separator: text("separator", ";"),
    target,
    regex: compileRegex(text("regex", "(.*)"), { anchored: true }),
    replacement: text("replacement", "$1"),
    modulus: BigInt(modulus || 1),
  };
}

function apply(step: Step, labels: Labels): Labels | undefined {
  const { action, regex, separator, sources, target } = step;
  const value = sources.map((name) => labelValue(labels, name)).join(separator);
  switch (action) {
    case "keep":
      return regex.test(value) ? labels : undefined;
    case "drop":
      return regex.test(value) ? undefined : labels;
    case "keepequal":
      return labelValue(labels, target) === value ? labels : undefined;
    case "dropequal":
      return labelValue(labels, target) === value ? undefined : labels;
    case "lowercase":
      return withLabel(labels, target, value.toLowerCase());
    case "uppercase":
      return withLabel(labels, target, value.toUpperCase());
    case "hashmod":
      return withLabel(labels, target, String(hashOf(value) % step.modulus));
    case "labeldrop":
      return makeLabels(pairsOf(labels).filter(([name]) => !regex.test(name)));
    case "labelkeep":
      return makeLabels(pairsOf(labels).filter(([name]) => regex.test(name)));
    case "labelmap": {
      const pairs = pairsOf(labels);
      const mapped = pairs.flatMap(([name, text]): [string, string][] => {
        const to = expand(regex, name, step.replacement);
        return to === undefined ? [] : [[to, text]];
      });
      return makeLabels([...pairs, ...mapped]);
    }
    default: {
      const name = expand(regex, value, target);
      const made = expand(regex, value, step.replacement);
      if (name === undefined || made === undefined || !labelName.test(name)) return labels;
      return withLabel(labels, name, made);
    }
  }
}

/** Sets a label. An empty value removes it. */
function withLabel(labels: Labels, name: string, value: string): Labels {
  return makeLabels([...pairsOf(labels), [name, value]]);
}

/** The last eight bytes of the MD5 of a text, as Prometheus uses it. */
function hashOf(text: string): bigint {
  return createHash("md5").update(text).digest().readBigUInt64BE(8);
}

/** `$1`, `${name}` and `$$` in a template; undefined where the text does not match. */
function expand(regex: Regex, text: string, template: string): string | undefined {
  const match = regex.exec(text);
  if (match === undefined) return undefined;
  return template.replace(/\$(?:(\$)|\{(\w+)\}|(\w+))/g, (_, dollar, braced, bare) => {
    if (dollar !== undefined) return "$";
    const name = String(braced ?? bare);
    if (name === "0") return text;
    const at = /^\d+$/.test(name) ? Number(name) - 1 : regex.groupNames.indexOf(name);
    return match.groups[at] ?? "";
  });
}
