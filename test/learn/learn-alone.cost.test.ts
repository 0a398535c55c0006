import { execFile } from "node:child_process"
import { cpSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { generateCorpus } from "../../bench/corpus.ts"
import { KNOWLEDGE_FILE } from "../../src/core/formats.ts"
import { openKnowledge } from "../../src/store/knowledge/knowledge.ts"
import { DEX, dex } from "../support/dex.ts"
import { openKnowledgeFile } from "../support/inside.ts"
import { tempDir } from "../support/temp.ts"

test("six first questions at the same time cost little more than one", async () => {
  const [alone, together] = [tempDir(), tempDir()]
  generateCorpus(join(alone, ".claude"), { messages: 24_000, seed: 7 })
  expect((await dex(alone, ["sync"])).code).toBe(0)
  cpSync(alone, together, { recursive: true, preserveTimestamps: true })
  const one = await processorTime(alone)
  const six = await Promise.all(Array.from({ length: 6 }, () => processorTime(together)))
  const all = six.reduce((sum, each) => sum + each, 0)
  console.log(
    `one: ${one.toFixed(2)} s of processor, six at once: ${all.toFixed(2)} s, ${(all / one).toFixed(2)} times`,
  )
  expect(learnedFrom(together)).toBe(learnedFrom(alone))
  // Each starts its own process. If each learned too, it would take six times as long.
  expect(all / one).toBeLessThan(2.5)
})

/** The time of a first `dex suggest`, in seconds. */
function processorTime(home: string): Promise<number> {
  const measured = '"$@" >&2; times'
  return new Promise((resolve) => {
    execFile(
      "sh",
      ["-c", measured, "sh", process.execPath, DEX, "suggest", "--file", "a.ts"],
      { env: { PATH: process.env.PATH ?? "", HOME: home }, cwd: home },
      (_, stdout) => {
        const times = [...stdout.matchAll(/(\d+)m([\d.]+)s/g)].map(([, m, s]) => Number(m) * 60 + Number(s))
        resolve(times.reduce((sum, time) => sum + time, 0))
      },
    )
  })
}

function learnedFrom(home: string): number {
  const knowledge = openKnowledge(join(home, ".dex", KNOWLEDGE_FILE))
  try {
    return openKnowledgeFile(knowledge).prepare("select count(*) from conversation").pluck().get() as number
  } finally {
    knowledge.close()
  }
}
