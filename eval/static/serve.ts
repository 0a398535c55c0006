import { createHash } from "node:crypto"
import { serveEmbeddings } from "../serve-embeddings.ts"
import { openTable, readTable } from "./table.ts"

/** A word table as an embeddings server. */
export function serveTable(path: string): ReturnType<typeof serveEmbeddings> {
  const table = readTable(path)
  const embed = openTable(table)
  // Vectors are stored by the model's name, and a table that was trained again must not be measured with those of the last one.
  const model = `${table.name}-${createHash("sha256").update(table.bytes).digest("hex").slice(0, 8)}`
  return serveEmbeddings(model, async (texts) => texts.map((text) => embed(text)))
}
