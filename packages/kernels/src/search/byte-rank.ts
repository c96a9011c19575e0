/**
 * Positions of the two bytes of a text that are likely to be the rarest in logs; equal for a text of one byte. A
 * search compares these first, so that it seldom compares more.
 */
export function rarestPair(text: Uint8Array): readonly [number, number] {
  let first = 0;
  for (let i = 1; i < text.length; i++) if (ranks[text[i]!]! < ranks[text[first]!]!) first = i;
  let second = first === 0 ? text.length - 1 : 0;
  for (let i = 0; i < text.length; i++) {
    if (text[i] !== text[first] && ranks[text[i]!]! < ranks[text[second]!]!) second = i;
  }
  return [first, second];
}

/** From common to rare, counted in mixed logs; what is not listed is rarer. */
const common = ' e"tao0ni1srl2cd:=.-/,53p467m98uhgfbv_yw+k{}xqzjTSAEIM[]()PRCDNLOZFGKBHUVWXYJQ\n';

const ranks = Uint8Array.from({ length: 256 }, (_, byte) => {
  const place = common.indexOf(String.fromCharCode(byte));
  return place < 0 ? 0 : 255 - place;
});
