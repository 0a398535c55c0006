import { execFileSync } from "node:child_process"
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { makeDemo } from "../demo/history.ts"
import { widthOf } from "../src/render/terminal.ts"

// docs/dex.svg: half a minute in a terminal of tmux, with the built program and the history of demo/. Something is found in the
// picker and read, and a line is explained. A line that stays the same on several screens is drawn once.
//   npm run picture

const [COLUMNS, ROWS] = [100, 26]
const [CELL, LINE, MARGIN] = [8.4, 18, 14]
const BACKGROUND = "#14161b"
const PLAIN = "#d5d8df"
const COLOURS: Record<number, string> = {
  30: "#5c6370",
  31: "#e06c75",
  32: "#98c379",
  33: "#e5c07b",
  34: "#61afef",
  35: "#c678dd",
  36: "#56b6c2",
  37: PLAIN,
}

type Look = { colour: string; bold: boolean; dim: boolean; reverse: boolean }
type Run = { text: string; look: Look }
/** What the terminal showed, and for how many seconds the picture shows it. */
type Screen = { lines: string[]; seconds: number }

const home = mkdtempSync(join(tmpdir(), "dex-picture-"))
try {
  const project = makeDemo(home)
  makeCommand(home)
  writeFileSync(fileURLToPath(new URL("../docs/dex.svg", import.meta.url)), svgOf(await filmed(home, project)))
} finally {
  rmSync(home, { recursive: true, force: true, maxRetries: 5 })
}

/** `dex` for the shell, as it is when it is installed. */
function makeCommand(dir: string): void {
  const dex = fileURLToPath(new URL("../dist/dex.js", import.meta.url))
  mkdirSync(join(dir, "bin"))
  writeFileSync(join(dir, "bin/dex"), `#!/bin/sh\nexec '${process.execPath}' '${dex}' "$@"\n`)
  chmodSync(join(dir, "bin/dex"), 0o755)
  chmodSync(dir, 0o700)
}

async function filmed(dir: string, project: string): Promise<Screen[]> {
  const variables = {
    ...{ HOME: dir, PATH: `${dir}/bin:/usr/bin:/bin`, LANG: "C.UTF-8", TERM: "screen-256color", TZ: "UTC" },
    PS1: "$ ",
  }
  const clean = ["env", "-i", ...Object.entries(variables).map((pair) => pair.join("="))]
  execFileSync(clean[0]!, [...clean.slice(1), "dex", "sync"], { stdio: "ignore" })
  // Learns now what the picture would otherwise wait for.
  execFileSync(clean[0]!, [...clean.slice(1), "dex", "why", "src/tides.ts:9"], { cwd: project, stdio: "ignore" })
  const tmux = (...words: string[]) =>
    execFileSync("tmux", ["-S", join(dir, "tmux"), "-f", "/dev/null", ...words], { encoding: "utf8" })
  const shown = () => tmux("capture-pane", "-p")
  const screens: Screen[] = []
  const take = (seconds: number) => {
    const lines = tmux("capture-pane", "-p", "-e").trimEnd().split("\n")
    const last = screens.at(-1)
    if (last?.lines.join("\n") === lines.join("\n")) last.seconds += seconds
    else screens.push({ lines, seconds })
  }
  const type = async (words: string) => {
    for (const letter of words) {
      tmux("send-keys", "-l", "--", letter)
      await pause(40)
      take(0.09)
    }
    take(1)
  }
  const press = async (key: string, isThere: RegExp, seconds: number) => {
    tmux("send-keys", key)
    await until(() => isThere.test(shown()))
    await pause(300) // what is drawn after the first part
    take(seconds)
  }
  tmux("new-session", "-d", "-x", `${COLUMNS}`, "-y", `${ROWS}`, "-c", project, "--", ...clean, "bash", "--norc", "-i")
  try {
    await until(() => shown().startsWith("$"))
    take(1)
    await type("dex")
    await press("Enter", /type to search/, 3)
    await type("high water")
    await until(() => /\s\d+\s*$/m.test(shown().split("\n")[0]!))
    await pause(300)
    take(4)
    await press("Down", /./, 1.5)
    await press("Tab", /It fails as it did/, 5)
    await press("q", /^❯ high water/, 1)
    await press("Escape", /type to search/, 0.5)
    await press("Escape", /\$\s*$/, 1)
    tmux("send-keys", "C-l")
    await type("dex why src/tides.ts:9")
    await press("Enter", /Tests[\s\S]*\$\s*$/, 9)
    return screens
  } finally {
    tmux("kill-server")
  }
}

async function until(isThere: () => boolean): Promise<void> {
  for (let tries = 0; tries < 400; tries++) {
    if (isThere()) return
    await pause(50)
  }
  throw new Error("the terminal did not show what was waited for")
}

