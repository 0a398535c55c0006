import { createServer } from "node:http"
import type { AddressInfo } from "node:net"

/** Serves a model as `/v1/embeddings` on this machine. */
export async function serveEmbeddings(
  model: string,
  embed: (texts: string[]) => Promise<Iterable<number>[]>,
): Promise<{ url: string; model: string; close: () => void }> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { input } = JSON.parse(Buffer.concat(chunks).toString("utf8")) as { input: string[] }
    const data = (await embed(input)).map((vector, index) => ({ object: "embedding", index, embedding: [...vector] }))
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
