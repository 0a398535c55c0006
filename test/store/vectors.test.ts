import { readFileSync } from "node:fs"
import { join } from "node:path"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { checkVectors } from "../../src/store/index/check-index.ts"
import { createHamming } from "../../src/store/index/hamming.ts"
import { VECTOR_SCHEMA } from "../../src/store/index/index-file.ts"
import {
  compactVectors,
  createVectorCache,
  deleteVectors,
  dropOtherVectors,
  goldenVector,
  missingVectors,
  saveGoldenVector,
  saveVectors,
  scanVectors,
  vectorStats,
} from "../../src/store/index/vectors.ts"
import { type Db, openDatabase } from "../../src/store/sqlite/database.ts"
import { hashedVector } from "../support/embedding-server.ts"
import { tempDir } from "../support/temp.ts"

const MIGRATIONS: readonly [string, string][] = [
  ["001-docs", "create table doc (id integer primary key autoincrement)"],
  ["002-vectors", VECTOR_SCHEMA],
]
const A = "openai:words@-:64:p0"
const B = "ollama:words@0123:96:p0"

function open(docs = 0, path = join(tempDir(), "index.db")): { db: Db; path: string } {
  const db = openDatabase(path, MIGRATIONS)
  for (let i = 0; i < docs; i++) db.prepare("insert into doc default values").run()
  return { db, path }
}

type Row = { doc: number; vector?: Float32Array }

/** Saves each document as a group of its own. */
function saveAlone(db: Db, embedder: string, rows: Row[]): ReturnType<typeof saveVectors> {
  const groups = rows.map(({ doc, vector }) => ({ docs: [doc], vectors: vector ? [{ doc, vector }] : [] }))
  return saveVectors(db, embedder, groups)
}

function remove(db: Db, docs: number[]): void {
  db.transaction(() => {
    for (const doc of docs) db.prepare("delete from doc where id = ?").run(doc)
    deleteVectors(db, docs)
  })()
}

function random(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32 - 0.5
  }
}

const vectorFrom = (next: () => number, dims = 64) => Float32Array.from({ length: dims }, next)
const words = (text: string, dims = 64) => Float32Array.from(hashedVector(text, dims))
const cosine = (a: Float32Array, b: Float32Array) => {
  const dot = (x: Float32Array, y: Float32Array) => x.reduce((sum, value, i) => sum + value * y[i]!, 0)
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b))
}

describe("counting bits that differ", () => {
  const bytes = (next: () => number, length: number) =>
    Uint8Array.from({ length }, () => Math.floor((next() + 0.5) * 256))

  test.each([16, 48, 96, 192, 496])("gives the same result in WebAssembly and in JavaScript for %i bytes", (stride) => {
    const next = random(stride)
    const [fast, plain] = [createHamming(stride, 40), createHamming(stride, 40, true)]
    const query = bytes(next, stride)
    const chunks = Array.from({ length: 3 }, () => bytes(next, stride * 40))
    for (const engine of [fast, plain]) {
      engine.setQuery(query)
      engine.reserve(3)
      for (const [i, chunk] of chunks.entries()) engine.chunk(i).set(chunk)
    }
    for (const [index, chunk] of chunks.entries()) {
      const expected = Array.from({ length: 40 }, (_, v) =>
        query.reduce((sum, byte, i) => sum + onesOf(byte ^ chunk[v * stride + i]!), 0),
      )
      expect([...fast.distances(index, 40)]).toEqual(expected)
      expect([...plain.distances(index, 40)]).toEqual(expected)
    }
  })

  test("counts every bit of the longest vector without overflow", () => {
    const engine = createHamming(496, 2)
    engine.setQuery(new Uint8Array(496))
    engine.chunk(0).fill(255)
    expect([...engine.distances(0, 2)]).toEqual([3968, 3968])
  })

  const onesOf = (byte: number) => byte.toString(2).replaceAll("0", "").length
})

