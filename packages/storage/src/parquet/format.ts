import { internal, type SkaldError } from "@skald/model";
import type { ThriftWriter } from "./thrift.js";

/** Numbers of the Parquet format that segments use, named as its Thrift definition names them. */
export const pageType = { dictionary: 2, dataV2: 3 } as const;
export const physicalType = { int64: 2, byteArray: 6 } as const;
export const encoding = {
  plain: 0,
  rle: 3,
  deltaBinaryPacked: 5,
  deltaLengthByteArray: 6,
  rleDictionary: 8,
} as const;
export const codec = { uncompressed: 0, zstd: 6 } as const;
const repetition = { required: 0, optional: 1, repeated: 2 } as const;
export const convertedType = { utf8: 0, map: 1 } as const;

export const magic = "PAR1";

/** The error of a page whose bytes are not what its encoding allows. */
export function corruptPage(what: string): SkaldError {
  return internal(`corrupt page: ${what}`);
}

/** A leaf of the schema: a column of the file. */
export interface Leaf {
  readonly path: readonly string[];
  readonly type: number;
}

/** A node of the schema tree as segments need it. */
export type SchemaNode =
  | { readonly kind: "timestamp"; readonly name: string }
  | {
      readonly kind: "text";
      readonly name: string;
      readonly optional: boolean;
      /** False when some value is not UTF-8: readers then take the column as plain bytes instead of failing. */
      readonly utf8: boolean;
    }
  | { readonly kind: "struct"; readonly name: string; readonly children: readonly SchemaNode[] }
  | { readonly kind: "map"; readonly name: string; readonly utf8: boolean };

/** The leaves in the order of their column chunks. */
export function leavesOf(nodes: readonly SchemaNode[]): Leaf[] {
  return nodes.flatMap((node) => leavesOfNode(node));
}

/** Writes the list of schema elements, depth first, as field `id` of the open struct. */
export function writeSchema(thrift: ThriftWriter, id: number, nodes: readonly SchemaNode[]): void {
  const root: Element = { name: "schema", children: nodes.length };
  thrift.structList(id, [root, ...nodes.flatMap(elementsOf)], (e) => writeElement(thrift, e));
}

interface Element {
  readonly name: string;
  readonly type?: number;
  readonly repetition?: number;
  readonly children?: number;
  readonly converted?: number;
  /** Field of the logical type union. */
  readonly logical?: number;
}

const logicalString = 1;
const logicalMap = 2;
const logicalTimestamp = 8;
const unitNanos = 3;

function leavesOfNode(node: SchemaNode): Leaf[] {
  switch (node.kind) {
    case "timestamp":
      return [{ path: [node.name], type: physicalType.int64 }];
    case "text":
      return [{ path: [node.name], type: physicalType.byteArray }];
    case "struct":
      return leavesOf(node.children).map((leaf) => ({
        path: [node.name, ...leaf.path],
        type: leaf.type,
      }));
    case "map":
      return ["key", "value"].map((part) => ({
        path: [node.name, "key_value", part],
        type: physicalType.byteArray,
      }));
  }
}

function elementsOf(node: SchemaNode): Element[] {
  const { required, repeated } = repetition;
  switch (node.kind) {
    case "timestamp":
      return [
        {
          name: node.name,
          type: physicalType.int64,
          repetition: required,
          logical: logicalTimestamp,
        },
      ];
    case "text":
      return [textElement(node.name, node.optional, node.utf8)];
    case "struct":
      return [
        { name: node.name, repetition: required, children: node.children.length },
        ...node.children.flatMap(elementsOf),
      ];
    case "map":
      return [
        {
          name: node.name,
          repetition: required,
          children: 1,
          converted: convertedType.map,
          logical: logicalMap,
        },
        { name: "key_value", repetition: repeated, children: 2 },
        textElement("key", false, true),
        textElement("value", false, node.utf8),
      ];
  }
}

function textElement(name: string, optional: boolean, utf8: boolean): Element {
  return {
    name,
    type: physicalType.byteArray,
    repetition: optional ? repetition.optional : repetition.required,
    ...(utf8 ? { converted: convertedType.utf8, logical: logicalString } : {}),
  };
}

function writeElement(thrift: ThriftWriter, element: Element): void {
  if (element.type !== undefined) thrift.i32(1, element.type);
  if (element.repetition !== undefined) thrift.i32(3, element.repetition);
  thrift.text(4, element.name);
  if (element.children !== undefined) thrift.i32(5, element.children);
  if (element.converted !== undefined) thrift.i32(6, element.converted);
  const { logical } = element;
  if (logical === undefined) return;
  thrift.struct(10, () => {
    thrift.struct(logical, () => {
      if (logical !== logicalTimestamp) return;
      thrift.bool(1, true);
      thrift.struct(2, () => thrift.struct(unitNanos, () => {}));
    });
  });
}
