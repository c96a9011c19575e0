import { compileRegex, type OtlpAttributeRule, type OtlpMapping } from "@skald/model";
import { ByteCache } from "../metadata/byte-cache.js";

export type AttributeAction = OtlpAttributeRule["action"];

/** Names of attributes whose action is known without a look at the rules. */
const cacheBounds = { maxEntries: 4096, maxKeyBytes: 1024 * 1024 };

/** The rules for the attributes of a resource, of scopes or of records. */
export class AttributeRules {
  readonly #rules: readonly ((name: string) => AttributeAction | undefined)[];
  readonly #known = new ByteCache<AttributeAction>(cacheBounds);

  /** Throws invalid_argument when an expression does not parse. */
  constructor(rules: readonly OtlpAttributeRule[]) {
    this.#rules = rules.map(compileRule);
  }

  /** What becomes of the attribute whose name is a range of bytes. */
  actionOf(bytes: Uint8Array, start: number, length: number): AttributeAction {
    if (this.#rules.length === 0) return "structured_metadata";
    let action = this.#known.get(this, bytes, start, length);
    if (action === undefined) {
      action = this.#decide(Buffer.from(bytes.subarray(start, start + length)).toString());
      this.#known.set(this, bytes, start, length, action);
    }
    return action;
  }

  #decide(name: string): AttributeAction {
    for (const rule of this.#rules) {
      const action = rule(name);
      if (action !== undefined) return action;
    }
    return "structured_metadata";
  }
}

function compileRule(rule: OtlpAttributeRule): (name: string) => AttributeAction | undefined {
  const names = new Set(rule.attributes);
  const regex = rule.regex === "" ? undefined : compileRegex(rule.regex, { anchored: true });
  return (name) => (names.has(name) || regex?.test(name) === true ? rule.action : undefined);
}

/** A mapping in the form that bodies are read with. */
export interface CompiledMapping {
  readonly resource: AttributeRules;
  readonly scope: AttributeRules;
  readonly log: AttributeRules;
  readonly severityTextAsLabel: boolean;
}

const compiled = new WeakMap<OtlpMapping, CompiledMapping>();

/** Compiles a mapping; the same object is compiled once. */
export function compileMapping(mapping: OtlpMapping): CompiledMapping {
  let known = compiled.get(mapping);
  if (known === undefined) {
    known = {
      resource: new AttributeRules(mapping.resource),
      scope: new AttributeRules(mapping.scope),
      log: new AttributeRules(mapping.log),
      severityTextAsLabel: mapping.severityTextAsLabel,
    };
    compiled.set(mapping, known);
  }
  return known;
}