describe("groups", () => {
  const all = (db: Db) => scanVectors(db, A, words("token"), { k: 99 }).map(({ doc }) => doc)
  const vectorsOf = (docs: number[], texts: string[]) => ({
    docs,
    vectors: texts.map((text, i) => ({ doc: docs[i % docs.length]!, vector: words(text) })),
  })

  test("a document with several vectors is found once, by its best", () => {
    const { db } = open(2)
    saveVectors(db, A, [vectorsOf([1], ["token rotation", "token", "sidebar"]), vectorsOf([2], ["theme"])])
    const hits = scanVectors(db, A, words("token"), { k: 9 })
    expect(hits.map(({ doc }) => doc)).toEqual([1, 2])
    expect(hits[0]!.score).toBeGreaterThan(0.99)
    expect(vectorStats(db)).toMatchObject([{ vectors: 4, done: 2 }])
  })

  test("if a document is deleted, all that was embedded together with it loses its vectors and is missing again", () => {
    const { db } = open(4)
    saveVectors(db, A, [vectorsOf([1, 2, 3], ["token", "token two", "token three"]), vectorsOf([4], ["token four"])])
    remove(db, [2])
    expect(all(db)).toEqual([4])
    expect(missingVectors(db, A, 9)).toEqual([1, 3])
    expect(db.prepare("select count(*) from vector").pluck().get()).toBe(1)
    expect(checkVectors(db)).toEqual([])
  })

  test("a group that grows replaces the one before", () => {
    const { db } = open(3)
    saveVectors(db, A, [vectorsOf([1, 2], ["token", "token two"])])
    saveVectors(db, A, [vectorsOf([1, 2, 3], ["token", "token two", "token three"])])
    expect(vectorStats(db)).toMatchObject([{ vectors: 3, done: 3 }])
    expect(missingVectors(db, A, 9)).toEqual([])
    expect(checkVectors(db)).toEqual([])
  })

  test("a group with a document that no longer exists is not saved", () => {
    const { db } = open(2)
    expect(saveVectors(db, A, [vectorsOf([1, 9], ["token", "gone"]), vectorsOf([2], ["token"])])).toEqual({
      saved: 1,
      gone: 2,
    })
    expect(missingVectors(db, A, 9)).toEqual([1])
  })
})

