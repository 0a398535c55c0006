import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { onTestFinished } from "vitest"

export type Received = { headers: IncomingHttpHeaders; body: string; path: string }

/** A real receiver on loopback. The test chooses its answers; the default is 204. */
export async function receiver(
  answer: (received: Received, response: ServerResponse) => void = (_, response) => void response.writeHead(204).end(),
): Promise<{ url: string; host: string; port: number; received: Received[]; connections(): number; server: Server }> {
  const received: Received[] = []
  let connections = 0
  const server = createServer((request, response) => {
    let body = ""
    request.on("data", (chunk) => {
      body += chunk
    })
    request.on("end", () => {
      const one = { headers: request.headers, body, path: request.url ?? "" }
      received.push(one)
      answer(one, response)
    })
  })
  server.on("connection", () => connections++)
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  const host = `127.0.0.1:${port}`
  return { url: `http://${host}/dex`, host, port, received, connections: () => connections, server }
}
