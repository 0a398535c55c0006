import { readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import {
  ABOVE_LIMIT,
  faultsOf,
  LIMIT,
  limitOf,
  type MeasuredCommand,
  partTable,
  quickTable,
  ratioOf,
  type Sample,
  verdictOf,
  withPart,
} from "../../bench/report.ts"

const PAGE = readFileSync(join(import.meta.dirname, "../../docs/performance.md"), "utf8")
const STAMP = { commit: "0123abcde", date: "2026-11-18" }

const samples = (...cpuMs: number[]): Sample[] => cpuMs.map((ms) => ({ cpuMs: ms, wallMs: 2 * ms }))
const measured = (name: string, now: Sample[], baseline: MeasuredCommand["baseline"]): MeasuredCommand => ({
  ...{ name, what: `\`dex ${name}\``, now, floor: samples(50, 50, 50, 50, 50), baseline },
  walls: { now: [], floor: [] },
})
const page = (name: string, table: string) => withPart("# Performance\n\nHow it is measured.\n", name, table)

test("every figure in docs/performance.md was written by the bench, with its commit and its date", () => {
  expect(faultsOf(PAGE)).toEqual([])
  const quick = PAGE.split("<!-- bench quick -->")[1]?.split("<!-- end of bench quick -->")[0] ?? ""
  expect(quick.match(/^\| `dex .* [0-9a-f]{7,40} \| \d{4}-\d\d-\d\d \|$/gm)?.length).toBeGreaterThan(8)
})

test("every row that the bench writes has a commit and a date, even without a baseline", () => {
  const now = samples(100, 100, 100, 100, 100)
  const all = [measured("a", now, now), measured("b", now, "missing"), measured("c", now, undefined)]
  const quick = quickTable(all, STAMP)
  expect(quick).toContain("| `dex a` | 100 ms; 200 ms | 50 ms; 100 ms | 2.00 | 100 ms; 200 ms | 1.00 | 1.25 |")
  expect(quick).toContain("| `dex b` | 100 ms; 200 ms | 50 ms; 100 ms | 2.00 | has no such command | – | – |")
  expect(quick).toContain("| not built | – | – |")
  expect(faultsOf(page("quick", quick))).toEqual([])
  const part = partTable([{ what: "a", measured: "1 s", floor: "", goal: "< 2 s", ok: true }], STAMP)
  expect(faultsOf(page("watch", part))).toEqual([])
})

test("a figure without a commit or date, in another format, or not written by the bench is refused", () => {
  const quick = quickTable([measured("a", samples(1), samples(1))], STAMP)
  expect(faultsOf(page("quick", quick.replace("0123abcde", "")))).toEqual(['line 9: "" is no commit'])
  expect(faultsOf(page("quick", quick.replace("0123abcde", "0123abcde, changed")))).toHaveLength(1)
  expect(faultsOf(page("quick", quick.replace("2026-11-18", "today")))).toEqual(['line 9: "today" is no date'])
  expect(faultsOf(page("quick", quick.replace("| × floor ", "")))).toHaveLength(2)
  expect(faultsOf(page("watch", quick))).toHaveLength(1)
  expect(faultsOf(`# Performance\n\n${quick}`)).toEqual(["line 3: a table that the bench did not write"])
  expect(faultsOf("A search takes 82 ms.")).toEqual(["line 1: a figure that the bench did not write"])
  expect(faultsOf("A sync takes 1.2 × as long.")).toHaveLength(1)
})

test("a part of the page is replaced in place, and the rest of the page does not change", () => {
  const first = withPart(
    "# Performance\n\n<!-- bench quick -->\nold\n<!-- end of bench quick -->\n\n## Goals\n",
    "quick",
    "new",
  )
  expect(first).toBe("# Performance\n\n<!-- bench quick -->\n\nnew\n\n<!-- end of bench quick -->\n\n## Goals\n")
  expect(withPart(first, "watch", "more")).toBe(
    `${first}\n<!-- bench watch -->\n\nmore\n\n<!-- end of bench watch -->\n`,
  )
})

test("the median of five pairs decides, in processor time", () => {
  const now = samples(100, 126, 126, 126, 900)
  const baseline = samples(100, 100, 100, 100, 100)
  expect(ratioOf(now, baseline)).toBe(1.26)
  expect(verdictOf([measured("a", now, baseline)]).tooSlow).toEqual([
    "a: 1.26 times the processor time of the baseline; at most 1.25 is allowed.",
  ])
  expect(verdictOf([measured("a", samples(125, 125, 125, 1, 900), baseline)]).tooSlow).toEqual([])
  expect(verdictOf([measured("a", now, "missing"), measured("a", now, undefined)]).tooSlow).toEqual([])
})

/** The highest ceiling that each command may have. These may only be lowered. */
const CEILINGS: Record<string, number> = {
  "sync-threads": 1.55,
  search: 1.38,
  "sync-again": 1.15,
  initialize: 0.65,
  "first-search": 1.2,
}

test("every command above the limit has a reason and its own ceiling, and no ceiling rises", () => {
  for (const name of ["list", "hook", ...Object.keys(CEILINGS)])
    expect(limitOf(name), name).toBeLessThanOrEqual(CEILINGS[name] ?? LIMIT)
  for (const [name, { ceiling, because }] of Object.entries(ABOVE_LIMIT)) {
    expect(ceiling, name).toBeGreaterThan(LIMIT)
    expect(ceiling, name).toBeLessThanOrEqual(CEILINGS[name] ?? LIMIT)
    expect(because, name).toMatch(/^[A-Z].{20,}\.$/)
    const baseline = samples(100, 100, 100, 100, 100)
    const above = samples(...baseline.map(() => 100 * ceiling + 1))
    expect(verdictOf([measured(name, above, baseline)]).tooSlow, name).toHaveLength(1)
    expect(limitOf(name)).toBe(ceiling)
  }
})
