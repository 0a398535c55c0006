import { appendFileSync } from "node:fs"
import { beforeAll, describe, expect, test } from "vitest"
import { call, jsonl, putSession, SESSION, writer } from "../support/claude-code.ts"
import { sharedTempDir, tempDir } from "../support/temp.ts"
import { syncHome } from "../support/warm.ts"
import { type Visitor, visit } from "./served.ts"

const PATH = `/c/${encodeURIComponent(`claude_code:${SESSION}`)}`

/** Turns of a prompt, a call, its result and an answer. Calls of the turns in `late` are answered many turns later. */
async function conversationOf(home: string, turns: number, late: number[] = []): Promise<void> {
  const transcript = writer()
  const open: number[] = []
  const answered = (turn: number) => transcript.result(`call${turn}`, `Output ${turn}.`)
  for (let turn = 0; turn < turns; turn++) {
    transcript.prompt(`Prompt ${turn}.`)
    transcript.answer(`c${turn}`, [call(`call${turn}`, "Bash", { command: `echo ${turn}` })])
    if (late.includes(turn)) open.push(turn)
    else answered(turn)
    transcript.answer(`m${turn}`, [{ type: "text", text: `Answer ${turn}.` }])
    if (open.length > 0 && turn === open[0]! + 60) answered(open.shift()!)
  }
  putSession(home, transcript.records)
  await syncHome(home)
}

/** The complete conversation, as a browser loads it: the page, and part after part. */
async function wholeText({ get, base }: Visitor): Promise<string> {
  let text = ""
  for (let next: string | undefined = PATH; next !== undefined; ) {
    const answer = await get(next)
    expect(answer.status).toBe(200)
    const page = await answer.text()
    text += page
    const [, part] = /rel="next"[^>]* data-part="([^"]+)"/.exec(page) ?? []
    next = part?.replaceAll("&amp;", "&").slice(new URL(base).pathname.length)
  }
  return text
}

function countsOf(text: string, what: RegExp): number[] {
  const counts = new Map<number, number>()
  for (const [, number] of text.matchAll(what)) counts.set(Number(number), (counts.get(Number(number)) ?? 0) + 1)
  return [...counts.values()]
}

describe("a conversation of 1,600 messages", () => {
  const plain = sharedTempDir()
  const spread = sharedTempDir()
  const far = [5, 90, 399]
  beforeAll(async () => {
    await conversationOf(plain, 400)
    await conversationOf(spread, 400, far)
  })

  test.each([
    ["", plain, []],
    [", with answers far from their calls", spread, far],
  ])("shows each message and each output once%s", async (_, home, late) => {
    const visitor = await visit(home)
    const text = await wholeText(visitor)
    const once = Array.from({ length: 400 }, () => 1)
    expect(countsOf(text, /<p>Prompt (\d+)\.<\/p>/g)).toEqual(once)
    expect(countsOf(text, /<p>Answer (\d+)\.<\/p>/g)).toEqual(once)
    const outputs = countsOf(text, />Output (\d+)\.</g)
    expect(outputs).toEqual(once.slice(0, late.includes(399) ? 399 : 400))
    expect(visitor.log).toEqual([])
  })

  test("is shown before it is completely read; outline and facts are loaded later", async () => {
    const { get } = await visit(plain)
    const early = await (await get(PATH)).text()
    expect(early).toContain("Prompt 0.")
    expect(early).toContain("Output 0.")
    expect(early).toContain(`data-late="`)
    expect(early).not.toContain("Prompt 399.")
    const outline = await (await get(`${PATH}/outline?part=1`)).text()
    expect(outline).toMatch(/^<nav class="outline"/)
    expect(outline).toContain("Prompt 399.")
    expect(await (await get(`${PATH}/facts?part=1`)).text()).toMatch(/^<aside class="facts"/)
    const read = await (await get(PATH)).text()
    expect(read).not.toContain(`data-late="`)
    expect(read).toContain("Prompt 399.")
  })
})

test("the cached HTML of a message is always current", async () => {
  const home = tempDir()
  const transcript = writer()
  transcript.prompt("Run it")
  for (const id of ["c1", "c2", "c3"]) transcript.answer(id, [call(id, "Bash", { command: `npm run ${id}` })])
  const file = putSession(home, transcript.records)
  await syncHome(home)
  const { get } = await visit(home)
  for (const id of ["c1", "c2", "c3"]) {
    const before = await (await get(PATH)).text()
    expect(before).not.toContain(`${id} passed`)
    const known = transcript.records.length
    transcript.result(id, `${id} passed`)
    appendFileSync(file, jsonl(transcript.records.slice(known)))
    await syncHome(home)
    const after = await (await get(PATH)).text()
    expect(after).toContain(`${id} passed`)
    expect(after.match(/<article/g)).toHaveLength(before.match(/<article/g)!.length)
  }
})
