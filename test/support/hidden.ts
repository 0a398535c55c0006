// Characters that nobody sees and every model reads. They are listed here by hand, so that the tests do not depend on the code
// that removes them.

const RANGES: [from: number, to: number][] = [
  [0x00, 0x08],
  [0x0b, 0x1f], // with carriage return and escape
  [0x7f, 0x9f],
  [0xad, 0xad],
  [0x34f, 0x34f],
  [0x61c, 0x61c],
  [0x115f, 0x1160],
  [0x17b4, 0x17b5],
  [0x180e, 0x180e],
  [0x200b, 0x200b],
  [0x200e, 0x200f],
  [0x2028, 0x202e],
  [0x2060, 0x206f],
  [0x3164, 0x3164],
  [0xfeff, 0xfeff],
  [0xffa0, 0xffa0],
  [0xfff0, 0xfffb],
  [0x1bca0, 0x1bca3],
  [0x1d173, 0x1d17a],
  [0xe0000, 0xe00ff],
  [0xe01f0, 0xe0fff],
]

/** The hidden characters in a text, as hexadecimal numbers. */
export function hiddenIn(text: string): string[] {
  return [...text]
    .map((sign) => sign.codePointAt(0)!)
    .filter((code) => RANGES.some(([from, to]) => code >= from && code <= to))
    .map((code) => code.toString(16))
}

/** One character of every kind. */
export const HIDDEN = [
  "\u0000",
  "\u0007",
  "\u001b[31m",
  "\u001b]0;title\u0007",
  "\u007f",
  "\u0085",
  "\u009b",
  "\u00ad",
  "\u034f",
  "\u061c",
  "\u180e",
  "\u200b",
  "\u200e",
  "\u200f",
  "\u2028",
  "\u202a",
  "\u202e",
  "\u2060",
  "\u2063",
  "\u2066",
  "\u2069",
  "\u206a",
  "\u3164",
  "\ufeff",
  "\ufff9",
  "\u{1d173}",
  "\u{e0001}",
  "\u{e0041}",
  "\u{e007f}",
]
