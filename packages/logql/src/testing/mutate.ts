/** A stream of numbers in [0, 1) that a seed repeats. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A query of the corpus after one to four random edits: cut, double, splice, or a fragment put in. */
export function mutateQuery(random: () => number, corpus: readonly string[]): string {
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
  let text = pick(corpus);
  for (let edits = 1 + Math.floor(random() * 4); edits > 0; edits--) {
    const a = Math.floor(random() * (text.length + 1));
    const b = Math.min(text.length, a + Math.floor(random() * 12));
    switch (Math.floor(random() * 5)) {
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
        text = text.slice(0, a) + other.slice(Math.floor(random() * other.length));
      }
    }
  }
  return text;
}

const fragments: readonly string[] =
  '{ } ( ) [ ] | , = == =~ != !~ !> |= |~ |> > >= < <= + - * / % ^ . " ` \' \\ # \n \t -- --strict 5 5m -5m 1.5s 1KiB 0x1 1e400 1_0 [5m] [0] [1d2h] "a" `b` "\\x" "\\xff" ü 💥 \ud800 by without bool on ignoring group_left offset or and unless json logfmt regexp pattern unpack line_format label_format unwrap drop keep rate( sum( topk(3, vector(1) label_replace( ip( a a="b" a>5 {a="b"} ((((( by(a) offset 1h 0'.split(
    " ",
  );
