import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { agents } from "../../src/agents/registry.ts"
import { isDexError } from "../../src/core/error.ts"
import { importExport } from "../../src/ingest/import-export.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { openIndex } from "../../src/store/index/search-index.ts"
import { type Random, random } from "../redact/secrets.ts"
import { tempDir } from "../support/temp.ts"

const HOSTILE = [
  "null",
  "{}",
  "[]",
  "[null]",
  "1e400",
  "-1",
  "true",
  '""',
  '"\\u0000"',
  '"__proto__"',
  '{"id":{}}',
  "NaN",
  '[[{"text":1}]]',
]
const ROUNDS = 150

const services = await Promise.all(
  agents.filter(({ isExported }) => isExported).flatMap(({ connector }) => connector?.() ?? []),
)

test.each(services.map(({ source }) => source))(
  `${ROUNDS} damaged exports of %s are read without an exception, and the history stays sound`,
  async (source) => {
    const dir = tempDir()
    const [store, index] = [openStore(join(dir, "history.db")), openIndex(join(dir, "index.db"))]
    onTestFinished(() => {
      store.close()
      index.close()
    })
    const deps = {
      store,
      index,
      home: { dir, history: join(dir, "history.db"), lock: join(dir, "lock") },
      connectors: services,
    }
    mkdirSync(join(dir, "files"))
    const r = random(31)
    let imported = 0
    for (const text of fixturesOf(source)) {
      for (let i = 0; i < ROUNDS; i++) {
        const file = join(dir, "files", `${i}.json`)
        writeFileSync(file, damage(text, r))
        try {
          imported += (await importExport(deps, file, "json")).conversations
        } catch (error) {
          if (!isDexError(error)) throw error
        }
      }
    }
    expect(imported).toBeGreaterThan(0)
    expect(await store.check()).toEqual([])
    for (const { ref } of (await store.list({ limit: 1000, offset: 0 })).rows) await store.messages(ref)
  },
)

function fixturesOf(source: string): string[] {
  const folder = join(import.meta.dirname, "../fixtures", source)
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(({ name }) => name.endsWith(".json") && name !== "expected.json")
    .map(({ parentPath, name }) => readFileSync(join(parentPath, name), "utf8"))
}

/** Replaces some values with others that nobody expects there, and sometimes tears the text. */
function damage(text: string, r: Random): string {
  const damaged = text.replaceAll(/: ("(?:[^"\\]|\\.)*"|[\d.]+|null|true|false|\{\}|\[\])/g, (whole) =>
    r.int(20) === 0 ? `: ${r.pick(HOSTILE)}` : whole,
  )
  return r.int(10) === 0 ? damaged.slice(0, r.int(damaged.length)) : damaged
}
