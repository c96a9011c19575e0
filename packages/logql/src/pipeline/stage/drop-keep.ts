import { compileMatcher } from "@skald/model";
import type { LabelTarget } from "../../syntax/ast.js";
import type { PreparedStage, RowStage } from "../row/row.js";
import {
  type CurrentLabels,
  errorDetailsLabel,
  errorLabel,
  preserveErrorLabel,
} from "../row/row-labels.js";

interface CompiledTarget {
  readonly name: string;
  readonly test: (value: string) => boolean;
}

/** Compiles the labels of drop or keep. Throws invalid_argument for a bad regex. */
function compileTargets(targets: readonly LabelTarget[]): readonly CompiledTarget[] {
  return targets.map((target) =>
    target.kind === "name"
      ? { name: target.name, test: () => true }
      : { name: target.matcher.name, test: compileMatcher(target.matcher) },
  );
}

/** `| drop a, b="x"`: errors can be dropped too. */
export function prepareDrop(targets: readonly LabelTarget[]): PreparedStage {
  const compiled = compileTargets(targets);
  return ({ labels }) => {
    const steps = compiled.map((target) => dropOne(labels, target));
    return () => {
      for (const step of steps) step();
      return true;
    };
  };
}

function dropOne(labels: CurrentLabels, { name, test }: CompiledTarget): RowStage {
  if (name === errorLabel) {
    return () => {
      if (test(labels.error)) labels.error = "";
      return true;
    };
  }
  if (name === errorDetailsLabel) {
    return () => {
      if (test(labels.errorDetails)) labels.errorDetails = "";
      return true;
    };
  }
  const slot = labels.names.slotOf(name);
  return () => {
    const value = labels.text(slot);
    if (value !== undefined && test(value)) labels.delete(slot);
    return true;
  };
}

/** `| keep a, b="x"`: every other label goes, errors stay. */
export function prepareKeep(targets: readonly LabelTarget[]): PreparedStage {
  const compiled = compileTargets(targets);
  return ({ labels }) => {
    const tests: ((value: string) => boolean)[][] = [];
    for (const { name, test } of compiled) {
      const slot = labels.names.slotOf(name);
      tests[slot] = [...(tests[slot] ?? []), test];
    }
    for (const name of [errorLabel, errorDetailsLabel, preserveErrorLabel]) {
      tests[labels.names.slotOf(name)] = [() => true];
    }
    const check = (slot: number): void => {
      const own = tests[slot];
      const value = own && labels.text(slot);
      if (value === undefined || !own?.some((test) => test(value))) {
        if (labels.find(slot)) labels.delete(slot);
      }
    };
    return () => {
      const { touchedCount } = labels;
      for (let i = 0; i < touchedCount; i++) check(labels.touched[i]!);
      for (const slot of labels.streamSlots) check(slot);
      for (const { slot } of labels.metadata?.columns ?? [])
        if (labels.isMetadata(slot)) check(slot);
      return true;
    };
  };
}
