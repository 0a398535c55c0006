import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { BASELINE, type Baseline, buildBaseline } from "./baseline.ts"
import { type Measure, measures } from "./commands.ts"
import { type Command, type Cost, costOf } from "./measure.ts"
import { type Build, type Prepared, prepare } from "./prepare.ts"
import { ABOVE_LIMIT, type MeasuredCommand, ratioToBaseline, type Sample } from "./report.ts"

// The quick bench: runs each command, its floor and the baseline in turn, so that other load on the machine affects all of them.

const PAIRS = 5
const TRIES = 10

/** `times` multiplies the default number of runs. */
export type QuickOptions = { messages: number | "genuine"; times: number; only?: string[] }

export async function benchQuick(
  { messages, times, only }: QuickOptions,
  say: (line: string) => void,
): Promise<{ measured: MeasuredCommand[]; failed: string[]; baseline: Baseline | string }> {
  const unknown = [...Object.keys(ABOVE_LIMIT), ...(only ?? [])].filter((name) =>
    measures.every((one) => one.name !== name),
  )
  if (unknown.length > 0) throw new Error(`Nothing is measured that is called ${unknown.join(" or ")}`)
  say(`Building the baseline, ${BASELINE} …`)
  const baseline = buildBaseline()
  if (typeof baseline === "string")
    say(`THE BASELINE CANNOT BE BUILT, so everything is compared with its floor only. ${baseline}`)
  const folder = mkdtempSync(join(tmpdir(), "dex-bench-"))
  const clean = () => rmSync(folder, { recursive: true, force: true })
  process.once("exit", clean)
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1)) // cleans up too
  say("Making the histories …")
  const prepared = await prepare(folder, {
    messages,
    baseline: typeof baseline === "string" ? undefined : baseline.dex,
  })
  const measured: MeasuredCommand[] = []
  const failed: string[] = []
  const chosen = measures.filter(
    ({ name, minMessages = 0 }) =>
      (only === undefined || only.includes(name)) && (messages === "genuine" || messages >= minMessages),
  )
  for (const measure of chosen) {
    const one = await measureInTurn({ ...measure, runs: measure.runs * times }, prepared).catch((error: Error) => {
      failed.push(error.message)
      say(`NOT MEASURED: ${error.message}`)
    })
    if (!one) continue
    const ratio = ratioToBaseline(one)
    say(`${measure.name}: ${ratio === undefined ? "no baseline" : `${ratio.toFixed(2)} × the baseline`}`)
    measured.push(one)
  }
  return { measured, failed, baseline }
}

type Side = (nth: number) => Promise<Cost>

async function measureInTurn(measure: Measure, prepared: Prepared): Promise<MeasuredCommand> {
  const { now, baseline } = prepared
  const { command } = measure
  const isMissing = baseline !== undefined && (command === undefined || !(await hasCommand(baseline, command)))
  const build =
    (one: Build): Side =>
    (nth) =>
      checked(measure, () => measure.dex(one, prepared, nth))
  const sides: [name: "now" | "floor" | "baseline", run: Side][] = [
    ["now", build(now)],
    ["floor", (nth) => checked(measure, () => measure.floor(prepared, nth))],
    ...(baseline && !isMissing ? ([["baseline", build(baseline)]] as [["baseline", Side]]) : []),
  ]
  for (const [, run] of sides) await run(-1) // once each before measuring, so that all find their files in memory
  const samples = { now: [] as Sample[], floor: [] as Sample[], baseline: [] as Sample[] }
  const walls = { now: [] as number[], floor: [] as number[], baseline: [] as number[] }
  for (let pair = 0; pair < PAIRS; pair++) {
    const sums = { now: NOTHING, floor: NOTHING, baseline: NOTHING }
    for (let i = 0; i < measure.runs; i++) {
      const nth = pair * measure.runs + i
      const inTurn = sides.map((_, at) => sides[(at + nth) % sides.length]!)
      for (const [name, run] of inTurn) {
        const cost = await run(nth)
        sums[name] = sum(sums[name], cost, measure.runs)
        walls[name].push(cost.wallMs)
      }
    }
    for (const [name] of sides) samples[name].push(sums[name])
  }
  measure.check?.(prepared)
  return {
    ...{ name: measure.name, what: measure.what, now: samples.now, floor: samples.floor },
    ...{ baseline: isMissing ? "missing" : baseline && samples.baseline, walls },
  }
}

const NOTHING: Cost = { cpuMs: 0, wallMs: 0 }

function sum(a: Cost, b: Cost, runs: number): Cost {
  return { cpuMs: a.cpuMs + b.cpuMs / runs, wallMs: a.wallMs + b.wallMs / runs }
}

async function hasCommand({ dex, env, home }: Build, command: string): Promise<boolean> {
  return costOf({ args: [dex, command, "--help"], env, cwd: home }).then(
    () => true,
    () => false,
  )
}

/** A run that did not answer is repeated, in another session: on a busy machine a hook's own time limit may end it. */
async function checked({ name, answer }: Measure, command: () => Command): Promise<Cost> {
  for (let i = 0; i < TRIES; i++) {
    const { output, ...cost } = await costOf(command())
    if (answer.test(output)) return cost
  }
  throw new Error(`${name}: ${command().args.join(" ")} did not answer, ${TRIES} times. Is the machine too busy?`)
}
