/** A parsed template: what Go's text/template calls its list of nodes. */
export type TemplateNode =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "action"; readonly pipe: Pipe }
  | (Block & { readonly kind: "if" | "with" })
  | (Block & { readonly kind: "range" })
  | { readonly kind: "break" }
  | { readonly kind: "continue" };

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
export interface Command {
  readonly args: readonly Operand[];
  /** Byte offset in the template, for error texts. */
  readonly at: number;
  /** As Go prints it in error texts. */
  readonly text: string;
}

export type Operand =
  | { readonly kind: "dot" }
  | { readonly kind: "nil" }
  | { readonly kind: "constant"; readonly value: string | bigint | number | boolean }
  /** `.a.b`: a chain of fields on the dot */
  | Chain<{ readonly kind: "field" }>
  /** `$x.a.b` */
  | Chain<{ readonly kind: "variable"; readonly name: string }>
  /** `(pipeline).a.b` */
  | Chain<{ readonly kind: "group"; readonly pipe: Pipe }>
  | { readonly kind: "function"; readonly name: string; readonly at: number };

type Chain<T> = T & {
  readonly fields: readonly string[];
  readonly at: number;
  readonly text: string;
};
