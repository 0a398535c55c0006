import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { tempDir } from "../support/temp.ts"
import { hasTmux, openScreen, type TmuxScreen } from "../support/tmux.ts"
import { syncHome } from "../support/warm.ts"
import { pickerHome } from "./picker/home.ts"

// Five sessions with dex as a person would have them, on a real terminal. Each screen is stored as text in walks/:
// `npx vitest run test/cli/walks.test.ts -u` updates them.

if (!hasTmux) console.log("NOT RUN: there is no tmux here, so nobody walks through dex")

/**
 * The text to type, or the names of keys, and what the screen must show before it is stored: by default the next prompt. The
 * preview must be shown too.
 */
type Step = { type?: string; keys?: string[]; until?: RegExp; preview?: string }
type Walk = { isNew?: boolean; steps: Step[] }

const WALKS: Record<string, Walk> = {
  "the first minute": {
    isNew: true,
    steps: [
      { type: "dex", until: /type to search +4\n─ \d+ new messages, read in/, preview: "Amounts were floats" },
      { keys: ["Escape"], until: /\n2\$$/ },
      { type: "clear; dex list", until: /\n3\$$/ },
      { type: "clear; dex show 1", until: /\n4\$$/ },
    ],
  },
  "search and read": {
    steps: [{ type: "dex search refresh tokn" }, { type: "clear; dex show 1" }],
  },
  "pick and read": {
    steps: [
      { type: "dex", until: /4\n─/, preview: "Amounts were floats" },
      { keys: ["r", "e", "f", "r", "e", "s", "h"], until: /❯ refresh +1\n/, preview: "▸ Bash npm test" },
      { keys: ["Tab"], until: /q: leave/ },
      { keys: ["q"], until: /❯ refresh +1\n/, preview: "▸ Bash npm test" },
      { keys: ["Escape"], until: /type to search +4\n/, preview: "Amounts were floats" },
    ],
  },
  "delete one": {
    steps: [
      { type: "dex list" },
      { type: "clear; dex forget 2", until: /● No\n└/ },
      { keys: ["n"], until: /Nothing was deleted\.\n3\$$/ },
    ],
  },
  "ask for help": {
    steps: [{ type: "dex serach token" }, { type: "clear; dex --help" }, { type: "clear; dex show 9" }],
  },
}

const SIZES = [
  [80, 24],
  [140, 40],
] as const

describe.skipIf(!hasTmux).each(SIZES)("on %i × %i", (columns, rows) => {
  test.each(Object.entries(WALKS))("%s", async (name, { isNew = false, steps }) => {
    const home = tempDir()
    pickerHome(home)
    if (!isNew) await syncHome(home)
    // The prompt contains a counter, so that the previous one does not match.
    const screen = await openScreen(home, { columns, rows, cwd: join(home, "code/api"), env: { PS1: "\\#$ " } })
    const seen: string[] = []
    for (const [i, step] of steps.entries()) {
      const after = await taken(screen, { until: new RegExp(`\\n${i + 2}\\$$`), ...step })
      seen.push(`${stepText(step)}\n${lasting(after, home)}`)
    }
    const file = `walks/${name.replaceAll(" ", "-")}-${columns}x${rows}.txt`
    await expect(`${seen.join(`\n${"=".repeat(columns)}\n`)}\n`).toMatchFileSnapshot(file)
  })
})

async function taken(screen: TmuxScreen, { type, keys, until, preview }: Step & { until: RegExp }): Promise<string> {
  await screen.keys(...(type === undefined ? keys! : [type, "Enter"]))
  const shown = await screen.shows(until)
  return preview === undefined ? shown : screen.shows(preview)
}

function stepText({ type, keys }: Step): string {
  return `>> ${type ?? keys!.join(" ")}`
}

/** Removes what differs from run to run: the folder, dates and durations. */
function lasting(screen: string, home: string): string {
  return screen
    .replaceAll(home, "/home/ada".padEnd(home.length, "_"))
    .replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d/g, "YYYY-MM-DD hh:mm")
    .replaceAll(/\d{4}-\d\d-\d\d/g, "YYYY-MM-DD")
    .replaceAll(/\d+(\.\d+)? (ms|s)\b/g, "N ms")
}
