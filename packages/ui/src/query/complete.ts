import { quote } from "@skald/model";
import type { Field, LabelInfo } from "../api/fields.js";
import { functionHelp, stageHelp } from "./help.js";
import type { Place } from "./place.js";

export interface Offer {
  readonly text: string;
  readonly insert: string;
  /** L label, s text, # number, | stage, f function, = operator. */
  readonly kind: string;
  readonly note: string;
}

/** What offers are made of; each answer comes from the server. */
export interface Sources {
  labels(selector: string | undefined): Promise<readonly LabelInfo[]>;
  labelValues(name: string, selector: string | undefined): Promise<readonly string[]>;
  fields(query: string): Promise<readonly Field[]>;
  fieldValues(name: string, query: string): Promise<readonly string[]>;
}

const operators: Readonly<Record<string, string>> = {
  ...{ "=": "is", "!=": "is not", "=~": "matches", "!~": "does not match" },
};
const numberOperators: Readonly<Record<string, string>> = {
  ...{ ">=": "at least", ">": "more than", "<=": "at most", "<": "less than" },
};

/** The offers for a place, best first. */
export async function offersFor(place: Place, sources: Sources): Promise<Offer[]> {
  const { kind, name = "", query } = place;
  switch (kind) {
    case "label":
      return ranked(place, (await sources.labels(query)).map(labelOffer));
    case "label-value":
      return ranked(place, (await sources.labelValues(name, query)).map(valueOffer));
    case "match-operator":
      return Object.entries(operators).map(operatorOffer);
    case "field-operator":
      return Object.entries({ ...operators, ...numberOperators }).map(operatorOffer);
    case "stage":
      return ranked(place, [
        ...(await sources.fields(query ?? "")).map(fieldOffer),
        ...stageHelp.map(({ name: stage, says }) => offer(stage, "|", says)),
      ]);
    case "field-value":
      return ranked(place, valuesOf(await sources.fieldValues(name, query ?? "")));
    case "number-field":
      return ranked(place, (await sources.fields(query ?? "")).filter(isNumber).map(fieldOffer));
    case "grouping":
      return ranked(place, [
        ...(await sources.labels(undefined)).map(labelOffer),
        ...(query === undefined ? [] : (await sources.fields(query)).map(fieldOffer)),
      ]);
    case "function":
      return ranked(
        place,
        functionHelp.map(({ name: word, signature, says }) =>
          offer(word, "f", `${says} · ${signature}`, `${word}(`),
        ),
      );
  }
}

function offer(text: string, kind: string, note: string, insert = text): Offer {
  return { text, insert, kind, note };
}

function labelOffer({ name, values }: LabelInfo): Offer {
  return offer(name, "L", `${values} value${values === 1 ? "" : "s"}`);
}

function valueOffer(value: string): Offer {
  return offer(value, "s", "", quote(value));
}

function operatorOffer([op, says]: readonly [string, string]): Offer {
  return offer(op, "=", says);
}

function fieldOffer(field: Field): Offer {
  const { name, type, values } = field;
  return offer(
    name,
    isNumber(field) ? "#" : "s",
    `${type}, ${values} value${values === 1 ? "" : "s"}`,
  );
}

function isNumber({ type }: Field): boolean {
  return type !== "string" && type !== "boolean";
}

/** Values of a field; of numbers the quartiles come first. */
function valuesOf(values: readonly string[]): Offer[] {
  const numbers = values.map(Number);
  if (values.length < 8 || numbers.some(Number.isNaN)) return values.map(valueOffer);
  const sorted = numbers.sort((a, b) => a - b);
  const at = (share: number) => String(sorted[Math.floor(share * (sorted.length - 1))]);
  const marks = {
    minimum: 0,
    "lower quarter": 0.25,
    median: 0.5,
    "upper quarter": 0.75,
    maximum: 1,
  };
  return Object.entries(marks).map(([says, share]) => offer(at(share), "#", says));
}

/** Most offers of a list. */
export const offersMax = 200;

/** Offers that begin with what is typed, then those that contain it. */
function ranked({ prefix }: Place, offers: readonly Offer[]): Offer[] {
  const wanted = prefix.toLowerCase();
  const isExact = ({ text }: Offer) => text.toLowerCase() === wanted;
  const starts = offers
    .filter(({ text }) => text.toLowerCase().startsWith(wanted))
    .sort((a, b) => Number(isExact(b)) - Number(isExact(a)));
  const contains = offers.filter(
    ({ text }) => !text.toLowerCase().startsWith(wanted) && text.toLowerCase().includes(wanted),
  );
  return [...starts, ...contains].slice(0, offersMax);
}
