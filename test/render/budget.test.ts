import { execFileSync } from "node:child_process"
import { join } from "node:path"
import fc from "fast-check"
import { expect, test } from "vitest"
import { createDex } from "../../src/app/dex.ts"
import { readArguments } from "../../src/cli/args.ts"
import { commands } from "../../src/cli/commands.ts"
import { chosenForm } from "../../src/cli/forms.ts"
import { printList } from "../../src/cli/print/list.ts"
import { printRead, printScan, printShow, printTimeline } from "../../src/cli/print/show.ts"
import type { PrintedOutput } from "../../src/cli/print/words.ts"
import type { Part } from "../../src/core/conversation.ts"
import { isDexError } from "../../src/core/error.ts"
import { FORMATS, type Format } from "../../src/core/format.ts"
import { formatRef } from "../../src/core/ref.ts"
import { estimateTokens } from "../../src/core/tokens.ts"
import type { Tool } from "../../src/core/tool.ts"
import { toJson } from "../../src/render/json.ts"
import { patchText } from "../../src/render/patch.ts"
import type { MessageWrite } from "../../src/store/history/store.ts"
import { commandLine } from "../../src/tools/view.ts"
import { conversation, unit } from "../support/conversations.ts"
import { tempDir } from "../support/temp.ts"

// `--max-tokens` counts the complete answer, in JSON and in print, for every view.

const RUNS = Number(process.env.DEX_RUNS ?? 60)

const words = fc.oneof(
  { weight: 4, arbitrary: fc.lorem({ maxCount: 60 }) },
  { weight: 2, arbitrary: fc.string({ unit: "binary", maxLength: 300 }) },
  {
    weight: 1,
    arbitrary: fc.string({
      unit: fc.constantFrom('"', "\\", "\n", "\u200b", "\ud83c\udf89", "\u001b[31m"),
      maxLength: 400,
    }),
  },
  { weight: 1, arbitrary: fc.lorem({ maxCount: 40 }).map((text) => `${text} `.repeat(60)) },
)
const tool = fc.constantFrom("Bash", "Read", "Edit", "Grep", "Task", "apply_patch", 'odd "name"', "mcp__x__y")
const hunk = fc.record({
  path: fc.constantFrom("/code/api/a.ts", "b.ts"),
  old_start: fc.nat(500),
  old_lines: fc.nat(9),
  new_start: fc.nat(500),
  new_lines: fc.nat(9),
  lines: fc.array(
    words.map((text) => `+${text.replaceAll("\n", " ")}`),
    { maxLength: 5 },
  ),
})
const part: fc.Arbitrary<Part> = fc.oneof(
  fc.record({ type: fc.constant("text"), text: words, origin: fc.constantFrom("person", "agent", "injected") }),
  fc.record({ type: fc.constant("thinking"), text: words, origin: fc.constant("agent") }),
  fc.record({ type: fc.constant("summary"), text: words, origin: fc.constant("agent") }),
  fc.record({
    type: fc.constant("tool_call"),
    text: fc.oneof(
      words,
      words.map((text) => JSON.stringify({ file_path: `/code/api/${text}`, old_string: text, new_string: "x" })),
    ),
    origin: fc.constant("agent"),
    tool,
    call_id: fc.constantFrom("c1", "c2", "c3"),
  }),
  fc.record(
    {
      type: fc.constant("tool_result"),
      text: words,
      origin: fc.constantFrom("local_tool", "web"),
      tool,
      call_id: fc.constantFrom("c1", "c2", "c3"),
      is_error: fc.boolean(),
      hunks: fc.array(hunk, { maxLength: 3 }),
    },
    { requiredKeys: ["type", "text", "origin", "is_error"] },
  ),
  fc.record({
    type: fc.constant("image"),
    text: fc.constant(""),
    origin: fc.constant("person"),
    mime: fc.constant("image/png"),
    bytes: fc.nat(1e6),
  }),
) as fc.Arbitrary<Part>
const message: fc.Arbitrary<MessageWrite> = fc.record({
  key: fc.uuid(),
  role: fc.constantFrom("user", "assistant", "tool", "system"),
  at: fc.option(fc.integer({ min: 1_700_000_000_000, max: 1_700_000_900_000 }), { nil: undefined }),
  parts: fc.array(part, { minLength: 1, maxLength: 4 }),
  effects: fc.array(
    fc.record({
      type: fc.constant("command"),
      command: words,
      call_id: fc.constantFrom("c1", "c2"),
      exit_status: fc.nat(2),
    }),
    { maxLength: 2 },
  ),
  usage: fc.option(fc.record({ input: fc.nat(), output: fc.nat(), cache_read: fc.nat(), cache_write: fc.nat() }), {
    nil: undefined,
  }),
}) as fc.Arbitrary<MessageWrite>
const told = fc.record({
  messages: fc.uniqueArray(message, { minLength: 1, maxLength: 25, selector: ({ key }) => key }),
  title: words,
  odd: fc.constantFrom("", "'", "$(touch x)", ";&|", "日本"),
  maxTokens: fc.oneof(fc.integer({ min: 1, max: 400 }), fc.integer({ min: 300, max: 6000 })),
})