describe("scanning", () => {
  test("finds the text that shares the words, with the cosine as its score", () => {
    const { db } = open(3)
    const texts = ["the refresh token race", "sidebar theme flickers", "postgres migration order"]
    saveAlone(
      db,
      A,
      texts.map((text, i) => ({ doc: i + 1, vector: words(text) })),
    )
    const query = words("two refresh tokens race")
    const [best] = scanVectors(db, A, query, { k: 1 })
    expect(best!.doc).toBe(1)
    expect(best!.score).toBeCloseTo(cosine(query, words(texts[0]!)), 2)
  })

  test("property: the best of a small set is the exact best, or scores within a quantisation step of it", () => {
    const { db } = open(200)
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 200 }),
        fc.integer({ min: 1, max: 2 ** 31 }),
        fc.integer({ min: 16, max: 200 }),
        (count, seed, dims) => {
          const next = random(seed)
          const id = `test:words@${seed}:${dims}:p0`
          const rows = Array.from({ length: count }, (_, i) => ({ doc: i + 1, vector: vectorFrom(next, dims) }))
          saveAlone(db, id, rows)
          const query = vectorFrom(next, dims)
          const exact = rows.map((row) => cosine(query, row.vector))
          const hits = scanVectors(db, id, query, { k: 5 })
          expect(hits).toHaveLength(Math.min(5, count))
          expect(exact[hits[0]!.doc - 1]).toBeGreaterThan(Math.max(...exact) - 0.02)
          for (const hit of hits) expect(Math.abs(hit.score - exact[hit.doc - 1]!)).toBeLessThan(0.02)
          expect(hits.map((hit) => hit.score)).toEqual(hits.map((hit) => hit.score).sort((a, b) => b - a))
          dropOtherVectors(db)
        },
      ),
      { numRuns: 60 },
    )
  })

  test("finds a planted neighbour among more vectors than are compared exactly", () => {
    const { db } = open(5000)
    const next = random(5)
    const rows = Array.from({ length: 5000 }, (_, i) => ({ doc: i + 1, vector: vectorFrom(next, 128) }))
    saveAlone(db, A, rows)
    for (const doc of [1, 1024, 1025, 3000, 5000]) {
      const query = rows[doc - 1]!.vector.map((value) => value + next() * 0.4)
      expect(scanVectors(db, A, query, { k: 1 })[0]!.doc).toBe(doc)
      expect(scanVectors(db, A, query, { k: 1, allowed: (one) => one !== doc })[0]!.doc).not.toBe(doc)
    }
  })

  test("a filter is respected, however few vectors pass it, and loses no result", () => {
    const { db } = open(3000)
    const next = random(6)
    saveAlone(
      db,
      A,
      Array.from({ length: 3000 }, (_, i) => ({ doc: i + 1, vector: vectorFrom(next) })),
    )
    const allowed = (doc: number) => doc % 1000 === 7
    const hits = scanVectors(db, A, vectorFrom(next), { k: 10, allowed })
    expect(hits.map((hit) => hit.doc).sort((a, b) => a - b)).toEqual([7, 1007, 2007])
  })

  test("the newest of equal vectors come first, every time, and never more than the limit", () => {
    const { db } = open(1500)
    const same = words("yes")
    saveAlone(
      db,
      A,
      Array.from({ length: 1500 }, (_, i) => ({ doc: i + 1, vector: same })),
    )
    const docs = scanVectors(db, A, same, { k: 3 }).map((hit) => hit.doc)
    expect(docs).toEqual([1, 2, 3])
    expect(scanVectors(db, A, same, { k: 3, cache: createVectorCache() }).map((hit) => hit.doc)).toEqual(docs)
  })

  test("an unknown embedder has no results, and a query of another size is an error", () => {
    const { db } = open(1)
    expect(scanVectors(db, A, words("x"), { k: 3 })).toEqual([])
    saveAlone(db, A, [{ doc: 1, vector: words("x") }])
    expect(() => scanVectors(db, A, words("x", 32), { k: 3 })).toThrow(/32 numbers cannot be compared/)
  })
})