function svgOf(screens: Screen[]): string {
  const [width, height] = [COLUMNS * CELL + 2 * MARGIN, ROWS * LINE + 2 * MARGIN]
  const ends: number[] = []
  for (const { seconds } of screens) ends.push((ends.at(-1) ?? 0) + seconds)
  const whole = ends.at(-1)!
  const styles = new Map<string, string>()
  const parts: string[] = []
  for (let row = 0; row < ROWS; row++)
    for (let from = 0, to = 0; from < screens.length; from = to) {
      const line = screens[from]!.lines[row] ?? ""
      for (to = from + 1; to < screens.length && (screens[to]!.lines[row] ?? "") === line; ) to++
      const texts = lineTexts(line, MARGIN + (row + 1) * LINE - 5)
      if (texts.length === 0) continue
      const name = `s${from}-${to}`
      styles.set(name, shownBetween(name, (100 * (ends[from - 1] ?? 0)) / whole, (100 * ends[to - 1]!) / whole, whole))
      parts.push(`<g class="${name}${to === screens.length ? " last" : ""}">${texts.join("")}</g>`)
    }
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="dex in a terminal: a conversation is found and read in the picker, and dex why says who asked for a line, what was decided and which tests ran">`,
    "<style>g g{visibility:hidden}",
    ...styles.values(),
    // Without motion, the last screen.
    "@media(prefers-reduced-motion:reduce){g g{animation:none!important}g .last{visibility:visible}}",
    "</style>",
    `<rect width="100%" height="100%" rx="8" fill="${BACKGROUND}"/>`,
    `<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14">`,
    ...parts,
    "</g></svg>",
    "",
  ].join("\n")
}

/** Shows the class between two percentages of the film. */
function shownBetween(name: string, from: number, to: number, seconds: number): string {
  const at = (percent: number) => `${percent.toFixed(2)}%`
  const frames =
    (from === 0 ? "" : `0%{visibility:hidden}`) +
    `${at(from)}{visibility:visible}` +
    (to >= 100 ? "" : `${at(to)}{visibility:hidden}`)
  return `@keyframes ${name}{${frames}}.${name}{animation:${name} ${seconds.toFixed(2)}s step-end infinite}`
}

function lineTexts(line: string, y: number): string[] {
  let column = 0
  return runsOf(line).flatMap(({ text, look }) => {
    const x = MARGIN + column * CELL
    const width = widthOf(text) * CELL
    const start = column
    column += widthOf(text)
    const [colour, behind] = look.reverse ? [BACKGROUND, look.colour] : [look.colour, ""]
    const style = `${look.bold ? ' font-weight="bold"' : ""}${look.dim ? ' opacity="0.6"' : ""}`
    return [
      ...(behind === "" ? [] : [`<rect x="${x}" y="${y - 13}" width="${width}" height="${LINE}" fill="${behind}"/>`]),
      ...piecesOf(text).map((piece) => {
        const left = MARGIN + (start + piece.column) * CELL
        const length = widthOf(piece.text) * CELL
        return `<text x="${left.toFixed(1)}" y="${y}" textLength="${length.toFixed(1)}" fill="${colour}"${style}>${escaped(piece.text)}</text>`
      }),
    ]
  })
}

/**
 * The pieces between two or more spaces. Browsers drop spaces at the ends of a text and all but one between words, and then
 * stretch the rest to the given length; a piece has none that could be dropped.
 */
function piecesOf(text: string): { text: string; column: number }[] {
  return [...text.matchAll(/\S+(?: \S+)*/g)].map((found) => ({
    text: found[0],
    column: widthOf(text.slice(0, found.index)),
  }))
}

/** A line in pieces of the same style. */
function runsOf(line: string): Run[] {
  const runs: Run[] = []
  let look: Look = { colour: PLAIN, bold: false, dim: false, reverse: false }
  for (const [i, piece] of line.split(/\x1b\[([\d;]*)m/).entries()) {
    if (i % 2 === 1) for (const code of piece.split(";").map(Number)) look = changed(look, code)
    else if (piece !== "") runs.push({ text: piece, look })
  }
  return runs
}

function changed(look: Look, code: number): Look {
  if (code === 0) return { colour: PLAIN, bold: false, dim: false, reverse: false }
  if (code === 1) return { ...look, bold: true }
  if (code === 2) return { ...look, dim: true }
  if (code === 7) return { ...look, reverse: true }
  if (code === 22) return { ...look, bold: false, dim: false }
  if (code === 27) return { ...look, reverse: false }
  if (code === 39) return { ...look, colour: PLAIN }
  return COLOURS[code] === undefined ? look : { ...look, colour: COLOURS[code] }
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")
}
