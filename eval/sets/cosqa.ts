import { readFileSync } from "node:fs"
import { BENCH_DIR, type EvalSet, halfOf, requirePath } from "../set.ts"

type Row = { idx: string; doc: string; code: string; label?: number }

/** Web questions about Python; every function of both files is in its own conversation. */
export function cosqa(): EvalSet {
  const read = (name: string) => JSON.parse(readFileSync(requirePath(`${BENCH_DIR}/cosqa/${name}`), "utf8")) as Row[]
  const dev = read("cosqa-dev.json")
  const ids = new Map<string, string>()
  for (const { code } of [...dev, ...read("test_webquery.json")]) if (!ids.has(code)) ids.set(code, `f${ids.size}`)
  return {
    name: "cosqa",
    unit: "message",
    chats: [...ids].map(([text, id]) => ({ id, project: "cosqa", docs: [{ id, text }] })),
    questions: dev
      .filter((row) => row.label === 1)
      .map((row) => ({
        id: row.idx,
        text: row.doc,
        category: "code",
        half: halfOf(row.idx),
        gold: [ids.get(row.code)!],
      })),
  }
}