describe("keeping", () => {
  test("the vectors of two embedders are separate, and so are their missing ones", () => {
    const { db } = open(3)
    saveAlone(db, A, [{ doc: 1, vector: words("one") }])
    saveAlone(db, B, [
      { doc: 2, vector: words("one", 96) },
      { doc: 3, vector: words("three", 96) },
    ])
    expect(scanVectors(db, A, words("one"), { k: 9 }).map((hit) => hit.doc)).toEqual([1])
    expect(scanVectors(db, B, words("one", 96), { k: 9 }).map((hit) => hit.doc)).toEqual([2, 3])
    expect([missingVectors(db, A, 9), missingVectors(db, B, 9), missingVectors(db, "new", 9)]).toEqual([
      [2, 3],
      [1],
      [1, 2, 3],
    ])
    dropOtherVectors(db, B)
    expect(vectorStats(db).map((space) => [space.embedder, space.vectors])).toEqual([[B, 2]])
    expect(checkVectors(db)).toEqual([])
  })

  test("missing vectors come newest first, in steps, without documents that have nothing to embed", () => {
    const { db } = open(10)
    saveAlone(db, A, [{ doc: 9, vector: words("nine") }, { doc: 7 }])
    expect(missingVectors(db, A, 3)).toEqual([1, 2, 3])
    expect(missingVectors(db, A, 3, 6)).toEqual([8, 10])
    expect(vectorStats(db)).toMatchObject([{ vectors: 1, done: 2, dead: 0 }])
    saveAlone(db, A, [{ doc: 7, vector: words("seven") }])
    expect(vectorStats(db)).toMatchObject([{ vectors: 2, done: 2 }])
  })

  test("documents with nothing to embed may come first", () => {
    const { db } = open(2)
    expect(saveAlone(db, A, [{ doc: 1 }])).toEqual({ saved: 1, gone: 0 })
    expect(scanVectors(db, A, words("x"), { k: 1 })).toEqual([])
    saveAlone(db, A, [{ doc: 2, vector: words("two") }])
    expect(scanVectors(db, A, words("two"), { k: 1 })).toMatchObject([{ doc: 2 }])
  })

  test("a document that was deleted while it was embedded gets no vector", () => {
    const { db } = open(2)
    remove(db, [1])
    const rows = [1, 2].map((doc) => ({ doc, vector: words("x") }))
    expect(saveAlone(db, A, rows)).toEqual({ saved: 1, gone: 1 })
    expect(scanVectors(db, A, words("x"), { k: 9 }).map((hit) => hit.doc)).toEqual([2])
  })

  test("a vector of another size is an error, and nothing of that save stays", () => {
    const { db } = open(2)
    saveAlone(db, A, [{ doc: 1, vector: words("x") }])
    const bad = [
      { doc: 2, vector: words("y") },
      { doc: 1, vector: words("y", 32) },
    ]
    expect(() => saveAlone(db, A, bad)).toThrow(/32 numbers does not belong/)
    expect(vectorStats(db)).toMatchObject([{ vectors: 1 }])
  })

  test("a deleted document's vector is gone from the file", () => {
    const { db, path } = open(1200)
    const next = random(9)
    saveAlone(
      db,
      A,
      Array.from({ length: 1200 }, (_, i) => ({ doc: i + 1, vector: vectorFrom(next, 256) })),
    )
    const data = db.prepare("select data from vector where doc = 700").pluck().get() as Buffer
    const place = (db.prepare("select slot from vector where doc = 700").pluck().get() as number) % 1024
    const all = db.prepare("select bits from vector_bits order by id limit 1").pluck().get() as Buffer
    const bits = Buffer.from(all.subarray(place * 32, place * 32 + 32))
    const onDisk = () => {
      db.pragma("wal_checkpoint(truncate)")
      const file = readFileSync(path)
      return [file.includes(data), file.includes(bits)]
    }
    expect(onDisk()).toEqual([true, true])
    remove(db, [700])
    expect(onDisk()).toEqual([false, false])
    expect(vectorStats(db)).toMatchObject([{ vectors: 1199, dead: 1 }])
  })

  test("compacting frees the places of deleted vectors and changes no result", () => {
    const { db } = open(3000)
    const next = random(10)
    const rows = Array.from({ length: 3000 }, (_, i) => ({ doc: i + 1, vector: vectorFrom(next) }))
    saveAlone(db, A, rows)
    remove(
      db,
      rows.map((row) => row.doc).filter((doc) => doc <= 2000 && doc % 3 > 0),
    )
    const query = vectorFrom(next)
    const before = scanVectors(db, A, query, { k: 20, candidates: 3000 })
    const { dead } = vectorStats(db)[0]!
    expect(compactVectors(db)).toBe(dead)
    expect(scanVectors(db, A, query, { k: 20, candidates: 3000 })).toEqual(before)
    expect(vectorStats(db)).toMatchObject([{ dead: 0 }])
    expect(checkVectors(db)).toEqual([])
    expect(compactVectors(db)).toBe(0)
  })

  test("a check finds vectors whose document was deleted without them", () => {
    const { db } = open(2)
    saveAlone(db, A, [{ doc: 1, vector: words("x") }])
    db.prepare("delete from doc where id = 1").run()
    expect(checkVectors(db)).toEqual(["vectors of deleted messages: 1"])
  })

  test("the golden vector is returned unchanged, for its embedder only", () => {
    const { db } = open()
    expect(goldenVector(db, A)).toBeUndefined()
    saveGoldenVector(db, A, words("golden"))
    expect(goldenVector(db, A)).toEqual(words("golden"))
    expect(goldenVector(db, B)).toBeUndefined()
  })
})

