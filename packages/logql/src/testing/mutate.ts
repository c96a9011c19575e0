import type { Random } from "@skald/testkit";

/** A query of the corpus after one to four random edits: cut, double, splice, or a fragment put in. */
export function mutateQuery(random: Random, corpus: readonly string[]): string {
  const pick = <T>(items: readonly T[]): T => items[random(items.length)] as T;
  let text = pick(corpus);
  for (let edits = 1 + random(4); edits > 0; edits--) {
    const a = random(text.length + 1);
    const b = Math.min(text.length, a + random(12));
    switch (random(5)) {
      case 0:
        text = text.slice(0, a) + text.slice(b);
        break;
      case 1:
        text = text.slice(0, b) + text.slice(a);
        break;
      case 2:
        text = text.slice(0, a) + pick(fragments) + text.slice(a);
        break;
      case 3:
        text = text.slice(0, a) + pick(fragments) + text.slice(b);
        break;
      default: {
        const other = pick(corpus);
        text = text.slice(0, a) + other.slice(random(other.length));
      }
    }
  }
  return text;
}

const fragments: readonly string[] =
  '{ } ( ) [ ] | , = == =~ != !~ !> |= |~ |> > >= < <= + - * / % ^ . " ` \' \\ # \n \t -- --strict 5 5m -5m 1.5s 1KiB 0x1 1e400 1_0 [5m] [0] [1d2h] "a" `b` "\\x" "\\xff" ü 💥 \ud800 by without bool on ignoring group_left offset or and unless json logfmt regexp pattern unpack line_format label_format unwrap drop keep rate( sum( topk(3, vector(1) label_replace( ip( a a="b" a>5 {a="b"} ((((( by(a) offset 1h 0'.split(
    " ",
  );