async function history() {
  const home = tempDir()
  const dex = createDex({ env: { HOME: home, DEX_HOME: join(home, ".dex") }, cwd: home, version: "0" })
  const store = await dex.storeToWrite()
  let n = 0
  const write = async ({ messages, title, odd }: { messages: MessageWrite[]; title: string; odd: string }) => {
    const id = `c${n++}-${odd.replaceAll(" ", "_")}`
    const more = { title: { text: title, from: "person" as const } }
    await store.writeUnit(
      unit(id, [
        conversation(
          id,
          messages.map((one) => ({ ...one, key: `${id}-${one.key}` })),
          more,
        ),
      ]),
    )
    return { source: "claude_code" as const, id }
  }
  return { dex, store, write }
}

type Answer = Record<string, unknown> & { estimated_tokens: number }

const HOME = "/home/dev"
const PRINTERS: Record<string, (output: never, context: never) => PrintedOutput> = {
  scan: printScan as never,
  timeline: printTimeline as never,
  read: printRead as never,
  list: printList as never,
  get: ((output: never, context: never) => printShow(output, context, { ids: [], format: "stripped" })) as never,
}

/** Runs a command line. Undefined if it was refused because nothing at all fits. */
async function call(
  dex: Parameters<Tool<unknown>["run"]>[0],
  typed: string,
  maxTokens: number,
): Promise<Answer | undefined> {
  const [, name, ...argv] = typed
    .match(/'(?:[^']|'\\'')*'|\S+/g)!
    .map((word) => word.replace(/^'|'$/g, "").replaceAll("'\\''", "'"))
  const form = chosenForm(name!, argv, commands)
  const found = form?.command.tool ?? commands.find(({ tool }) => tool.name === name)!.tool
  const { input } = readArguments(found as never, form?.words ?? argv)
  try {
    const output = (await found.run(dex as never, input as never)) as Answer
    const size = estimateTokens(`${toJson(output)}\n`)
    expect(output.estimated_tokens).toBe(size)
    expect(size, typed).toBeLessThanOrEqual(maxTokens)
    for (const columns of [80, 140]) {
      const terminal = { columns, color: false, interactive: false }
      const context = { terminal, home: HOME, hasForms: form !== undefined }
      const printed = PRINTERS[found.trace?.command ?? name!]!(output as never, context as never)
      expect(estimateTokens([...printed.lines, ...(printed.notes ?? [])].join("\n")), typed).toBeLessThanOrEqual(
        maxTokens,
      )
    }
    return output
  } catch (error) {
    if (!isDexError(error) || error.code !== "budget") throw error
    const needed = Number(/--max-tokens (\d+)/.exec(error.message)![1])
    expect(needed).toBeGreaterThan(maxTokens)
    return undefined
  }
}