describe("a cache", () => {
  test("sees the changes of another process: saved, deleted, compacted", () => {
    const { db, path } = open(2500)
    const { db: other } = open(0, path)
    const next = random(11)
    const rows = Array.from({ length: 2500 }, (_, i) => ({ doc: i + 1, vector: vectorFrom(next) }))
    const cache = createVectorCache()
    const query = vectorFrom(next)
    const same = () => {
      const cached = scanVectors(db, A, query, { k: 10, candidates: 2500, cache })
      expect(cached).toEqual(scanVectors(db, A, query, { k: 10, candidates: 2500 }))
      return cached
    }
    saveAlone(other, A, rows.slice(0, 1500))
    const first = same()[0]!.doc
    saveAlone(other, A, rows.slice(1500))
    same()
    remove(other, [first])
    expect(same()[0]!.doc).not.toBe(first)
    remove(
      other,
      rows.map((row) => row.doc).filter((doc) => doc < 1400 && doc !== first),
    )
    same()
    compactVectors(other)
    same()
    saveAlone(other, A, [{ doc: 2000, vector: query }])
    expect(same()[0]).toMatchObject({ doc: 2000 })
    other.close()
  })

  test("is reset for another embedder or database", () => {
    const cache = createVectorCache()
    for (const id of [A, `${A}2`]) {
      for (const doc of [1, 2]) {
        const { db } = open(2)
        saveAlone(db, id, [{ doc, vector: words("x") }])
        expect(scanVectors(db, id, words("x"), { k: 5, cache }).map((hit) => hit.doc)).toEqual([doc])
      }
    }
  })
})

test("property: after any saves, deletions and compactions, a scan returns exactly what is stored", () => {
  const action = fc.oneof(
    fc.record({
      type: fc.constant("save" as const),
      docs: fc.uniqueArray(fc.integer({ min: 1, max: 60 }), { minLength: 1 }),
    }),
    fc.record({ type: fc.constant("delete" as const), docs: fc.uniqueArray(fc.integer({ min: 1, max: 60 })) }),
    fc.record({ type: fc.constant("compact" as const) }),
  )
  fc.assert(
    fc.property(fc.array(action, { maxLength: 15 }), fc.integer({ min: 1, max: 1e9 }), (actions, seed) => {
      const { db } = open(60)
      const next = random(seed)
      const model = new Map<number, Float32Array>()
      const gone = new Set<number>()
      const cache = createVectorCache()
      for (const step of actions) {
        if (step.type === "save") {
          const rows = step.docs.map((doc) => ({ doc, vector: vectorFrom(next) }))
          saveAlone(db, A, rows)
          for (const { doc, vector } of rows) if (!gone.has(doc)) model.set(doc, vector)
        } else if (step.type === "delete") {
          remove(db, step.docs)
          for (const doc of step.docs) {
            gone.add(doc)
            model.delete(doc)
          }
        } else compactVectors(db)
        const query = vectorFrom(next)
        const hits = scanVectors(db, A, query, { k: 100, cache })
        expect(hits).toEqual(scanVectors(db, A, query, { k: 100 }))
        expect(hits.map((hit) => hit.doc).sort((a, b) => a - b)).toEqual([...model.keys()].sort((a, b) => a - b))
        for (const { doc, score } of hits) expect(Math.abs(score - cosine(query, model.get(doc)!))).toBeLessThan(0.02)
        expect(checkVectors(db)).toEqual([])
      }
      db.close()
    }),
    { numRuns: 40 },
  )
})
