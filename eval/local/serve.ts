import { createHash } from "node:crypto"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import Database from "better-sqlite3"
import { CACHE_DIR } from "../home.ts"
import { serveEmbeddings } from "../serve-embeddings.ts"

type LocalModel = { runtime: string; embed(texts: string[]): Promise<Float32Array[]> }

/**
 * The model of dexctx-embed-local as an embeddings server. Each text's vector is stored, so that a set is not embedded again.
 * `folder`: where the package is installed.
 */
export async function serveLocal(folder: string): ReturnType<typeof serveEmbeddings> {
  const entry = join(folder, "node_modules/dexctx-embed-local/dist/index.js")
  const { openModel } = (await import(pathToFileURL(entry).href)) as {
    openModel(options: { threads: number }): Promise<LocalModel>
  }
  // One thread: a second one only waits while other programs use the processors.
  const local = await openModel({ threads: 1 })
  const model = `all-MiniLM-L6-v2-${local.runtime}`
  const kept = openKept(join(CACHE_DIR, `${model}.db`))
  const server = await serveEmbeddings(model, (texts) => kept.all(texts, local.embed))
  const close = () => {
    server.close()
    kept.close()
  }
  return { ...server, close }
}

function openKept(path: string) {
  const db = new Database(path)
  db.exec(
    "pragma journal_mode = wal; create table if not exists kept (text blob primary key, vector blob) without rowid",
  )
  const find = db.prepare("select vector from kept where text = ?").pluck()
  const keep = db.prepare("insert or replace into kept (text, vector) values (?, ?)")
  return {
    all: async (texts: string[], embed: LocalModel["embed"]): Promise<Float32Array[]> => {
      const names = texts.map((text) => createHash("sha256").update(text).digest())
      const known = names.map((name) => find.get(name) as Buffer | undefined)
      const missing = texts.flatMap((text, i) => (known[i] ? [] : [{ text, i }]))
      const made = await embed(missing.map(({ text }) => text))
      db.transaction(() => {
        for (const [at, { i }] of missing.entries()) keep.run(names[i], Buffer.from(made[at]!.buffer))
      })()
      const fresh = new Map(missing.map(({ i }, at) => [i, made[at]!]))
      return texts.map((_, i) => fresh.get(i) ?? new Float32Array(new Uint8Array(known[i]!).buffer))
    },
    close: () => db.close(),
  }
}
