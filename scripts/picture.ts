import { execFileSync } from "node:child_process"
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { widthOf } from "../src/render/terminal.ts"
import { claudeSession } from "../test/support/home.ts"

// docs/picker.svg: the picker as the built program draws it, on a terminal of tmux, over a few conversations made here.
//   npm run picture

const [COLUMNS, ROWS] = [104, 22]
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

const home = mkdtempSync(join(tmpdir(), "dex-picture-"))
try {
  makeHome(home)
  writeFileSync(
    fileURLToPath(new URL("../docs/picker.svg", import.meta.url)),
    svgOf(await picture(home, "refresh tok")),
  )
} finally {
  rmSync(home, { recursive: true, force: true })
}

/** The picker after these words were typed and ranked. */
async function picture(dir: string, words: string): Promise<string> {
  const dex = fileURLToPath(new URL("../dist/dex.js", import.meta.url))
  const env = { HOME: dir, PATH: "/usr/bin:/bin", LANG: "C.UTF-8", TERM: "screen-256color", TZ: "UTC" }
  const command = (...args: string[]) => [
    "env",
    "-i",
    ...Object.entries(env).map((pair) => pair.join("=")),
    process.execPath,
    dex,
    ...args,
  ]
  const [program, ...args] = command("sync")
  execFileSync(program!, args, { stdio: "ignore" })
  const tmux = (...words: string[]) =>
    execFileSync("tmux", ["-S", join(dir, "tmux"), "-f", "/dev/null", ...words], { encoding: "utf8" })
  tmux("new-session", "-d", "-x", `${COLUMNS}`, "-y", `${ROWS}`, "-c", join(dir, "code/api"), "--", ...command())
  try {
    await until(() => tmux("capture-pane", "-p").includes("type to search"))
    tmux("send-keys", "-l", "--", words)
    await until(() => /\s\d+\s*$/m.test(tmux("capture-pane", "-p").split("\n")[0]!))
    return tmux("capture-pane", "-p", "-e").trimEnd()
  } finally {
    tmux("kill-server")
  }
}

async function until(isThere: () => boolean): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    if (isThere()) return
    await pause(50)
  }
  throw new Error("the picker did not show what was waited for")
}

function svgOf(screen: string): string {
  const lines = screen.split("\n")
  const [width, height] = [COLUMNS * CELL + 2 * MARGIN, ROWS * LINE + 2 * MARGIN]
  const texts = lines.flatMap((line, row) => lineTexts(line, MARGIN + (row + 1) * LINE - 5))
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="The picker of dex: conversations that match the typed words, with a preview of the first">`,
    `<rect width="100%" height="100%" rx="8" fill="${BACKGROUND}"/>`,
    `<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14">`,
    ...texts,
    "</g></svg>",
    "",
  ].join("\n")
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

function makeHome(dir: string): void {
  const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000 - 3_600_000).toISOString()
  const [api, web, cli] = ["api", "web", "cli"].map((name) => join(dir, "code", name))
  for (const folder of [api!, web!, cli!]) mkdirSync(folder, { recursive: true })
  const talk = (n: number, cwd: string, days: number, title: string, user: string, assistant: string) =>
    claudeSession(dir, {
      id: "11111111-1111-4111-8111-111111111111".replaceAll("1", `${n}`),
      cwd,
      start: daysAgo(days),
      title,
      turns: [
        { user },
        { assistant },
        { tool: { name: "Edit", input: { file_path: join(cwd, "src/token.ts") }, output: "ok" } },
        { tool: { name: "Bash", input: { command: "npm test" }, output: "Tests 41 passed" } },
        { user: "Can we test that?" },
        { assistant: "Yes: two refreshes at once, and both must end with the same session." },
      ],
    })
  talk(
    1,
    api!,
    2,
    "Refresh token race",
    "Why do two tabs log each other out?",
    "The refresh token is rotated, so the second request presents a used one.",
  )
  talk(
    2,
    cli!,
    4,
    "Store tokens in the keychain",
    "Where does the CLI keep its refresh token?",
    "In a file; the keychain is safer. I moved the refresh token there.",
  )
  talk(
    3,
    web!,
    9,
    "OAuth callback loops",
    "The callback redirects to itself",
    "Its state parameter was dropped, so every refresh of the token failed.",
  )
  talk(
    4,
    api!,
    12,
    "Retry failed webhooks",
    "Webhooks are lost when the receiver is down",
    "They are retried for a day now. A refresh of the signing token does not lose them.",
  )
  chmodSync(dir, 0o700)
}
