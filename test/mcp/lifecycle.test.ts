import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { generateCorpus } from "../../bench/corpus.ts"
import { DEX, dex } from "../support/dex.ts"
import { smallHome } from "../support/home.ts"
import { synced } from "../support/synced.ts"
import { tempDir } from "../support/temp.ts"
import { connect } from "./client.ts"

const call = (id: number, name: string, input: object) =>
  JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params: { name, arguments: input } })

test("a cancelled call is not answered, and the next one is", async () => {
  const client = await connect(await synced())
  await client.call("dex_stats")
  const cancel = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 41 } }
  for (let i = 0; i < 5; i++) client.send(`${call(41, "dex_search", { query: "token" })}\n${JSON.stringify(cancel)}`)
  expect((await client.call("dex_guide")).isError).toBeUndefined()
  await client.call("dex_search", { query: "token" })
  client.child.stdin!.end()
  await client.exited
  expect(client.lines.filter((line) => JSON.parse(line).id === 41)).toEqual([])
})

test("requests from before stdin closed are still answered, and each has its trace", async () => {
  const home = tempDir()
  smallHome(home)
  await dex(home, ["sync"])
  const client = await connect(home)
  client.send(call(7, "dex_search", { query: "mutex" }))
  client.child.stdin!.end()
  expect(await client.exited).toBe(0)
  const answers = client.lines.map((line) => JSON.parse(line))
  expect(answers.find(({ id }) => id === 7)?.result.structuredContent.total).toBe(1)
  expect(readFileSync(join(home, ".dex", "traces", "000001.ndjson"), "utf8")).toContain('"query":"mutex"')
})

test("a call that is cancelled during the first read never runs", async () => {
  const home = tempDir()
  generateCorpus(join(home, ".claude"), { messages: 12_000, seed: 3 })
  const client = await connect(home)
  for (let id = 50; id < 59; id++) {
    const cancel = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id } }
    client.send(`${call(id, "dex_search", { query: "zeppelin" })}\n${JSON.stringify(cancel)}`)
  }
  await client.call("dex_search", { query: "balloon" })
  client.child.stdin!.end()
  await client.exited
  expect(client.lines.filter((line) => typeof JSON.parse(line).id === "number")).toEqual([])
  const traces = readFileSync(join(home, ".dex", "traces", "000001.ndjson"), "utf8")
  expect(traces).toContain("balloon")
  expect(traces).not.toContain("zeppelin")
})

test.each([
  ["serve", "an empty home", []],
  ["serve", "conversations that nobody read yet", [smallHome]],
  ["serve agent", "conversations that nobody read yet", [smallHome]],
] as const)("dex %s ends with 0 when its input ends immediately: %s", async (command, _, fill) => {
  const home = tempDir()
  for (const put of fill) put(home)
  for (const input of ["", `${call(1, "dex_guide", {})}\n`]) {
    const { code, stderr } = await dex(home, command.split(" "), {}, DEX, input)
    expect([code, stderr]).toEqual([0, ""])
  }
})

test("a line of more than 10 MB is refused, and the next one answered", async () => {
  const client = await connect(tempDir())
  client.send(JSON.stringify({ jsonrpc: "2.0", id: 5, method: "ping", params: { x: "y".repeat(11 << 20) } }))
  expect((await client.call("dex_guide")).isError).toBeUndefined()
  expect(client.lines.map((line) => JSON.parse(line)).find(({ id }) => id === null)?.error).toMatchObject({
    code: -32600,
  })
})

test("no program that the server could start shares its stdout", () => {
  const src = join(import.meta.dirname, "../../src")
  const times = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].length
  const shares = readdirSync(src, { recursive: true })
    .map(String)
    .filter((file) => file.endsWith(".ts") && !/^(?:cli|watch)/.test(file))
    .filter((file) => {
      const text = readFileSync(join(src, file), "utf8")
      // By default, a fork shares everything that it can.
      const isSeparate = times(text, /\bfork\(/g) === times(text, /stdio: \["ignore", "ignore", [^\]]*, "ipc"\]/g)
      return !isSeparate || /"inherit"|process\.stdout\.fd/.test(text)
    })
  expect(shares).toEqual([])
})