/** Follows the continuations until an answer is complete. Each answer goes to `take`. */
async function follow(
  dex: unknown,
  typed: string,
  maxTokens: number,
  take: (answer: Answer) => string | undefined,
): Promise<boolean> {
  let next: string | undefined = typed
  const made = new Set<string>()
  while (next !== undefined) {
    expect(made.has(next), `${next} leads back to itself`).toBe(false)
    made.add(next)
    const answer: Answer | undefined = await call(dex, next, maxTokens)
    if (!answer) return false
    next = take(answer)
  }
  return true
}

const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`
const continuation = (answer: unknown) =>
  (answer as { truncated?: { continue_with?: string } }).truncated?.continue_with

test("a scan stays within its budget, and its continuations show every message once or count it as left out, in order", async () => {
  const { dex, write } = await history()
  await fc.assert(
    fc.asyncProperty(told, fc.boolean(), async (one, hasForms) => {
      const id = quote(formatRef(await write(one)))
      const numbers: number[] = []
      let leftOut = 0
      const typed = `${hasForms ? "dex show --lines" : "dex scan"} ${id} --max-tokens ${one.maxTokens}`
      const whole = await follow({ ...dex, hasForms }, typed, one.maxTokens, (answer) => {
        numbers.push(...(answer.lines as string[]).map((line) => Number(line.split("\t")[0])))
        for (const { messages } of (answer.left_out ?? []) as { messages: number }[]) leftOut += messages
        expect(answer.lines).not.toEqual([])
        return continuation(answer)
      })
      expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b))
      if (whole) expect(numbers.length + leftOut).toBe(one.messages.length)
    }),
    { numRuns: RUNS },
  )
})

test("a scan uses its budget: with one more token per message it would not fit", async () => {
  const { dex, write } = await history()
  await fc.assert(
    fc.asyncProperty(told, async (one) => {
      const id = quote(formatRef(await write(one)))
      const scan = commands.find(({ tool }) => tool.name === "scan")!.tool
      const answer = await call(dex, `dex scan ${id} --max-tokens ${one.maxTokens}`, one.maxTokens)
      if (!answer || continuation(answer)) return
      const more = (answer.tokens_per_msg as number) + 1
      const wider = (await scan.run(dex, {
        id: id.slice(1, -1).replaceAll("'\\''", "'"),
        tokens_per_msg: more,
        offset: 0,
      } as never)) as Answer
      const cut = (wider.lines as string[]).join("\n") !== (answer.lines as string[]).join("\n")
      if (cut) expect(wider.estimated_tokens).toBeGreaterThan(one.maxTokens)
    }),
    { numRuns: RUNS },
  )
})

test("a read stays within its budget, and its continuations return every character", async () => {
  const { dex, write, store } = await history()
  await fc.assert(
    fc.asyncProperty(told, fc.boolean(), async (one, hasForms) => {
      const ref = await write(one)
      const id = quote(formatRef(ref))
      const given = new Map<number, string>()
      const whole = await follow(
        { ...dex, hasForms },
        `${hasForms ? `dex show ${id} --messages 1-` : `dex read ${id} 1-`} --max-tokens ${one.maxTokens}`,
        one.maxTokens,
        (answer) => {
          for (const { index, parts } of answer.messages as {
            index: number
            parts: { text: string; patch?: string }[]
          }[])
            given.set(index, (given.get(index) ?? "") + parts.map(({ text, patch }) => text + (patch ?? "")).join(""))
          return continuation(answer)
        },
      )
      if (!whole) return
      const texts = (await store.messages(ref)).map(({ parts }) =>
        parts
          .map((part) => part.text + (part.type === "tool_result" && part.hunks ? patchText(part.hunks) : ""))
          .join(""),
      )
      expect([...given.values()]).toEqual(texts)
    }),
    { numRuns: RUNS },
  )
})

test("a show stays within its budget in every format, and its continuations name every message", async () => {
  const { dex, write } = await history()
  await fc.assert(
    fc.asyncProperty(told, told, fc.constantFrom(...FORMATS), async (one, other, format) => {
      const ids = [await write(one), await write(other)].map((ref) => quote(formatRef(ref)))
      const typed = `dex show ${ids.join(" ")} --format ${format} --max-tokens ${one.maxTokens}`
      const seen: string[] = []
      const pending: string[] = []
      const whole = await follow(dex, typed, one.maxTokens, (answer) => {
        const { conversations, left_out } = answer as unknown as {
          conversations: { id: string; messages: { index: number }[]; truncated?: { continue_with: string } }[]
          left_out?: { continue_with: string }
        }
        for (const { id, messages } of conversations) seen.push(...messages.map(({ index }) => `${id}#${index}`))
        pending.push(
          ...conversations.flatMap((told) => told.truncated?.continue_with ?? []),
          ...(left_out ? [left_out.continue_with] : []),
        )
        return pending.shift()
      })
      if (!whole || format === "user_only") return
      expect(new Set(seen).size).toBe(seen.length)
      expect(seen.length).toBe(one.messages.length + other.messages.length - emptyOnes([one, other], format))
    }),
    { numRuns: RUNS },
  )
})

