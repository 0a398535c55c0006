import { describe, expect, test } from "vitest"
import { printBlame } from "../../../src/cli/print/blame.ts"
import {
  type AttributedCommit,
  attributeCommit,
  MIN_COMMIT_TRUST,
  MIN_LIKELY_LINE_TRUST,
  MIN_PROVED_LINE_TRUST,
} from "../../../src/learn/blame/attribute-commit.ts"
import type { BlameFacts, KnownEdit, Worker } from "../../../src/learn/blame/facts.ts"
import { lineKey } from "../../../src/learn/blame/line-key.ts"
import { countsOf } from "../../../src/tools/blame/owner-facts.ts"

const MINUTE = 60_000
const COMMITTED = Date.UTC(2026, 0, 2, 12)
const LINES = Array.from({ length: 12 }, (_, i) => `const quokka${i} = compute("quokka", ${i * 7})`)

/** A commit of twelve lines, of which one conversation wrote the first `wrote`, `minutes` before the commit. */
function attributed(wrote: number, minutes: number): AttributedCommit {
  const at = COMMITTED - minutes * MINUTE
  const worker: Worker = {
    ref: { source: "claude_code", id: "quokka" },
    activeSeconds: Uint32Array.of(Math.floor(at / 1000)),
  }
  const added = Uint32Array.from(LINES.slice(0, wrote).map(lineKey))
  const edit: KnownEdit = { worker, ref: { ...worker.ref, number: 2 }, at, added, removed: new Uint32Array() }
  const facts: BlameFacts = { workers: [worker], editsOf: () => [edit], commitRuns: [] }
  const files = [{ path: "src/zoo.ts", added: LINES.map((text, i) => ({ line: i + 1, text })), removed: [] }]
  const head = { hash: "a".repeat(40), at: COMMITTED, author: "", subject: "zoo", body: "", note: "" }
  return attributeCommit({ ...head, files }, facts)
}

/** How many of the twelve lines the conversation wrote, and how long before the commit. */
const WROTE = [1, 2, 4, 6, 9, 12]
const MINUTES = [1, 30, 600, 10_000, 100_000, 1_000_000]

const levelOf = <L>({ level }: { level: L }) => level
const firstLine = ({ files }: AttributedCommit) => files[0]!.lines[0]!

describe("the certainty of an answer", () => {
  const cases = WROTE.flatMap((wrote) => MINUTES.map((minutes) => attributed(wrote, minutes)))

  test("a line is proved, likely or unknown by how much of the commit was written and how long ago", () => {
    expect([MIN_LIKELY_LINE_TRUST, MIN_PROVED_LINE_TRUST]).toEqual([0.6, 0.95])
    const table = WROTE.map((wrote) => MINUTES.map((minutes) => firstLine(attributed(wrote, minutes)).level).join(" "))
    expect(table).toEqual([
      "proved likely likely unknown unknown unknown",
      "proved likely likely unknown unknown unknown",
      "proved proved likely likely unknown unknown",
      "proved proved likely likely unknown unknown",
      "proved proved proved likely likely unknown",
      "proved proved proved likely likely likely",
    ])
  })

  test("the output for a line says how certain it is", () => {
    const line = (level: "proved" | "likely" | "unknown", number: number) => ({
      line: number,
      text: `line ${number}`,
      commit: "a".repeat(40),
      date: "2026-01-02T12:00:00Z",
      subject: "zoo",
      was_path: "src/zoo.ts",
      was_line: number,
      level,
      ...(level !== "unknown" && { conversation: "claude_code:quokka123", agent: "Claude Code", title: "Quokkas" }),
    })
    const lines = [line("proved", 1), line("likely", 2), line("unknown", 3)]
    const output = {
      target: "src/zoo.ts",
      kind: "file" as const,
      lines,
      commits: [],
      agents: [],
      notes: [],
      ...countsOf(lines.map(levelOf)),
    }
    const terminal = { columns: 100, color: false, interactive: false }
    const shown = printBlame(output, { terminal } as never, { target: "src/zoo.ts" } as never)
    expect(shown.lines.map((text) => text[0])).toEqual(["p", "l", "u"])
    expect(shown.notes).toEqual(["3 lines: 1 proved (p), 1 likely (l), 1 unknown (u)."])
    const porcelain = printBlame(output, { terminal } as never, { target: "src/zoo.ts", porcelain: true } as never)
    expect(porcelain.lines.filter((text) => text.startsWith("dex-level"))).toEqual([
      "dex-level proved",
      "dex-level likely",
      "dex-level unknown",
    ])
  })

  test("a commit is attributed to a conversation only with enough trust", () => {
    expect(MIN_COMMIT_TRUST).toBe(0.65)
    const trusted = cases.map(({ ranked, attributed }) => ({
      trust: ranked[0]?.trust ?? 0,
      isNamed: attributed !== undefined,
    }))
    expect(trusted.some(({ trust }) => trust > 0.325 && trust < 0.65)).toBe(true)
    expect(trusted.some(({ trust }) => trust >= 0.65)).toBe(true)
    for (const { trust, isNamed } of trusted) expect({ trust, isNamed }).toEqual({ trust, isNamed: trust >= 0.65 })
  })

  test("a commit is proved only if one of its lines is", () => {
    const named = cases.flatMap(({ attributed, files }) => (attributed ? [{ attributed, lines: files[0]!.lines }] : []))
    expect(new Set(named.map(({ attributed }) => attributed.level))).toEqual(new Set(["proved", "likely"]))
    for (const { attributed, lines } of named)
      expect(attributed.level).toBe(lines.some(({ level }) => level === "proved") ? "proved" : "likely")
  })
})
