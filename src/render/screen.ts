import { paint, type Style, safe, type Terminal } from "./terminal.ts"

/** What a conversation is drawn on: a terminal behind a pager, or a part of one. */
export type Screen = Pick<Terminal, "columns" | "color"> & { glyphs: Glyphs }
export type Glyphs = typeof GLYPHS

const GLYPHS = { folded: "▸", failed: "✗", bar: "│", bullet: "•", rule: "─", dot: "·", ellipsis: "…" }
const ASCII: Glyphs = { folded: ">", failed: "x", bar: "|", bullet: "-", rule: "-", dot: "-", ellipsis: "..." }

export function screenOf({ columns, color }: Terminal, env: Record<string, string | undefined>): Screen {
  return { columns, color, glyphs: glyphsOf(env) }
}

/** Only ASCII where the locale says that the terminal can draw no more; where it says nothing, it can. */
export function glyphsOf(env: Record<string, string | undefined>): Glyphs {
  const locale = env.LC_ALL || env.LC_CTYPE || env.LANG || "UTF-8"
  return /utf-?8/i.test(locale) ? GLYPHS : ASCII
}

/** Words of a transcript in a style, safe to write; each line by itself, so that lines can be taken apart. */
export function styled(screen: Pick<Screen, "color">, text: string, ...styles: Style[]): string {
  return safe(text)
    .split("\n")
    .map((line) => styles.reduce((shown, style) => paint(screen, style, shown), line))
    .join("\n")
}

export function within(screen: Screen, less: number): Screen {
  return { ...screen, columns: Math.max(10, screen.columns - less) }
}
