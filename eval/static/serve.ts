import { createHash } from "node:crypto"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { openTable, readTable } from "./table.ts"

/** A word table behind the address and the answers of `/v1/embeddings`, on this machine. */
export async function serveTable(path: string): Promise<{ url: string; model: string; close: () => void }> {
  const table = readTable(path)
  const embed = openTable(table)
  // Vectors are kept by the model's name: a table that was trained again must not be measured with those of the last one.
  const model = `${table.name}-${createHash("sha256").update(table.bytes).digest("hex").slice(0, 8)}`
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { input } = JSON.parse(Buffer.concat(chunks).toString("utf8")) as { input: string[] }
    const data = input.map((text, index) => ({ object: "embedding", index, embedding: [...embed(text)] }))
    response.setHeader("content-type", "application/json")
    response.end(JSON.stringify({ object: "list", model, data }))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    model,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
