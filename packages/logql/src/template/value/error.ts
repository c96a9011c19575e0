/** A template that does not parse; the message is Go's text behind `template: name:line: `. */
export class TemplateSyntaxError extends Error {
  /** Offset in the template. */
  readonly at: number;

  constructor(message: string, at: number) {
    super(message);
    this.name = "TemplateSyntaxError";
    this.at = at;
  }
}

/** A template that fails on the data of a row; the message is Go's. */
export class TemplateRunError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "TemplateRunError";
  }
}
