import { paint, type Style, safe, type Terminal } from "./terminal.ts"

/** The area in which a conversation is shown: a terminal, or a part of one. */
export type Screen = Pick<Terminal, "columns" | "color"> & { glyphs: Glyphs }
export type Glyphs = typeof GLYPHS

const GLYPHS = { folded: "▸", failed: "✗", bar: "│", bullet: "•", rule: "─", dot: "·", ellipsis: "…" }
const ASCII: Glyphs = { folded: ">", failed: "x", bar: "|", bullet: "-", rule: "-", dot: "-", ellipsis: "..." }

export function screenOf({ columns, color }: Terminal, env: Record<string, string | undefined>): Screen {
  return { columns, color, glyphs: glyphsOf(env) }
}

/** The glyphs to draw with: ASCII only if the locale names an encoding other than UTF-8. Without a locale, UTF-8 is assumed. */
export function glyphsOf(env: Record<string, string | undefined>): Glyphs {
  const locale = env.LC_ALL || env.LC_CTYPE || env.LANG || "UTF-8"
  return /utf-?8/i.test(locale) ? GLYPHS : ASCII
}

/** Text of a transcript in a style, safe to print. Each line is styled separately, so that lines can be split. */
export function styleText(screen: Pick<Screen, "color">, text: string, ...styles: Style[]): string {
  return safe(text)
    .split("\n")
    .map((line) => styles.reduce((shown, style) => paint(screen, style, shown), line))
    .join("\n")
}

export function narrowScreen(screen: Screen, columns: number): Screen {
  return { ...screen, columns: Math.max(10, screen.columns - columns) }
}
