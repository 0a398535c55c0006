import { globSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { parseObject } from "../src/core/record.ts"
import { redactRecord, redactText } from "../src/redact/redact.ts"
import { leakOf, plant } from "../test/redact/secrets.ts"
import { ROOT } from "./measure.ts"

let isShown = false

/**
 * How many planted secrets redaction finds, how often it redacts something that is not a secret, and how fast it is. `--jsonl
 * FOLDER`: also in transcripts. `--source FOLDER`: there instead of in node_modules. `--show`: print everything that it redacts
 * there.
 */
export function benchRedact(args: string[]): undefined {
  const { values } = parseArgs({
    args,
    options: {
      jsonl: { type: "string" },
      source: { type: "string", multiple: true },
      show: { type: "boolean", default: false },
    },
  })
  isShown = values.show
  measureRecall()
  measureSource(values.source ?? [join(ROOT, "node_modules")])
  if (values.jsonl) measureTranscripts(values.jsonl)
  else console.log("NOT RUN: transcripts (no --jsonl)")
  measureFloods()
}

function measureRecall(): void {
  const planted = plant(1, 20)
  const missed = planted.filter((p) => leakOf(p, redactText(p.text, p.key)) !== undefined)
  const rows = [true, false].map((known) => {
    const all = planted.filter((p) => p.known === known)
    const lost = missed.filter((p) => p.known === known).length
    return {
      secrets: known ? "known formats" : "generic",
      families: new Set(all.map((p) => p.family)).size,
      planted: all.length,
      missed: lost,
      "recall %": round((1 - lost / all.length) * 100),
    }
  })
  console.table(rows)
  for (const p of missed) console.log(`missed: ${p.family} in ${p.place}: ${JSON.stringify(p.text.slice(0, 140))}`)
}

function measureSource(directories: string[]): void {
  const pattern = "**/*.{js,mjs,cjs,ts,json,md,map,py,rb,pl,pm,sh,yaml,yml,conf,txt,html,xml}"
  const texts: { file: string; text: string }[] = []
  for (const file of directories.flatMap((directory) => globSync(join(directory, pattern)))) {
    const stat = statSync(file, { throwIfNoEntry: false })
    if (stat?.isFile() && stat.size < 4e6) texts.push({ file, text: readFileSync(file, "utf8") })
  }
  let found = 0
  const seconds = cpuSeconds(() => {
    for (const { file, text } of texts) found += markers(text, redactText(text), file)
  })
  report(`source (${texts.length} files)`, sum(texts.map(({ text }) => text.length)), found, seconds)
}

function measureTranscripts(directory: string): void {
  const lines: string[] = []
  for (const file of globSync(join(directory, "**/*.jsonl"))) {
    for (const line of readFileSync(file, "utf8").split("\n")) if (parseObject(line)) lines.push(line)
  }
  const bytes = sum(lines.map((line) => line.length))
  const leaves: string[] = []
  for (const line of lines) collect(parseObject(line), leaves)
  const leafBytes = sum(leaves.map((leaf) => leaf.length))
  let found = 0
  const leafSeconds = cpuSeconds(() => {
    for (const leaf of leaves) found += markers(leaf, redactText(leaf), "transcript")
  })
  report(`transcripts, ${leaves.length} strings`, leafBytes, found, leafSeconds)
  let parsed = 0
  const parseSeconds = cpuSeconds(() => {
    for (const line of lines) parsed += parseObject(line) ? 1 : 0
  })
  const recordSeconds = cpuSeconds(() => {
    for (const line of lines) redactRecord(parseObject(line)!)
  })
  report(`transcripts, ${parsed} records, without parsing`, bytes, found, recordSeconds - parseSeconds)
}

function measureFloods(): void {
  const floods = [
    "<private>",
    "password=",
    "api_key",
    "key",
    "https://a:a",
    "eyJ",
    "xoxb-",
    "Cookie: a=",
    "curl -u ",
    "Bearer ",
  ]
  const rows = [...floods, `-----BEGIN RSA ${"PRIVATE"} KEY-----\n`, "aB3dE5gH7jK9mN1pQ", "password=aB3dE5gH7jK9 "].map(
    (piece) => {
      const text = piece.repeat(Math.ceil((1 << 20) / piece.length))
      return {
        "1 MB of": JSON.stringify(piece),
        "MB/s": round(text.length / 1e6 / cpuSeconds(() => redactText(text))),
      }
    },
  )
  console.table(rows)
}

function report(what: string, characters: number, found: number, seconds: number): void {
  const megabytes = characters / 1e6
  console.table([
    { what, MB: round(megabytes), found, "per MB": round(found / megabytes), "MB/s": round(megabytes / seconds) },
  ])
}

function markers(before: string, after: string, file: string): number {
  if (before === after) return 0
  const MARKER = /\[REDACTED:[a-z0-9-]+\]/g
  const old = before.match(MARKER)?.length ?? 0
  const found = [...after.matchAll(MARKER)]
  if (isShown) {
    for (const hit of found)
      console.log(`${file}: ${JSON.stringify(after.slice(Math.max(0, hit.index - 60), hit.index + 40))}`)
  }
  return found.length - old
}

function collect(value: unknown, strings: string[]): void {
  if (typeof value === "string") strings.push(value)
  else if (typeof value === "object" && value !== null) for (const item of Object.values(value)) collect(item, strings)
}

function cpuSeconds(run: () => void): number {
  const before = process.cpuUsage().user
  run()
  return Math.max((process.cpuUsage().user - before) / 1e6, 1e-6)
}

function sum(numbers: number[]): number {
  return numbers.reduce((a, b) => a + b, 0)
}

function round(n: number): number {
  return Math.round(n * 100) / 100
}
