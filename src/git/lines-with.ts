import { runGit } from "./run.ts"

/** Some lines of a tracked file that follow each other. */
export type LineStretch = { path: string; first: number; lines: string[] }

const TIMEOUT_MS = 2_000
const MAX_OUTPUT_BYTES = 8 << 20
/** How many lines above and below a match belong to its stretch. */
const LINES_AROUND = 8
const MAX_LINE_CHARS = 300
/** Documents, generated files, copies of other projects' code, and what tests expect are not what a project says of itself. */
const LEFT_OUT = [
  ...[
    "*.md",
    "*.mdx",
    "*.rst",
    "*.adoc",
    "*.html",
    "*.svg",
    "*.csv",
    "*.snap",
    "*.jsonl",
    "*.patch",
    "*.min.*",
    "*.map",
  ],
  ...["*.lock", "*-lock.json", "*-lock.yaml", "go.sum", "*LICENSE*", "*CHANGELOG*"],
  ...["*node_modules/*", "*vendor/*", "*dist/*", "*fixtures/*", "*testdata/*", "*__snapshots__/*"],
]
const TESTS = ["*test/*", "*tests/*", "*_test.*", "*.test.*", "*.spec.*", "*test_*"]

/**
 * The lines of a project's tracked files that contain any of these words, and the lines around them. `isComplete` is false if git
 * found too much, or took too long. Undefined if the folder is in no repository, or there is no git.
 */
export async function linesWith(
  folder: string,
  words: readonly string[],
  { tests, signal }: { tests: boolean; signal?: AbortSignal },
): Promise<{ stretches: LineStretch[]; isComplete: boolean } | undefined> {
  const patterns = words.flatMap((word) => ["-e", word])
  const left = [...LEFT_OUT, ...(tests ? [] : TESTS)].map((glob) => `:(exclude,icase)${glob}`)
  const chunks: Buffer[] = []
  try {
    const end = await runGit(
      [
        "grep",
        "-n",
        "-z",
        "-I",
        "-i",
        "-F",
        "--no-color",
        "--no-textconv",
        `-C${LINES_AROUND}`,
        ...patterns,
        "--",
        ".",
        ...left,
      ],
      {
        ...{ folder, timeoutMs: TIMEOUT_MS, maxBytes: MAX_OUTPUT_BYTES, signal, readsOnly: true },
        onOutput: (bytes) => chunks.push(bytes),
      },
    )
    if (end.stopped === undefined && end.code !== 0 && end.code !== 1) return undefined
    return { stretches: stretchesIn(Buffer.concat(chunks).toString("utf8")), isComplete: end.stopped === undefined }
  } catch {
    signal?.throwIfAborted()
    return undefined // no git on this machine
  }
}

function stretchesIn(output: string): LineStretch[] {
  const stretches: LineStretch[] = []
  for (const row of output.split("\n")) {
    const [path, number, ...rest] = row.split("\0")
    if (path === undefined || number === undefined || !/^\d+$/.test(number)) continue
    const last = stretches.at(-1)
    const line = rest.join(" ").replace(/\r$/, "").slice(0, MAX_LINE_CHARS)
    if (last?.path === path && last.first + last.lines.length === Number(number)) last.lines.push(line)
    else stretches.push({ path, first: Number(number), lines: [line] })
  }
  return stretches
}
