import { appendFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { generateCorpus } from "../../bench/corpus.ts"
import { dex } from "../support/dex.ts"
import { childrenOf, isAlive } from "../support/processes.ts"
import { tempDir } from "../support/temp.ts"
import { line, session } from "./growing-session.ts"
import { startWatch } from "./watching.ts"

test("a thousand lines in a burst are read in a few looks, and none is lost", async () => {
  const home = tempDir()
  const file = session(home)
  const watch = await startWatch(home)
  const began = performance.now()
  for (let i = 0; i < 1_000; i++) {
    appendFileSync(file, line(`burst ${i}`))
    if (i % 10 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  let messages = 0
  while (messages < 1_000) messages += (await watch.next("looked")).messages
  expect(messages).toBe(1_000)
  const looks = watch.all("looked").filter(({ source }) => source !== undefined).length
  expect(looks).toBeLessThanOrEqual(2 + (performance.now() - began) / 1_000)
})

test("it ends within seconds during a long read, and what was read is stored", async () => {
  const home = tempDir()
  generateCorpus(join(home, ".claude"), { messages: 30_000, seed: 5 })
  const watch = await startWatch(home, { looked: false })
  await watch.next("progress", ({ done }) => done > 5)
  const children = childrenOf(watch.child.pid!)
  expect(children.length).toBe(1)
  const stopped = performance.now()
  watch.child.kill("SIGTERM")
  expect(await watch.exited).toEqual({ code: 0, signal: null })
  expect(performance.now() - stopped).toBeLessThan(5_000)
  expect(children.filter(isAlive)).toEqual([])
  const kept = JSON.parse((await dex(home, ["stats", "--json"])).stdout)
  expect(kept.total_messages).toBeGreaterThan(100)
  expect(kept.total_messages).toBeLessThan(30_000)
})