/**
 * A message with only empty text has nothing to show, and no line in an outline. Only `full` contains injected text; the
 * other formats contain its size.
 */
function emptyOnes(all: { messages: MessageWrite[] }[], format: Format): number {
  const isEmpty = (text: string) => (format === "outline" ? text.trim() : text) === ""
  return all
    .flatMap(({ messages }) => messages)
    .filter(({ parts }) =>
      parts.every(
        (part) => part.type === "text" && isEmpty(part.text) && (format === "full" || part.origin !== "injected"),
      ),
    ).length
}

test("a timeline stays within its budget, keeps the message in the middle, and says how to see the rest", async () => {
  const { dex, write } = await history()
  await fc.assert(
    fc.asyncProperty(
      told,
      fc.nat(),
      fc.constantFrom("", " --session all"),
      fc.boolean(),
      async (one, nat, session, hasForms) => {
        const ref = await write(one)
        const number = (nat % one.messages.length) + 1
        if (session !== "" && one.messages[number - 1]!.at === undefined) return
        const answer = await call(
          { ...dex, hasForms },
          `dex ${hasForms ? "show --timeline" : "timeline"} ${quote(formatRef({ ...ref, number }))} --before 12 --after 12 --max-tokens ${one.maxTokens}${session}`,
          one.maxTokens,
        )
        if (!answer) return
        const lines = answer.lines as string[]
        expect(lines.filter((line) => line.trimStart().startsWith(`>${number}\t`)).length).toBe(1)
        const { truncated } = answer as { truncated?: { continue_before?: string; continue_with?: string } }
        for (const next of [truncated?.continue_before, truncated?.continue_with])
          if (next) await call({ ...dex, hasForms }, next, one.maxTokens)
      },
    ),
    { numRuns: RUNS },
  )
})

test("a list stays within its budget, and its continuations name every conversation once", async () => {
  const { dex, write } = await history()
  const ids: string[] = []
  await fc.assert(
    fc.asyncProperty(told, async (one) => {
      ids.push(formatRef(await write(one)))
      const seen: string[] = []
      const whole = await follow(
        dex,
        `dex list --all --limit 1000 --max-tokens ${one.maxTokens}`,
        one.maxTokens,
        (answer) => {
          seen.push(...(answer.conversations as { id: string }[]).map(({ id }) => id))
          return answer.continue_with as string | undefined
        },
      )
      if (whole) expect(seen.sort()).toEqual([...ids].sort())
    }),
    { numRuns: Math.min(RUNS, 40) },
  )
})

test("a command that continues can be pasted into a shell whatever an id contains", () => {
  for (const word of ["$(echo no)", "`echo no`", "a;b", "it's", "a b", '"', "\\", "*", "~", "日本", "a&b|c>d"]) {
    const call = commandLine("scan", [word], { show: ["tool:a b", "text"] })
    const script = call.replace(/^dex scan/, "printf '%s\\n'")
    expect(execFileSync("sh", ["-c", script], { encoding: "utf8" })).toBe(`${word}\n--show\ntool:a b,text\n`)
  }
})
