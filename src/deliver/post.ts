import { type IncomingMessage, Agent as PlainAgent, request as plainRequest } from "node:http"
import { Agent as TlsAgent, request as tlsRequest } from "node:https"
import type { Target } from "./address.ts"

export type Posted = { status: number } | { problem: string }

/**
 * Sends one body to the address that was looked at, and to no other: the name is not looked up again, no redirect is
 * followed, no proxy of the environment is asked. Undefined when the signal came before the answer. Never throws.
 */
export function post(
  { url, address }: Target,
  headers: Record<string, string>,
  body: string,
  { timeoutMs, ca, signal }: { timeoutMs: number; ca?: string; signal?: AbortSignal },
): Promise<Posted | undefined> {
  const isTls = url.protocol === "https:"
  const isName = /[a-z]/i.test(url.hostname) && !url.hostname.startsWith("[")
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve(undefined)
    const ended = (posted: Posted | undefined) => {
      clearTimeout(timer)
      signal?.removeEventListener("abort", stopped)
      resolve(posted)
      sent.destroy()
    }
    const options = {
      method: "POST",
      host: address,
      port: url.port || (isTls ? 443 : 80),
      path: url.pathname + url.search,
      headers: { ...headers, Host: url.host, "Content-Length": Buffer.byteLength(body), Connection: "close" },
      // Of its own: the global one may be told by the environment to use a proxy.
      agent: isTls ? new TlsAgent() : new PlainAgent(),
      ...(isTls && isName && { servername: url.hostname.replace(/\.$/, "") }),
      ...(ca !== undefined && { ca }),
    }
    const sent = (isTls ? tlsRequest : plainRequest)(options, (response: IncomingMessage) =>
      ended({ status: response.statusCode ?? 0 }),
    )
    const timer = setTimeout(() => ended({ problem: `no answer within ${timeoutMs / 1000} s` }), timeoutMs)
    const stopped = () => ended(undefined)
    signal?.addEventListener("abort", stopped, { once: true })
    sent.on("error", (error: NodeJS.ErrnoException) => ended({ problem: error.code ?? error.message.slice(0, 200) }))
    sent.end(body)
  })
}
