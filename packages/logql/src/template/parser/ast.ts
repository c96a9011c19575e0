/** A parsed template: what Go's text/template calls its list of nodes. */
export type TemplateNode =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "action"; readonly pipe: Pipe }
  | (Block & { readonly kind: "if" | "with" })
  | (Block & { readonly kind: "range" })
  | { readonly kind: "break" }
  | { readonly kind: "continue" }
  | (Placed & {
      readonly kind: "template";
      readonly name: string;
      /** What becomes the dot; nil when not given. */
      readonly pipe: Pipe | undefined;
    });

/** A template and those it defines, by name; its own is among them. */
export interface TemplateSet {
  readonly main: readonly TemplateNode[];
  readonly definitions: ReadonlyMap<string, readonly TemplateNode[]>;
}

/** Where an error text says that something stands. */
export interface Placed {
  /** Offset in the template. */
  readonly at: number;
  /** As Go prints it in error texts. */
  readonly text: string;
}

interface Block {
  readonly pipe: Pipe;
  readonly body: readonly TemplateNode[];
  readonly otherwise: readonly TemplateNode[];
}

/** `$x := .a | upper`: commands joined by `|`, each one's result is the last argument of the next. */
export interface Pipe {
  /** Names with the dollar sign. */
  readonly variables: readonly string[];
  /** `=` instead of `:=` */
  readonly assigns: boolean;
  readonly commands: readonly Command[];
}

/** A function with its arguments, or a single operand. */
export interface Command extends Placed {
  readonly args: readonly Operand[];
}

export type Operand = Placed &
  (
    | { readonly kind: "dot" }
    | { readonly kind: "nil" }
    | { readonly kind: "constant"; readonly value: string | bigint | number | boolean }
    /** `.a.b`: a chain of fields on the dot */
    | { readonly kind: "field"; readonly fields: readonly string[] }
    /** `$x.a.b` */
    | { readonly kind: "variable"; readonly name: string; readonly fields: readonly string[] }
    /** `(pipeline).a.b` */
    | { readonly kind: "group"; readonly pipe: Pipe; readonly fields: readonly string[] }
    | { readonly kind: "function"; readonly name: string }
  );

/** What the error of a pipeline's result names: the operand that was evaluated last. */
export function lastOperand(pipe: Pipe): Operand {
  const operand = pipe.commands.at(-1)?.args.at(-1) as Operand;
  return operand.kind === "group" && operand.fields.length === 0
    ? lastOperand(operand.pipe)
    : operand;
}
